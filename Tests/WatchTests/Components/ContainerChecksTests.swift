import Core
import Synchronization
import TestKit
import Testing

@testable import Linux
@testable import Media
@testable import Watch

@Suite("ContainerChecks")
struct ContainerChecksTests {
    let trees = Trees()
    let now = MonotonicTime.start
    let status = FileStatus.regular(size: 10)
    var checks = ContainerChecks()

    private func rule(_ broken: WatchRule.Broken = .upload) -> WatchRule {
        var rule = WatchRule(name: "cam", path: "/")
        rule.container = .check
        rule.broken = broken
        rule.brokenAfter = .seconds(100)
        return rule
    }

    private mutating func decide(
        _ name: FilePath, _ rule: WatchRule? = nil, unchanged: Duration = .zero
    ) -> ContainerChecks.Decision {
        checks.decide(trees.place(name), status, rule ?? self.rule(), unchanged: unchanged, at: now)
    }

    @Test("without a container check in the folder, files pass")
    mutating func skipped() {
        var rule = rule()
        rule.container = .skip
        #expect(decide("a", rule) == .passed)
    }

    @Test("four checks run at once; the next file waits for a slot")
    mutating func slots() {
        for number in 1...4 {
            guard case .start(number: number, until: _) = decide(FilePath("\(number)")) else {
                return #expect(Bool(false), "check \(number) starts")
            }
        }
        guard case .checking = decide("5"), case .checking = decide("1") else {
            return #expect(Bool(false), "no slot is free")
        }
        #expect(checks.finish(2, .unknownFormat, candidates: 5) { _ in true } == trees.place("2"))
        #expect(checks.finish(2, .unknownFormat, candidates: 5) { _ in true } == nil)
        guard case .start(number: 5, until: _) = decide("5") else { return #expect(Bool(false), "a slot is free") }
    }

    @Test("an incomplete file waits longer each time, until it is taken as it is or for ever")
    mutating func incomplete() {
        _ = decide("a")
        _ = checks.finish(1, .incomplete(.mp4, reason: "has no end"), candidates: 1) { _ in true }
        #expect(checks.flaw(of: trees.place("a")) == "has no end")
        #expect(decide("a", unchanged: .seconds(1)) == .incomplete(until: now + .seconds(1)))
        #expect(decide("a", unchanged: .seconds(30)) == .incomplete(until: now + .seconds(15)))
        #expect(decide("a", unchanged: .seconds(95)) == .incomplete(until: now + .seconds(5)))
        #expect(decide("a", unchanged: .seconds(100)) == .passed)
        #expect(decide("a", rule(.wait), unchanged: .seconds(9999)) == .incomplete(until: now + .seconds(60)))
    }

    @Test("old results are dropped when there are many, and those of a dropped root")
    mutating func forgotten() {
        for number in 1...66 {
            _ = decide(FilePath("\(number)"))
            _ = checks.finish(number, .incomplete(.mp4, reason: "x"), candidates: 0) { _ in false }
        }
        #expect(checks.flaw(of: trees.place("1")) == nil && checks.flaw(of: trees.place("66")) == "x")
        checks.drop(trees.root)
        #expect(checks.flaw(of: trees.place("66")) == nil)
    }
}
