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
        let limit: @Sendable (String, String) -> Duration? = {
            configuration.retry(folder: $0, destination: $1).giveUpAfter
        }
        let found = try await context.store.read { try $0.failures.exhausted(by: limit) }
        if found.due.isEmpty { return ([], found.next) }
        let now = context.clocks.wall().milliseconds
        // Looked for again in the transaction that ends them: meanwhile an attempt may have got further.
        let ended = try await context.store.write { tx in
            let failures = Dictionary(
                try tx.failures.exhausted(by: limit).due.map { upload in
                    var failure = WasteRules.giveUp(upload.failure, after: upload.failing, limit: upload.limit)
                    failure.at = now
                    return (upload.id, failure)
                }, uniquingKeysWith: { $1 })
            return try tx.transitions.giveUp(failures).map { row in (row, failures[row.upload.id]) }
        }
        for (row, failure) in ended {
            if let failure { AttemptLog(log: context.log).reportFailed(row.upload, row.asset, failure) }
        }
        return (ended.map(\.0.upload), found.next)
    }
}
