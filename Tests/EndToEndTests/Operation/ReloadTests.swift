import Core
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

/// `sluice reload` and SIGHUP, from the built program.
@Suite("Reload", .serialized, .timeLimit(.minutes(Patience.minutes(3))))
struct ReloadTests {
    /// A tus server that holds every body until it is released, and counts the requests.
    private final class SlowServer: Sendable {
        private struct State {
            var isOpen = false
            var creations = 0
            var received = 0
        }

        private let state = Mutex(State())

        var received: Int { state.withLock { $0.received } }
        var creations: Int { state.withLock { $0.creations } }
        func letGo() { state.withLock { $0.isOpen = true } }

        func serve(_ exchange: Exchange) {
            switch exchange.method {
            case "OPTIONS":
                exchange.reply(204, [("Tus-Version", "1.0.0"), ("Tus-Extension", "creation,termination")])
            case "POST":
                state.withLock { $0.creations += 1 }
                exchange.reply(201, [("Location", "/u"), ("Tus-Resumable", "1.0.0")])
            case "HEAD":
                let held = state.withLock { $0.received }
                exchange.reply(200, [("Upload-Offset", "\(held)"), ("Tus-Resumable", "1.0.0")])
            case "PATCH":
                let body = exchange.body()
                while !state.withLock({ $0.isOpen }) { usleep(10_000) }
                let held = state.withLock { state in
                    state.received += body.count
                    return state.received
                }
                exchange.reply(204, [("Upload-Offset", "\(held)")])
            default: exchange.reply(405)
            }
        }
    }

    private struct Ran {
        let ending: Child.Ending
        let output: String
        let errors: String
    }

    private func sluice(_ fixture: DaemonFixture, _ words: [String]) async throws -> Ran {
        let name = hexadecimal(Random.bytes(4))
        let child = try Child(
            fixture.binary, words, output: fixture.folder.path.appending(FilePath(name + ".out")),
            errors: fixture.folder.path.appending(FilePath(name + ".err")))
        let ending = try await child.end(within: .seconds(20))
        return Ran(ending: ending, output: try child.standardOutput(), errors: try child.standardError())
    }

    private func reload(_ fixture: DaemonFixture) async throws -> Ran {
        // The socket's path is given, because an unreadable file does not name it.
        try await sluice(
            fixture,
            [
                "reload", "--config", fixture.config.display, "--socket",
                fixture.folder.path.appending("control.sock").display,
            ])
    }

    private func ready(_ fixture: DaemonFixture) async throws {
        try await eventually("the daemon answers", every: .milliseconds(50)) { try await fixture.status() != nil }
    }

    private func text(_ path: FilePath) throws -> String {
        String(decoding: try Files.read(path, limit: 1 << 20), as: UTF8.self)
    }

    @Test("200 reloads during an upload: it arrives once, no byte is sent twice, and nothing leaks")
    func many() async throws {
        let slow = SlowServer()
        let server = try FakeServer { slow.serve($0) }
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.destination = server.url + "/files"
        try fixture.startDaemon()
        try await ready(fixture)
        let size = 300_000
        let beside = try fixture.folder.write("beside/clip.mp4", noise(size))
        try Files.rename(beside, to: fixture.drop.appending("clip.mp4"))
        try await eventually("the upload has been created at the server") { slow.creations == 1 }
        let daemon = try #require(fixture.daemon)
        let process = FilePath("/proc/\(daemon.pid)")
        func count(_ what: String) throws -> Int { try Files.names(in: process.appending(FilePath(what))).count }
        #expect(try await reload(fixture).ending == .status(0))
        let (files, threads) = (try count("fd"), try count("task"))
        let plain = try text(fixture.config)
        for number in 0..<100 {
            // A value changes each time, and a folder is added and removed.
            let extra = fixture.folder.path.appending("extra")
            try Files.makeFolders(extra)
            let more = "folders:\n  - {name: extra, path: \(extra.display), upload_to: [nas]}\n"
            let changed = plain.replacing("per_destination: 4", with: "per_destination: \(number % 3 + 1)")
            let text = number % 2 == 0 ? changed.replacing("folders:\n", with: more) : changed
            try Files.replace(fixture.config, with: Array(text.utf8))
            let ran = try await reload(fixture)
            #expect(ran.ending == .status(0), "\(ran.errors)")
            daemon.send(SIGHUP)
        }
        #expect(slow.received == 0)
        // Threads of a pool start and end by themselves.
        try await eventually("no surplus descriptor is open") { try count("fd") <= files + 3 }
        try await eventually("no surplus thread runs") { try count("task") <= threads + 4 }
        slow.letGo()
        try await eventually("the upload is complete") { try await fixture.status()?.counts.completed == 1 }
        #expect(slow.received == size)
        #expect(slow.creations == 1)
        #expect(server.seen.filter { $0.hasPrefix("PATCH") }.count == 1)
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test("an upload redirected by its server waits, names the setting that permits it, and continues with it, once")
    func otherOrigin() async throws {
        let slow = SlowServer()
        slow.letGo()
        let storage = try FakeServer { slow.serve($0) }
        let storageURL = storage.url
        let server = try FakeServer { exchange in
            guard exchange.method == "POST" else { return slow.serve(exchange) }
            exchange.reply(201, [("Location", storageURL + "/u?signature=Zq7canary"), ("Tus-Resumable", "1.0.0")])
        }
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.destination = server.url + "/files"
        try fixture.startDaemon()
        try await ready(fixture)
        let clip = fixture.drop.appending("clip.mp4")
        try Files.rename(try fixture.folder.write("beside/clip.mp4", noise(30_000)), to: clip)
        let line = "allow_origins: [\(storageURL)]"
        let told = try await eventually("`why` names the line to configure") {
            let said = try await sluice(fixture, ["why", "clip.mp4", "--config", fixture.config.display]).output
            return said.contains(line) ? said : nil
        }
        #expect(!told.contains("Zq7canary"), "\(told)")
        #expect(storage.connectionCount == 0)
        #expect(try await fixture.status()?.counts.failed == 0)
        // No attempt is used, and the source stays.
        #expect(try FileStatus.ifPresent(at: clip) != nil)
        let allowed = try text(fixture.config).replacing("type: tus", with: "type: tus, \(line)")
        try Files.replace(fixture.config, with: Array(allowed.utf8))
        let ran = try await reload(fixture)
        #expect(ran.ending == .status(0), "\(ran.errors)")
        try await eventually("the upload is complete") { try await fixture.status()?.counts.completed == 1 }
        #expect(slow.received == 30_000)
        #expect(server.seen.filter { $0.hasPrefix("POST") }.count == 1)
        #expect(
            storage.seen.filter { $0.hasPrefix("PATCH") }.count == 1 && storage.seen.first?.hasPrefix("HEAD") == true)
        try await eventually("the source has been released") { try FileStatus.ifPresent(at: clip) == nil }
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test("a broken file gives status 78 with place and reason, and the old settings stay in force")
    func hostile() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await ready(fixture)
        let good = try text(fixture.config)
        let file = fixture.config.display
        let cases: [(text: String, words: String)] = [
            ("folders: [", "\(file):1:"), ("", "\(file): is empty"), (String(good.prefix(good.count / 2)), file),
            (good + "bogus: 1\n", "bogus: no setting is called `bogus`"),
            (good.replacing("upload_to: [nas]", with: "upload_to: [nsa]"), "did you mean `nas`?"),
            (good.replacing("/state\n", with: "/state2\n"), "state: cannot change"),
            (good.replacing("control.sock", with: "other.sock"), "control.socket: cannot change"),
            (good.replacing("{path: ", with: "{path: /tmp"), "staging.path: cannot change"),
            (good.replacing("type: tus", with: "type: tus, token: {file: /nowhere/token}"), "/nowhere/token"),
            ("\u{0}\u{1}", file),
        ]
        for (text, words) in cases {
            try Files.replace(fixture.config, with: Array(text.utf8))
            let ran = try await reload(fixture)
            #expect(ran.ending == .status(78), "\(text): \(ran.output)\(ran.errors)")
            #expect(ran.errors.contains(words), "\(ran.errors)")
            #expect(ran.errors.hasSuffix("Nothing was reloaded: the old configuration stays in force.\n"))
        }
        try Files.removeIfPresent(fixture.config)
        #expect(try await reload(fixture).ending == .status(78))
        try Files.makeFolders(fixture.config)
        #expect(try await reload(fixture).ending == .status(78))
        #expect(rmdir(fixture.config.display) == 0)
        try Files.replace(fixture.config, with: Array(good.utf8))
        let addition = try fixture.folder.write("config.d/more.yaml", Array("folders: 7\n".utf8))
        #expect(try await reload(fixture).errors.contains("more.yaml:1:10"))

        let more = fixture.folder.path.appending("more")
        try Files.makeFolders(more)
        try Files.replace(
            addition, with: Array("folders: [{name: more, path: \(more.display), upload_to: [nas]}]\n".utf8))
        let ran = try await reload(fixture)
        #expect(ran.ending == .status(0))
        #expect(ran.output == "folder more added\n")
        try await eventually("the new folder is watched") {
            try await fixture.status()?.folders.map(\.name) == ["camera", "more"]
        }
        let clip = try fixture.folder.write("beside/clip.mp4", noise(1000))
        try Files.rename(clip, to: fixture.drop.appending("clip.mp4"))
        try await eventually("a file is still uploaded") { try await fixture.status()?.counts.completed == 1 }
        #expect(try await fixture.stopDaemon() == .status(0))
        let gone = try await reload(fixture)
        #expect(gone.ending == .status(69))
        let log = try #require(try fixture.daemon?.standardError())
        #expect(log.contains("configuration reloaded changes=\"folder more added\""))
        #expect(log.split(separator: "\n").count { $0.contains("configuration not reloaded") } >= cases.count + 3)
    }
}
