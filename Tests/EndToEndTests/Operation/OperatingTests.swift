import Core
import FoundationEssentials
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

/// Commands of a person on uploads, from the built program.
@Suite("Operating the built program", .timeLimit(.minutes(Patience.minutes(2))))
struct OperatingTests {
    private struct Page: Decodable {
        struct Upload: Decodable {
            var id: String
            var state: String
            var list: String
            var generation: Int
            var context: [String: String]
        }
        var uploads: [Upload]
    }

    private func uploads(_ fixture: DaemonFixture, _ words: [String] = []) async throws -> [Page.Upload] {
        guard let text = try await fixture.runVerb("list", ["--json"] + words) else { return [] }
        return try JSONDecoder().decode(Page.self, from: Data(text.utf8)).uploads
    }

    /// A tus server that refuses the file for its own sake after its first bytes, until it is told otherwise.
    private final class Server: Sendable {
        struct State {
            var held: [UInt8] = []
            var length = 0
            var made = 0
            var exists = false
            var refuses = true
            var received = 0
        }
        let state = Mutex(State())
        static let first = 300_000

        func serve(_ exchange: Exchange) {
            switch exchange.method {
            case "OPTIONS": exchange.reply(204, [("Tus-Version", "1.0.0"), ("Tus-Extension", "creation,termination")])
            case "POST":
                let made = state.withLock { state in
                    state.made += 1
                    (state.held, state.exists) = ([], true)
                    state.length = exchange.header("upload-length").flatMap { Int($0) } ?? -1
                    return state.made
                }
                exchange.reply(201, [("Location", "/u/\(made)"), ("Tus-Resumable", "1.0.0")])
            case "HEAD", "DELETE":
                let now = state.withLock { $0 }
                guard now.exists, exchange.target == "/u/\(now.made)" else { return exchange.reply(404) }
                if exchange.method == "DELETE" {
                    state.withLock { $0.exists = false }
                    return exchange.reply(204)
                }
                exchange.reply(200, [("Upload-Offset", "\(now.held.count)"), ("Upload-Length", "\(now.length)")])
            case "PATCH":
                let now = state.withLock { $0 }
                let body = exchange.body(now.refuses ? Self.first : .max)
                let held = state.withLock { state in
                    state.received += body.count
                    state.held += body
                    return state.held.count
                }
                if now.refuses {
                    exchange.reply(400, [], "ERR_UPLOAD_REJECTED: not today")
                    return exchange.closeAfterwards()
                }
                exchange.reply(204, [("Upload-Offset", "\(held)")])
            default: exchange.reply(405)
            }
        }
    }

    @Test(
        "retry of a failed upload from the history resumes at the destination, or starts again if that is gone",
        arguments: [true, false])
    func history(_ isThere: Bool) async throws {
        let server = Server()
        let http = try FakeServer { server.serve($0) }
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.destination = http.url + "/files"
        // The refused request is not the last one: after that one a new upload is begun.
        fixture.destinationKeys = ", chunk_size: 400 KiB"
        let camera = Camera(fixture, dice: Dice(seed: 1))
        let clip = Clip(number: 0, size: 1_000_000, relative: "clip.mp4")
        try camera.drop(clip)
        try fixture.startDaemon()
        let failed = try await eventually("the upload has failed") {
            try await uploads(fixture, ["--list", "failed"]).first
        }
        #expect(try await fixture.runVerb("remove", [failed.id])?.hasPrefix("removed \(failed.id)") == true)
        #expect(try await uploads(fixture).isEmpty)
        try await eventually("the staged copy has been deleted") {
            try Outcome.files(in: fixture.staging, hidden: true).isEmpty
        }
        let held = server.state.withLock { state in
            state.refuses = false
            state.received = 0
            if !isThere { state.exists = false }
            return state.held.count
        }
        #expect(held == Server.first)
        fixture.killDaemon()
        try fixture.startDaemon()
        let said = try await eventually("the daemon has retried the upload") {
            try await fixture.runVerb("retry", [failed.id])
        }
        #expect(said.hasPrefix("retried \(failed.id)"))
        try await eventually("the source has been released") {
            try Outcome.files(in: fixture.drop, hidden: true).isEmpty
        }
        let end = server.state.withLock { $0 }
        #expect(end.held == clip.content && end.made == (isThere ? 1 : 2))
        #expect(end.received == clip.content.count - (isThere ? held : 0))
        let done = try #require(try await uploads(fixture, ["--list", "completed"]).first)
        #expect(done.id == failed.id && done.generation == 2)
    }

    @Test(
        "a manual pause survives a lost network, window edges and a restart, until resume"
    )
    func paused() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try await fixture.startReceiver()
        try fixture.startDaemon()
        _ = try await eventually("the daemon has paused") { try await fixture.runVerb("pause") }
        try camera.drop(Clip(number: 0, size: 10_000, relative: "held.mp4"))
        let held = try await eventually("the file has an upload") { try await uploads(fixture).first }
        _ = try await fixture.runVerb("pause", [held.id])
        _ = try await fixture.runVerb("resume")
        func isHeld(_ when: String, _ number: Int) async throws {
            // Another file is uploaded anyway: any effect on the held one would have happened by now.
            try camera.drop(Clip(number: number, size: 10_000, relative: FilePath("\(number).mp4")))
            try await eventually("another file is uploaded \(when)", within: .seconds(30)) {
                try FileStatus.ifPresent(at: fixture.received.appending(FilePath("\(number).mp4"))) != nil
            }
            #expect(try await uploads(fixture, ["--state", "paused"]).map(\.id) == [held.id], "\(when)")
        }
        try await isHeld("at first", 1)
        fixture.killReceiver()
        try camera.drop(Clip(number: 2, size: 10_000, relative: "2.mp4"))
        try await eventually("the destination is held") {
            try await fixture.runVerb("status", ["--json"])?.contains("\"kind\":\"destination\"") == true
        }
        try await fixture.startReceiver()
        try await isHeld("with the network back", 3)
        for (keys, word) in [(["windows: [\"mon 03:00-03:01\"]"], "rule"), ([], "")] {
            fixture.policyKeys = keys
            try fixture.writeConfiguration()
            _ = try await eventually("the daemon has reloaded") { try await fixture.runVerb("reload") }
            if word.isEmpty { continue }
            try await eventually("the window has closed") {
                try await fixture.runVerb("show", ["--json", held.id])?.contains("\"kind\":\"\(word)\"") == true
            }
        }
        try await isHeld("with the window open", 4)
        let log = try #require(try fixture.daemon?.standardError())
        #expect(log.contains("a person gave a command verb=pause what=everything by="))
        #expect(log.contains("a person gave a command verb=pause what=\(held.id) by="))
        #expect(log.contains("uploads wait folder=camera destination=nas hold=rule"))
        #expect(log.contains("uploads continue folder=camera destination=nas hold=rule"))
        fixture.killDaemon()
        try fixture.startDaemon()
        try await isHeld("after a restart", 5)
        _ = try await fixture.runVerb("resume", [held.id])
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait()
        try await outcome.check()
    }

    @Test("a context of 8 KiB survives a restart, events and a retry, and one more byte is refused")
    func context() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.destination = "http://127.0.0.1:1/files"
        fixture.folderKeys = ["exclude: [\"*.bin\"]"]
        try fixture.startDaemon()
        let path = try fixture.folder.write("drop/a.bin", noise(1_000)).display
        // Eight of 1,024 bytes with their names, each of two letters.
        let pairs = (0..<8).map { ("k\($0)", String(repeating: "v", count: 1022)) }
        let words = pairs.flatMap { ["--context", "\($0.0)=\($0.1)"] }
        try await eventually("the daemon answers") { try await fixture.runVerb("status") != nil }
        #expect(try await fixture.runVerb("add", [path] + words + ["--context", "x="]) == nil)
        #expect(try await uploads(fixture).isEmpty)
        #expect(try await fixture.runVerb("add", [path] + words) != nil)
        let wanted = Dictionary(uniqueKeysWithValues: pairs)
        func isWhole(_ generation: Int) async throws -> Bool {
            let all = try await uploads(fixture)
            return all.map(\.context) == [wanted] && all.first?.generation == generation
        }
        #expect(try await isWhole(1))
        fixture.killDaemon()
        try fixture.startDaemon()
        try await eventually("the context is complete after the restart") { try await isWhole(1) }
        _ = try await fixture.runVerb("cancel", [path])
        _ = try await fixture.runVerb("retry", [path])
        #expect(try await isWhole(2))
        let socket = fixture.folder.path.appending("control.sock")
        let follower = try Child(
            fixture.binary, ["events", "--since", "0", "--json", "--socket", socket.display],
            output: fixture.folder.path.appending("events"), errors: fixture.folder.path.appending("events.err"))
        defer { follower.end(with: SIGKILL) }
        try await eventually("the event of the cancel has arrived") {
            try follower.standardOutput().contains("\"type\":\"cancelled\"")
        }
        struct Event: Decodable {
            var type: String
            var op: Page.Upload?
        }
        let ended = try follower.standardOutput().split(separator: "\n").compactMap {
            try? JSONDecoder().decode(Event.self, from: Data($0.utf8))
        }
        #expect(ended.first { $0.type == "cancelled" }?.op?.context == wanted)
    }

    @Test("no command shows a secret, as text or JSON, nor does the log")
    func secrets() async throws {
        let canary = "Zq7canaryX9k2"
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        // The receiver refuses no unexpected header, so headers and tokens are sent to it.
        let token = fixture.folder.path.appending("token")
        try Files.replace(token, with: Array((canary + "-file\n").utf8))
        fixture.destinationKeys =
            ", token: {literal: \"\(canary)-token\"}, http: {headers: {X-Site: {literal: \"\(canary)-header\"}}}"
        fixture.controlKeys = ", listen: \"127.0.0.1:0\", tokens: [{name: me, secret: {file: \(token.display)}}]"
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try camera.drop(Clip(number: 0, size: 10_000, relative: "sent.mp4"))
        let id = try await eventually("one upload is complete") {
            try await uploads(fixture, ["--list", "completed"]).first?.id
        }
        fixture.killReceiver()
        try camera.drop(Clip(number: 1, size: 10_000, relative: "held.mp4"))
        try await eventually("the destination is held") {
            try await fixture.runVerb("status", ["--json"])?.contains("\"kind\":\"destination\"") == true
        }
        let config = ["--config", fixture.config.display]
        let asked: [[String]] = [
            ["check"], ["config"], ["doctor"], ["status"], ["list"], ["show", id], ["why", id], ["plan"], ["usage"],
            ["metrics"], ["pause"], ["resume"], ["retry", "--all"], ["reload"], ["rescan"], ["flush"],
            ["list", "--list", "history"], ["show", "held.mp4"], ["why", "held.mp4"], ["cancel", "held.mp4"],
            ["completions", "bash"], ["help"],
        ]
        for words in asked {
            for more in words.count > 1 && words[0] == "completions" || words == ["help"] ? [[]] : [[], ["--json"]] {
                let place = fixture.folder.path.appending("asked")
                let child = try Child(
                    fixture.binary,
                    [words[0]] + (words[0] == "completions" || words[0] == "help" ? [] : config)
                        + words.dropFirst() + more, output: place, errors: fixture.folder.path.appending("asked.err"))
                _ = try await child.end(within: .seconds(60))
                let said = try child.standardOutput() + child.standardError()
                #expect(!said.contains(canary), "\(words) \(more): \(said)")
                #expect(!said.isEmpty, "\(words) \(more)")
            }
        }
        #expect(try fixture.daemon?.standardError().contains(canary) == false)
        // The kernel shows the arguments of every process to all users.
        let pid = try #require(fixture.daemon?.pid)
        #expect(try !String(decoding: Files.read(FilePath("/proc/\(pid)/cmdline")), as: UTF8.self).contains(canary))
    }
}
