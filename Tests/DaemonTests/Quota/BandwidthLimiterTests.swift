import Core
import Names
import TestKit
import Testing
import Transport

@testable import Daemon

@Suite("Bandwidth limiter, without a daemon")
struct BandwidthLimiterTests {
    private static func limiter() -> BandwidthLimiter {
        let limiter = BandwidthLimiter(clocks: ManualClocks())
        limiter.set(everything: 900, destinations: ["nas": 500, "cloud": nil], folders: ["cam": 300])
        return limiter
    }

    @Test("the limits of all, of the destination and of the folder apply together")
    func together() {
        let limiter = Self.limiter()
        #expect(limiter.throttles(to: "nas", from: "cam").map(\.rate) == [900, 500, 300])
        #expect(limiter.throttles(to: "cloud", from: nil).map(\.rate) == [900, nil])
        #expect(limiter.rate == 900)
        #expect(limiter.rate(ofDestination: "nas") == 500)
        #expect(limiter.rate(ofFolder: "cam") == 300)
        #expect(limiter.rate(ofFolder: "other") == nil)
    }

    private static func rate(_ limit: Int64, _ place: RulePlace = .policy) -> AppliedRules.Rate {
        AppliedRules.Rate(place: place, rule: RateRule(limit: limit, when: .fact(.metered(true))))
    }

    private static func applied(_ rates: AppliedRules.Rate...) -> AppliedRules {
        var applied = AppliedRules()
        applied.rates = Set(rates)
        return applied
    }

    @Test("what a rule applies to shares its limit in its place, and another place has a limit of its own")
    func rules() {
        let limiter = Self.limiter()
        let (first, second) = (
            limiter.throttle(of: Self.applied(Self.rate(100))),
            limiter.throttle(of: Self.applied(Self.rate(100), Self.rate(90, .folder("cam"))))
        )
        #expect(first.rate == 100 && second.rate == 90)
        #expect(limiter.throttle(of: AppliedRules()).rate == nil)
    }

    @Test("a rule that begins or ceases to apply changes the limit of a running transfer")
    func flips() {
        let limiter = Self.limiter()
        let throttle = limiter.throttle(of: Self.applied(Self.rate(100)))
        limiter.update(throttle, to: AppliedRules())
        #expect(throttle.rate == nil)
        limiter.update(throttle, to: Self.applied(Self.rate(100), Self.rate(90)))
        #expect(throttle.rate == 90)
    }

    @Test("transfers to one destination share its limit, and a new rate holds for those that run")
    func shared() {
        let limiter = Self.limiter()
        let (first, second) = (
            limiter.throttles(to: "nas", from: "cam"), limiter.throttles(to: "nas", from: nil)
        )
        #expect(first[0] === second[0] && first[1] === second[1])
        limiter.set(everything: nil, destinations: ["nas": 50], folders: [:])
        #expect(first.map(\.rate) == [nil, 50, 300])
    }
}
