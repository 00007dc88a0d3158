import Core
import Foundation
import Linux
import Synchronization
import TestKit
import TestTraits
import Testing

/// `sluice add`, from the built program.
@Suite("Adding by hand", .needsPackages, .timeLimit(.minutes(Patience.minutes(2))))
struct AddingTests {
    /// The ending and the output of a verb.
    private func run(_ fixture: DaemonFixture, _ words: [String]) async throws -> (Child.Ending, String) {
        let name = hexadecimal(Random.bytes(6))
        let child = try Child(
            fixture.binary, [words[0], "--config", fixture.config.display] + words.dropFirst(),
            output: fixture.folder.path.appending(FilePath("\(name).out")),
            errors: fixture.folder.path.appending(FilePath("\(name).err")))
        let ending = try await child.end(within: .seconds(20))
        return (ending, try child.standardOutput() + child.standardError())
    }

    @Test("an added folder is taken with all accepted files below it, once, and counted")
    func folders() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        // Existing files are left alone until a person adds them.
        fixture.folderKeys = ["existing: skip", "include: [\"*.mp4\"]"]
        let old = fixture.drop.appending("old")
        try Files.makeFolders(old.appending("deep/.hidden"))
        try Files.makeFolders(old.appending("left out"))
        try Files.makeFolders(old.appending("words"))
        var wanted: [FilePath: [UInt8]] = [:]
        for number in 0..<450 {
            let name = FilePath(number % 2 == 0 ? "old/\(number).mp4" : "old/deep/\(number).mp4")
            wanted[name] = noise(100 + number, seed: UInt64(number))
            try Files.replace(fixture.drop.appending(name), with: wanted[name] ?? [])
        }
        for name in [
            "old/.dot.mp4", "old/deep/.hidden/x.mp4", "old/words/notes.txt", "old/half.mp4.part", "old/left out/y.mp4",
        ] {
            try Files.replace(fixture.drop.appending(FilePath(name)), with: noise(50))
        }
        try Files.replace(old.appending("empty.mp4"), with: [])
        try Files.replace(fixture.drop.appending("other.mp4"), with: noise(60))
        // A line of the folder above applies below it.
        try Files.replace(fixture.drop.appending(".sluiceignore"), with: Array("left out/\n".utf8))
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await eventually("the folder has been scanned", every: .milliseconds(50)) {
            try await fixture.status()?.folders.first?.state == "watching"
        }

        let (ending, said) = try await run(fixture, ["add", old.display])
        #expect(ending == .status(0))
        #expect(said == "added 450 uploads of \(old.display)\n")
        try await eventually("all uploads are complete", within: .seconds(60), every: .milliseconds(100)) {
            try await fixture.status()?.counts.completed == 450
        }
        let received = try Outcome.files(in: fixture.received, hidden: false)
        #expect(Set(received) == Set(wanted.keys))
        for (name, content) in wanted { #expect(try Files.read(fixture.received.appending(name)) == content) }

        let (twice, words) = try await run(fixture, ["add", old.display])
        #expect(twice == .status(65))
        #expect(
            words.contains("added 0 uploads") && words.contains("450 could not be added, the first because"), "\(words)"
        )
        #expect(words.contains("--again"))
        let (third, json) = try await run(fixture, ["add", old.appending("deep").display, "--again", "--json"])
        #expect(third == .status(0))
        #expect(json.contains("\"count\":225"), "\(json.suffix(300))")
        let (nothing, why) = try await run(fixture, ["add", old.appending("words").display])
        #expect(nothing == .status(66) && why.contains("no configured folder accepts"), "\(why)")
        // Known files in it are no obstacle to the rest.
        // A person who names it wants it, regardless of the line above.
        let (named, one) = try await run(fixture, ["add", old.appending("left out").display])
        #expect(named == .status(0) && one.hasPrefix("added 1 upload of "), "\(one)")
        let (mixed, both) = try await run(fixture, ["add", fixture.folder.path.display])
        #expect(mixed == .status(0), "\(both)")
        // The other file of the drop folder, and no file from folders that are not configured.
        #expect(both.hasPrefix("added 1 upload of ") && both.contains("450 could not be added"), "\(both)")
        let (outside, where_) = try await run(fixture, ["add", fixture.received.display])
        #expect(outside == .status(64) && where_.contains("is not below a configured folder"), "\(where_)")
        let (keyed, reason) = try await run(fixture, ["add", old.display, "--key", "k"])
        #expect(keyed == .status(64) && reason.contains("names one upload"), "\(reason)")
        #expect(try await fixture.stopDaemon() == .status(0))
        #expect(try Ledger.integrity(of: fixture.state) == ["ok"])
    }

    /// The methods and headers of the requests to one server.
    private final class Received: Sendable {
        let lines = Mutex<[String]>([])
        func note(_ exchange: Exchange) {
            lines.withLock {
                $0.append(
                    "\(exchange.method) \(exchange.header("X-Secret") ?? "-") \(exchange.header("X-Both") ?? "-")")
            }
        }
        var methods: Set<String> {
            Set(lines.withLock { $0 }.compactMap { $0.split(separator: " ").first.map(String.init) })
        }
    }

    @Test("a refusal caused by an upload's own headers ends that upload only, and holds no other")
    func refusedHeaders() async throws {
        let held = Mutex(0)
        let server = try FakeServer { exchange in
            let version = ("Tus-Resumable", "1.0.0")
            if exchange.header("X-Odd") != nil { return exchange.reply(401, [version], "who are you") }
            switch exchange.method {
            case "OPTIONS": exchange.reply(204, [version, ("Tus-Version", "1.0.0"), ("Tus-Extension", "creation")])
            case "POST":
                held.withLock { $0 = 0 }
                exchange.reply(201, [version, ("Location", "/files/1")])
            case "PATCH":
                let count = exchange.body().count
                let offset = held.withLock { held in
                    held += count
                    return held
                }
                exchange.reply(204, [version, ("Upload-Offset", "\(offset)")])
            default:
                exchange.reply(
                    200, [version, ("Upload-Offset", "\(held.withLock { $0 })"), ("Upload-Length", "1000")])
            }
        }
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.folderKeys = ["exclude: [\"*\"]"]
        fixture.destination = server.url + "/files"
        try fixture.startDaemon()
        try await eventually("the daemon has started", every: .milliseconds(50)) {
            try await fixture.status()?.starting == false
        }
        for (name, more) in [("odd.mp4", ["--header", "X-Odd: 1"]), ("plain.mp4", [])] {
            let path = fixture.drop.appending(FilePath(name))
            try Files.replace(path, with: noise(1000))
            let (ending, said) = try await run(fixture, ["add", path.display] + more)
            #expect(ending == .status(0), "\(said)")
            try await eventually("the upload of \(name) has ended") {
                let counts = try await fixture.status()?.counts
                return more.isEmpty ? counts?.completed == 1 : counts?.failed == 1
            }
        }
        let shown = try await run(fixture, ["show", "odd.mp4"]).1
        #expect(shown.contains("so other uploads do not wait for it") && shown.contains("(final)"), "\(shown)")
    }

    @Test("a login portal does not end an upload that has a header of its own")
    func portal() async throws {
        let isPortal = Mutex(true)
        let server = try FakeServer { exchange in
            if isPortal.withLock({ $0 }) { return exchange.reply(302, [("Location", "http://portal.test/")]) }
            let version = ("Tus-Resumable", "1.0.0")
            switch exchange.method {
            case "OPTIONS": exchange.reply(204, [version, ("Tus-Version", "1.0.0"), ("Tus-Extension", "creation")])
            case "POST": exchange.reply(201, [version, ("Location", "/files/1")])
            case "PATCH": exchange.reply(204, [version, ("Upload-Offset", "\(exchange.body().count)")])
            default: exchange.reply(200, [version, ("Upload-Offset", "1000"), ("Upload-Length", "1000")])
            }
        }
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.folderKeys = ["exclude: [\"*\"]"]
        fixture.destination = server.url + "/files"
        try fixture.startDaemon()
        try await eventually("the daemon has started", every: .milliseconds(50)) {
            try await fixture.status()?.starting == false
        }
        let path = fixture.drop.appending("odd.mp4")
        try Files.replace(path, with: noise(1000))
        let (ending, said) = try await run(fixture, ["add", path.display, "--header", "X-Odd: 1"])
        #expect(ending == .status(0), "\(said)")
        try await eventually("the upload waits for the destination") {
            try await fixture.runVerb("why", ["odd.mp4"])?.contains("a login portal") == true
        }
        #expect(try await fixture.status()?.counts.failed == 0)
        isPortal.withLock { $0 = false }
        _ = try await run(fixture, ["resume"])
        try await eventually("the upload has arrived") { try await fixture.status()?.counts.completed == 1 }
    }

    @Test("a header of one upload is sent with all its requests to its own destination, and shown nowhere")
    func headers() async throws {
        let secret = "Zq7canaryX9k2"
        let (own, strange) = (Received(), Received())
        // The server sends an upload to a place that was not allowed.
        let other = try FakeServer { exchange in
            strange.note(exchange)
            exchange.reply(exchange.method == "HEAD" ? 404 : 503, [], "\(secret) is what you sent")
        }
        let otherURL = other.url
        let server = try FakeServer { exchange in
            own.note(exchange)
            let version = ("Tus-Resumable", "1.0.0")
            switch exchange.method {
            case "OPTIONS":
                exchange.reply(204, [version, ("Tus-Version", "1.0.0"), ("Tus-Extension", "creation,termination")])
            case "POST":
                _ = exchange.body()
                let isElsewhere = exchange.header("X-Elsewhere") != nil
                exchange.reply(201, [version, ("Location", (isElsewhere ? otherURL : "") + "/files/1")])
            case "HEAD": exchange.reply(200, [version, ("Upload-Offset", "0"), ("Upload-Length", "1000")])
            case "PATCH":
                _ = exchange.body()
                exchange.reply(503, [version], "\(secret) is what you sent")
            default: exchange.reply(204, [version])
            }
        }
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.uploadTo = ["nas", "archive"]
        fixture.folderKeys = ["exclude: [\"*\"]"]
        fixture.destination = server.url + "/files"
        fixture.destinationKeys = ", http: {headers: {X-Both: {literal: theirs}}}"
        try fixture.startDaemon()
        try await eventually("the daemon has started", every: .milliseconds(50)) {
            try await fixture.status()?.starting == false
        }
        for (name, more) in [("a.mp4", []), ("b.mp4", ["--header", "X-Elsewhere: 1"])] {
            let path = fixture.drop.appending(FilePath(name))
            try Files.replace(path, with: noise(1000))
            let (ending, said) = try await run(
                fixture,
                ["add", path.display, "--to", "nas", "--header", "X-Secret: \(secret)", "--header", "x-both:  mine "]
                    + more)
            #expect(ending == .status(0), "\(said)")
            if more.isEmpty {
                try await eventually("the server has had all kinds of requests") {
                    own.methods.isSuperset(of: ["POST", "PATCH", "HEAD"])
                }
                // A kill removes none of it.
                fixture.killDaemon()
                try fixture.startDaemon()
                own.lines.withLock { $0 = [] }
                try await eventually("the transfer continues") { own.methods.contains("PATCH") }
                try await eventually("the upload is cancelled") {
                    try await run(fixture, ["cancel", "a.mp4"]).0 == .status(0)
                }
                try await eventually("the remains have been removed") { own.methods.contains("DELETE") }
            } else {
                try await eventually("`why` names the setting that allows the other server") {
                    try await run(fixture, ["why", "b.mp4"]).1.contains("`allow_origins: [\(otherURL)]`")
                }
            }
        }
        for line in own.lines.withLock({ $0 }) where !line.hasPrefix("OPTIONS") {
            #expect(line.hasSuffix(" \(secret) mine"))
        }
        #expect(strange.lines.withLock { $0 }.isEmpty && other.connectionCount == 0)

        let shown = try await run(fixture, ["show", "b.mp4", "--json"]).1
        #expect(shown.contains(#""headers":["X-Elsewhere","X-Secret","x-both"]"#), "\(shown)")
        let screen = try await run(fixture, ["show", "b.mp4"]).1
        #expect(screen.contains("headers") && screen.contains("X-Elsewhere, X-Secret, x-both"), "\(screen)")
        var all = shown + (try fixture.daemon?.standardError() ?? "")
        for words in [
            ["show", "b.mp4"], ["show", "a.mp4"], ["list", "--json"], ["status", "--json"], ["why", "b.mp4"],
        ] {
            all += try await run(fixture, words).1
        }
        let wire = try Wire(unix: fixture.folder.path.appending("control.sock"))
        try await wire.send("GET /v1/events?since=0&types=added,state,attempt,cancelled HTTP/1.0\r\nHost: x\r\n\r\n")
        all += try await wire.read(through: "cancelled")
        #expect(!all.contains(secret))
        #expect(!all.contains("mine"))
    }

    @Test(
        "an invalid or reserved header is refused, and its value is not repeated",
        arguments: [
            ("nas", "X-Secret", "takes 'Name: value'"), ("nas", "X Secret: Zq7canary", "takes 'Name: value'"),
            ("nas", "Upload-Offset: Zq7canary", "belongs to the protocol"),
            ("nas", "Host: Zq7canary", "belongs to the protocol"),
            ("nas", "X-Secret: Zq7canary\r\nX: y", "printable ASCII"), ("nas", "X(): Zq7canary", "takes names of"),
            ("archive", "X-Secret: Zq7canary", "makes no requests"),
        ])
    func refused(_ to: String, _ header: String, _ words: String) async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.uploadTo = ["nas", "archive"]
        fixture.folderKeys = ["exclude: [\"*\"]"]
        fixture.destination = "http://127.0.0.1:9/"
        try fixture.startDaemon()
        try await eventually("the daemon has started", every: .milliseconds(50)) {
            try await fixture.status()?.starting == false
        }
        let path = fixture.drop.appending("a.mp4")
        try Files.replace(path, with: noise(100))
        let (ending, said) = try await run(fixture, ["add", path.display, "--to", to, "--header", header])
        #expect(ending == .status(64) && said.contains(words) && !said.contains("Zq7canary"), "\(said)")
        #expect(try await fixture.status()?.counts.ongoing == 0)
    }

    @Test(
        "an upload with its own address goes only there, in spite of kills and a retry",
        arguments: [nil, "opening", "opened"])
    func address(_ step: String?) async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        let (held, script) = (
            fixture.folder.path.appending("held"),
            Repository.root.appending("Tests/Fixtures/tussi_server.py")
        )
        try Files.makeFolders(held)
        let server = try Child(
            try await blocking { try Tools.python("tus") }.appending("python"),
            [script.display, held.display, "other"],
            output: fixture.folder.path.appending("out"), errors: fixture.folder.path.appending("err"))
        let origin = "http://127.0.0.1:\(try await server.line(after: "ready "))"
        fixture.destination = origin + "/files/"
        fixture.folderKeys = ["exclude: [\"*\"]"]
        try fixture.startDaemon(environment: step.map { ["SLUICE_TEST_CRASH": $0] } ?? [:])
        try await eventually("the daemon has started, or was killed as planned", every: .milliseconds(50)) {
            try await fixture.status()?.starting == false
        }
        let path = fixture.drop.appending("a.mp4")
        try Files.replace(path, with: noise(100_000))
        for url in [
            origin.replacing("127.0.0.1", with: "127.0.0.2") + "/other/", "https" + origin.dropFirst(4) + "/other/",
        ] {
            let (ending, said) = try await run(fixture, ["add", path.display, "--url", url])
            #expect(ending == .status(64) && said.contains("configure a destination for that server"), "\(said)")
        }
        let (ending, said) = try await run(
            fixture, ["add", path.display, "--url", origin + "/other/?token=Zq7canary"])
        #expect(ending == .status(0), "\(said)")
        if let step {
            #expect(try await #require(fixture.daemon).end(within: .seconds(20)) == .signal(SIGKILL), "\(step)")
            try fixture.startDaemon()
        }
        try await eventually("the upload is complete", every: .milliseconds(50)) {
            try await fixture.status()?.counts.completed == 1
        }
        // The folder of complete files of the server's other endpoint. A creation without an answer may have left an
        // empty file beside it.
        func files(_ name: FilePath) throws -> [[UInt8]] {
            try Outcome.files(in: held.appending(name), hidden: true).map {
                try Files.read(held.appending(name).appending($0))
            }
        }
        try await eventually("the server has the whole file") { try files("other/done").contains(noise(100_000)) }
        #expect(try files("done").isEmpty && files("stage").isEmpty)
        let shown = try await run(fixture, ["show", "a.mp4"]).1
        #expect(shown.contains("\(origin)/other/?token=***"), "\(shown)")
        #expect(!shown.contains("Zq7canary"))
        #expect(try fixture.daemon?.standardError().contains("Zq7canary") == false)
    }

    @Test("a file goes to the upload whose address was given, and no output shows that address")
    func givenUpload() async throws {
        let held = Mutex<[UInt8]>([])
        let server = try FakeServer { exchange in
            let body = exchange.body()
            switch exchange.method {
            case "HEAD", "PATCH":
                let count = held.withLock { held in
                    held += body
                    return held.count
                }
                exchange.reply(exchange.method == "HEAD" ? 200 : 204, [("Upload-Offset", "\(count)")])
            default: exchange.reply(404)
            }
        }
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.destination = server.url + "/files/"
        fixture.folderKeys = ["exclude: [\"*\"]"]
        try fixture.startDaemon()
        try await eventually("the daemon has started", every: .milliseconds(50)) {
            try await fixture.status()?.starting == false
        }
        let path = fixture.drop.appending("a.mp4")
        try Files.replace(path, with: noise(100_000))
        let (ending, said) = try await run(
            fixture, ["add", path.display, "--upload-url", server.url + "/u/Zq7canary"])
        #expect(ending == .status(0), "\(said)")
        try await eventually("the upload is complete", every: .milliseconds(50)) {
            try await fixture.status()?.counts.completed == 1
        }
        #expect(held.withLock { $0 } == noise(100_000) && !server.seen.contains { $0.hasPrefix("POST") })
        let shown = try await run(fixture, ["show", "a.mp4"]).1
        #expect(shown.contains("at \(server.url)") && !shown.contains("Zq7canary"), "\(shown)")
        #expect(try fixture.daemon?.standardError().contains("Zq7canary") == false)
    }

    @Test("a destination without addresses refuses one")
    func addressOfFolder() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.uploadTo = ["archive"]
        fixture.folderKeys = ["exclude: [\"*\"]"]
        try fixture.startDaemon()
        try await eventually("the daemon has started", every: .milliseconds(50)) {
            try await fixture.status()?.starting == false
        }
        let path = fixture.drop.appending("a.mp4")
        try Files.replace(path, with: noise(100))
        let (ending, said) = try await run(fixture, ["add", path.display, "--url", "http://127.0.0.1:9/"])
        #expect(ending == .status(64) && said.contains("it creates no uploads at an address"), "\(said)")
        let (end, words) = try await run(fixture, ["add", path.display, "--upload-url", "http://127.0.0.1:9/"])
        #expect(end == .status(64) && words.contains("it sends to no upload that exists"), "\(words)")
    }
}
