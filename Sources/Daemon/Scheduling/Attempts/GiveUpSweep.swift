internal import Core
internal import Linux
internal import Store

/// Ends uploads that have been failing for `retry.give_up_after` while they wait. A wait after a failure may be longer
/// than that.
struct GiveUpSweep {
    let context: Context

    /// - Returns: The uploads that it ended, and when to search again; `nil` where none of the others will be due in
    ///   its present wait.
    func run() async throws -> (ended: [UploadRecord], next: MonotonicTime?) {
        let configuration = context.configuration
        let found = try await context.store.read { tx in
            try tx.failures.exhausted { configuration.retry(folder: $0, destination: $1).giveUpAfter }
        }
        if found.due.isEmpty { return ([], found.next) }
        let now = context.clocks.wall().milliseconds
        let failures = Dictionary(
            found.due.map { upload in
                var failure = WasteRules.giveUp(upload.failure, after: upload.failing, limit: upload.limit)
                failure.at = now
                return (upload.id, failure)
            }, uniquingKeysWith: { $1 })
        let rows = try await context.store.write { tx in try tx.transitions.giveUp(failures) }
        for row in rows {
            if let failure = failures[row.upload.id] {
                AttemptLog(log: context.log).reportFailed(row.upload, row.asset, failure)
            }
        }
        return (rows.map(\.upload), found.next)
    }
}
