import Core
import FoundationEssentials
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

/// Requests by command obey policy, are counted in the daemon's ledger, and report their cost.
@Suite("Hooks and checks by command, with the built program", .timeLimit(.minutes(Patience.minutes(3))))
struct ByHandTests {
    private typealias Scene = HookFixture.Scene
    private typealias Web = HookFixture.Web

    private struct Trial: Decodable {
        struct Hold: Decodable { var kind, text: String }
        var hook, detail: String
        var ok, counted: Bool
        var sent, received: Int64?
        var hold: Hold?
    }
    private struct Report: Decodable {
        struct Check: Decodable { var about, name, verdict, detail: String }
        var ok: Bool
        var checks: [Check]
        subscript(_ about: String) -> [Check] { checks.filter { $0.about == about } }
    }
    private struct Usage: Decodable {
        struct Period: Decodable { var parts: [Part]? }
        struct Part: Decodable {
            var name: String
            var bytes, received: Int64
        }
        var days: [Period]
    }

    /// Runs a verb, and returns its status.
    private func run(_ scene: Scene, _ words: [String]) async throws -> (status: Child.Ending, text: String) {
        let output = scene.fixture.folder.path.appending(FilePath("said-\(hexadecimal(Random.bytes(6)))"))
        let child = try Child(
            scene.fixture.binary, words + ["--config", scene.fixture.config.display, "--json"], output: output,
            errors: FilePath(bytes: output.bytes + Array(".err".utf8)))
        let ending = try await child.end(within: .seconds(30))
        return (ending, try child.standardOutput() + child.standardError())
    }

    private func trial(_ scene: Scene, _ name: String) async throws -> (status: Child.Ending, trial: Trial) {
        let (status, text) = try await run(scene, ["hook", name])
        return (status, try JSONDecoder().decode(Trial.self, from: Data(text.utf8)))
    }

    private func spent(_ scene: Scene, on name: String) async throws -> Spending {
        let text = try #require(try await scene.fixture.runVerb("usage", ["--json", "--by", "destination"]))
        let usage = try JSONDecoder().decode(Usage.self, from: Data(text.utf8))
        return usage.days.flatMap { $0.parts ?? [] }.filter { $0.name == name }.reduce(Spending.none) {
            $0 + Spending(bytes: $1.bytes, received: $1.received)
        }
    }

    @Test("a running daemon delivers a test notice under policy, and reports and counts its cost")
    func hookByDaemon() async throws {
        let scene = try Scene()
        let (web, free) = (try Web(), try Web())
        let tell = try scene.script("tell", "cat >> \(scene.out.display)")
        scene.fixture.policyKeys = ["quotas: [{per: hour, bytes: 1 GB}]"]
        scene.fixture.topKeys = [
            "hooks:", "  - {name: web, url: \"\(web.url)\"}", "  - {name: free, url: \"\(free.url)\", network: any}",
            "  - {name: tell, command: [\(tell.display)]}",
        ]
        try scene.fixture.startDaemon()
        try await eventually("the daemon has paused") { try await scene.fixture.runVerb("pause") != nil }
        let (heldStatus, held) = try await trial(scene, "web")
        #expect(heldStatus == .status(75))
        #expect(held.hold?.text == "everything is paused")
        #expect(!held.ok && held.sent == 0 && held.received == 0)
        #expect(try web.events.isEmpty)
        #expect(try await spent(scene, on: "hook web") == .none)
        #expect(try await trial(scene, "free").trial.ok)
        #expect(try await scene.fixture.runVerb("resume") != nil)
        let (status, answer) = try await trial(scene, "web")
        #expect(status == .status(0))
        #expect(answer.ok && answer.counted && answer.hold == nil)
        #expect(try web.events.map(\.type) == ["test"])
        let (sent, received) = (try #require(answer.sent), try #require(answer.received))
        #expect(sent > 100 && received > 100)
        #expect(try await spent(scene, on: "hook web") == Spending(bytes: sent, received: received))
        let words = try #require(try await scene.fixture.runVerb("hook", ["web"]))
        // The number of acknowledgements depends on the kernel.
        #expect(words.hasPrefix("web: \(web.url) answered 200; that sent \(sent) B and received "), "\(words)")
        #expect(words.hasSuffix(" B, counted as `hook web`\n"), "\(words)")
        // A program runs as the daemon's child, and its bytes are not counted.
        let (_, program) = try await trial(scene, "tell")
        #expect(program.ok && program.sent == nil && program.received == nil)
        #expect(try scene.delivered().map(\.type) == ["test"])
        // The setting is in the file, but not in force.
        scene.fixture.topKeys.append("  - {name: new, command: [\(tell.display)]}")
        try scene.fixture.writeConfiguration()
        let (newStatus, text) = try await run(scene, ["hook", "new"])
        #expect(newStatus == .status(66))
        #expect(text.contains("load it with `sluice reload`"))
    }

    @Test("without a daemon a test notice follows the configuration, and reports its cost")
    func hookAlone() async throws {
        let scene = try Scene()
        let (web, free) = (try Web(), try Web())
        scene.fixture.policyKeys = ["bandwidth: 0 B/s"]
        scene.fixture.topKeys = [
            "hooks:", "  - {name: web, url: \"\(web.url)\"}", "  - {name: free, url: \"\(free.url)\", network: any}",
        ]
        try scene.fixture.writeConfiguration()
        let (status, held) = try await trial(scene, "web")
        #expect(status == .status(75))
        let text = held.hold?.text ?? ""
        #expect(text.hasPrefix("the bandwidth of policy (sluice.yaml:") && text.hasSuffix(") is 0 now: `bandwidth: 0`"))
        #expect(try web.events.isEmpty)
        #expect(
            try #require(try await scene.fixture.runVerb("hook", ["free"])).contains(
                "not counted, because no daemon runs"))
        scene.fixture.policyKeys = []
        try scene.fixture.writeConfiguration()
        let (_, answer) = try await trial(scene, "web")
        #expect(answer.ok && !answer.counted)
        #expect(answer.sent ?? 0 > 100 && answer.received ?? 0 > 100)
        // Without a daemon the remainder of a quota is unknown, so the request is held.
        scene.fixture.policyKeys = ["quotas: [{per: day, bytes: 1 GB}]"]
        try scene.fixture.writeConfiguration()
        #expect(try await trial(scene, "web").trial.hold?.kind == "quota")
        #expect(try web.events.count == 1)
    }

    @Test("a stored pause holds a test notice while no daemon runs")
    func hookPaused() async throws {
        let scene = try Scene()
        let web = try Web()
        scene.fixture.topKeys = ["hooks:", "  - {name: web, url: \"\(web.url)\"}"]
        try scene.fixture.startDaemon()
        try await eventually("the daemon has paused") { try await scene.fixture.runVerb("pause") != nil }
        #expect(try await scene.fixture.stopDaemon() == .status(0))
        #expect(try await trial(scene, "web").trial.hold?.text == "everything is paused")
        #expect(try web.events.isEmpty)
    }

    @Test("a running daemon checks its own configuration, contacts no held destination, and counts requests to others")
    func check() async throws {
        let scene = try Scene()
        scene.fixture.uploadTo = ["nas"]
        try await scene.fixture.startReceiver()
        try scene.fixture.startDaemon()
        try await eventually("the daemon has started and answers `check`") {
            try await scene.fixture.runVerb("check", ["--running"]) != nil
        }
        let before = try await spent(scene, on: "nas")
        #expect(before.bytes > 0)
        let (status, text) = try await run(scene, ["check", "--running"])
        #expect(status == .status(0))
        let report = try JSONDecoder().decode(Report.self, from: Data(text.utf8))
        #expect(report.ok)
        for about in ["folder", "staging", "state", "control", "network"] {
            #expect(!report[about].isEmpty, "\(about)")
        }
        let nas = try #require(report["destination"].first)
        #expect(nas.verdict == "ok")
        let now = try await spent(scene, on: "nas")
        #expect(now.bytes > before.bytes && now.received > before.received)
        let (sent, received) = (shownBytes(now.bytes - before.bytes), shownBytes(now.received - before.received))
        #expect(nas.detail.hasSuffix("; the request sent \(sent) and received \(received)"), "\(nas.detail)")
        #expect(try await scene.fixture.runVerb("pause", ["--destination", "nas"]) != nil)
        let (heldStatus, heldText) = try await run(scene, ["check", "--running", "--destination", "nas"])
        #expect(heldStatus == .status(0))
        let held = try JSONDecoder().decode(Report.self, from: Data(heldText.utf8))
        #expect(held.checks.filter { $0.about != "network" }.map(\.about) == ["destination"])
        #expect(held["destination"].first?.verdict == "warning")
        #expect(held["destination"].first?.detail == "no request was sent: global: destination nas is paused")
        #expect(try await spent(scene, on: "nas") == now)
        let (_, folder) = try await run(scene, ["check", "--running", "--folder", "camera"])
        #expect(
            try JSONDecoder().decode(Report.self, from: Data(folder.utf8)).checks.map(\.about).filter {
                $0 != "network"
            }
                == ["folder"])
        #expect(try await run(scene, ["check", "--running", "--folder", "camrea"]).status == .status(66))
        // Without the daemon the same options select, with the rights of the person who asks.
        let (_, alone) = try await run(scene, ["check", "--folder", "camera"])
        let about = try JSONDecoder().decode(Report.self, from: Data(alone.utf8)).checks.map(\.about)
        #expect(about.contains("folder") && !about.contains("destination") && !about.contains("staging"), "\(about)")
        #expect(try await run(scene, ["check", "--folder", "camrea"]).status == .status(66))
    }

    @Test("one check runs at a time, and a pause stops its request")
    func oneAtATime() async throws {
        let scene = try Scene()
        let asked = Mutex(0)
        let server = try FakeServer { exchange in
            asked.withLock { $0 += 1 }
            // Until the other side closes.
            var byte: UInt8 = 0
            _ = recv(exchange.connection, &byte, 1, 0)
        }
        scene.fixture.uploadTo = ["nas"]
        scene.fixture.destination = "\(server.url)/files/"
        try scene.fixture.startDaemon()
        try await eventually("the daemon has started") {
            try await scene.fixture.runVerb("status", ["--json"])?.contains("\"starting\":false") == true
        }
        let folder = scene.fixture.folder.path
        let first = try Child(
            scene.fixture.binary, ["check", "--running", "--json", "--config", scene.fixture.config.display],
            output: folder.appending("first"), errors: folder.appending("first.err"))
        try await eventually("the server has received the request of the check") { asked.withLock { $0 } == 1 }
        let (status, text) = try await run(scene, ["check", "--running"])
        #expect(status == .status(75))
        #expect(text.contains("a check is running already"))
        #expect(try await scene.fixture.runVerb("pause") != nil)
        #expect(try await first.end(within: .seconds(20)) == .status(0))
        let report = try JSONDecoder().decode(Report.self, from: Data(try first.standardOutput().utf8))
        #expect(report["destination"].first?.detail == "no request was sent: global: everything is paused")
    }
}
