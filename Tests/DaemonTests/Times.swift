import Core
import Linux
import TestKit
import Testing

@testable import Daemon

/// Moments of 2026-11-24, as this machine's clocks show them, and rules that use them.
enum Times {
    static let night = PolicyRules(windows: [Window(from: 22 * 60, to: 6 * 60)])

    static func local(_ hour: Int, _ minute: Int = 0, _ second: Int = 0) throws -> WallTime {
        let day = try #require(CivilDay(year: 2026, month: 11, day: 24))
        return try #require(Zone.local.moments(day, Int64(hour * 3600 + minute * 60 + second) * 1000).first)
    }

    static func clocks(_ hour: Int, _ minute: Int = 0, _ second: Int = 0) throws -> ManualClocks {
        ManualClocks(wall: try local(hour, minute, second))
    }
}

extension DaemonScene {
    /// Advances the clocks, and wakes the tasks that wait for them.
    func goOn(_ clocks: ManualClocks, to wall: WallTime) {
        clocks.advance(by: .milliseconds(wall.milliseconds - clocks.wall().milliseconds))
        daemon.signals.scheduling.signal()
    }
}
