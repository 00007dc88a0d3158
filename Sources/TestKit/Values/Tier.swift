internal import Glibc

/// The number of cases that the tests try. `make test` sets `SLUICE_TIER=quick` and runs a few cases of each slow test,
/// spread over all of them; `make test-full` runs all but the random cases that only `make test-long` (SLOW_TESTS) adds.
package enum Tier {
    package static let isLong = getenv("SLOW_TESTS") != nil
    package static let isQuick = getenv("SLUICE_TIER").map { String(cString: $0) } == "quick"

    /// - Parameters:
    ///   - count: Of the quick tier.
    ///   - full: Of the full tier; by default all. More cases of a random test find a fault sooner, and are no other test.
    /// - Returns: All cases, or so many of them, each from the middle of a stretch of the same length.
    package static func sample<Cases: Collection>(
        _ all: Cases, _ count: Int = 1, inFull full: Int? = nil
    ) -> [Cases.Element] {
        let all = Array(all)
        let count = isQuick ? count : isLong ? all.count : full ?? all.count
        guard all.count > count else { return all }
        return (0..<count).map { all[(2 * $0 + 1) * all.count / (2 * count)] }
    }

    /// - Returns: No cases in the quick tier, for tests that have a faster form beside them.
    package static func onlyInFull<Cases: Collection>(_ all: Cases) -> [Cases.Element] { isQuick ? [] : Array(all) }
}
