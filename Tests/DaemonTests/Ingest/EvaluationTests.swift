import Core
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

/// The number of policy evaluations, and of the snapshots that they need.
@Suite("Policy evaluations", .timeLimit(.minutes(Patience.minutes(2))))
struct EvaluationTests {
    @Test(
        "fifty waiting classes cost fifty evaluations and one snapshot a cycle, however many uploads they have; empty classes cost none"
    )
    func classes() async throws {
        let clocks = try Times.clocks(12)
        let scene = try await DaemonScene(clocks: clocks) { settings in
            let template = settings.folders[0]
            settings.folders = try (0..<60).map { number in
                var folder = template
                folder.watch.name = "f\(number)"
                folder.watch.path = settings.state.parent.appending(FilePath("f\(number)"))
                try Files.makeFolders(folder.watch.path)
                // Some wait for a rule of their own, the others for a general one.
                folder.policy.rules = number % 2 == 0 ? Times.night : PolicyRules()
                return folder
            }
            settings.policy.rules = PolicyRules(windows: [Window(from: 21 * 60, to: 7 * 60)])
        }
        var ids: [String] = []
        for round in 0..<4 {
            for number in 0..<50 { ids.append(try await scene.add("\(round).mp4", in: "f\(number)")) }
            try await scene.reach(.queued, ids)
            let (evaluations, snapshots) = try await questions(scene)
            #expect(evaluations == 50)
            // One for the decisions of the cycle, and one for the deadline after it.
            #expect(snapshots == 2)
        }
        #expect(scene.remote.began.isEmpty)
        // The upload that waits for the earliest change is evaluated then, and not before.
        scene.goOn(clocks, to: try Times.local(22))
        try await scene.reach(.completed, ids)
        #expect(try await questions(scene).evaluations == 0)
        try await scene.stop()
    }

    /// Returns the numbers of evaluations and snapshots in one scheduler cycle.
    private func questions(_ scene: DaemonScene) async throws -> (evaluations: Int, snapshots: Int) {
        let (scheduler, signal) = (scene.daemon.scheduler, scene.daemon.signals.scheduling)
        try await eventually("the scheduler waits") { signal.isWaiting }
        let before = await scheduler.cycles
        signal.signal()
        try await eventually("the scheduler has run another cycle") {
            await scheduler.cycles.count > before.count && signal.isWaiting
        }
        let (after, count) = (await scheduler.cycles, await scheduler.cycles.count - before.count)
        return ((after.evaluations - before.evaluations) / count, (after.snapshots - before.snapshots) / count)
    }
}
