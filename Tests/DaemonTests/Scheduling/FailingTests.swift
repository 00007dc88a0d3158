import API
import Config
import Core
import Linux
import Store
import TestKit
import Testing

@testable import Daemon

/// Uploads that keep failing: which failures count, when they end, and what they may cost.
@Suite("Uploads that keep failing", .timeLimit(.minutes(Patience.minutes(2))))
struct FailingTests {
    private func scene(
        _ retry: Backoff, clocks: any Clocks = SystemClocks(), remote: ScriptedRemote = ScriptedRemote()
    ) async throws -> DaemonScene {
        try await DaemonScene(clocks: clocks, remote: remote) { settings in
            settings.policy.retry = retry
            // A rule that makes the daemon inspect the cost of networks.
            if remote.site.isFolder {
                settings.policy.rules.bandwidth = [RateRule(limit: 1_000_000_000, when: .fact(.metered(true)))]
            }
        }
    }

    private static let quick = Backoff(first: .milliseconds(1), ceiling: .milliseconds(2), attempts: 3)

    @Test(
        "failures of the network or the service use no attempt, however often they happen",
        arguments: Tier.sample(
            [Remedy.retry(after: nil), .holdDestination(after: .zero), .rateLimit(after: .zero), .misconfigured], 2))
    func noAttempt(_ remedy: Remedy) async throws {
        let clocks = ManualClocks()
        let scene = try await scene(Self.quick, clocks: clocks)
        scene.remote.standard = .fail(remedy)
        let id = try await scene.add("a.mp4")
        try await goOn(scene, clocks, by: .seconds(1)) { scene.remote.began.count > 12 }
        #expect(try await scene.daemon.context.store.read { try $0.uploads.find(id) }?.attempt == 0)
        scene.remote.letGo()
        try await goOn(scene, clocks, by: .seconds(1)) { try await scene.state(id) == .completed }
        try await scene.stop()
    }

    @Test("a refusal of the file uses one attempt, and the last attempt ends the upload")
    func attempts() async throws {
        let scene = try await scene(Self.quick)
        scene.remote.standard = .fail(.refused(after: nil))
        let id = try await scene.add("a.mp4")
        try await scene.reach(.failed, [id])
        #expect(scene.remote.began.count == 3)
        let failure = try #require(try await scene.daemon.context.store.read { try $0.failures.of(id) }.last?.failure)
        #expect(failure.message.hasSuffix("(attempt 3 of 3)"), "\(failure)")
        #expect(try await scene.daemon.show(id).upload.attempt == 3)
        try await scene.stop()
    }

    @Test("the bytes of the last attempt of a failed upload count as sent in vain")
    func lastAttempt() async throws {
        let scene = try await scene(Self.quick)
        scene.remote.standard = .lose(.refused(after: nil))
        let id = try await scene.add("a.mp4", size: 200_000)
        try await scene.reach(.failed, [id])
        #expect(try await scene.daemon.show(id).wasted == 600_000)
        try await scene.stop()
    }

    /// Advances the clocks in steps until a condition holds.
    private func goOn(
        _ scene: DaemonScene, _ clocks: ManualClocks, by step: Duration, until isSo: () async throws -> Bool
    ) async throws {
        while try await !isSo() {
            try await eventually("the scheduler waits, and no upload runs") {
                guard await scene.isIdle else { return false }
                return scene.daemon.signals.scheduling.isWaiting
            }
            if try await isSo() { return }
            clocks.advance(by: step)
            scene.daemon.signals.scheduling.signal()
        }
    }

    @Test(
        "`give_up_after` ends an upload that fails that long, whatever the cause, and a retry starts it again",
        arguments: Tier.sample(
            [Remedy.retry(after: nil), .holdDestination(after: nil), .refused(after: nil), .authenticate], 2))
    func givesUp(_ remedy: Remedy) async throws {
        let clocks = ManualClocks()
        let scene = try await scene(
            Backoff(first: .seconds(60), ceiling: .seconds(300), giveUpAfter: .seconds(3600)), clocks: clocks)
        scene.remote.standard = .fail(remedy)
        let began = clocks.wall()
        let id = try await scene.add("a.mp4")
        // The clocks stand still until the first failure.
        try await eventually("the first attempt has begun") { scene.remote.began.count == 1 }
        try await goOn(scene, clocks, by: .seconds(20)) { try await scene.state(id) == .failed }
        // Some seconds after each wait do not count.
        let took = clocks.wall().milliseconds - began.milliseconds
        #expect((3_600_000...(remedy == .authenticate ? 3_700_000 : 4_600_000)).contains(took), "\(took)")
        let failure = try #require(try await scene.daemon.context.store.read { try $0.failures.of(id) }.last?.failure)
        #expect(failure.message.contains("`retry.give_up_after` is 1h") && !failure.retryable, "\(failure)")
        scene.remote.letGo()
        _ = try await scene.daemon.retry(Selection(ids: [id]))
        try await goOn(scene, clocks, by: .seconds(20)) { try await scene.state(id) == .completed }
        try await scene.stop()
    }

    @Test(
        "`give_up_after` ends an upload in the middle of a longer wait, without another attempt",
        arguments: [Remedy.authenticate, .holdDestination(after: .seconds(1800)), .rateLimit(after: .seconds(1800))])
    func givesUpWaiting(_ remedy: Remedy) async throws {
        let clocks = ManualClocks()
        let scene = try await scene(
            Backoff(first: .seconds(5), ceiling: .seconds(30), giveUpAfter: .seconds(60)), clocks: clocks)
        scene.remote.standard = .fail(remedy)
        let began = clocks.wall()
        let id = try await scene.add("a.mp4")
        // The clocks stand still until the first failure.
        try await eventually("the first attempt has begun") { scene.remote.began.count == 1 }
        try await goOn(scene, clocks, by: .seconds(5)) { try await scene.state(id) == .failed }
        let took = clocks.wall().milliseconds - began.milliseconds
        #expect((60_000...70_000).contains(took), "\(took)")
        #expect(scene.remote.began.count == 1)
        let failure = try #require(try await scene.daemon.context.store.read { try $0.failures.of(id) }.last?.failure)
        #expect(failure.message.contains("and `retry.give_up_after` is ") && !failure.retryable, "\(failure)")
        scene.remote.letGo()
        _ = try await scene.daemon.retry(Selection(ids: [id]))
        try await goOn(scene, clocks, by: .seconds(5)) { try await scene.state(id) == .completed }
        try await scene.stop()
    }

    @Test("a failure that asks for no wait is tried again at once, three times in a row, and then it waits")
    func atOnce() async throws {
        let clocks = ManualClocks()
        let scene = try await scene(Backoff(first: .seconds(60), ceiling: .seconds(300)), clocks: clocks)
        scene.remote.standard = .fail(.retry(after: .zero))
        let id = try await scene.add("a.mp4")
        // The clocks stand still.
        try await eventually("the fourth attempt has ended, and a wait follows") {
            guard scene.remote.began.count == 4, await scene.isIdle else { return false }
            let until = try await scene.daemon.context.store.read { try $0.uploads.find(id) }?.backoffUntil
            return until.map { $0.since(clocks.monotonic()) > .seconds(60) } ?? false
        }
        try await eventually("the scheduler waits") { scene.daemon.signals.scheduling.isWaiting }
        #expect(scene.remote.began.count == 4)
        scene.remote.letGo()
        try await goOn(scene, clocks, by: .seconds(60)) { try await scene.state(id) == .completed }
        try await scene.stop()
    }

    @Test("a failure during a search for uploads to give up leads to another search")
    func searches() {
        func time(_ seconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: seconds * 1_000_000_000) }
        var timer = GiveUpTimer()
        var begun = timer.begin(at: time(1))
        #expect(!begun)
        timer.schedule(at: time(10))
        timer.schedule(at: time(20))
        #expect(timer.next == time(10))
        begun = timer.begin(at: time(9))
        #expect(!begun)
        begun = timer.begin(at: time(10))
        #expect(begun)
        timer.schedule(at: time(15))
        timer.end(time(30))
        #expect(timer.next == time(15))
        begun = timer.begin(at: time(15))
        timer.end(nil)
        #expect(begun && timer.next == nil)
    }

    @Test("a pause does not count as time of failing, and the time before it still does")
    func paused() async throws {
        let clocks = ManualClocks()
        let scene = try await scene(
            Backoff(first: .seconds(60), ceiling: .seconds(300), giveUpAfter: .seconds(3600)), clocks: clocks)
        scene.remote.standard = .fail(.holdDestination(after: nil))
        let id = try await scene.add("a.mp4")
        try await goOn(scene, clocks, by: .seconds(20)) { scene.remote.began.count > 3 }
        _ = try await scene.daemon.pause(Selection(destination: "nas"))
        try await eventually("the scheduler waits") { scene.daemon.signals.scheduling.isWaiting }
        clocks.advance(by: .seconds(40_000))
        let tried = scene.remote.began.count
        _ = try await scene.daemon.resume(Selection(destination: "nas"))
        try await goOn(scene, clocks, by: .seconds(20)) { scene.remote.began.count > tried }
        try await goOn(scene, clocks, by: .seconds(20)) { scene.remote.began.count > tried + 1 }
        #expect(try await scene.state(id) != .failed)
        let resumed = clocks.wall()
        try await goOn(scene, clocks, by: .seconds(20)) { try await scene.state(id) == .failed }
        #expect(clocks.wall().milliseconds - resumed.milliseconds < 3_600_000)
        try await scene.stop()
    }

    @Test("waiting for a full destination does not count as time of failing")
    func full() async throws {
        let clocks = ManualClocks()
        let scene = try await scene(
            Backoff(first: .seconds(300), ceiling: .seconds(600), giveUpAfter: .seconds(3600)), clocks: clocks)
        scene.remote.standard = .fail(.outOfSpace(after: nil))
        let id = try await scene.add("a.mp4")
        let began = clocks.wall()
        try await goOn(scene, clocks, by: .seconds(100)) {
            clocks.wall().milliseconds - began.milliseconds > 10_800_000
        }
        #expect(scene.remote.began.count > 5)
        #expect(try await scene.state(id) != .failed)
        scene.remote.letGo()
        try await goOn(scene, clocks, by: .seconds(100)) { try await scene.state(id) == .completed }
        try await scene.stop()
    }

    @Test("a forward clock jump does not count as time of failing")
    func jump() async throws {
        let clocks = ManualClocks()
        let scene = try await scene(
            Backoff(first: .seconds(60), ceiling: .seconds(300), giveUpAfter: .seconds(3600)), clocks: clocks)
        scene.remote.standard = .fail(.retry(after: nil))
        let id = try await scene.add("a.mp4")
        try await goOn(scene, clocks, by: .seconds(20)) { scene.remote.began.count > 1 }
        clocks.step(by: .seconds(400 * 86_400))
        let tried = scene.remote.began.count
        try await goOn(scene, clocks, by: .seconds(20)) { scene.remote.began.count > tried + 1 }
        #expect(try await scene.state(id) != .failed)
        try await scene.stop()
    }

    @Test(
        "a file wasted twice in a day over a metered network waits until it is allowed or the day has passed"
    )
    func metered() async throws {
        let clocks = ManualClocks()
        let scene = try await scene(
            Backoff(first: .seconds(1), ceiling: .seconds(2)), clocks: clocks,
            remote: ScriptedRemote(site: .folder("/net", cost: .metered)))
        scene.remote.standard = .lose(.holdDestination(after: nil))
        let id = try await scene.add("a.mp4", size: 1_500_000)
        func hold() async throws -> HoldView? {
            try await scene.daemon.why(id).answers.first?.holds.first { $0.kind.known == .metered }
        }
        try await goOn(scene, clocks, by: .seconds(1)) { try await hold() != nil }
        #expect(scene.remote.began.count == 2)
        let text = try await hold()?.text ?? ""
        #expect(
            text.contains("3.0 MB of this file of 1.5 MB were sent within a day")
                && text.contains("allow \(id) --metered"),
            "\(text)")
        // For hours nothing is sent, whatever wakes the scheduler.
        for _ in 0..<20 {
            try await eventually("the scheduler waits") { scene.daemon.signals.scheduling.isWaiting }
            clocks.advance(by: .seconds(3600))
            scene.daemon.signals.scheduling.signal()
        }
        try await eventually("the scheduler waits") { scene.daemon.signals.scheduling.isWaiting }
        #expect(scene.remote.began.count == 2)
        // Other uploads are sent anyway.
        scene.remote.set(.take, for: "b.mp4")
        let other = try await scene.add("b.mp4", size: 10)
        try await goOn(scene, clocks, by: .seconds(1)) { try await scene.state(other) == .completed }
        // A day has passed: once more, since the second of the two was later than the first.
        try await goOn(scene, clocks, by: .seconds(600)) { scene.remote.began.count > 3 }
        try await goOn(scene, clocks, by: .seconds(1)) { try await hold() != nil }
        let tried = scene.remote.began.count
        _ = try await scene.daemon.allow(AllowRequest(ids: [id], kinds: ["metered"], duration: 3600), by: "somebody")
        try await goOn(scene, clocks, by: .seconds(1)) { scene.remote.began.count > tried }
        scene.remote.letGo()
        try await goOn(scene, clocks, by: .seconds(1)) { try await scene.state(id) == .completed }
        let warnings = try await scene.daemon.show(id).upload.warnings
        #expect(warnings.contains { $0.contains("bytes were sent in vain before") }, "\(warnings)")
        try await scene.stop()
    }

    @Test(
        "over an unmetered network a wasted file is sent again, each time later by a second for each wasted MB",
        arguments: [Remedy.retry(after: nil), .restage(.unreadable)])
    func wastes(_ remedy: Remedy) async throws {
        let clocks = ManualClocks()
        let scene = try await scene(Backoff(first: .milliseconds(100), ceiling: .seconds(10)), clocks: clocks)
        scene.remote.standard = .lose(remedy)
        let id = try await scene.add("a.mp4", size: 3_000_000)
        var waits: [Duration] = []
        for number in 1...5 {
            try await eventually("attempt \(number) has ended") {
                guard try await scene.daemon.context.store.read({ try $0.failures.of(id) }).count == number else {
                    return false
                }
                return await scene.isIdle
            }
            let until =
                try await scene.daemon.context.store.read { try $0.uploads.find(id) }?.backoffUntil
                ?? clocks.monotonic()
            waits.append(until.since(clocks.monotonic()))
            try await eventually("the scheduler waits") { scene.daemon.signals.scheduling.isWaiting }
            clocks.advance(by: until.since(clocks.monotonic()) + .milliseconds(1))
            scene.daemon.signals.scheduling.signal()
        }
        #expect(waits[0] <= .milliseconds(100))
        #expect(waits.dropFirst() == [.seconds(3), .seconds(6), .seconds(9), .seconds(10)], "\(waits)")
        #expect(try await scene.daemon.show(id).wasted ?? 0 >= 12_000_000)
        try await scene.stop()
    }

    @Test("the learned request size survives a restart, and does not apply to another server")
    func requestSizes() async throws {
        let (folder, remote) = (TemporaryFolder(), ScriptedRemote())
        let size = RequestSize(most: 1 << 20, failed: 2 << 20, requiredRun: 64, refusesBytes: true)
        remote.learn(size)
        try await run(folder, remote) { scene in
            let store = scene.daemon.context.store
            try await scene.reach(.completed, [try await scene.add("a.mp4")])
            try await eventually("the learned request size is stored") {
                try await store.read { try $0.settings.requestSize(to: "nas", at: "here") } == size
            }
            #expect(try await store.read { try $0.settings.requestSize(to: "nas", at: "there:443") } == nil)
        }
        remote.learn(nil)
        try await run(folder, remote) { scene in
            let store = scene.daemon.context.store
            try await scene.reach(.completed, [try await scene.add("b.mp4")])
            #expect(remote.requestSize == size)
            // A forgotten size stays forgotten.
            remote.learn(nil)
            try await scene.reach(.completed, [try await scene.add("c.mp4")])
            try await eventually("no request size is stored") {
                try await store.read { try $0.settings.requestSize(to: "nas", at: "here") } == nil
            }
        }
    }

    /// Runs a daemon while `body` runs.
    private func run(
        _ folder: TemporaryFolder, _ remote: ScriptedRemote, _ body: (DaemonScene) async throws -> Void
    ) async throws {
        // The last run's store releases its lock when it has no owner any more, which is soon.
        let scene = try await eventually("the lock of the state has been released") { () -> DaemonScene? in
            do { return try await DaemonScene(folder: folder, remote: remote) } catch is StateLockedError { return nil }
        }
        try await body(scene)
        try await scene.stop()
    }
}
