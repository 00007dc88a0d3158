internal import Glibc

/// What a test waited for did not come.
package struct Overdue: Error, Sendable, CustomStringConvertible {
    package let what: String
    package let limit: Duration
    package var description: String { "waited \(limit) in vain until \(what)" }
}

/// How much longer than usual everything may take: `SLUICE_PATIENCE`, which `scripts/sanitize` sets, for an instrumented
/// program is several times as slow. 3 without it: the limits in the tests are those of a quiet machine, and one that is loaded fails nobody.
package enum Patience {
    package static let factor: Int =
        getenv("SLUICE_PATIENCE").flatMap { Int(String(cString: $0)) }.map { max(1, $0) } ?? 3
    package static func minutes(_ usual: Int) -> Int { usual * factor }
}

/// Waits until `look` finds something, and returns it. Looks again after each `pause`, so it returns as soon as it may.
///
/// - Throws: ``Overdue`` after `limit`, with `what` as it reads then; whatever `look` throws, at once.
@discardableResult
package func eventually<Found>(
    _ what: @autoclosure () -> String, within limit: Duration = .seconds(20), every pause: Duration = .milliseconds(5),
    isolation: isolated (any Actor)? = #isolation, _ look: () async throws -> Found?
) async throws -> Found {
    let clock = ContinuousClock()
    let limit = limit * Patience.factor
    let deadline = clock.now.advanced(by: limit)
    while true {
        if let found = try await look() { return found }
        if clock.now >= deadline { throw Overdue(what: what(), limit: limit) }
        try await Task.sleep(for: pause)
    }
}

/// Waits until `condition` is known and holds: `false` is an answer, and not the one that is waited for.
package func eventually(
    _ what: @autoclosure () -> String, within limit: Duration = .seconds(20), every pause: Duration = .milliseconds(5),
    isolation: isolated (any Actor)? = #isolation, holds condition: () async throws -> Bool?
) async throws {
    let _: Void = try await eventually(what(), within: limit, every: pause, isolation: isolation) {
        try await condition() == true ? () : nil
    }
}
