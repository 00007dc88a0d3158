import Core
import Destinations
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

/// Uploads and windows, with clocks that a test sets.
@Suite("Windows in the daemon", .timeLimit(.minutes(Patience.minutes(2))))
struct WindowTests {
    @Test("outside its windows nothing goes and every hold says why and until when; inside it goes")
    func closed() async throws {
        let clocks = try Times.clocks(12)
        let scene = try await AgentScene(clocks: clocks) { $0.policy.rules = Times.night }
        let id = try await scene.add("a.mp4")
        try await scene.reachability(.queued, [id])
        let hold = try #require(await scene.daemon.scheduler.holds(folder: "cam", destination: "nas").first)
        #expect(hold.kind == .schedule)
        #expect(hold.text == "outside the windows of policy: `windows: [\"22:00-06:00\"]`")
        #expect(hold.since == (try Times.local(6)))
        #expect(hold.until == (try Times.local(22)))
        let view = try await scene.daemon.show(id).upload
        #expect(view.state == "waiting")
        #expect(view.holds.map(\.kind) == ["schedule"])
        scene.goOn(clocks, to: try Times.local(21, 59, 59))
        try await eventually("the dispatcher waits again") { scene.daemon.house.schedulingSignal.isWaiting }
        #expect(scene.remote.began.isEmpty)
        scene.goOn(clocks, to: try Times.local(22))
        try await scene.reachability(.completed, [id])
        try await scene.stop()
    }

    @Test("what is under way when the window closes stops at once, uses no attempt, and goes on in the next one")
    func closing() async throws {
        let clocks = try Times.clocks(5, 59, 59)
        let scene = try await AgentScene(clocks: clocks) { $0.policy.rules = Times.night }
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a.mp4")
        try await scene.isRunning(1)
        scene.goOn(clocks, to: try Times.local(6))
        try await scene.isRunning(0)
        try await scene.reachability(.queued, [id])
        let upload = try #require(try await scene.daemon.house.store.read { try $0.uploads.find(id) })
        #expect(upload.attempt == 0)
        scene.remote.letGo()
        scene.goOn(clocks, to: try Times.local(22))
        try await scene.reachability(.completed, [id])
        #expect(scene.remote.objects.count == 1)
        try await scene.stop()
    }

    @Test("a window that closed since the last look is looked at at once, and not when the next one opens")
    func closedMeanwhile() async throws {
        let clocks = try Times.clocks(5, 30)
        let scene = try await AgentScene(clocks: clocks) { $0.policy.rules = Times.night }
        try await eventually("the dispatcher waits") { scene.daemon.house.schedulingSignal.isWaiting }
        let before = try #require(try await scene.daemon.scheduler.nextDeadline())
        #expect(before == .seconds(1800))
        // No bell is rung.
        clocks.advance(by: .seconds(1801))
        let after = try #require(try await scene.daemon.scheduler.nextDeadline())
        #expect(after == .milliseconds(10))
        try await scene.stop()
    }

    @Test("the windows of a folder and of a destination hold what belongs to them, and all have to be open")
    func strictest() async throws {
        let clocks = try Times.clocks(12)
        let scene = try await AgentScene(clocks: clocks) { settings in
            settings.folders[1].policy.rules = Times.night
            settings.destinations[0].policy.rules = PolicyRules(windows: [Window(from: 0, to: 23 * 60)])
        }
        let free = try await scene.add("a.mp4")
        let bound = try await scene.add("b.mp4", in: "solo")
        try await scene.reachability(.completed, [free])
        try await scene.reachability(.queued, [bound])
        let texts = await scene.daemon.scheduler.holds(folder: "solo", destination: "nas").map(\.text)
        #expect(texts.count == 1 && texts[0].hasPrefix("outside the windows of folder solo: `windows: ["))
        scene.goOn(clocks, to: try Times.local(23))
        try await eventually("the dispatcher waits again") { scene.daemon.house.schedulingSignal.isWaiting }
        let closed = await scene.daemon.scheduler.holds(folder: "solo", destination: "nas").map(\.text)
        #expect(closed.count == 1 && closed[0].hasPrefix("outside the windows of destinations.nas: "))
        let classes = try #require(try await scene.daemon.status().classes)
        #expect(classes.map(\.folder) == ["solo"] && classes.map(\.waiting) == [1])
        #expect(classes.first?.hold.text == closed.first)
        #expect(try await scene.state(bound) == .queued)
        scene.goOn(clocks, to: try Times.local(24))
        try await scene.reachability(.completed, [bound])
        try await scene.stop()
    }

    @Test("what a cancelled upload left behind is removed when bytes may go again, and not before")
    func removals() async throws {
        let clocks = try Times.clocks(5, 59, 59)
        let scene = try await AgentScene(clocks: clocks) { $0.policy.rules = Times.night }
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a.mp4")
        try await scene.isRunning(1)
        scene.goOn(clocks, to: try Times.local(6))
        try await scene.isRunning(0)
        try await scene.reachability(.queued, [id])
        _ = try await scene.daemon.cancel(Selection(ids: [id]))
        try await eventually("the removal was looked at") { scene.daemon.house.removalSignal.isWaiting }
        #expect(try await scene.daemon.house.store.read { try $0.remoteDeletions.all() }.count == 1)
        scene.goOn(clocks, to: try Times.local(22))
        try await eventually("it is removed") {
            try await scene.daemon.house.store.read { try $0.remoteDeletions.all() }.isEmpty
        }
        try await scene.stop()
    }

    @Test(
        "with a clock that is not set, what depends on the time waits and the rest goes; set, all of it goes by the time"
    )
    func unset() async throws {
        let clocks = ManualClocks(wall: WallTime(milliseconds: 86_400_000))
        let scene = try await AgentScene(clocks: clocks) { settings in
            settings.folders[1].policy.rules = PolicyRules(windows: [Window(from: 0, to: 1440)])
        }
        let free = try await scene.add("a.mp4")
        let bound = try await scene.add("b.mp4", in: "solo")
        try await scene.reachability(.completed, [free])
        try await scene.reachability(.queued, [bound])
        let hold = try #require(await scene.daemon.scheduler.holds(folder: "solo", destination: "nas").first)
        #expect(hold.kind == .clock)
        #expect(hold.text.contains("the clock is not set"))
        clocks.step(by: .milliseconds(try Times.local(12).milliseconds - clocks.wall().milliseconds))
        scene.daemon.house.schedulingSignal.signal()
        try await scene.reachability(.completed, [bound])
        try await scene.stop()
    }
}
