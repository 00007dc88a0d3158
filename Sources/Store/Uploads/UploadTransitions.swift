package import Core

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

extension UploadState {
    /// The lists that an upload may leave.
    package static let listed: [UploadState] = [.completed, .failed, .cancelled]
}

/// Changes of the state of uploads.
package struct UploadTransitions<Access> {
    let tx: Transaction<Access>
}

extension UploadTransitions where Access == Writing {
    /// Changes the state of an upload. No other code does.
    ///
    /// - Parameters:
    ///   - reason: A code for the event.
    ///   - end: The kind of end that is counted, if this ends the upload.
    ///   - remote: The object that is there now.
    func move(
        _ upload: UploadRecord, by event: UploadEvent, because reason: String? = nil, as end: UploadEnd = .failed,
        leaving remote: RemoteObject? = nil
    ) throws {
        // Read again: the record may be older than a change in the same transaction.
        let word = try tx.connection.first("SELECT state FROM upload WHERE id = ?1", [.text(upload.id)]) { $0.text(0) }
        guard let now = word.flatMap({ UploadState(rawValue: $0) }), let next = now.after(event) else { return }
        if next == .removed {
            try tx.connection.run(
                "UPDATE upload SET state = 'removed', ended = ?2 WHERE id = ?1",
                [.text(upload.id), .text(now.rawValue)])
            try tx.events.append(.removed(list: now.list.rawValue, reason: reason), of: upload.id)
            tx.session.facts.changes.insert(.lists)
            // A failed upload has kept its source and its copy until now.
            if now == .failed { try tx.releases.updateDue(upload.asset) }
            return
        }
        let isOver = next.isTerminal
        try tx.connection.run(
            """
            UPDATE upload SET state = ?2, finished_at = ?3, ran_at = ?4, ended = NULL,
            headers = CASE WHEN ?2 = 'completed' AND NOT EXISTS (SELECT 1 FROM remote_delete WHERE upload = ?1)
                THEN '{}' ELSE headers END,
            lease_owner = CASE WHEN ?2 = 'uploading' THEN lease_owner END,
            leased_at = CASE WHEN ?2 = 'uploading' THEN leased_at END,
            standby = CASE WHEN ?2 IN ('staging', 'queued') THEN standby ELSE 0 END WHERE id = ?1
            """,
            [
                .text(upload.id), .text(next.rawValue), isOver ? .integer(tx.clocks.wall().milliseconds) : .null,
                isOver ? .integer(tx.session.currentRunTime) : .null,
            ])
        if next == .queued { try tx.masks.update(upload.id) }
        if isOver {
            try tx.overrides.end(of: upload.id)
            tx.session.facts.failingTimes.skip(upload.id)
        }
        // A lost copy is made again when no attempt reads it any more.
        if now == .uploading, try tx.copyLosses.isLost(of: upload.asset) { tx.session.facts.changes.insert(.copies) }
        // Not when an attempt gives its upload back: the one who ends the attempt knows what may go instead.
        if next == .queued, now != .uploading { tx.session.facts.changes.insert(.queued) }
        let (remoteID, url) = (remote?.id ?? upload.named, remote?.url ?? upload.namedURL)
        try tx.events.append(
            .moved(
                from: now, to: next, reason: reason, remoteID: isOver ? remoteID : nil, url: isOver ? url : nil),
            of: upload.id)
        if isOver {
            tx.session.facts.changes.insert(.lists)
            tx.session.facts.outcomes.note(upload, end, at: tx.clocks.wall())
            try tx.alternatives.noteEnd(of: upload, as: next)
            try tx.releases.uploadEnded(of: upload.asset)
        }
    }

    /// - Parameter end: The kind of end that is counted.
    func complete(_ upload: UploadRecord, _ remote: RemoteObject, as end: UploadEnd = .completed) throws {
        var remote = remote
        let isFormer = try tx.checkpoints.find(upload.id)?.nameNotFound == upload.named
        if !isFormer { remote.id = remote.id ?? upload.named }
        if remote.id == upload.named { remote.url = remote.url ?? upload.namedURL }
        // An object that was found there had been sent earlier.
        if remote.verifiedBy != "held" { remote.warnings += try tx.remoteDeletions.warnings(about: upload.id) }
        remote.warnings += try tx.waste.warnings(about: upload)
        try tx.connection.run(
            "UPDATE upload SET acked = size, remote = ?2 WHERE id = ?1",
            [.text(upload.id), .text(try StoredJSON.encode(remote))])
        try move(upload, by: .verified, as: end, leaving: remote)
        try tx.history.record(upload, .completed, remote: remote)
        try tx.connection.run("DELETE FROM checkpoint WHERE upload = ?1", [.text(upload.id)])
        try tx.tombstones.markSent(upload.asset)
    }

    /// Ends an upload, and queues its remains at the destination for removal.
    ///
    /// - Parameter failure: The reason, when no person asked for it.
    func abandon(_ upload: UploadRecord, because failure: Failure? = nil) throws {
        let checkpoint = try tx.checkpoints.find(upload.id)
        // A checkpoint is stored before the creation request, so something may exist at the remote.
        let isRemoved = try checkpoint.map { try tx.remoteDeletions.queue(of: upload, $0) }
        // Earlier remains may still wait for removal; objects of another writer stay.
        let isPending =
            try isRemoved
            ?? (tx.connection.first(
                "SELECT 1 FROM remote_delete WHERE upload = ?1 LIMIT 1", [.text(upload.id)]
            ) { $0.integer(0) } != nil)
        try tx.connection.run(
            "UPDATE upload SET remote_delete = ?2, paused_at = NULL, backoff_until = 0 WHERE id = ?1",
            [.text(upload.id), .text(isPending ? "pending" : isRemoved == nil ? "none" : "unknown")])
        try tx.connection.run("DELETE FROM checkpoint WHERE upload = ?1", [.text(upload.id)])
        let end: UploadEnd =
            switch failure?.cause {
            case .age: .expired
            case .alternative: .superseded
            case .rejection, .newerSource, .quota, .absence, nil: .cancelled
            }
        try move(upload, by: .cancelled, because: failure?.code.rawValue, as: end)
        try tx.history.record(upload, .cancelled, code: failure?.code)
    }

    /// Handles a changed source that `upload` read in place. The bytes sent of the old version are given up, and with
    /// it every upload of it that does not run: running ones find out for themselves. The new version comes as a new
    /// asset.
    func sourceChanged(_ upload: UploadRecord, _ failure: Failure) throws {
        for one in try tx.uploads.of(upload.asset) {
            guard one.id == upload.id || one.state == .queued || one.state == .staging else { continue }
            try tx.failures.record(failure, one)
            try abandon(one, because: failure)
        }
        // Perhaps only its ctime moved: the watcher must not take it for a known version.
        try tx.tombstones.remove(upload.asset)
    }

    /// Ends uploads that read an earlier version of a file in place, when a new version is recorded. The bytes that
    /// they would continue with are not the file's any more, and their source may be released under the new version's
    /// record before they check it again. A running upload finds out by its state.
    ///
    /// - Parameter identity: The new version's.
    func endSuperseded(by identity: FileIdentity) throws {
        let earlier = try tx.connection.all(
            """
            SELECT \(AssetRecord.columns) FROM asset INDEXED BY asset_relative
            WHERE relative = ?1 AND folder = ?2 AND keeping = 'in-place' AND state = 'staged'
            """, [.blob(identity.relative.bytes), .text(identity.folder)]
        ) { AssetRecord($0, 0) }
        // A file of another disk is none of its versions. If its uploads ended, one destination might never get it: another
        // may have it, and then it is released.
        for asset in earlier
        where !asset.identity.isSameVersion(as: identity) && !asset.identity.isOnOtherDisk(than: identity) {
            let failure = Failure(
                .local, code: .sourceChanged,
                message:
                    "a newer version of \(asset.path.display) was taken up while this one was uploaded in place: what was "
                    + "sent of this one is given up",
                at: tx.clocks.wall(), retryable: false)
            for upload in try tx.uploads.of(asset.id) where !upload.state.isTerminal {
                try tx.failures.record(failure, upload)
                try abandon(upload, because: failure)
                if upload.state == .uploading { tx.session.facts.changes.insert(.superseded) }
            }
        }
    }

    /// Ends uploads of an asset that wait for its copy, because its file has a newer version.
    ///
    /// - Parameter fate: What becomes of the newer version.
    func endWaiting(of asset: AssetRecord, _ fate: String) throws {
        let failure = Failure(
            .local, code: .sourceChanged,
            message: "\(asset.path.display) changed before it was copied: \(fate)",
            at: tx.clocks.wall(), retryable: false)
        for upload in try tx.uploads.of(asset.id) where upload.state == .staging {
            try tx.failures.record(failure, upload)
            try abandon(upload, because: failure)
        }
        try tx.assets.dropUnneededCopy(asset.id)
        // Its source has another content now, which no release of this asset may judge.
        let isOver = try tx.uploads.of(asset.id).allSatisfy { $0.state.isTerminal && $0.state != .failed }
        if isOver { try tx.releases.finish(asset.id, .kept, note: "a newer version replaced it") }
    }

    /// Makes an upload begin at its first byte, under another generation: the bytes that the remote has of it are of no
    /// use, were sent in vain, and are removed there.
    ///
    /// - Parameter lasting: What stays of its checkpoint, for the same content; nothing stays for another version.
    func forgetProgress(
        of upload: UploadRecord,
        keeping lasting: (_ destination: String, Checkpoint) -> Checkpoint = { _, _ in Checkpoint() }
    ) throws {
        var kept = Checkpoint()
        if let old = try tx.checkpoints.find(upload.id) {
            kept = lasting(upload.destination, old)
            try tx.remoteDeletions.queue(of: upload, old, isEarlier: true)
            // Names that are made from the id must differ from those of the removed objects. A retry of an upload that
            // has ended begins a generation by itself.
            if !upload.state.isTerminal {
                try tx.connection.run(
                    "UPDATE upload SET generation = generation + 1, attempt = 0, furthest = 0 WHERE id = ?1",
                    [.text(upload.id)])
            }
        }
        try tx.waste.record(of: upload.id, standingAt: 0)
        try tx.connection.run("DELETE FROM checkpoint WHERE upload = ?1", [.text(upload.id)])
        if !kept.fields.isEmpty {
            try tx.connection.run(
                "INSERT INTO checkpoint VALUES (?1, ?2)", [.text(upload.id), .text(TextMap.text(kept.fields))])
        }
        try tx.connection.run("UPDATE upload SET acked = 0, sent = 0 WHERE id = ?1", [.text(upload.id)])
        try tx.remoteNames.clear(of: upload.id)
    }

    /// Sets or clears the operator hold of uploads. Repeating it changes nothing.
    package func pause(_ ids: [String], _ on: Bool) throws {
        let now = tx.clocks.wall().milliseconds
        for id in ids {
            try tx.connection.run(
                """
                UPDATE upload SET paused_at = ?2 WHERE id = ?1 AND (paused_at IS NULL) = ?3
                AND state IN ('staging', 'queued', 'uploading')
                """,
                [.text(id), on ? .integer(now) : .null, .integer(on ? 1 : 0)])
            if tx.connection.changes > 0 {
                if !on { tx.session.facts.changes.formUnion([.queued, .copies]) }
                tx.session.facts.failingTimes.skip(id)
                try tx.events.append(.held(on), of: id)
            }
        }
    }

    /// Gives ongoing uploads another priority, and their files that are not copied yet the highest of their uploads.
    ///
    /// - Returns: The ids of ongoing uploads, changed or not.
    package func prioritize(_ ids: [String], to priority: Int) throws -> [String] {
        try ids.filter { id in
            guard let upload = try tx.uploads.find(id), !upload.state.isTerminal else { return false }
            if upload.priority == priority { return true }
            try tx.connection.run(
                "UPDATE upload SET rank = ?2 WHERE id = ?1", [.text(id), .integer(Int64(-priority))])
            try tx.connection.run(
                """
                UPDATE asset SET priority = (SELECT max(-rank) FROM upload WHERE upload.asset = ?1
                    AND upload.state IN ('staging', 'queued', 'uploading')) WHERE id = ?1
                """, [.integer(upload.asset)])
            tx.session.facts.changes.formUnion([.queued, .copies])
            try tx.events.append(.prioritized(from: upload.priority, to: priority), of: id)
            return true
        }
    }

    /// Ends uploads by request: state, tombstone and the queue of remote removals in one transaction.
    ///
    /// - Returns: Their state afterwards: `cancelled`, or the state that forbade it (`completed`).
    package func cancel(_ ids: [String]) throws -> [UploadState?] {
        try ids.map { id -> UploadState? in
            guard let upload = try tx.uploads.find(id) else { return nil }
            guard upload.state.after(.cancelled) != nil else { return upload.state }
            try abandon(upload)
            try tx.assets.dropUnneededCopy(upload.asset)
            return .cancelled
        }
    }

    /// Starts a new generation of a failed or cancelled upload.
    ///
    /// - Parameter fromCopy: Whether the staged copy exists; otherwise the file is staged again from the source.
    /// - Returns: The state before, so that the caller can tell "was waiting already" from "started"; `completed` for one
    ///   that another destination has made superfluous.
    package func retry(_ id: String, fromCopy: Bool) throws -> UploadState? {
        guard let upload = try tx.uploads.find(id) else { return nil }
        guard upload.ending == .failed || upload.ending == .cancelled else { return upload.state }
        if try tx.alternatives.winner(over: upload) != nil { return .completed }
        try tx.remoteDeletions.markEarlier(of: id)
        try tx.connection.run(
            """
            UPDATE upload SET generation = generation + 1, attempt = 0, backoff_until = 0, finished_at = NULL,
            failing_since = NULL, failed_for = NULL, remote_delete = NULL, acked = CASE WHEN EXISTS (SELECT 1 FROM checkpoint WHERE upload = ?1) THEN acked
            ELSE 0 END, furthest = 0, sent = CASE WHEN EXISTS (SELECT 1 FROM checkpoint WHERE upload = ?1) THEN sent ELSE 0 END
            WHERE id = ?1
            """, [.text(id)])
        if !upload.isBegun { try tx.remoteNames.clear(of: id) }
        // The source is no longer verified.
        try tx.connection.run("UPDATE asset SET kept_at = NULL WHERE id = ?1", [.integer(upload.asset)])
        if !fromCopy {
            try tx.connection.run(
                "UPDATE asset SET state = 'arrived', sha256 = NULL, staged_size = NULL, source_state = 'untouched', "
                    + "source_note = NULL WHERE id = ?1",
                [.integer(upload.asset)])
        }
        if !fromCopy { tx.session.facts.changes.insert(.copies) }
        try move(upload, by: fromCopy ? .retriedFromCopy : .retriedFromSource)
        return upload.state
    }

    /// Removes ended uploads from their lists. They stay in the history; the copy and the source that a failed upload
    /// kept are left to the release from then on.
    ///
    /// - Returns: The states afterwards, in the order of `ids`; `nil` for one that does not exist.
    package func dismiss(_ ids: [String], _ reason: RemovalReason) throws -> [UploadState?] {
        try ids.map { id -> UploadState? in
            guard let upload = try tx.uploads.find(id) else { return nil }
            try move(upload, by: .dismissed, because: reason.rawValue)
            return upload.state.after(.dismissed) ?? upload.state
        }
    }

    /// Ends waiting uploads that have been failing for too long, unless they are running or paused by now, or have
    /// ended.
    ///
    /// - Parameter failures: The failure that ends each, by its id.
    /// - Returns: Those that it ended.
    package func giveUp(_ failures: [String: Failure]) throws -> [UploadRow] {
        try failures.sorted { $0.key < $1.key }.compactMap { id, failure -> UploadRow? in
            guard let row = try tx.uploads.row(id), row.upload.state == .queued, row.upload.pausedAt == nil else {
                return nil
            }
            try tx.failures.record(failure, row.upload)
            try tx.waits.end(of: [id])
            try move(row.upload, by: .refused)
            try tx.history.record(row.upload, .failed, code: failure.code)
            return row
        }
    }

    /// Ends uploads that are too old, unless they are running by now or have ended: as a cancel does, with a failure
    /// that tells the reason.
    ///
    /// - Returns: Those that it ended.
    package func expire(_ ids: [String]) throws -> [UploadRow] {
        try ids.compactMap { id -> UploadRow? in
            guard let row = try tx.uploads.row(id), row.upload.state == .queued || row.upload.state == .staging,
                row.upload.generation == 1
            else { return nil }
            let failure = Failure(
                .local, code: .expired,
                message:
                    "it was found at \(row.upload.createdAt), which is longer ago than expires_after allows: it "
                    + "is not sent any more, and its source stays",
                at: tx.clocks.wall(), retryable: false)
            try tx.failures.record(failure, row.upload)
            try abandon(row.upload, because: failure)
            try tx.assets.dropUnneededCopy(row.upload.asset)
            return row
        }
    }
}

extension Transaction {
    package var transitions: UploadTransitions<Access> { UploadTransitions(tx: self) }
}
