import Core
import Linux
import TestKit
import Testing

@Suite("Admission")
struct AdmissionTests {
    static let now = WallTime(milliseconds: 1_000_000)
    static let clock = MonotonicTime(nanoseconds: 1_000_000_000_000)

    static func inputs(running: Int = 0, everything: Admission.Pause? = nil, at clock: MonotonicTime = clock)
        -> Admission.PolicyInputs
    { Admission.PolicyInputs(now: now, monotonic: clock, running: running, everything: everything) }

    static func remote(
        slots: Int = 2, running: Int = 0, pause: Admission.Pause? = nil, health: DestinationHealth = DestinationHealth()
    ) -> Admission.DestinationState {
        Admission.DestinationState(name: "nas", slots: slots, running: running, pause: pause, health: health)
    }

    static let paused = Admission.Pause(since: now, until: nil)
    static let down: DestinationHealth = {
        var health = DestinationHealth()
        health.failed(.destination, text: "no answer", wait: .seconds(60), now: now, monotonic: clock)
        return health
    }()

    @Test(
        "as many uploads run as both limits permit",
        arguments: [(3, 0, 2, 0, 2), (3, 2, 2, 0, 1), (1, 0, 2, 0, 1), (3, 1, 2, 1, 1), (10, 2, 5, 2, 3)])
    func slots(_ total: Int, _ running: Int, _ slots: Int, _ there: Int, _ free: Int) {
        let verdict = Admission(total: total).verdict(
            for: Self.remote(slots: slots, running: there), in: Self.inputs(running: running))
        #expect(verdict == .go(free))
    }

    @Test("a class is busy, not held, if only slots are missing")
    func busy() {
        #expect(Admission(total: 3).verdict(for: Self.remote(running: 2), in: Self.inputs(running: 2)) == .busy)
        #expect(Admission(total: 3).verdict(for: Self.remote(), in: Self.inputs(running: 3)) == .busy)
    }

    @Test("every hold is named, not only the first")
    func reasons() {
        let verdict = Admission(total: 3).verdict(
            for: Self.remote(pause: Self.paused, health: Self.down), in: Self.inputs(everything: Self.paused))
        guard case .wait(let holds) = verdict else {
            Issue.record("the verdict lets the upload run")
            return
        }
        #expect(holds.map(\.kind) == [.global, .global, .destination])
    }

    @Test("a destination that was down is probed with one upload when its time has come")
    func probe() {
        let before = Self.inputs(at: Self.clock.advanced(by: .seconds(59)))
        let after = Self.inputs(at: Self.clock.advanced(by: .seconds(60)))
        let admission = Admission(total: 5)
        #expect(admission.verdict(for: Self.remote(slots: 4, health: Self.down), in: before) != .go(1))
        #expect(admission.verdict(for: Self.remote(slots: 4, health: Self.down), in: after) == .go(1))
        #expect(admission.verdict(for: Self.remote(slots: 4, running: 1, health: Self.down), in: after) == .busy)
    }

    @Test("the start of a trouble is kept, and the first success clears it")
    func trouble() {
        var health = Self.down
        health.failed(
            .destination, text: "still none", wait: .seconds(120), now: Self.now.advanced(by: .seconds(60)),
            monotonic: Self.clock.advanced(by: .seconds(60)))
        #expect(health.trouble?.since == Self.now)
        #expect(health.trouble?.failures == 2)
        health.succeeded()
        #expect(health.currentHold == nil)
    }

    @Test("a delay that the server asks for is kept; otherwise the wait is at most five minutes")
    func waits() {
        func wait(_ remedy: Remedy, failures: Int = 1) -> Duration? {
            DestinationHealth.hold(for: remedy, failures: failures, backoff: Backoff(), jitter: 1)?.wait
        }
        #expect(wait(.holdDestination(after: .seconds(7))) == .seconds(7))
        #expect(wait(.holdDestination(after: nil), failures: 30) == .seconds(300))
        #expect(wait(.outOfSpace(after: .seconds(86_400))) == .seconds(86_400))
        #expect(wait(.rateLimit(after: .seconds(90))) == .seconds(90))
        #expect(wait(.authenticate) == .seconds(900))
        #expect(wait(.failUpload) == nil)
        #expect(wait(.retry(after: nil)) == nil)
        #expect(wait(.refused(after: nil)) == nil)
    }

    @Test(
        "a destination without space is queried after five minutes, and then less and less often",
        arguments: [(1, 3600, 300), (2, 3600, 600), (4, 3600, 2400), (30, 7200, 3600), (30, 1800, 1800), (1, 60, 60)])
    func patience(_ failures: Int, _ longest: Int, _ wait: Int) {
        let hold = DestinationHealth.hold(
            for: .outOfSpace(after: nil), failures: failures, backoff: Backoff(ceiling: .seconds(longest)), jitter: 1)
        #expect(hold?.kind == .quota)
        #expect(hold?.wait == .seconds(wait))
    }

    @Test("lack of space after a silence is a new trouble, and so is the reverse")
    func kinds() {
        var health = Self.down
        let later = Self.now.advanced(by: .seconds(60))
        let due = Self.clock.advanced(by: .seconds(60))
        #expect(health.failures(isFull: false, at: due) == 2)
        #expect(health.failures(isFull: true, at: due) == 1)
        health.failed(.quota, text: "full", wait: .seconds(300), now: later, monotonic: due)
        #expect(
            health.currentHold == Hold(.quota, since: later, until: later.advanced(by: .seconds(300)), text: "full"))
        #expect(health.trouble?.failures == 1)
        #expect(health.failures(isFull: true, at: due.advanced(by: .seconds(300))) == 2)
        health.failed(.rateLimit, text: "slow", wait: .seconds(1), now: later, monotonic: due)
        health.failed(
            .destination, text: "gone", wait: .seconds(1), now: later, monotonic: due.advanced(by: .seconds(1)))
        #expect(health.trouble?.failures == 2)
    }

    @Test("uploads that fail side by side are one failure of their destination")
    func sideBySide() {
        var health = DestinationHealth()
        for number in 0..<8 {
            health.failed(
                .destination, text: "gone", wait: .seconds(4), now: Self.now,
                monotonic: Self.clock.advanced(by: .milliseconds(number)))
        }
        #expect(health.trouble?.failures == 1)
        health.failed(
            .destination, text: "gone", wait: .seconds(4), now: Self.now,
            monotonic: Self.clock.advanced(by: .seconds(5)))
        #expect(health.trouble?.failures == 2)
    }
}
