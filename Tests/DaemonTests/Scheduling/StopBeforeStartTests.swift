import API
import Core
import Dispatch
import Linux
import Store
import Synchronization
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("A stop before the start", .timeLimit(.minutes(Patience.minutes(2))))
struct StopBeforeStartTests {
    /// After each commit, the store's thread waits until the scheduler has stopped all transfers. So a stop comes
    /// between each claim and the start that it was made for, when no transfer carries the upload yet.
    ///
    /// - Parameter isExempt: The upload starts outside its turn: its window is closed, and a person has waived that.
    @Test(
        "a stop between the decision and the start of an upload prevents the start, and the upload starts later",
        arguments: [false, true])
    func stops(isExempt: Bool) async throws {
        let scene = try await DaemonScene(clocks: try Times.clocks(12)) { settings in
            if isExempt { settings.policy.rules = Times.night }
        }
        let (scheduler, store) = (scene.daemon.scheduler, scene.daemon.context.store)
        if !isExempt { _ = try await scene.daemon.pause(Selection()) }
        let id = try await scene.add("a.mp4")
        try await scene.reach(.queued, [id])
        let stops = Atomic(0)
        let listener = await store.listen {
            let isStopped = DispatchSemaphore(value: 0)
            Task.detached {
                await scheduler.stop { _, _, _ in true }
                isStopped.signal()
            }
            isStopped.wait()
            stops.add(1, ordering: .relaxed)
        }
        if isExempt {
            _ = try await scene.daemon.allow(AllowRequest(ids: [id], kinds: ["window"], duration: 3600), by: "root")
        } else {
            _ = try await scene.daemon.resume(Selection())
        }
        // The upload is claimed and given back repeatedly: each time the scheduler wakes itself, since no other event
        // comes.
        try await eventually("the upload was claimed many times") { stops.load(ordering: .relaxed) > 100 }
        #expect(scene.remote.began.isEmpty)
        #expect(await scheduler.facts.transfers.isEmpty)
        await store.forget(listener)
        try await scene.reach(.completed, [id])
        #expect(scene.remote.began == ["a.mp4"])
        try await scene.stop()
    }
}
