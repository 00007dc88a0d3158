package import Core

// Uploads that leave the lists, and later the history.

extension Store {
    /// The reason why an upload has left its list, as in the event.
    package enum RemovalReason: String, Sendable {
        /// Its time was over.
        case expired
        /// Too many came after it.
        case capped
        /// A person dismissed it.
        case dismissed
        /// A person cleared the list.
        case flushed
    }

    /// The lists that an upload may leave.
    package static let endings: [UploadState] = [.completed, .failed, .cancelled]

    /// Removes ended uploads from their lists. They stay in the history; the copy and the source that a failed upload
    /// kept are left to the release from then on. One transaction.
    ///
    /// - Returns: The states afterwards, in the order of `ids`; `nil` for one that does not exist.
    package func leave(_ ids: [String], _ reason: RemovalReason) async throws -> [UploadState?] {
        try await change { _ in
            try ids.map { id in
                guard let upload = try self.upload(id) else { return nil }
                try self.move(upload, by: .dismissed, because: reason.rawValue)
                return upload.state.after(.dismissed) ?? upload.state
            }
        }
    }

    /// The uploads that must leave a list, the oldest first.
    ///
    /// A cancelled upload stays until its remains at the destination are removed.
    ///
    /// - Returns: Also when the next one is due, measured from now; `nil` when there is none.
    package func retired(
        _ list: UploadState, by limits: ListRetention.Limits, most: Int
    ) throws -> (ids: [(id: String, reason: RemovalReason)], next: Duration?) {
        let ran = ran
        let surplus = try count(list) - (limits.most ?? .max)
        guard surplus > 0 || limits.time != nil else { return ([], nil) }
        var ids: [(id: String, reason: RemovalReason)] = []
        var next: Duration?
        let waiting = list == .cancelled ? "AND remote_delete IS NOT 'pending'" : ""
        try connection.query(
            """
            SELECT id, ran_at FROM upload INDEXED BY upload_age
            WHERE state = ?1 AND ran_at IS NOT NULL \(waiting) ORDER BY ran_at, id
            """, [.text(list.rawValue)]
        ) { row throws(StoreError) in
            while ids.count < most, try row.next() {
                let age = Duration.milliseconds(max(0, ran - row.integer(1)))
                if let time = limits.time, age >= time {
                    ids.append((row.text(0), .expired))
                } else if ids.count < surplus {
                    ids.append((row.text(0), .capped))
                } else {
                    next = limits.time.map { $0 - age }
                    return
                }
            }
        }
        return (ids, next)
    }

    private func count(_ state: UploadState) throws -> Int {
        try connection.first("SELECT sum(uploads) FROM tally WHERE state = ?1", [.text(state.rawValue)]) {
            Int($0.integer(0))
        } ?? 0
    }

    /// Deletes uploads that have been in the history for longer than `time`, with the asset once it has no other
    /// upload: some of them, the oldest first. One transaction.
    ///
    /// Uploads stay whose asset the release is not done with, whose source may be removed one day, or whose remains at
    /// the destination are still to be removed. The fact that a content was sent also stays, while the file exists that
    /// it was sent from.
    ///
    /// - Parameters:
    ///   - after: The age and the id of the last one that was examined before.
    ///   - folders: Those whose sources are removed one day.
    /// - Returns: The same for the next call, and when the next one is due; both `nil` when there are no more.
    package func forget(
        after time: Duration, from after: (ran: Int64, id: String)?, keepingSourcesOf folders: Set<String> = [],
        most: Int
    ) async throws -> (last: (ran: Int64, id: String)?, next: Duration?) {
        let limit = ran - time.inMilliseconds
        let found = try connection.all(
            """
            SELECT id, ran_at FROM upload INDEXED BY upload_age
            WHERE state = 'removed' AND ran_at IS NOT NULL AND (ran_at, id) > (?1, ?2) ORDER BY ran_at, id LIMIT ?3
            """, [.integer(after?.ran ?? .min), .text(after?.id ?? ""), .integer(Int64(most))]
        ) { (ran: $0.integer(1), id: $0.text(0)) }
        let old = found.filter { $0.ran <= limit }
        if !old.isEmpty { try await change { _ in for one in old { try self.forget(one.id, folders) } } }
        let young = found.first { $0.ran > limit }
        return (
            last: young == nil && found.count == most ? found.last : nil,
            next: young.map { .milliseconds($0.ran - limit) }
        )
    }

    private func forget(_ id: String, _ folders: Set<String>) throws {
        guard let upload = try upload(id), upload.state == .removed,
            try isSettled(upload, mayGo: folders.contains(upload.folder))
        else { return }
        if let checkpoint = try checkpoint(id) { try removeRemains(of: upload, checkpoint) }
        for table in ["checkpoint", "failure", "waste"] {
            try connection.run("DELETE FROM \(table) WHERE upload = ?1", [.text(id)])
        }
        try connection.run("DELETE FROM exception WHERE scope = 'upload' AND name = ?1", [.text(id)])
        try connection.run(
            """
            DELETE FROM history WHERE upload = ?1 AND (outcome <> 'completed' OR NOT EXISTS (SELECT 1 FROM tombstone
            WHERE tombstone.folder = history.folder AND tombstone.relative = history.relative))
            """, [.text(id)])
        try connection.run("DELETE FROM upload WHERE id = ?1", [.text(id)])
        guard try uploads(of: upload.asset).isEmpty else { return }
        try connection.run("DELETE FROM media WHERE asset = ?1", [.integer(upload.asset)])
        try connection.run("DELETE FROM asset WHERE id = ?1", [.integer(upload.asset)])
    }

    private func isSettled(_ upload: UploadRecord, mayGo: Bool) throws -> Bool {
        let isBusy = try connection.first(
            """
            SELECT 1 FROM asset WHERE id = ?1 AND (due = 1 OR (?3 AND kept_at IS NOT NULL) OR state IN ('staged', 'unsettled')
            OR source_state = 'releasing')
            UNION ALL SELECT 1 FROM remote_delete WHERE upload = ?2 LIMIT 1
            """, [.integer(upload.asset), .text(upload.id), .integer(mayGo ? 1 : 0)]
        ) { _ in true }
        return isBusy == nil
    }

    /// Deletes the record that the content of a source was sent, when the source is gone and its upload is forgotten.
    func forgetSent(_ identity: StoredIdentity) throws {
        try connection.run(
            """
            DELETE FROM history WHERE outcome = 'completed' AND folder = ?1 AND relative = ?2
            AND sha256 = (SELECT sha256 FROM tombstone WHERE folder = ?1 AND relative = ?2)
            AND NOT EXISTS (SELECT 1 FROM upload WHERE upload.id = history.upload)
            """, [.text(identity.folder), .blob(identity.relative.bytes)])
    }
}
