internal import Glibc

/// The number of cases that the tests try. `make test` sets `SLUICE_TIER=quick` and runs a few cases of each slow test,
/// spread over all of them; `make test-full` runs all.
package enum Tier {
    package static let isQuick = getenv("SLUICE_TIER").map { String(cString: $0) } == "quick"

    /// - Returns: All cases, or `count` of them in the quick tier, each from the middle of a stretch of the same
    ///   length.
    package static func sample<Cases: Collection>(_ all: Cases, _ count: Int = 1) -> [Cases.Element] {
        let all = Array(all)
        guard isQuick, all.count > count else { return all }
        return (0..<count).map { all[(2 * $0 + 1) * all.count / (2 * count)] }
    }

    /// - Returns: No cases in the quick tier, for tests that have a faster form beside them.
    package static func onlyInFull<Cases: Collection>(_ all: Cases) -> [Cases.Element] { isQuick ? [] : Array(all) }
}
