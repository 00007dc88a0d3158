import Core
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

/// The holds that apply to notices, and those that do not, with the built program.
@Suite("Hooks under policy, with the built program", .timeLimit(.minutes(Patience.minutes(3))))
struct HookPolicyTests {
    private typealias Scene = HookFixture.Scene
    private typealias Web = HookFixture.Web

    @Test("with `network: policy` a notice waits for a window, with `any` it does not; sent bytes are counted")
    func policy() async throws {
        let scene = try Scene()
        let (held, free) = (try Web(), try Web())
        scene.fixture.policyKeys = ["quotas: [{per: hour, bytes: 1 GB}]"]
        scene.fixture.topKeys = [
            "hooks:", "  - {name: held, on: [added], url: \"\(held.url)\"}",
            "  - {name: free, on: [added], url: \"\(free.url)\", network: any}",
        ]
        try scene.fixture.startDaemon()
        try await eventually("the daemon answers") { try await scene.fixture.runVerb("status") != nil }
        #expect(try await scene.fixture.runVerb("pause") != nil)
        try scene.camera.drop(Clip(number: 1, size: 1000, relative: "1.mp4"))
        try await eventually("the first hook has been notified") { try free.events.count == 1 }
        let hook = try await eventually("the notice of the second hook is held") {
            try await scene.hooks().first { $0.name == "held" && $0.hold != nil }
        }
        #expect(hook.hold?.text == "everything is paused")
        #expect(hook.waiting == 1)
        #expect(try held.events.isEmpty)
        #expect(try await scene.fixture.runVerb("resume") != nil)
        try await eventually("the second hook has been notified") { try held.events.count == 1 }
        let metrics = try #require(try await scene.fixture.runVerb("metrics"))
        #expect(metrics.contains("sluice_network_sent_bytes_total{destination=\"hook held\",network="))
    }

    @Test(
        "with zero bandwidth `network: any` delivers, whatever set the limit, and `policy` waits with the reason",
        arguments: [false, true])
    func noBandwidth(_ isByHand: Bool) async throws {
        let scene = try Scene()
        let (held, free) = (try Web(), try Web())
        if !isByHand { scene.fixture.policyKeys = ["bandwidth: 0 B/s"] }
        scene.fixture.topKeys = [
            "hooks:", "  - {name: held, on: [added], url: \"\(held.url)\"}",
            "  - {name: free, on: [added], url: \"\(free.url)\", network: any, timeout: 5m}",
        ]
        try scene.fixture.startDaemon()
        if isByHand {
            try await eventually("the daemon has accepted the limit") {
                try await scene.fixture.runVerb("limit", ["0", "--for", "1h"]) != nil
            }
        }
        try scene.camera.drop(Clip(number: 1, size: 1000, relative: "1.mp4"))
        try await eventually("the first hook has been notified") { try free.events.count == 1 }
        let hook = try await eventually("the notice of the second hook is held") {
            try await scene.hooks().first { $0.name == "held" && $0.hold != nil }
        }
        let words = try #require(hook.hold?.text)
        if isByHand {
            #expect(words == "`sluice limit 0` stops all transfers; `sluice limit off` ends that")
        } else {
            #expect(
                words.wholeMatch(of: /the bandwidth of policy \(sluice.yaml:\d+\) is 0 now: `bandwidth: 0`/) != nil,
                "\(words)")
        }
        #expect(hook.hold?.since.isEmpty == false)
        #expect(
            try #require(try await scene.fixture.runVerb("status")).split(separator: "\n").contains {
                $0.contains(words) && $0.contains(", since ")
            })
        let kind = try #require(hook.hold?.kind)
        #expect(
            try await scene.fixture.runVerb("metrics")?.contains(
                "sluice_hook_held_notices{hook=\"held\",reason=\"\(kind)\"} 1") == true)
        #expect(try held.events.isEmpty)
        if isByHand {
            #expect(try await scene.fixture.runVerb("limit", ["off"]) != nil)
        } else {
            scene.fixture.policyKeys = []
            try scene.fixture.writeConfiguration()
            #expect(try await scene.fixture.runVerb("reload") != nil)
        }
        try await eventually("the second hook has been notified") { try held.events.count == 1 }
        try await eventually("no notice is held") {
            try await scene.fixture.runVerb("metrics")?.contains("sluice_hook_held_notices{") == false
        }
    }

    @Test("a hook shows its present hold: a new reason replaces one that has ended")
    func anotherReason() async throws {
        let scene = try Scene()
        let held = try Web()
        scene.fixture.policyKeys = ["bandwidth: 0 B/s"]
        scene.fixture.topKeys = ["hooks:", "  - {name: held, on: [added], url: \"\(held.url)\"}"]
        try scene.fixture.startDaemon()
        try await eventually("the daemon has paused") { try await scene.fixture.runVerb("pause") != nil }
        try scene.camera.drop(Clip(number: 1, size: 1000, relative: "1.mp4"))
        try await eventually("the notice waits for the end of the pause") {
            try await scene.hooks().first?.hold?.text == "everything is paused"
        }
        #expect(try await scene.fixture.runVerb("resume") != nil)
        let text = try await scene.hooks().first?.hold?.text ?? ""
        #expect(text.hasPrefix("the bandwidth of policy (sluice.yaml:") && text.hasSuffix(") is 0 now: `bandwidth: 0`"))
    }

    @Test("a notice in progress stops when everything is paused, and is delivered afterwards")
    func stopped() async throws {
        let scene = try Scene()
        let asked = Mutex(0)
        let silent = Mutex(true)
        let server = try FakeServer { exchange in
            _ = exchange.body()
            asked.withLock { $0 += 1 }
            if silent.withLock({ $0 }) {
                // Until the other side closes.
                var byte: UInt8 = 0
                _ = recv(exchange.connection, &byte, 1, 0)
                return
            }
            exchange.reply(200, [("Connection", "close")])
            exchange.closeAfterwards()
        }
        scene.fixture.topKeys = ["hooks:", "  - {name: slow, on: [added], url: \"\(server.url)\", timeout: 10m}"]
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 1, size: 1000, relative: "1.mp4"))
        try await eventually("the notice is in progress") { asked.withLock { $0 } == 1 }
        #expect(try await scene.fixture.runVerb("pause") != nil)
        try await eventually("the notice waits for the end of the pause") {
            try await scene.hooks().first?.hold?.text == "everything is paused"
        }
        silent.withLock { $0 = false }
        #expect(try await scene.fixture.runVerb("resume") != nil)
        try await eventually("the hook has been notified") { try await scene.hooks().first?.delivered == 1 }
        #expect(try scene.log().contains("stopped before its end to=\"hook slow\" hold=global"))
        #expect(try scene.log().contains("hook failed") == false)
    }
}
