internal import Linux

/// Carries `work` on for a while when the task is cancelled: what it makes at a remote would be known to nobody.
func outlasting<Made: Sendable>(
    _ patience: Duration, _ work: @escaping @Sendable () async throws -> Made
) async throws -> Made {
    let task = Task { try await work() }
    return try await withTaskCancellationHandler {
        try await task.value
    } onCancel: {
        Task {
            // Nobody cancels this one; without an alarm the work is over at once.
            try? await Alarms.shared.sleep(for: patience)
            task.cancel()
        }
    }
}
