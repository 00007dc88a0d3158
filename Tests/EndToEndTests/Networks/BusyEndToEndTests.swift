import Core
import FoundationEssentials
import Linux
import TestKit
import Testing

/// A camera that records, with the built program. The receiver's files show what was sent and how often.
@Suite("`busy`, with the built program", .timeLimit(.minutes(Patience.minutes(3))))
struct BusyEndToEndTests {
    private struct Why: Decodable {
        struct Answer: Decodable {
            struct Hold: Decodable { var kind, text, since: String }
            var state, text: String
            var holds: [Hold]
        }
        var answers: [Answer]
    }

    private struct Scene {
        let fixture: DaemonFixture
        let camera: Camera
        var mark: FilePath { fixture.folder.path.appending("run/recording") }

        init() throws {
            fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
            camera = Camera(fixture, dice: Dice(seed: 1))
        }

        func hold(_ name: FilePath) async throws -> Why.Answer.Hold? {
            guard let text = try await fixture.runVerb("why", ["--json", fixture.drop.appending(name).display]) else {
                return nil
            }
            let answer = try JSONDecoder().decode(Why.self, from: Data(text.utf8)).answers.first
            return answer?.state == "waiting" ? answer?.holds.first : nil
        }

        func waits(_ name: FilePath) async throws -> Why.Answer.Hold {
            try await eventually("\(name) waits") {
                try await hold(name).flatMap { $0.kind == "busy" ? $0 : nil }
            }
        }

        /// Bytes that the receiver holds, finished or not.
        var received: Int64 {
            get throws {
                try Outcome.files(in: fixture.received, hidden: true).reduce(0) { sum, name in
                    guard name.fileExtension != "json" else { return sum }
                    return sum + (try FileStatus.ifPresent(at: fixture.received.appending(name))?.size ?? 0)
                }
            }
        }

        /// Uploads that were created at the receiver.
        var creations: Int {
            get throws {
                (try fixture.receiver?.standardError() ?? "").split(separator: "\n").count { $0.contains("created ") }
            }
        }

        func arrives() async throws {
            let outcome = Outcome(fixture: fixture, clips: camera.clips)
            try await outcome.wait(within: .seconds(60))
            try await outcome.check()
        }

        /// Drops files until one waits: for a new file, the answer of a command counts as long as its `every`.
        func oneWaits(from first: Int) async throws {
            for number in first..<(first + 50) {
                let name = FilePath("\(number).mp4")
                try camera.drop(Clip(number: number, size: 1000, relative: name))
                let fate = try await eventually("\(name) waits or has been released") { () -> String? in
                    if try FileStatus.ifPresent(at: fixture.drop.appending(name)) == nil { return "gone" }
                    return try await hold(name)?.kind
                }
                if fate == "busy" { return }
            }
            throw NothingWaits()
        }

        struct NothingWaits: Error {}

        /// A program that gives this answer.
        func script(_ answer: String) throws -> FilePath {
            try fixture.folder.writeProgram("is-recording", answer)
        }
    }

    @Test(
        "a recording during a transfer stops it, no byte is sent until it ends, and each file is created once"
    )
    func file() async throws {
        let scene = try Scene()
        let fixture = scene.fixture
        fixture.policyKeys = ["bandwidth: 500 kB/s"]
        fixture.folderKeys = ["busy: {file: \(scene.mark.display)}"]
        try await fixture.startReceiver()
        try scene.camera.drop(Clip(number: 0, size: 20_000_000, relative: "a.mp4"))
        try fixture.startDaemon()
        try await eventually("the receiver has bytes of the file") { try scene.received > 200_000 }
        try fixture.folder.write("run/recording", [])
        let hold = try await scene.waits("a.mp4")
        #expect(hold.text == "`\(scene.mark.display)` exists: `busy` of folder camera")
        let status = try #require(try await fixture.runVerb("status"))
        #expect(status.contains("`busy` of folder camera"))
        let listed = try #require(try await fixture.runVerb("list", ["--json"]))
        #expect(listed.contains("\"kind\":\"busy\""))
        // Bytes that were already being sent to the receiver's disk.
        var sent: Int64 = -1
        try await eventually("the receiver gets no more bytes", every: .milliseconds(300)) {
            defer { sent = (try? scene.received) ?? -1 }
            return try scene.received == sent
        }
        #expect(sent < 20_000_000)
        // Long enough for other files to arrive, be copied, and be held as well.
        for number in 1...3 {
            try scene.camera.drop(Clip(number: number, size: 1000, relative: FilePath("\(number).mp4")))
        }
        for number in 1...3 { _ = try await scene.waits(FilePath("\(number).mp4")) }
        #expect(try scene.received == sent)
        #expect(try scene.creations == 1)
        fixture.policyKeys = []
        try fixture.writeConfiguration()
        #expect(try await fixture.runVerb("reload") != nil)
        try Files.remove(scene.mark)
        try await scene.arrives()
        #expect(try scene.creations == 4)
    }

    @Test("a command is repeated while an upload waits, and a reload replaces it")
    func command() async throws {
        let scene = try Scene()
        let fixture = scene.fixture
        let path = try scene.script("exit 0")
        fixture.policyKeys = ["busy: {command: [\(path.display), now], every: 1s}"]
        try await fixture.startReceiver()
        try scene.camera.drop(Clip(number: 0, size: 100_000, relative: "a.mp4"))
        try fixture.startDaemon()
        let text = "`\(path.display)` reports busy: `busy` of policy"
        try await eventually("the hold names the command") { try await scene.hold("a.mp4")?.text == text }
        #expect(try scene.creations == 0)
        _ = try scene.script("exit 1")
        try await scene.arrives()
        _ = try scene.script("exit 0")
        try await scene.oneWaits(from: 1)
        fixture.policyKeys = []
        try fixture.writeConfiguration()
        #expect(try await fixture.runVerb("reload")?.contains("policy changed (busy)") == true)
        try await scene.arrives()
        #expect(try scene.creations == scene.camera.clips.count)
    }

    struct Fault: Sendable, CustomTestStringConvertible {
        let script: String
        let says: String
        var timeout = "20s"
        var testDescription: String { script }
    }

    @Test(
        "a command that fails or hangs counts as busy, is logged once with a remedy, and recovers without a restart",
        arguments: [
            Fault(script: "exit 7", says: "ended with exit status 7; 0 means busy and 1 means not busy"),
            Fault(script: "kill -9 $$", says: "was ended by signal 9"),
            Fault(script: "sleep 1000", says: "did not end within its `timeout` and was stopped", timeout: "300ms"),
            Fault(script: "rm \"$0\"; exit 3", says: "cannot be started (No such file or directory)"),
        ])
    func faults(_ fault: Fault) async throws {
        let scene = try Scene()
        let fixture = scene.fixture
        let path = try scene.script(fault.script)
        fixture.destinationKeys = ", busy: {command: [\(path.display)], every: 1s, timeout: \(fault.timeout)}"
        try await fixture.startReceiver()
        try scene.camera.drop(Clip(number: 0, size: 1000, relative: "a.mp4"))
        try fixture.startDaemon()
        let hold = try await eventually("the hold names the fault of the command") {
            try await scene.hold("a.mp4").flatMap { $0.text.contains(fault.says) ? $0 : nil }
        }
        #expect(hold.kind == "busy")
        #expect(hold.text.hasPrefix("`\(path.display)` \(fault.says), which counts as busy; "))
        #expect(hold.text.hasSuffix(": `busy` of destinations.nas"))
        // Two more rounds, which the log does not mention.
        let since = hold.since
        let check = try #require(try await fixture.runVerb("check", ["--json"]))
        #expect(
            check.contains(fault.says.prefix(20)) && check.contains("warning") && check.contains("destinations.nas"))
        #expect(try await scene.waits("a.mp4").since == since)
        let log = try #require(fixture.daemon).standardError()
        #expect(
            log.split(separator: "\n").count { $0.contains("cannot determine whether") && $0.contains(fault.says) } == 1
        )
        #expect(try scene.creations == 0)
        _ = try scene.script("exit 1")
        try await scene.arrives()
        // A stop does not wait for a program that hangs.
        _ = try scene.script("sleep 1000")
        try await scene.oneWaits(from: 1)
        #expect(try await fixture.stopDaemon(within: .seconds(2)) == .status(0))
    }

    @Test("an idle daemon that watches for a recording sleeps")
    func idle() async throws {
        let scene = try Scene()
        let fixture = scene.fixture
        let path = try scene.script("touch \"$0.was-asked\"; exit 1")
        fixture.policyKeys = ["busy: {file: \(scene.mark.display)}"]
        fixture.destinationKeys = ", busy: {command: [\(path.display)], every: 1s}"
        try await fixture.startReceiver()
        try scene.camera.drop(Clip(number: 0, size: 1000, relative: "a.mp4"))
        try fixture.startDaemon()
        try await scene.arrives()
        let asked = FilePath(bytes: path.bytes + Array(".was-asked".utf8))
        #expect(try FileStatus.ifPresent(at: asked) != nil)
        try Files.remove(asked)
        let mounts = try MountEvents()
        let pid = try #require(fixture.daemon).pid
        var before: Usage?
        // Three seconds in which a command that is due each second, or a file that is polled, would wake it.
        try await eventually("process \(pid) sleeps", within: .seconds(60), every: .seconds(3)) {
            let now = try Usage(of: pid)
            defer { before = now }
            guard let before else { return false }
            var woken = now.switches.filter { before.switches[$0.key] != $0.value }.map(\.key)
            if mounts.hasChanged() { woken = [] }
            // A sanitizer's own thread wakes up ten times a second.
            if Setting.isInstrumented { woken = [] }
            return woken.isEmpty
        }
        #expect(try FileStatus.ifPresent(at: asked) == nil)
        try fixture.folder.write("run/recording", [])
        try scene.camera.drop(Clip(number: 1, size: 1000, relative: "b.mp4"))
        #expect(try await scene.waits("b.mp4").text.contains("`\(scene.mark.display)` exists"))
        try Files.remove(scene.mark)
        try await scene.arrives()
    }
}
