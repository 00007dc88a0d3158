package import Core
internal import Linux

// From "claimed" to "verified".

extension Store {
    /// Claims the next upload for `destination` and leases it to this run. Durable when it returns.
    ///
    /// Folders take turns (``FolderTurns``); within a folder its order decides.
    ///
    /// - Parameters:
    ///   - folders: Paused folders, which are passed over.
    ///   - alike: Folders that skip duplicates. An upload from one of them waits for another of the same content that
    ///     runs to the same destination, and is completed without sending once that is done.
    ///   - onRepeat: Called with the assets that were completed in this way, after that is durable.
    /// - Returns: `nil` when none may go now.
    package func claim(
        _ destination: String, passingOver folders: [String], skippingDuplicatesOf alike: [String] = [],
        onRepeat: @Sendable (AssetRecord) -> Void = { _ in }
    ) async throws -> Claim? {
        try await claim(
            filling: BatchLimits(slots: 1), destination, from: { !folders.contains($0) },
            skippingDuplicatesOf: alike, onRepeat: onRepeat
        ).first
    }

    /// As ``claim(_:passingOver:skippingDuplicatesOf:onRepeat:)``, for as many uploads as fit: one transaction.
    ///
    /// - Parameters:
    ///   - isOpen: Whether uploads of a folder may be claimed.
    ///   - begunOnly: Folders of which only begun uploads may be claimed.
    ///   - left: Free bytes at the destination: uploads that lack more there are passed over; `nil` when unknown.
    ///   - reserving: The bytes that each of them may send first, in the same transaction; `nil` for nothing.
    package func claim(
        filling room: BatchLimits, _ destination: String, from isOpen: @Sendable (String) -> Bool,
        begunOnly: Set<String> = [], within left: Int64? = nil,
        skippingDuplicatesOf alike: [String] = [], reserving: @Sendable (Claim) -> Reservation? = { _ in nil },
        onRepeat: @Sendable (AssetRecord) -> Void = { _ in }
    ) async throws -> [Claim] {
        let now = clocks.monotonic().nanoseconds
        // Checked outside a transaction first, so that an idle dispatcher writes nothing.
        guard
            try !line(to: destination, from: isOpen, begunOnly: begunOnly, within: left, alike: alike, now).isEmpty
        else { return [] }
        let (claims, repeats) = try await change { connection -> ([Claim], [AssetRecord]) in
            let before = try self.turns(of: .transfers(destination))
            var (room, turns) = (room, before)
            var line = try self.line(
                to: destination, from: isOpen, begunOnly: begunOnly, within: left, alike: alike, now)
            var claims: [Claim] = []
            var repeats: [AssetRecord] = []
            while let next = try self.next(in: line, turns, room) {
                let (upload, asset) = (next.upload, next.asset)
                // The uploads claimed before it have left less space.
                guard line.hasRoom(for: next) else {
                    try self.leave(&line, upload.folder)
                    continue
                }
                if alike.contains(upload.folder), try self.isRepeat(upload, asset) {
                    repeats.append(asset)
                    try self.leave(&line, upload.folder)
                    continue
                }
                guard room.takes(size: asset.stagedSize, isBegun: next.goesAlone, of: upload.folder) else { break }
                try connection.run(
                    "UPDATE upload SET lease_owner = ?2, leased_at = ?3, started_at = coalesce(started_at, ?3) WHERE id = ?1",
                    [.text(upload.id), .text(self.owner), .integer(self.clocks.wall().milliseconds)])
                try self.move(upload, by: .claimed)
                turns.took(upload.folder)
                line.took(next)
                try self.leave(&line, upload.folder)
                var claim = Claim(
                    upload: try self.upload(upload.id) ?? upload, asset: asset, checkpoint: next.checkpoint)
                claim.step = try reserving(claim).map { try self.open($0) }
                claims.append(claim)
            }
            try self.keep(turns, of: .transfers(destination), since: before, connection)
            return (claims, repeats)
        }
        repeats.forEach(onRepeat)
        return claims
    }

    /// Stores the checkpoint of an upload that this run holds. Durable when it returns.
    ///
    /// - Throws: ``LeaseLost`` when the upload was cancelled meanwhile; the objects named in the checkpoint are then
    ///   queued for removal at the remote.
    package func record(_ checkpoint: Checkpoint, for id: String, acked: Int64? = nil) async throws {
        let isHeld = try await change { connection in
            guard try self.keep(checkpoint, for: id) else { return false }
            if let acked { try self.keep(acked: acked, of: id) }
            return true
        }
        if !isHeld { throw LeaseLost() }
    }

    /// Records that `before_upload` approves an upload that this run holds, perhaps with changes. Durable when it
    /// returns.
    ///
    /// - Returns: The upload as it is to be sent.
    /// - Throws: ``LeaseLost`` when the upload was cancelled meanwhile.
    package func approve(_ id: String, _ changes: BeforeUpload.Changes) async throws -> UploadRecord {
        let approved = try await change { connection -> UploadRecord? in
            guard let upload = try self.upload(id), upload.state == .uploading else { return nil }
            try connection.run(
                "UPDATE upload SET approved = generation, name = ?2, metadata = ?3, context = ?4 WHERE id = ?1",
                [
                    .text(id), .blob((changes.name ?? upload.name).bytes),
                    .text(TextMap.text(upload.metadata.merging(changes.metadata) { $1 })),
                    .text(TextMap.text(upload.context.merging(changes.context) { $1 })),
                ])
            return try self.upload(id)
        }
        guard let approved else { throw LeaseLost() }
        return approved
    }

    /// The same for uploads that go together: one transaction.
    ///
    /// - Returns: The uploads that this run still holds.
    package func record(_ checkpoints: [String: Checkpoint]) async throws -> Set<String> {
        try await change { _ in
            Set(try checkpoints.filter { try self.keep($0.value, for: $0.key) }.keys)
        }
    }

    /// - Returns: Whether this run still holds the upload.
    func keep(_ checkpoint: Checkpoint, for id: String) throws -> Bool {
        guard let upload = try upload(id) else { return false }
        let fields = TextMap.text(checkpoint.fields)
        guard upload.state == .uploading else {
            // Cancelled during the request: the object that it made is to be removed.
            try connection.run(
                "UPDATE remote_delete SET checkpoint = ?2 WHERE upload = ?1 AND earlier = 0",
                [.text(id), .text(fields)])
            return false
        }
        // An empty checkpoint means that nothing was begun: space at the destination is required as for any other
        // upload.
        if checkpoint.fields.isEmpty {
            try connection.run("DELETE FROM checkpoint WHERE upload = ?1", [.text(id)])
            try forgetName(of: id)
        } else {
            try connection.run("INSERT OR REPLACE INTO checkpoint VALUES (?1, ?2)", [.text(id), .text(fields)])
        }
        return true
    }

    /// Thrown when this process no longer holds the upload's lease.
    package struct LeaseLost: Error, Sendable {}

    /// The outcome of an attempt, and the bytes that it sent.
    package struct Ending: Sendable {
        package var id: String
        package var outcome: AttemptOutcome
        /// Payments that are entered in the same transaction.
        package var payments: [Payment]
        /// Bytes of the file up to which it was sent, whether the remote has confirmed them or not.
        package var sent: Int64

        package init(_ id: String, _ outcome: AttemptOutcome, payments: [Payment] = [], sent: Int64 = 0) {
            self.id = id
            self.outcome = outcome
            self.payments = payments
            self.sent = sent
        }
    }

    /// Ends an attempt: failure first, then the state that shows it, and the ledger, in one transaction.
    ///
    /// - Returns: The state afterwards; `nil` when the upload had been cancelled meanwhile. The sent bytes count all
    ///   the same.
    @discardableResult
    package func finish(
        _ id: String, _ outcome: AttemptOutcome, payments: [Payment] = []
    ) async throws -> UploadState? {
        try await change { _ in try self.end(Ending(id, outcome, payments: payments)) }
    }

    /// Ends attempts that went together, in one transaction.
    ///
    /// - Returns: The result of ``finish(_:_:payments:)`` for each.
    @discardableResult
    package func finish(_ endings: [Ending]) async throws -> [UploadState?] {
        try await change { _ in try endings.map { try self.end($0) } }
    }

    private func end(_ ending: Ending) throws -> UploadState? {
        let id = ending.id
        let isNoted = notedSent.remove(id) != nil
        for payment in ending.payments { try enter(payment) }
        guard let upload = try upload(id) else { return nil }
        guard upload.state == .uploading else {
            if case .verified = ending.outcome { try noteFinished(upload) }
            return nil
        }
        // Otherwise the stored value is that of the attempt before.
        if !isNoted, ending.sent > upload.acked { try settleSent(of: upload) }
        if upload.isBegun, ending.sent > upload.acked { try keep(sent: ending.sent, of: id) }
        switch ending.outcome {
        case .yielded:
            try move(upload, by: .yielded)
        case .held(let failure, let until, let known, let isFault):
            if isFault {
                try note(failure, upload)
                try noteTrouble(failure, of: id)
            } else {
                try note(wait: failure, upload)
            }
            // A companion that ended during the attempt could not end a wait that had not begun yet.
            let hasNews = try known.map { try Self.over($0) != Self.over(companions(of: id)) } ?? false
            try connection.run(
                "UPDATE upload SET backoff_until = ?2 WHERE id = ?1",
                [.text(id), .integer(hasNews ? 0 : until.nanoseconds)])
            try move(upload, by: .yielded)
        case .again(let failure, let until):
            try note(failure, upload)
            try noteTrouble(failure, of: id)
            try connection.run(
                "UPDATE upload SET attempt = attempt + 1, backoff_until = ?2 WHERE id = ?1",
                [.text(id), .integer(until.nanoseconds)])
            try move(upload, by: .attemptFailed)
            try note("attempt_failed", id, ["error": failure.code, "message": failure.message])
        case .refused(let failure):
            try note(failure, upload)
            try noteTrouble(failure, of: id)
            try move(upload, by: .refused)
            try remember(upload, .failed, code: failure.code)
        case .copyLost(let failure):
            try note(failure, upload)
            try noteTrouble(failure, of: id)
            try move(upload, by: .copyLost)
            try connection.run(
                "UPDATE asset SET state = 'arrived', sha256 = NULL, staged_size = NULL WHERE id = ?1 AND state IN ('staged', 'dropped')",
                [.integer(upload.asset)])
            for other in try uploads(of: upload.asset) where other.state == .queued {
                try move(other, by: .copyLost)
            }
        case .sourceChanged(let failure, let isFinished):
            try sourceChanged(upload, failure)
            if isFinished { try noteFinished(upload) }
        case .skipped(let failure):
            try note(failure, upload)
            try connection.run("UPDATE upload SET approved = -generation WHERE id = ?1", [.text(id)])
            try abandon(upload, code: failure.code)
            try dropUnneeded(upload.asset)
        case .verified(let remote):
            try noteRecovery(of: id)
            try complete(upload, remote)
        }
        return try self.upload(id)?.state
    }

    private static func over(_ companions: [Companion]) -> [Companion] { companions.filter(\.state.isTerminal) }

    /// It was cancelled when the remote had all of it: the removal of the remote object has to know.
    private func noteFinished(_ upload: UploadRecord) throws {
        let body = try connection.first(
            "SELECT checkpoint FROM remote_delete WHERE upload = ?1 AND earlier = 0", [.text(upload.id)]
        ) {
            $0.text(0)
        }
        guard var checkpoint = body.flatMap({ TextMap.map($0) }).map({ Checkpoint($0) }) else { return }
        checkpoint.isFinished = true
        try connection.run(
            "UPDATE remote_delete SET checkpoint = ?2 WHERE upload = ?1 AND earlier = 0",
            [.text(upload.id), .text(TextMap.text(checkpoint.fields))])
    }

    /// - Parameter end: The kind of end that is counted.
    func complete(_ upload: UploadRecord, _ remote: RemoteObject, as end: UploadEnd = .completed) throws {
        var remote = remote
        let isFormer = try checkpoint(upload.id)?.nameNotFound == upload.named
        if !isFormer { remote.id = remote.id ?? upload.named }
        if remote.id == upload.named { remote.url = remote.url ?? upload.namedURL }
        // An object that was found there had been sent earlier.
        if remote.verifiedBy != "held" { remote.warnings += try whatCancelLeft(of: upload.id) }
        remote.warnings += try whatWentInVain(upload)
        try connection.run(
            "UPDATE upload SET acked = size, remote = ?2 WHERE id = ?1",
            [.text(upload.id), .text(try Self.json(remote))])
        try move(upload, by: .verified, as: end, leaving: remote)
        try remember(upload, .completed, remote: remote)
        try connection.run("DELETE FROM checkpoint WHERE upload = ?1", [.text(upload.id)])
        try connection.run(
            """
            UPDATE tombstone SET sha256 = (SELECT sha256 FROM asset WHERE id = ?1)
            WHERE (folder, relative) = (SELECT folder, relative FROM asset WHERE id = ?1) AND asset = ?1
            """, [.integer(upload.asset)])
    }

    // MARK: Inside a transaction

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
        let word = try connection.first("SELECT state FROM upload WHERE id = ?1", [.text(upload.id)]) { $0.text(0) }
        guard let now = word.flatMap({ UploadState(rawValue: $0) }), let next = now.after(event) else { return }
        if next == .removed {
            try connection.run(
                "UPDATE upload SET state = 'removed', ended = ?2 WHERE id = ?1",
                [.text(upload.id), .text(now.rawValue)])
            try note("removed", upload.id, ["list": now.list, "reason": reason ?? ""])
            // A failed upload has kept its source and its copy until now.
            if now == .failed { try noteDue(upload.asset) }
            return
        }
        let isOver = next.isTerminal
        try connection.run(
            """
            UPDATE upload SET state = ?2, finished_at = ?3, ran_at = ?4, ended = NULL,
            headers = CASE WHEN ?2 = 'completed' AND NOT EXISTS (SELECT 1 FROM remote_delete WHERE upload = ?1)
                THEN '{}' ELSE headers END,
            lease_owner = CASE WHEN ?2 = 'uploading' THEN lease_owner END,
            leased_at = CASE WHEN ?2 = 'uploading' THEN leased_at END WHERE id = ?1
            """,
            [
                .text(upload.id), .text(next.rawValue), isOver ? .integer(clocks.wall().milliseconds) : .null,
                isOver ? .integer(ran) : .null,
            ])
        if isOver { try endExceptions(of: upload.id) }
        var detail = ["from": now.rawValue, "to": next.rawValue]
        detail["reason"] = reason
        if isOver {
            detail["remote_id"] = remote?.id ?? upload.named
            detail["url"] = remote?.url ?? upload.namedURL
        }
        try note(isOver ? next.rawValue : "state", upload.id, detail)
        if isOver {
            listsChanged = true
            ends.note(upload, end, at: clocks.wall())
            try noteDue(upload.asset)
        }
    }

    func note(_ failure: Failure, _ upload: UploadRecord) throws {
        try connection.run(
            "INSERT INTO failure (upload, generation, attempt, body) VALUES (?1, ?2, ?3, ?4)",
            [
                .text(upload.id), .integer(Int64(upload.generation)), .integer(Int64(upload.attempt + 1)),
                .text(try Self.json(failure)),
            ])
        // A destination that is down for a week must not fill the disk with the same sentence.
        try connection.run(
            """
            DELETE FROM failure WHERE upload = ?1 AND id NOT IN
            (SELECT id FROM failure WHERE upload = ?1 ORDER BY id DESC LIMIT 20)
            """, [.text(upload.id)])
    }

    /// Records why an upload waits, where nothing failed: only the last reason is kept, and it is no failed attempt.
    private func note(wait failure: Failure, _ upload: UploadRecord) throws {
        try connection.run(
            "DELETE FROM failure WHERE upload = ?1 AND json_extract(body, '$.isWait') = 1", [.text(upload.id)])
        var wait = failure
        wait.isWait = true
        try note(wait, upload)
    }

    /// Writes the compact row that stays when the upload has left the lists.
    func remember(_ upload: UploadRecord, _ outcome: UploadState, code: String? = nil, remote: RemoteObject? = nil)
        throws
    {
        try connection.run(
            """
            INSERT INTO history (upload, generation, key, folder, relative, size, sha256, destination, remote, outcome,
                code, attempts, created_at, finished_at, remote_id)
            SELECT ?1, ?2, ?3, folder, relative, size, sha256, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?12 FROM asset WHERE id = ?11
            """,
            [
                .text(upload.id), .integer(Int64(upload.generation)), .init(upload.key), .text(upload.destination),
                remote == nil ? .null : .text(try Self.json(remote)), .text(outcome.rawValue), .init(code),
                .integer(Int64(upload.attempt + 1)), .integer(upload.createdAt.milliseconds),
                .integer(clocks.wall().milliseconds), .integer(upload.asset), .init(remote?.id),
            ])
    }
}
