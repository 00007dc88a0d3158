/// Lets `work` continue for a while when the task is cancelled: otherwise an object that it makes at a remote would
/// have no record.
package func withCancellationGrace<Made: Sendable>(
    _ grace: Duration, _ work: @escaping @Sendable () async throws -> Made
) async throws -> Made {
    let task = Task { try await work() }
    return try await withTaskCancellationHandler {
        try await task.value
    } onCancel: {
        Task {
            // This task is never cancelled; without an alarm the work ends at once.
            try? await Alarms.shared.sleep(for: grace)
            task.cancel()
        }
    }
}
