/// The work took too long.
package struct TimeLimitError: Error, Hashable, Sendable, CustomStringConvertible {
    package let limit: Duration
    package var description: String { "no answer within \(limit.components.seconds) s" }
}

/// Waits for work at most for a while. Afterwards the work is cancelled, and it is not waited for: a disk or a stopped
/// process may keep it.
///
/// - Throws: ``TimeLimitError``; errors of `work`.
package func awaiting<Answer: Sendable>(
    atMost limit: Duration, _ work: @escaping @Sendable () async throws -> Answer
) async throws -> Answer {
    let (answers, out) = AsyncThrowingStream<Answer, any Error>.makeStream()
    let task = Task {
        do {
            out.yield(try await work())
            out.finish()
        } catch { out.finish(throwing: error) }
    }
    let alarm = Task {
        do { try await Alarms.shared.sleep(for: limit) } catch { return }
        out.finish(throwing: TimeLimitError(limit: limit))
    }
    defer {
        task.cancel()
        alarm.cancel()
    }
    for try await answer in answers { return answer }
    throw CancellationError()
}
