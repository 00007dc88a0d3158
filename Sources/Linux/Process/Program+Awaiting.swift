extension Program {
    /// Like ``collectOutput(atMost:within:isStopped:)``, for a task: the program is killed when the task is cancelled.
    ///
    /// - Throws: ``Problem``; `CancellationError`.
    package func awaitOutput(atMost most: Int, within limit: Duration) async throws -> [UInt8] {
        let stop = StopFlag()
        do {
            return try await withTaskCancellationHandler {
                try await blocking { try collectOutput(atMost: most, within: limit, isStopped: { stop.isSet }) }
            } onCancel: {
                stop.set()
            }
        } catch {
            try Task.checkCancellation()
            throw error
        }
    }
}
