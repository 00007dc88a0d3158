import TestKit
import Testing

@testable import Core

@Suite("Expiry")
struct ExpiryTests {
    private static let now = WallTime(milliseconds: 1_795_161_600_000)

    @Test("the shortest time of the places counts, and without any there is no expiry")
    func shortest() {
        func rules(_ days: Int?) -> PolicyRules { PolicyRules(expiresAfter: days.map { .seconds($0 * 86_400) }) }
        #expect(Expiry(rules(7), rules(nil), rules(3))?.limit == .seconds(3 * 86_400))
        #expect(Expiry(rules(7), nil, rules(9))?.limit == .seconds(7 * 86_400))
        #expect(Expiry(rules(nil), nil, rules(nil)) == nil)
    }

    @Test(
        "an upload expires that long after it was found, and one of this run not before the run is as old",
        arguments: 0..<200)
    func due(_ seed: UInt64) throws {
        var dice = Dice(seed: seed)
        let limit = Duration.seconds(Int.random(in: 60...1_000_000, using: &dice))
        let expiry = try #require(Expiry(PolicyRules(expiresAfter: limit)))
        let run = Duration.seconds(Int.random(in: 0...2_000_000, using: &dice))
        let found = Self.now.advanced(by: .seconds(Int.random(in: -3_000_000...1_000, using: &dice)))
        let before = expiry.due(found: found, isOfRun: false, now: Self.now, run: run)
        #expect(before == found.advanced(by: limit))
        let own = expiry.due(found: found, isOfRun: true, now: Self.now, run: run)
        #expect(own >= before)
        if own <= Self.now { #expect(run >= limit && before <= Self.now) }
        if run >= limit { #expect(own == before) }
    }
}
