import Core
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

/// The number of policy evaluations.
@Suite("Policy evaluations", .timeLimit(.minutes(Patience.minutes(2))))
struct EvaluationTests {
    @Test(
        "fifty waiting classes cost fifty evaluations a cycle, however many uploads they have; empty classes cost none")
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
            #expect(try await questions(scene) == 50)
        }
        #expect(scene.remote.began.isEmpty)
        // The upload that waits for the earliest change is evaluated then, and not before.
        scene.goOn(clocks, to: try Times.local(22))
        try await scene.reach(.completed, ids)
        #expect(try await questions(scene) == 0)
        try await scene.stop()
    }

    /// Returns the number of evaluations in one scheduler cycle.
    private func questions(_ scene: DaemonScene) async throws -> Int {
        let (scheduler, signal) = (scene.daemon.scheduler, scene.daemon.signals.scheduling)
        try await eventually("the scheduler waits") { signal.isWaiting }
        let before = await scheduler.cycles.evaluations
        let looks = await scheduler.cycles.count
        signal.signal()
        try await eventually("the scheduler has run another cycle") {
            await scheduler.cycles.count > looks && signal.isWaiting
        }
        return (await scheduler.cycles.evaluations - before) / (await scheduler.cycles.count - looks)
    }
}
