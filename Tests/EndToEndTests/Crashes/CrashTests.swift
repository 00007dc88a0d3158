import Core
import Glibc
import Linux
import TestKit
import Testing

/// SIGKILL at random moments while files of all sizes and names arrive.
///
/// One variant at a time: each keeps both cores of a small machine busy, and a kill has to hit work, not a queue for
/// it.
@Suite("Kills at any moment", .serialized)
struct CrashTests {
    struct Variant: CustomTestStringConvertible, Sendable {
        enum KilledProcess: String, Sendable { case daemon, receiver, both }
        let victim: KilledProcess
        let source: DaemonFixture.Source
        /// The share of this variant in 50 kills.
        let share: Int
        var testDescription: String { "\(victim.rawValue) killed, source \(source.rawValue)" }
    }

    static let variants = [
        Variant(victim: .daemon, source: .keep, share: 12), Variant(victim: .daemon, source: .delete, share: 10),
        Variant(victim: .daemon, source: .move, share: 8), Variant(victim: .receiver, source: .delete, share: 10),
        Variant(victim: .both, source: .move, share: 10),
    ]

    @Test(
        "every file is at the receiver once and complete, sources are as configured, and no remains are left",
        .timeLimit(.minutes(Patience.minutes(60))), arguments: variants)
    func survives(_ variant: Variant) async throws {
        let seed = Setting.seed
        var dice = Dice(seed: seed)
        let fixture = try DaemonFixture(source: variant.source, binary: Setting.binary())
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let camera = Camera(fixture, dice: Dice(seed: seed &+ 1))
        do {
            for _ in 0..<max(1, Setting.kills * variant.share / 50) {
                try camera.drop(8)
                // The time is random on purpose, so that the kill meets files in any state.
                try await Task.sleep(for: .milliseconds(Int.random(in: 0...900, using: &dice)))
                try await kill(variant.victim, of: fixture, dice: &dice)
            }
            try camera.finish()
            let outcome = Outcome(fixture: fixture, clips: camera.clips)
            try await outcome.wait()
            try await outcome.check()
            // One more start, which sees all remaining sources: it must send nothing again.
            #expect(try await fixture.stopDaemon() == .status(0))
            #expect(try Ledger.integrity(of: fixture.state) == ["ok"])
            try fixture.startDaemon()
            try await outcome.wait()
            try await outcome.check()
        } catch {
            Issue.record(error, "seed \(seed); run again with SLUICE_SEED=\(seed) SLUICE_KILLS=\(Setting.kills)")
        }
    }

    private func kill(_ victim: Variant.KilledProcess, of fixture: DaemonFixture, dice: inout Dice) async throws {
        switch victim {
        case .daemon:
            fixture.killDaemon()
            try fixture.startDaemon()
        case .receiver:
            fixture.killReceiver()
            try await fixture.startReceiver()
        case .both:
            if Bool.random(using: &dice) {
                fixture.killDaemon()
                fixture.killReceiver()
            } else {
                fixture.killReceiver()
                fixture.killDaemon()
            }
            try await fixture.startReceiver()
            try fixture.startDaemon()
        }
    }
}
