import API
import Core
import Linux
import Synchronization
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("`busy` in the daemon", .timeLimit(.minutes(Patience.minutes(2))))
struct BusyDaemonTests {
    /// A source of `busy` that gives the answers of a test, and counts the queries.
    private final class Camera: Sendable {
        private let state = Mutex((answer: BusyAnswer.Answer.free, asked: 0, most: 0, now: 0))
        var answer: BusyAnswer.Answer {
            get { state.withLock { $0.answer } }
            set { state.withLock { $0.answer = newValue } }
        }
        var asked: Int { state.withLock { $0.asked } }
        /// The largest number of simultaneous queries.
        var most: Int { state.withLock { $0.most } }
        var status: BusyProbe {
            BusyProbe { [self] _, _ in
                state.withLock { state in
                    state.asked += 1
                    state.now += 1
                    state.most = max(state.most, state.now)
                }
                await Task.yield()
                return state.withLock { state in
                    state.now -= 1
                    return state.answer
                }
            }
        }
    }

    private let camera = Camera()
    private static let command = BusyRule(.command(["/bin/is-recording"]), every: .milliseconds(20))

    private func scene(_ shape: (inout Settings) throws -> Void) async throws -> DaemonScene {
        let scene = try await DaemonScene(shape)
        await scene.daemon.scheduler.use(camera.status)
        return scene
    }

    @Test(
        "when the camera records, running uploads stop and none starts, without using an attempt, and continue later")
    func pause() async throws {
        let scene = try await scene { $0.folders[0].policy.rules = PolicyRules(busy: Self.command) }
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a.mp4")
        try await scene.isRunning(1)
        camera.answer = .busy
        try await scene.isRunning(0)
        try await scene.reach(.queued, [id])
        let view = try await scene.daemon.show(id).upload
        #expect(view.state == .waiting && view.holds.map(\.kind.known) == [.busy] && view.attempt == 0)
        let text = "`/bin/is-recording` reports busy: `busy` of folder cam"
        #expect(try await scene.daemon.why(id).answers.first?.text == text)
        #expect(try await scene.daemon.status().folders.first?.hold?.text == text)
        let other = try await scene.add("b.mp4", in: "solo")
        scene.remote.letGo()
        try await scene.reach(.completed, [other])
        #expect(try await scene.state(id) == .queued)
        // An unknown state holds uploads as well, and is reported as unknown.
        camera.answer = .unknown(problem: "hangs", remedy: "kick it")
        try await eventually("`why` reports the unknown state of the camera") {
            try await scene.daemon.why(id).answers.first?.text
                == "`/bin/is-recording` hangs, which counts as busy; kick it: `busy` of folder cam"
        }
        camera.answer = .free
        try await scene.reach(.completed, [id])
        #expect(scene.remote.objects.count == 2)
        #expect(camera.most == 1)
        try await scene.stop()
    }

    @Test("no source is checked and no hold shown while no upload could run")
    func asleep() async throws {
        let scene = try await scene { settings in
            settings.policy.rules = PolicyRules(busy: Self.command)
            settings.folders[1].policy.rules = PolicyRules(bandwidth: [RateRule(limit: 0)])
        }
        let scheduler = scene.daemon.scheduler
        let held = try await scene.add("a.mp4", in: "solo")
        let sent = try await scene.add("b.mp4")
        try await scene.reach(.completed, [sent])
        try await eventually("the scheduler has scheduled nothing") {
            let isAsking = await scheduler.facts.busy.states.isQuerying
            return try await scheduler.nextDeadline() == nil && !isAsking
                && scene.daemon.signals.scheduling.isWaiting
        }
        let asked = camera.asked
        #expect(asked > 0)
        // The earlier answer no longer counts, and is no hold either.
        try await eventually("the earlier answer no longer counts") { await scheduler.snapshot.inputs.busy.isEmpty }
        #expect(try await scene.daemon.show(held).upload.holds.map(\.kind.known) == [.rule])
        #expect(try await scene.daemon.status().destinations.first?.hold == nil)
        scene.daemon.signals.scheduling.signal()
        try await eventually("the scheduler waits") { scene.daemon.signals.scheduling.isWaiting }
        #expect(camera.asked == asked)
        // When a file arrives, the source is asked first.
        camera.answer = .busy
        let late = try await scene.add("c.mp4")
        try await eventually("the upload waits for the camera") {
            try await scene.daemon.show(late).upload.holds.map(\.kind.known) == [.busy]
        }
        #expect(scene.remote.began.count == 1)
        camera.answer = .free
        try await scene.reach(.completed, [late])
        try await scene.stop()
    }

    @Test("remote removals wait too, even with an empty queue, and continue by themselves")
    func removal() async throws {
        let scene = try await scene { $0.destinations[0].policy.rules = PolicyRules(busy: Self.command) }
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a.mp4")
        try await eventually("the remote object has been created") { scene.remote.objects.count == 1 }
        camera.answer = .busy
        try await scene.isRunning(0)
        _ = try await scene.daemon.cancel(Selection(ids: [id]))
        try await scene.reach(.cancelled, [id])
        let asked = camera.asked
        try await eventually("the camera is asked for the removal") { camera.asked > asked + 2 }
        #expect(scene.remote.objects.count == 1)
        camera.answer = .free
        try await eventually("the remote object has been deleted") { scene.remote.objects.isEmpty }
        try await eventually("no check is scheduled") { try await scene.daemon.scheduler.nextDeadline() == nil }
        try await scene.stop()
    }

    @Test("a file holds uploads from the moment it appears, and an idle daemon schedules no check")
    func file() async throws {
        let folder = TemporaryFolder()
        let mark = folder.path.appending("run/recording")
        let scene = try await DaemonScene { $0.policy.rules = PolicyRules(busy: BusyRule(.file(mark))) }
        let scheduler = scene.daemon.scheduler
        try await eventually("the file has been checked") {
            await scheduler.snapshot.inputs.busy[.file(mark)]?.isFree == true
        }
        #expect(try await scheduler.nextDeadline() == nil)
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a.mp4")
        try await scene.isRunning(1)
        try folder.write("run/recording", [])
        try await scene.isRunning(0)
        let text = "`\(mark.display)` exists: `busy` of policy"
        try await eventually("`why` names the file that counts as busy") {
            try await scene.daemon.why(id).answers.first?.text == text
        }
        #expect(try await scheduler.nextDeadline() == nil)
        scene.remote.letGo()
        try Files.remove(mark)
        try await scene.reach(.completed, [id])
        #expect(scene.remote.objects.count == 1)
        try await scene.stop()
    }

    @Test(
        "a file on an unreachable server counts as busy without blocking others; uploads continue once it is given up",
        .enabled(if: DeadDisk.isPossible))
    func deadServer() async throws {
        let dead = try DeadDisk()
        let mark = dead.path.appending("recording")
        let scene = try await DaemonScene { $0.folders[0].policy.rules = PolicyRules(busy: BusyRule(.file(mark))) }
        let id = try await scene.add("a.mp4")
        let other = try await scene.add("b.mp4", in: "solo")
        try await scene.reach(.completed, [other])
        try await eventually("`why` says that the file cannot be checked") {
            try await scene.daemon.why(id).answers.first?.text
                == "`\(mark.display)` cannot be checked because its disk does not respond, which counts as busy; check the "
                + "server that it is on: `busy` of folder cam"
        }
        dead.release()
        try await eventually("the upload has completed", within: .seconds(60)) {
            try await scene.state(id) == .completed
        }
        try await scene.stop()
    }

    @Test("a reload applies another `busy`: transfers it holds stop, others are not affected")
    func reload() async throws {
        let folder = TemporaryFolder()
        try folder.write("recording", [])
        let (here, nowhere) = (folder.path.appending("recording"), folder.path.appending("nothing"))
        let scene = try await DaemonScene { _ in }
        await scene.daemon.scheduler.use(busyTimeout: .seconds(60))
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a.mp4")
        try await scene.isRunning(1)
        scene.written.edit { $0.policy.rules.busy = BusyRule(.file(nowhere)) }
        #expect(try await scene.daemon.reload().applied)
        #expect(scene.remote.running.count == 1 && scene.remote.began.count == 1)
        scene.written.edit { $0.policy.rules.busy = BusyRule(.file(here)) }
        #expect(try await scene.daemon.reload().applied)
        try await scene.isRunning(0)
        try await eventually("the upload waits because of `busy`") {
            try await scene.daemon.show(id).upload.holds.map(\.kind.known) == [.busy]
        }
        scene.remote.letGo()
        scene.written.edit { $0.policy.rules.busy = nil }
        #expect(try await scene.daemon.reload().applied)
        try await scene.reach(.completed, [id])
        try await scene.stop()
    }

    @Test("a plan assumes present busy states, and treats unchecked sources as free")
    func plan() async throws {
        let scene = try await scene { $0.folders[0].policy.rules = PolicyRules(busy: Self.command) }
        camera.answer = .busy
        let id = try await scene.add("a.mp4")
        let text = "`/bin/is-recording` reports busy: `busy` of folder cam"
        try await eventually("the upload waits for the camera") {
            try await scene.daemon.why(id).answers.first?.text == text
        }
        let planned = await scene.daemon.scheduler.snapshot.planned.inputs
        #expect(planned.busy[Self.command.source]?.answer == .busy)
        camera.answer = .free
        try await scene.reach(.completed, [id])
        try await eventually("the answer of the camera no longer counts") {
            await scene.daemon.scheduler.snapshot.inputs.busy.isEmpty
        }
        #expect(await scene.daemon.scheduler.snapshot.planned.inputs.busy[Self.command.source]?.isFree == true)
        try await scene.stop()
    }
}
