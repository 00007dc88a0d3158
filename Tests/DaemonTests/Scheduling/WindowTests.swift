import API
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
    @Test("outside its windows no upload runs and every hold states reason and end; inside them uploads run")
    func closed() async throws {
        let clocks = try Times.clocks(12)
        let scene = try await DaemonScene(clocks: clocks) { $0.policy.rules = Times.night }
        let id = try await scene.add("a.mp4")
        try await scene.reach(.queued, [id])
        let hold = try #require(await scene.daemon.scheduler.shown().holds(folder: "cam", destination: "nas").first)
        #expect(hold.kind == .rule)
        #expect(hold.text == "outside the windows of policy: `windows: [\"22:00-06:00\"]`")
        #expect(hold.since == (try Times.local(6)))
        #expect(hold.until == (try Times.local(22)))
        let view = try await scene.daemon.show(id).upload
        #expect(view.state == .waiting)
        #expect(view.holds.map(\.kind.known) == [.rule])
        scene.goOn(clocks, to: try Times.local(21, 59, 59))
        try await eventually("the scheduler waits again") { scene.daemon.signals.scheduling.isWaiting }
        #expect(scene.remote.began.isEmpty)
        scene.goOn(clocks, to: try Times.local(22))
        try await scene.reach(.completed, [id])
        try await scene.stop()
    }

    @Test("a running upload stops when the window closes, uses no attempt, and continues in the next window")
    func closing() async throws {
        let clocks = try Times.clocks(5, 59, 59)
        let scene = try await DaemonScene(clocks: clocks) { $0.policy.rules = Times.night }
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a.mp4")
        try await scene.isRunning(1)
        scene.goOn(clocks, to: try Times.local(6))
        try await scene.isRunning(0)
        try await scene.reach(.queued, [id])
        let upload = try #require(try await scene.daemon.context.store.read { try $0.uploads.find(id) })
        #expect(upload.attempt == 0)
        scene.remote.letGo()
        scene.goOn(clocks, to: try Times.local(22))
        try await scene.reach(.completed, [id])
        #expect(scene.remote.objects.count == 1)
        try await scene.stop()
    }

    @Test("a window that closed since the last cycle takes effect at once, not when the next one opens")
    func closedMeanwhile() async throws {
        let clocks = try Times.clocks(5, 30)
        let scene = try await DaemonScene(clocks: clocks) { $0.policy.rules = Times.night }
        try await eventually("the scheduler waits") { scene.daemon.signals.scheduling.isWaiting }
        let before = try #require(try await scene.daemon.scheduler.nextDeadline())
        #expect(before == .seconds(1800))
        // No loop is signalled.
        clocks.advance(by: .seconds(1801))
        let after = try #require(try await scene.daemon.scheduler.nextDeadline())
        #expect(after == .milliseconds(10))
        try await scene.stop()
    }

    @Test("windows of a folder and of a destination hold their own uploads, and all must be open")
    func strictest() async throws {
        let clocks = try Times.clocks(12)
        let scene = try await DaemonScene(clocks: clocks) { settings in
            settings.folders[1].policy.rules = Times.night
            settings.destinations[0].policy.rules = PolicyRules(windows: [Window(from: 0, to: 23 * 60)])
        }
        let free = try await scene.add("a.mp4")
        let bound = try await scene.add("b.mp4", in: "solo")
        try await scene.reach(.completed, [free])
        try await scene.reach(.queued, [bound])
        let texts = await scene.daemon.scheduler.shown().holds(folder: "solo", destination: "nas").map(\.text)
        #expect(texts.count == 1 && texts[0].hasPrefix("outside the windows of folder solo: `windows: ["))
        scene.goOn(clocks, to: try Times.local(23))
        try await eventually("the scheduler waits again") { scene.daemon.signals.scheduling.isWaiting }
        let closed = await scene.daemon.scheduler.shown().holds(folder: "solo", destination: "nas").map(\.text)
        #expect(closed.count == 1 && closed[0].hasPrefix("outside the windows of destinations.nas: "))
        let classes = try #require(try await scene.daemon.status().classes)
        #expect(classes.map(\.folder) == ["solo"] && classes.map(\.waiting) == [1])
        #expect(classes.first?.hold.text == closed.first)
        #expect(try await scene.state(bound) == .queued)
        scene.goOn(clocks, to: try Times.local(24))
        try await scene.reach(.completed, [bound])
        try await scene.stop()
    }

    @Test("remains of a cancelled upload are removed when policy permits requests again, and not before")
    func removals() async throws {
        let clocks = try Times.clocks(5, 59, 59)
        let scene = try await DaemonScene(clocks: clocks) { $0.policy.rules = Times.night }
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a.mp4")
        try await scene.isRunning(1)
        scene.goOn(clocks, to: try Times.local(6))
        try await scene.isRunning(0)
        try await scene.reach(.queued, [id])
        _ = try await scene.daemon.cancel(Selection(ids: [id]))
        try await eventually("the scheduled removal waits") { scene.daemon.signals.removal.isWaiting }
        #expect(try await scene.daemon.context.store.read { try $0.remoteDeletions.all() }.count == 1)
        scene.goOn(clocks, to: try Times.local(22))
        try await eventually("the remains have been removed") {
            try await scene.daemon.context.store.read { try $0.remoteDeletions.all() }.isEmpty
        }
        try await scene.stop()
    }

    @Test(
        "with an unset clock, uploads that depend on time wait and others run; once set, all follow the time"
    )
    func unset() async throws {
        let clocks = ManualClocks(wall: WallTime(milliseconds: 86_400_000))
        let scene = try await DaemonScene(clocks: clocks) { settings in
            settings.folders[1].policy.rules = PolicyRules(windows: [Window(from: 0, to: 1440)])
        }
        let free = try await scene.add("a.mp4")
        let bound = try await scene.add("b.mp4", in: "solo")
        try await scene.reach(.completed, [free])
        try await scene.reach(.queued, [bound])
        let hold = try #require(await scene.daemon.scheduler.shown().holds(folder: "solo", destination: "nas").first)
        #expect(hold.kind == .clock)
        #expect(hold.text.contains("the clock is not set"))
        clocks.step(by: .milliseconds(try Times.local(12).milliseconds - clocks.wall().milliseconds))
        scene.daemon.signals.scheduling.signal()
        try await scene.reach(.completed, [bound])
        try await scene.stop()
    }
}
