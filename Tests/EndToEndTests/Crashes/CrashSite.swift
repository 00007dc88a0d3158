import Core
import Glibc
import Linux
import TestKit
import Testing

/// A daemon with one remote, whose files are clips: defines the kills, and the conditions at the end.
protocol CrashSite {
    var fixture: DaemonFixture { get }
    var camera: Camera { get }
    /// Checks the content of the remote after all uploads have ended.
    func expectAll() async throws
}

extension CrashSite {
    func drop(_ number: Int, size: Int, ending: String = "mp4") throws {
        try camera.drop(Clip(number: number, size: size, relative: FilePath("clip \(number).\(ending)")))
    }

    /// Waits until no file of the clips is left on this side, and checks the remote.
    func settle() async throws {
        let count = camera.clips.count
        try await eventually("\(count) uploads have completed", within: .seconds(120), every: .milliseconds(50)) {
            try fixture.daemon?.requireRunning()
            guard let status = try await fixture.status(), !status.starting, status.counts.ongoing == 0 else {
                return false
            }
            return try Outcome.files(in: fixture.drop, hidden: true).isEmpty
                && Outcome.files(in: fixture.staging, hidden: true).isEmpty
        }
        try await expectAll()
        #expect(try await fixture.status()?.counts.completed == count)
    }

    /// Kills the daemon after a step, and starts it again.
    func kill(behind step: String) async throws {
        try fixture.startDaemon(environment: ["SLUICE_TEST_CRASH": step])
        let ending = try await #require(fixture.daemon).end(within: .seconds(30))
        try #require(ending == .signal(SIGKILL), "\(step) was not reached: \(fixture.lastWords())")
        try fixture.startDaemon()
        try await settle()
    }

    /// Kills the daemon at random moments, each time with a large file and two others in flight.
    func killAnywhere(rounds: Int, large: Int, others: ClosedRange<Int>) async throws {
        let seed = Setting.seed
        var dice = Dice(seed: seed)
        try fixture.startDaemon()
        do {
            for round in 0..<max(2, rounds) {
                for number in 0..<3 {
                    try drop(3 * round + number, size: number == 0 ? large : Int.random(in: others, using: &dice))
                }
                // The time is random on purpose, so that the kill meets files in any state.
                try await Task.sleep(for: .milliseconds(Int.random(in: 100...1500, using: &dice)))
                fixture.killDaemon()
                try fixture.startDaemon()
            }
            try await settle()
        } catch {
            Issue.record(error, "seed \(seed); run again with SLUICE_SEED=\(seed) SLUICE_KILLS=\(Setting.kills)")
        }
    }
}
