package import Core

/// The queued uploads of a class that go only if another destination does not have their files in time.
package struct Standby: Sendable, Hashable {
    package var uploads: Spending
    /// The time until the first of them may go.
    package var wait: Duration

    package init(uploads: Spending, wait: Duration) { (self.uploads, self.wait) = (uploads, wait) }

    static let none = Standby(uploads: .none, wait: .zero)
}

/// Uploads of a file to several destinations of which one is enough (`first_of`). The first that is verified ends the
/// others in the same transaction.
///
/// An upload on standby is left out of the queue of claims until its wait is over, or until the uploads before it have
/// ended without success. The wait counts the time that daemons have run over this state, so neither a clock that is set
/// nor a restart shortens it.
package struct Alternatives<Access> {
    let tx: Transaction<Access>

    /// The other uploads of the same choice, in the order in which they are tried.
    func others(_ upload: UploadRecord) throws -> [UploadRecord] {
        guard let choice = upload.choice else { return [] }
        return try tx.uploads.of(upload.asset).filter { $0.choice == choice && $0.id != upload.id }
    }

    /// The uploads that one on standby waits for: those before it that have not ended.
    package func awaited(by upload: UploadRecord) throws -> [UploadRecord] {
        try others(upload).filter { $0.id < upload.id && !$0.state.isTerminal }
    }

    /// The upload of the same choice that is verified; `nil` while there is none.
    package func winner(over upload: UploadRecord) throws -> UploadRecord? {
        try others(upload).first { $0.ending == .completed }
    }

    /// The time until the first upload on standby may go; `nil` when there is none.
    package func nextWait() throws -> Duration? {
        try tx.connection.first("SELECT min(standby) FROM upload INDEXED BY upload_standby WHERE standby > 0") {
            $0.optionalInteger(0)
        }.flatMap { $0 }.map { .milliseconds(max(0, $0 - tx.session.currentRunTime)) }
    }

    /// Uploads on standby in this state, by class. Uploads that a person paused are not counted.
    package func standby(_ state: UploadState = .queued) throws -> [UploadClass: Standby] {
        let rows = try tx.connection.all(
            "SELECT destination, folder, mask, standby, standby_bytes FROM tally WHERE state = ?1 AND standby > 0",
            [.text(state.rawValue)]
        ) {
            (
                UploadClass(folder: $0.text(1), destination: $0.text(0), mask: FileMask($0.text(2))),
                Spending(bytes: $0.integer(4), files: $0.integer(3))
            )
        }.map { one, uploads in (one, Standby(uploads: uploads, wait: try wait(of: one, state) ?? .zero)) }
        return Dictionary(rows, uniquingKeysWith: { first, _ in first })
    }

    /// The time until the first upload of a class may go.
    private func wait(of one: UploadClass, _ state: UploadState) throws -> Duration? {
        try tx.connection.first(
            """
            SELECT min(standby) FROM upload INDEXED BY upload_standby_class WHERE standby > 0 AND paused_at IS NULL
            AND destination = ?1 AND folder = ?2 AND mask = ?3 AND state = ?4
            """, [.text(one.destination), .text(one.folder), .text(one.mask.text), .text(state.rawValue)]
        ) { $0.optionalInteger(0) }.flatMap { $0 }.map { .milliseconds(max(0, $0 - tx.session.currentRunTime)) }
    }
}

extension Alternatives where Access == Writing {
    /// Lets the uploads go whose wait is over.
    ///
    /// - Returns: Those that may go now, at most `most`.
    package func endWaits(most: Int) throws -> [UploadRow] {
        let ids = try tx.connection.all(
            """
            SELECT id FROM upload INDEXED BY upload_standby WHERE standby > 0 AND standby <= ?1
            ORDER BY standby LIMIT ?2
            """, [.integer(tx.session.currentRunTime), .integer(Int64(most))]
        ) { $0.text(0) }
        return try ids.compactMap { id in
            guard let row = try tx.uploads.row(id) else { return nil }
            let names = try awaited(by: row.upload).map(\.destination).joined(separator: ", ")
            try activate(row.upload, because: "not verified in time at \(names)")
            return row
        }
    }

    /// Part of the transaction that ends an upload: the others end too if it is verified; otherwise the next may go.
    func noteEnd(of upload: UploadRecord, as state: UploadState) throws {
        guard upload.choice != nil else { return }
        if state == .completed { return try supersede(others(upload), by: upload) }
        let others = try others(upload)
        // It ends because another one is verified.
        if others.contains(where: { $0.ending == .completed }) { return }
        guard let next = others.first(where: { !$0.state.isTerminal && $0.standby != nil }),
            !others.contains(where: { $0.id < next.id && !$0.state.isTerminal })
        else { return }
        try activate(next, because: "\(upload.destination) is \(state.rawValue)")
    }

    private func activate(_ upload: UploadRecord, because reason: String) throws {
        try tx.connection.run("UPDATE upload SET standby = 0 WHERE id = ?1", [.text(upload.id)])
        if upload.state == .queued { tx.session.facts.changes.insert(.queued) }
        try tx.events.append(.takesOver(reason), of: upload.id)
    }

    /// Ends the other uploads of a choice, failed ones too: the file is where it is to be. What they have sent is queued
    /// for removal, as by a cancel.
    private func supersede(_ others: [UploadRecord], by winner: UploadRecord) throws {
        for other in others where other.state.after(.cancelled) != nil {
            // A crash may have come between the last byte and the record that the destination has verified it.
            let isWhole = other.size > 0 && max(other.furthest, other.sent) >= other.size
            let failure = failure(
                "superseded by \(winner.destination): upload \(winner.id) was verified there first, and one destination is "
                    + "enough"
                    + (isWhole ? "; all of it had been sent to \(other.destination) too, and may be there" : ""))
            try tx.failures.record(failure, other)
            try tx.transitions.abandon(other, because: failure)
            // The scheduler stops it.
            if other.state == .uploading { tx.session.facts.changes.insert(.superseded) }
        }
    }

    private func failure(_ message: String) -> Failure {
        Failure(.local, code: Failure.Cause.alternative.code, message: message, at: tx.clocks.wall(), retryable: false)
    }

    /// Records that the destination of a superseded upload had verified it as well, when the other upload was recorded.
    ///
    /// - Parameter remote: The object that is there.
    func recordBoth(_ upload: UploadRecord, _ remote: RemoteObject) throws {
        guard let winner = try winner(over: upload) else { return }
        try tx.failures.record(
            failure(
                "superseded by \(winner.destination): upload \(winner.id) was verified there first, but the file had "
                    + "arrived at \(upload.destination) as well: it is removed there if the destination allows it"),
            upload)
        try tx.events.append(.alsoVerified(remoteID: remote.id, url: remote.url, at: winner.destination), of: upload.id)
        guard var kept = winner.remote else { return }
        kept.warnings.append(
            "the file had arrived at \(upload.destination) as well (upload \(upload.id)) when it was verified here")
        try tx.connection.run(
            "UPDATE upload SET remote = ?2 WHERE id = ?1", [.text(winner.id), .text(try StoredJSON.encode(kept))])
    }
}
