internal import Glibc

/// Thrown when a wait of a test took too long.
package struct Overdue: Error, Sendable, CustomStringConvertible {
    package let what: String
    package let limit: Duration
    package var description: String { "waited \(limit) in vain until \(what)" }
}

/// The factor for all time limits: `SLUICE_PATIENCE`, which `scripts/sanitize` sets, because an instrumented program is
/// several times as slow. Otherwise 3: the limits in the tests are those of a quiet machine, and a loaded one must not
/// fail a test.
package enum Patience {
    package static let factor: Int =
        getenv("SLUICE_PATIENCE").flatMap { Int(String(cString: $0)) }.map { max(1, $0) } ?? 3
    package static func minutes(_ usual: Int) -> Int { usual * factor }
}

/// Waits until `condition` returns a value, and returns it. Calls it again after each `pause`, so it returns soon after
/// the value exists.
///
/// - Throws: ``Overdue`` after `limit`, with the text of `what` at that time; any error of `condition`, at once.
@discardableResult
package func eventually<Found>(
    _ what: @autoclosure () -> String, within limit: Duration = .seconds(20), every pause: Duration = .milliseconds(5),
    isolation: isolated (any Actor)? = #isolation, _ condition: () async throws -> sending Found?
) async throws -> Found {
    let clock = ContinuousClock()
    let limit = limit * Patience.factor
    let deadline = clock.now.advanced(by: limit)
    while true {
        if let found = try await condition() { return found }
        if clock.now >= deadline { throw Overdue(what: what(), limit: limit) }
        try await Task.sleep(for: pause)
    }
}

/// Waits until `condition` is known and true: `false` is an answer, and not the expected one.
package func eventually(
    _ what: @autoclosure () -> String, within limit: Duration = .seconds(20), every pause: Duration = .milliseconds(5),
    isolation: isolated (any Actor)? = #isolation, holds condition: () async throws -> Bool?
) async throws {
    let _: Void = try await eventually(what(), within: limit, every: pause, isolation: isolation) {
        try await condition() == true ? () : nil
    }
}
