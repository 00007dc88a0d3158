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
        limiter.set(
            everything: 900, destinations: ["nas": 500, "cloud": nil], folders: ["cam": 300],
            metered: ["policy": 100, "destinations.nas": 90, "folder cam": nil])
        return limiter
    }

    @Test("the limits of all, of the destination and of the folder apply together")
    func together() {
        let limiter = Self.limiter()
        #expect(limiter.throttles(to: "nas", from: "cam", .any).map(\.rate) == [900, 500, 300])
        #expect(limiter.throttles(to: "cloud", from: nil, .any).map(\.rate) == [900, nil])
        #expect(limiter.rate == 900)
        #expect(limiter.rate(ofDestination: "nas") == 500)
        #expect(limiter.rate(ofFolder: "cam") == 300)
        #expect(limiter.rate(ofFolder: "other") == nil)
    }

    @Test("the limits of metered networks apply only there")
    func metered() {
        let limiter = Self.limiter()
        var route = Admission.Route.any
        route.countsAsMetered = true
        #expect(limiter.throttles(to: "nas", from: "cam", route).map(\.rate) == [900, 500, 300, 100, 90, nil])
        #expect(limiter.throttles(to: "cloud", from: nil, route).map(\.rate) == [900, nil, 100, nil])
    }

    @Test("transfers to one destination share its limit, and a new rate holds for those that run")
    func shared() {
        let limiter = Self.limiter()
        let (first, second) = (
            limiter.throttles(to: "nas", from: "cam", .any), limiter.throttles(to: "nas", from: nil, .any)
        )
        #expect(first[0] === second[0] && first[1] === second[1])
        limiter.set(everything: nil, destinations: ["nas": 50], folders: [:], metered: [:])
        #expect(first.map(\.rate) == [nil, 50, 300])
    }
}
