import Core
import Digests
import FoundationEssentials
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

/// Hooks as a user has them: programs and a server, notified by the built program.
@Suite("Hooks, with the built program", .timeLimit(.minutes(Patience.minutes(3))))
struct HookTests {
    private typealias Scene = HookFixture.Scene
    private typealias Web = HookFixture.Web

    @Test("a command receives each completed and failed upload of its folder as one JSON object, and no other event")
    func command() async throws {
        let scene = try Scene()
        let tell = try scene.script("tell", "cat >> \(scene.out.display)")
        let other = scene.fixture.folder.path.appending("other")
        let tellOther = try scene.script("tell-other", "cat >> \(other.display)")
        scene.fixture.archiveKeys = ", taken: fail"
        scene.fixture.topKeys = [
            "hooks:", "  - {name: tell, command: [\(tell.display)], folders: [camera], destinations: [archive]}",
            "  - {on: [added], command: [\(tellOther.display)]}",
        ]
        try Files.replace(scene.fixture.archive.appending("2.mp4"), with: Array("another".utf8))
        try scene.fixture.startDaemon()
        try await scene.upload(1...1)
        try scene.camera.drop(Clip(number: 2, size: 1000, relative: "2.mp4"))
        let delivered = try await eventually("the command has been notified of both uploads") {
            let delivered = try scene.delivered()
            return delivered.count >= 2 ? delivered : nil
        }
        #expect(delivered.map(\.type) == ["completed", "failed"])
        #expect(delivered.map { $0.op?.name } == ["1.mp4", "2.mp4"])
        #expect(delivered.map { $0.op?.list } == ["completed", "failed"])
        #expect(delivered.allSatisfy { $0.op?.folder == "camera" && $0.op?.destination == "archive" })
        #expect(delivered[0].op?.path == scene.fixture.drop.appending("1.mp4").display)
        // Byte for byte the same as the stream of events.
        let lines = String(decoding: try Files.read(scene.out), as: UTF8.self).split(separator: "\n")
        let stream = scene.fixture.folder.path.appending("stream")
        let curl = try Child(
            "/usr/bin/curl",
            [
                "-sSN", "--max-time", "2", "--unix-socket",
                scene.fixture.folder.path.appending("control.sock").display,
                "http://sluice/v1/events?since=0&types=completed,failed",
            ], output: stream, errors: scene.fixture.folder.path.appending("curl.err"))
        _ = try await curl.end(within: .seconds(20))
        let data = try curl.standardOutput().split(separator: "\n").filter { $0.hasPrefix("data: ") }.map {
            $0.dropFirst(6)
        }
        #expect(lines.map(Self.withoutSource) == data.map(Self.withoutSource))
        #expect(try scene.delivered(other).map(\.type) == ["added", "added"])
        let hooks = try await scene.hooks()
        #expect(hooks.map(\.name) == ["tell", "hook-2"])
        #expect(hooks.map(\.delivered) == [2, 2])
        #expect(hooks.allSatisfy { $0.waiting == 0 && $0.hold == nil })
        #expect(
            try #require(try await scene.fixture.runVerb("status")).contains(
                "hook      tell  \(tell.display), 0 waiting"))
    }

    /// The state of the source may become known in between.
    private static func withoutSource(_ line: Substring) -> String {
        line.split(separator: ",").filter { !$0.contains("\"source_") }.joined(separator: ",")
    }

    @Test(
        "a server that was down gets each signed notice, in the order of each upload, without secrets and paths"
    )
    func web() async throws {
        let scene = try Scene()
        let web = try Web(503)
        let secret = "whsec_" + "aHVudGVyMi1odW50ZXIyLWh1bnRlcjI="
        try scene.fixture.folder.write("key", Array(secret.utf8))
        let key = scene.fixture.folder.path.appending("key").display
        scene.fixture.topKeys = [
            "hooks:",
            "  - {name: web, on: [added, completed], url: \"\(web.url)/hidden-path\", secret: {file: \(key)}, "
                + "headers: {Authorization: {env: TOKEN}}, retry: {first: 100ms, max: 400ms}, timeout: 2s}",
        ]
        try scene.fixture.startDaemon(environment: ["TOKEN": "Bearer hunter2hunter2"])
        try await scene.upload(1...5)
        let hold = try await eventually("`status` reports the failing hook") {
            try await scene.hooks().first { $0.hold != nil && $0.waiting == 10 }
        }
        #expect(hold.hold?.text == "\(web.url) answered 503")
        #expect(hold.target == web.url)
        #expect(hold.oldest != nil)
        web.answer(200)
        let events = try await eventually("the server has received all ten events") {
            let events = try web.events
            return Set(events.map(\.seq)).count >= 10 ? events : nil
        }
        for upload in Set(events.compactMap { $0.op?.id }) {
            let types = events.filter { $0.op?.id == upload }.map(\.type)
            #expect(types == ["added", "completed"])
        }
        for one in web.got.withLock({ $0 }) {
            let signed = Array("\(one.id).\(one.moment).".utf8) + one.body
            let code = Hasher.authentication(.sha256, of: signed, key: Array("hunter2-hunter2-hunter2".utf8))
            #expect(one.signature == "v1," + base64(code))
        }
        try await eventually("no notice waits") {
            try await scene.hooks().allSatisfy { $0.waiting == 0 && $0.delivered == 10 && $0.hold == nil }
        }
        #expect(try scene.log().contains("hook failed; will retry hook=web"))
        #expect(try scene.log().contains("hook works again hook=web"))
        let metrics = try #require(try await scene.fixture.runVerb("metrics"))
        #expect(metrics.contains("sluice_hook_notices_total{hook=\"web\",result=\"delivered\"} 10"))
        #expect(metrics.contains("sluice_hook_waiting_notices{hook=\"web\"} 0"))
        let config = try #require(try await scene.fixture.runVerb("config"))
        let status = try #require(try await scene.fixture.runVerb("status", ["--json"]))
        for text in [try scene.log(), metrics, config, status] {
            #expect(!text.contains("hunter2") && !text.contains("aHVudGVy") && !text.contains("hidden-path"))
        }
    }

    @Test(
        "killed at each step, every completed upload is still reported",
        arguments: CrashSteps.hooks + ["committed"])
    func killed(_ step: String) async throws {
        let scene = try Scene()
        let tell = try scene.script("tell", "cat >> \(scene.out.display)")
        scene.fixture.topKeys = ["hooks:", "  - {name: tell, on: [completed], command: [\(tell.display)]}"]
        for number in 1...6 {
            try scene.camera.drop(Clip(number: number, size: 1000, relative: FilePath("\(number).mp4")))
        }
        var kills = 0
        for round in 1...6 {
            try scene.fixture.startDaemon(environment: ["SLUICE_TEST_CRASH": "\(step):\(round)"])
            _ = try await eventually("the daemon was killed, or all uploads are reported") { () -> Bool? in
                if scene.fixture.daemon?.ended != nil { return true }
                return try Set(scene.delivered().compactMap { $0.op?.name }).count == 6 ? true : nil
            }
            if scene.fixture.daemon?.ended == .signal(SIGKILL) { kills += 1 }
            scene.fixture.killDaemon()
        }
        #expect(kills > 0)
        try scene.fixture.startDaemon()
        try await eventually("all six uploads have been reported") {
            try Set(scene.delivered().compactMap { $0.op?.name }).count == 6
        }
        try await eventually("no notice waits") {
            let hooks = try await scene.hooks()
            return !hooks.isEmpty && hooks.allSatisfy { $0.waiting == 0 }
        }
        // Once more for each kill between the delivery and its record.
        #expect(try scene.delivered().count <= 12)
    }

    @Test("a new hook receives later events only, and a removed hook's notices are dropped")
    func reload() async throws {
        let scene = try Scene()
        let tell = try scene.script("tell", "cat >> \(scene.out.display)")
        let fail = try scene.script("fail", "exit 1")
        try scene.fixture.startDaemon()
        try await scene.upload(1...2)
        scene.fixture.topKeys = [
            "hooks:", "  - {name: tell, command: [\(tell.display)]}", "  - {name: fail, command: [\(fail.display)]}",
        ]
        try scene.fixture.writeConfiguration()
        let reply = try #require(try await scene.fixture.runVerb("reload"))
        #expect(reply.contains("hook tell added"))
        try await scene.upload(3...3)
        try await eventually("the new hook has been notified") { try scene.delivered().count == 1 }
        #expect(try scene.delivered().map { $0.op?.name } == ["3.mp4"])
        try await eventually("the notice of the other hook waits") {
            try await scene.hooks().contains { $0.name == "fail" && $0.waiting == 1 }
        }
        scene.fixture.topKeys = ["hooks:", "  - {name: tell, command: [\(tell.display)]}"]
        try scene.fixture.writeConfiguration()
        #expect(try await scene.fixture.runVerb("reload") != nil)
        #expect(try await scene.hooks().map(\.name) == ["tell"])
        scene.fixture.topKeys += ["  - {name: fail, command: [\(fail.display)]}"]
        try scene.fixture.writeConfiguration()
        #expect(try await scene.fixture.runVerb("reload") != nil)
        #expect(try await scene.hooks().map(\.waiting) == [0, 0])
        // After a stop and a start nothing is delivered again.
        #expect(try await scene.fixture.stopDaemon() == .status(0))
        try scene.fixture.startDaemon()
        try await scene.upload(4...4)
        try await eventually("the new hook has been notified again") { try scene.delivered().count == 2 }
        #expect(try scene.delivered().map { $0.op?.name } == ["3.mp4", "4.mp4"])
    }

    @Test(
        "hanging commands end at their time-out, at most four run at once, and uploads and a stop do not wait for them"
    )
    func hanging() async throws {
        let scene = try Scene()
        let marks = scene.fixture.folder.path.appending("marks")
        try Files.makeFolders(marks)
        let hang = try scene.script(
            "hang", "mkdir \(marks.display)/$$; ls \(marks.display) | wc -l >> \(scene.out.display); sleep 1000")
        // The running hook cleans up after itself, and the next one after killed ones.
        scene.fixture.topKeys =
            ["hooks:"] + (1...5).map { "  - {name: h\($0), command: [\(hang.display)], timeout: 1m}" }
        try scene.fixture.startDaemon()
        try await scene.upload(1...4)
        func running() throws -> Int { try Files.names(in: marks).count }
        try await eventually("four commands run") { try running() == 4 }
        try await scene.upload(5...8)
        #expect(try running() == 4)
        #expect(try await scene.fixture.stopDaemon(within: .seconds(2)) == .status(0))
        for name in try Files.names(in: marks) {
            #expect(kill(try #require(pid_t(name.display)), 0) != 0, "process \(name) still runs")
            try Files.removeTree(marks.appending(name))
        }
        // With a short time-out, each of the five has its turn.
        scene.fixture.topKeys =
            ["hooks:"]
            + (1...5).map {
                "  - {name: h\($0), command: [\(hang.display)], timeout: 300ms, retry: {first: 1h, max: 1h}}"
            }
        try scene.fixture.startDaemon()
        try await eventually("each command has hung and been killed") {
            let hooks = try await scene.hooks()
            return hooks.count == 5 && hooks.allSatisfy { $0.hold?.text.contains("did not end within") == true }
        }
        #expect(try await scene.hooks().map(\.waiting) == [8, 8, 8, 8, 8])
    }

    @Test(
        "notices refused for good or failing too long are given up and logged; of too many the oldest are dropped"
    )
    func givenUp() async throws {
        let scene = try Scene()
        let web = try Web(410)
        let gone = scene.fixture.folder.path.appending("nowhere").display
        scene.fixture.topKeys = [
            "hooks:", "  - {name: gone, url: \"\(web.url)\"}",
            "  - {name: worn, command: [\(gone)], retry: {first: 100ms, max: 200ms, attempts: 2}}",
            "  - {name: late, command: [\(gone)], retry: {first: 100ms, max: 200ms}, give_up_after: 1s}",
            "  - {name: full, on: [added, state, completed, source], command: [\(gone)], retry: {first: 1h, max: 1h}}",
        ]
        try scene.fixture.startDaemon()
        try await scene.upload(1...2)
        try await eventually("three hooks have given up their notices") {
            let hooks = try await scene.hooks()
            return hooks.count == 4 && hooks.prefix(3).allSatisfy { $0.givenUp == 2 && $0.waiting == 0 }
        }
        for name in ["gone", "worn", "late"] { #expect(try scene.log().contains("notices given up hook=\(name)")) }
        #expect(try scene.log().contains("\(web.url) answered 410"))
        try await scene.upload(3...420)
        let full = try await eventually("the queue of the fourth hook is full") {
            try await scene.hooks().first { $0.name == "full" && $0.dropped > 0 && $0.waiting == 1000 }
        }
        #expect(full.hold?.text.contains("cannot be started") == true)
        let said = try scene.log().split(separator: "\n").count { $0.contains("too many notices wait for a hook") }
        #expect(said == 1)
    }

    @Test("events that come faster than a hook accepts them are not dropped")
    func burst() async throws {
        let scene = try Scene()
        let tell = try scene.script("tell", "cat >> \(scene.out.display)")
        scene.fixture.topKeys = ["hooks:", "  - {name: tell, on: [added, completed], command: [\(tell.display)]}"]
        for number in 1...600 {
            try scene.camera.drop(Clip(number: number, size: 100, relative: FilePath("\(number).mp4")))
        }
        try scene.fixture.startDaemon()
        try await eventually(
            "the hook has been notified of all events", within: .seconds(60), every: .milliseconds(200)
        ) {
            try scene.delivered().count >= 1200
        }
        #expect(Set(try scene.delivered().map(\.seq)).count == 1200)
        #expect(try await scene.hooks().map(\.dropped) == [0])
    }

    @Test("`sluice hook` sends a test notice, and `check` names unusable hooks")
    func byHand() async throws {
        let scene = try Scene()
        let tell = try scene.script("tell", "cat >> \(scene.out.display)")
        scene.fixture.topKeys = [
            "hooks:", "  - {name: tell, command: [\(tell.display)]}", "  - {name: gone, command: [/nowhere/tell]}",
        ]
        try scene.fixture.writeConfiguration()
        let said = try await scene.fixture.runVerb("hook", ["tell"])
        #expect(said == "tell, \(tell.display): it ended with exit status 0\n")
        let delivered = try scene.delivered()
        #expect(delivered.map(\.type) == ["test"])
        #expect(delivered.first?.detail == ["hook": "tell"])
        #expect(try await scene.fixture.runVerb("hook", ["gone"]) == nil)
        #expect(try await scene.fixture.runVerb("check") == nil)
    }

    @Test("a --once run delivers its notices before it exits")
    func once() async throws {
        let scene = try Scene()
        let tell = try scene.script("tell", "cat >> \(scene.out.display)")
        scene.fixture.topKeys = [
            "hooks:", "  - {name: tell, command: [\(tell.display)]}", "  - {name: gone, command: [/nowhere/tell]}",
        ]
        try scene.camera.drop(Clip(number: 1, size: 1000, relative: "1.mp4"))
        try scene.fixture.writeConfiguration()
        #expect(try await scene.fixture.runVerb("run", ["--once", "--wait", "2s"]) != nil)
        #expect(try scene.delivered().map { $0.op?.name } == ["1.mp4"])
    }

    @Test("the examples of the manual work as described")
    func manual() async throws {
        let scene = try Scene()
        let text = String(
            decoding: try Files.read(Repository.root.appending("docs/hooks.md")), as: UTF8.self
        )
        func example(_ language: String) throws -> String {
            let start = try #require(text.firstRange(of: "```\(language)\n")).upperBound
            let end = try #require(text[start...].firstRange(of: "\n```")).lowerBound
            return String(text[start..<end])
        }
        // The example for the shell.
        let list = scene.fixture.folder.path.appending("completed.txt").display
        var shell = try example("sh").replacing("/var/lib/sluice/completed.txt", with: list)
        if try FileStatus.ifPresent(at: "/usr/bin/jq") == nil {
            shell = shell.replacing(
                "jq -r .op.path", with: "python3 -c 'import json,sys; print(json.load(sys.stdin)[\"op\"][\"path\"])'")
        }
        let tell = try scene.script("example", String(shell.dropFirst("#!/bin/sh\n".count)))
        let web = try Web()
        try scene.fixture.folder.write("key", Array("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n".utf8))
        scene.fixture.topKeys = [
            "hooks:", "  - {command: [\(tell.display)]}",
            "  - {url: \"\(web.url)\", secret: {file: \(scene.fixture.folder.path.appending("key").display)}}",
        ]
        try scene.fixture.startDaemon()
        try await scene.upload(1...1)
        try await eventually("the script has written the path to its list") {
            (try? Files.read(FilePath(list))) == Array("\(scene.fixture.drop.display)/1.mp4\n".utf8)
        }
        // The example in Python, with the received notice, and with the one that the specification has published.
        try await eventually("the server has received the notice") { web.got.withLock { $0.count } == 1 }
        let got = try #require(web.got.withLock { $0.first })
        try scene.fixture.folder.write("body", got.body)
        let program =
            try example("python") + """

                secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
                body = open("\(scene.fixture.folder.path.appending("body").display)", "rb").read()
                headers = {"webhook-id": "\(got.id)", "webhook-timestamp": "\(got.moment)", "webhook-signature": "\(got.signature)"}
                assert verify(secret, headers, body)
                assert not verify(secret, headers, body + b" ")
                assert not verify(secret, headers, body, now=time.time() + 600)
                known = {"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
                         "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}
                assert verify(secret, known, b'{"test": 2432232314}', now=1614265330)
                """
        try scene.fixture.folder.write("verify.py", Array(program.utf8))
        let python = try Child(
            "/usr/bin/env", ["python3", scene.fixture.folder.path.appending("verify.py").display],
            output: scene.fixture.folder.path.appending("py.out"), errors: scene.fixture.folder.path.appending("py.err")
        )
        #expect(try await python.end(within: .seconds(20)) == .status(0), "\((try? python.standardError()) ?? "")")
    }
}
