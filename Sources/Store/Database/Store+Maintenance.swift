package import Core

// Operations that take several transactions, or that write only if a read says so.

extension Store {
    // MARK: Order

    /// Sorts all waiting uploads again, and later ones by the same order.
    package func sort(by sorting: UploadSort) async throws {
        guard sorting != session.sorting || !isSorted else { return }
        let before = session.sorting
        // At once, so that a row that is recorded between two pieces has the new order too.
        session.sorting = sorting
        do { try await sortWaiting() } catch {
            session.sorting = before
            throw error
        }
    }

    /// Sorts the waiting uploads by the session's order, unless they are sorted. Claims in between see some in the old
    /// order and some in the new one.
    func sortWaiting() async throws {
        if try read({ tx in try tx.order.name() == tx.session.sorting.name }) {
            isSorted = true
            return
        }
        isSorted = false
        var last: String? = ""
        while let after = last { last = try await write { tx in try tx.order.sortNext(after: after) } }
        try await write { tx in try tx.order.recordSorted() }
        isSorted = true
    }

    // MARK: Ledger

    /// Combines old hours into days, deletes rows that are older than any query, and dates rows from the future again.
    /// One day in each transaction.
    ///
    /// - Returns: The number of days combined.
    @discardableResult
    package func pruneLedger() async throws -> Int {
        let cutoff = try read { tx in tx.ledger.firstDayByHour }
        var made = 0
        while let hour = try read({ tx in try tx.ledger.oldestHour(before: cutoff) }) {
            try await write { tx in try tx.ledger.combineDay(of: hour) }
            made += 1
        }
        if let last = try read({ tx in try tx.ledger.lastDayToDelete(before: cutoff) }) {
            try await write { tx in try tx.ledger.delete(upTo: last) }
        }
        try await redateLedger()
        return made
    }

    /// Called when the clock was set back. Rows dated later than now then count in this hour, and are past when this
    /// hour is. Otherwise they would count as long as they are later than now.
    package func redateLedger() async throws {
        // Usually there is no such row, and nothing is written.
        guard try read({ tx in try tx.ledger.hasFutureRows() }) else { return }
        try await write { tx in try tx.ledger.countFutureRows() }
    }

    // MARK: Files

    /// Whether these versions are known already: recorded, done, or there before the folder was watched.
    ///
    /// Renews the tombstones of known ones, at most once a week each, so that a scan over known files writes nothing.
    package func areKnown(_ identities: PackedFileVersions) async throws -> [Bool] {
        let (answers, old) = try read { tx in try tx.tombstones.areKnown(identities) }
        if !old.isEmpty { try await write { tx in try tx.tombstones.renew(old) } }
        return answers
    }

    package func areKnown(_ identities: [FileIdentity]) async throws -> [Bool] {
        try await areKnown(PackedFileVersions(identities))
    }

    /// The time for which the release of an asset has waited for it to stay the same, in ms. Its clock counts only
    /// while the machine is up: runs of the daemon that end before the time is over (`run --once`) are one wait. The
    /// wait begins now if it did not begin before, or began in another boot, or before the asset was verified.
    ///
    /// - Parameters:
    ///   - verified: ``currentRunTime`` at the time when the last of its uploads was verified.
    ///   - boot: ``Linux/Machine/boot``.
    package func waitedTime(_ asset: Int64, since verified: Int64, boot: String) async throws -> Int64 {
        let waited = try read { tx in try tx.releases.waitedTime(asset, since: verified, boot: boot) }
        if let waited { return waited }
        try await write { tx in try tx.releases.beginWait(asset, since: verified, boot: boot) }
        return 0
    }

    /// Puts kept sources on the release's list again.
    package func requeueKept(_ assets: [Int64]) async throws {
        for piece in assets.pieces(of: 200) {
            try await write { tx in for asset in piece { try tx.releases.queueAgain(asset) } }
        }
    }

    /// Forgets receptions of an earlier run, whose files were swept.
    package func forgetReceptions() async throws {
        guard try read({ tx in try tx.receptions.hasRows() }) else { return }
        try await write { tx in try tx.receptions.endAll() }
    }

    // MARK: Uploads

    /// Stores the remote's id for an upload that this run holds. The same id again writes
    /// nothing.
    ///
    /// - Throws: ``LeaseLostError`` when the upload was cancelled meanwhile.
    package func recordRemoteName(_ remoteID: String, at url: String? = nil, for id: String) async throws {
        let isStored = try read { tx in try tx.remoteNames.isStored(remoteID, at: url, of: id) }
        if isStored { return }
        try await writeHeld { tx in try tx.remoteNames.set(remoteID, at: url, of: id) }
    }

    /// Ends the waits of all uploads whose last failure had this cause.
    package func endWaits(becauseOf cause: Failure.Cause) async throws {
        let waiting = try read { tx in try tx.waits.waiting(becauseOf: cause) }
        if !waiting.isEmpty { try await write { tx in try tx.waits.end(of: waiting) } }
    }

    /// Deletes uploads that have been in the history for longer than `time`, with the asset once it has no other
    /// upload: some of them, the oldest first.
    ///
    /// Uploads stay whose asset the release is not done with, whose source may be removed one day, or whose remains at
    /// the destination are still to be removed. The fact that a content was sent also stays, while the file exists that
    /// it was sent from.
    ///
    /// - Parameters:
    ///   - after: The age and the id of the last one that was examined before.
    ///   - folders: The folders whose sources are removed one day.
    /// - Returns: The same for the next call, and when the next one is due; both `nil` when there are no more.
    package func forget(
        after time: Duration, from after: (ran: Int64, id: String)?, keepingSourcesOf folders: Set<String> = [],
        most: Int
    ) async throws -> (last: (ran: Int64, id: String)?, next: Duration?) {
        let limit = currentRunTime - time.inMilliseconds
        let found = try read { tx in try tx.retention.removed(after: after, most: most) }
        let old = found.filter { $0.ran <= limit }
        if !old.isEmpty {
            try await write { tx in for one in old { try tx.retention.forget(one.id, folders) } }
        }
        let young = found.first { $0.ran > limit }
        return (
            last: young == nil && found.count == most ? found.last : nil,
            next: young.map { .milliseconds($0.ran - limit) }
        )
    }
}
