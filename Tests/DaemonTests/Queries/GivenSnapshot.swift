import Core
import Staging
import TestKit

@testable import Config
@testable import Daemon

extension PolicySnapshot {
    /// Policy as of one moment, from settings and facts that a test gives: no scheduler makes it.
    ///
    /// - Parameters:
    ///   - shape: Further settings, after the folders `cam` and `door` and the destination `nas`, which is a folder of
    ///     this machine.
    ///   - change: What is known besides.
    static func given(
        _ clocks: ManualClocks = ManualClocks(), _ shape: (inout Settings) throws -> Void = { _ in },
        facts change: (inout SchedulerFacts) -> Void = { _ in }
    ) throws -> PolicySnapshot {
        var settings = try ComponentScene.settings(in: "/given")
        try shape(&settings)
        var facts = SchedulerFacts()
        _ = facts.network.record(
            NetworkMonitor.Reached(reachability: .local, route: .open(.local), since: clocks.wall()), for: "nas")
        change(&facts)
        return PolicySnapshot(
            RuntimeConfiguration(
                settings: settings, staging: StagingArea(settings.staging), destinations: ["nas": ScriptedRemote()],
                questions: FileQuestions(number: 1, settings.fileQuestions), since: clocks.wall()),
            clocks: clocks, quotas: QuotaState(policy: settings.policy.rules), facts: facts)
    }
}
