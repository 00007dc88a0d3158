import Core
import Linux

@testable import Config
@testable import Daemon

extension House {
    var intake: Intake {
        Intake(
            context: context, stateHealth: stateHealth,
            assets: NewAssetBuilder(
                configuration: context.configuration, sources: sources, mediaReading: mediaReading),
            counters: counters, live: live, signal: signals.scheduling)
    }

    func stager() -> Stager {
        Stager(
            context: context, stateHealth: stateHealth, locator: locator, mediaReading: mediaReading, making: making,
            troubles: troubles, stagingHolds: stagingHolds, signals: signals
        ) { _, _ in }
    }

    func releaser(
        _ writers: any WriterDetecting, reconsider: @escaping @Sendable (String, FilePath) -> Void = { _, _ in }
    ) -> Releaser {
        Releaser(
            context: context, stateHealth: stateHealth, locator: locator, unsureReleases: unsureReleases,
            signal: signals.release, writers: writers, reconsider: reconsider)
    }
}
