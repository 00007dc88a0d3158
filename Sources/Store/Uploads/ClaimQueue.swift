package import Core

/// Uploads of a folder that are examined for one that fits: a folder with more that do not fit waits for space.
private let furthestFit = 200
/// An unfinished upload that the remote drops within this time goes first in its folder.
private let expirySoon = Duration.seconds(3600)
/// This long after that time it may still exist.
private let expiryGrace = Duration.seconds(-600)
/// The condition that no upload of the same content runs to the same destination, and that none has been begun and
/// waits to continue, unless this one has been begun too.
let isAlone = """
    AND NOT (size >= \(smallestDuplicate) AND (EXISTS (
        SELECT 1 FROM upload AS other INDEXED BY upload_list JOIN asset AS theirs ON theirs.id = other.asset
        WHERE other.state = 'uploading' AND other.destination = ?1
        AND theirs.sha256 = (SELECT sha256 FROM asset WHERE id = upload.asset))
    OR NOT EXISTS (SELECT 1 FROM checkpoint WHERE checkpoint.upload = upload.id) AND EXISTS (
        SELECT 1 FROM upload AS other INDEXED BY upload_begun JOIN asset AS theirs ON theirs.id = other.asset
        WHERE other.state = 'queued' AND other.started_at IS NOT NULL AND other.destination = ?1
        AND EXISTS (SELECT 1 FROM checkpoint WHERE checkpoint.upload = other.id)
        AND theirs.sha256 = (SELECT sha256 FROM asset WHERE id = upload.asset))))
    """

/// The next uploads of the folders that wait for one destination, for the length of a transaction. A folder that is
/// passed over is not read through, however many uploads it has, and after a claim only its own folder is queried
/// again.
struct QueueOffers {
    let destination: String
    /// Folders that skip duplicates.
    let deduplicatedFolders: Set<String>
    /// Free bytes at the destination; `nil` when unknown.
    fileprivate var freeBytes: Int64?
    /// Files whose uploads may continue and may not begin.
    fileprivate let begunOnly: Set<FileClass>
    /// Uploads that are passed over; few.
    fileprivate let passed: Set<String>
    /// These as the keys of a JSON object.
    fileprivate var passedKeys: String {
        TextMap.text(Dictionary(uniqueKeysWithValues: passed.map { ($0, "") }))
    }
    /// Boot-time ns.
    let now: Int64
    /// The number of classes of each folder.
    fileprivate var classCounts: [String: Int] = [:]
    /// The first upload of each class.
    fileprivate var first: [FileClass: Entry] = [:]

    fileprivate struct Entry {
        let offer: FolderTurns.Offer<String>
        let sort: Int64
        let share: FolderTurns.Share?
        /// The remote drops the unfinished upload soon: it goes before all others of its priority.
        var isExpiring = false

        func isBefore(_ other: Entry) -> Bool {
            (offer.rank, isExpiring ? 0 : 1, sort, offer.id)
                < (other.offer.rank, other.isExpiring ? 0 : 1, other.sort, other.offer.id)
        }
    }

    var isEmpty: Bool { first.isEmpty }

    /// The first upload of each folder; in mixed order, of the share whose turn it is.
    ///
    /// - Parameter keepsShare: The share that had the last turn goes on.
    fileprivate func ofFolders(_ turns: FolderTurns, keepsShare: Bool = false) -> [FolderTurns.Offer<String>] {
        func isBefore(_ one: Entry, _ other: Entry) -> Bool {
            let folder = one.offer.folder
            guard one.offer.rank == other.offer.rank, one.isExpiring == other.isExpiring, let first = one.share,
                let second = other.share, first != second,
                case let (last, next) = (turns.last(of: first, in: folder), turns.last(of: second, in: folder)),
                last != next
            else { return one.isBefore(other) }
            return keepsShare ? last > next : last < next
        }
        let folders = Dictionary(first.map { ($0.key.folder, $0.value) }) { isBefore($1, $0) ? $1 : $0 }
        return folders.values.map(\.offer)
    }

    /// A begun upload may have its space there already, and is not checked.
    func hasSpace(for candidate: Candidate) -> Bool {
        freeBytes.map { candidate.checkpoint != nil || candidate.missing <= $0 } ?? true
    }

    mutating func recordClaim(_ candidate: Candidate) {
        freeBytes = freeBytes.map { max(min($0, 0), $0 - candidate.missing) }
    }
}

/// An upload with the data that its claim needs.
struct Candidate {
    let upload: UploadRecord
    let asset: AssetRecord
    let checkpoint: Checkpoint?
    var missing: Int64 { upload.missing }
    /// Begun uploads, and those in place, go alone: a source in place is checked, which is done for each file by
    /// itself.
    var goesAlone: Bool { checkpoint != nil || asset.stagingMode == .inPlace }
}

/// The queue of claims for a destination.
package struct ClaimQueue<Access> {
    let tx: Transaction<Access>

    /// - Parameters:
    ///   - isOpen: Whether uploads of these files may be claimed.
    ///   - begunOnly: Files whose uploads are claimed only if they have begun.
    ///   - passed: Uploads that are passed over; few.
    ///   - left: Free bytes at the destination; `nil` when unknown.
    ///   - alike: Folders that skip duplicates.
    func offers(
        to destination: String, from isOpen: (FileClass) -> Bool, begunOnly: Set<FileClass> = [],
        besides passed: Set<String> = [], within left: Int64?, alike: [String]
    ) throws -> QueueOffers {
        let now = tx.clocks.monotonic().nanoseconds
        var offers = QueueOffers(
            destination: destination, deduplicatedFolders: Set(alike), freeBytes: left, begunOnly: begunOnly,
            passed: passed, now: now)
        let classes = try tx.connection.all(
            "SELECT folder, mask FROM tally WHERE destination = ?1 AND state = 'queued' AND uploads > 0",
            [.text(destination)]
        ) { FileClass(folder: $0.text(0), mask: FileMask($0.text(1))) }
        offers.classCounts = Dictionary(classes.map { ($0.folder, 1) }, uniquingKeysWith: +)
        for one in classes where isOpen(one) { offers.first[one] = try entry(of: one, in: offers) }
        return offers
    }

    /// The upload whose turn it is. A folder that fills a bundle continues as long as its next file fits into it.
    func next(in offers: QueueOffers, _ turns: FolderTurns, _ limits: BatchLimits) throws -> Candidate? {
        if let same = turns.nextOfSameFolder(offers.ofFolders(turns, keepsShare: true)),
            let candidate = try candidate(same.id),
            limits.joinsBundle(
                size: candidate.asset.stagedSize, isBegun: candidate.goesAlone, of: candidate.upload.folder)
        {
            return candidate
        }
        return try turns.next(offers.ofFolders(turns)).flatMap { try candidate($0.id) }
    }

    /// Replaces the first upload of these files by their next one. Other uploads that skip duplicates may have to wait
    /// for it now.
    func advance(_ offers: inout QueueOffers, _ files: FileClass) throws {
        for other in offers.first.keys where other == files || offers.deduplicatedFolders.contains(other.folder) {
            offers.first[other] = try entry(of: other, in: offers)
        }
    }

    private func entry(of files: FileClass, in offers: QueueOffers) throws -> QueueOffers.Entry? {
        let next = try nextEntry(of: files, in: offers)
        guard let expiring = try expiringEntry(of: files, in: offers), expiring.offer.rank <= next?.offer.rank ?? .max
        else { return next }
        return expiring
    }

    /// The upload of these files whose unfinished upload at the remote expires next, if that is soon. Few have a time.
    private func expiringEntry(of files: FileClass, in offers: QueueOffers) throws -> QueueOffers.Entry? {
        let now = tx.clocks.wall()
        let (begin, end) = (now.advanced(by: expiryGrace), now.advanced(by: expirySoon))
        var values: [Connection.Value] = [
            .text(offers.destination), .text(files.folder), .text(files.mask.text), .integer(offers.now),
            .integer(begin.milliseconds), .integer(end.milliseconds),
        ]
        if !offers.passed.isEmpty { values.append(.text(offers.passedKeys)) }
        return try tx.connection.first(
            """
            SELECT rank, id, sort FROM checkpoint INDEXED BY checkpoint_expires CROSS JOIN upload ON id = checkpoint.upload
            WHERE checkpoint.expires >= ?5 AND checkpoint.expires <= ?6 AND destination = ?1 AND folder = ?2 AND mask = ?3
            AND state = 'queued' AND paused_at IS NULL AND standby = 0 AND backoff_until <= ?4
            \(offers.deduplicatedFolders.contains(files.folder) ? isAlone : "")
            \(offers.passed.isEmpty ? "" : "AND id NOT IN (SELECT key FROM json_each(?7))")
            ORDER BY rank, checkpoint.expires, id LIMIT 1
            """, values
        ) {
            QueueOffers.Entry(
                offer: FolderTurns.Offer(folder: files.folder, rank: $0.integer(0), id: $0.text(1)),
                sort: $0.integer(2), share: share(of: files, to: offers.destination), isExpiring: true)
        }
    }

    private func nextEntry(of files: FileClass, in offers: QueueOffers) throws -> QueueOffers.Entry? {
        let folder = files.folder
        // Few are begun, however many wait.
        let isBegunOnly = offers.begunOnly.contains(files)
        let isNext = """
            FROM \(isBegunOnly ? "checkpoint CROSS JOIN upload ON id = checkpoint.upload" : "upload INDEXED BY upload_next")
            WHERE destination = ?1 AND folder = ?2 AND mask = ?3 AND state = 'queued' AND paused_at IS NULL
            AND standby = 0 AND backoff_until <= ?4 \(offers.deduplicatedFolders.contains(folder) ? isAlone : "")
            \(offers.passed.isEmpty ? "" : "AND id NOT IN (SELECT key FROM json_each(?5))")
            ORDER BY rank, sort, id
            """
        var values: [Connection.Value] = [
            .text(offers.destination), .text(folder), .text(files.mask.text), .integer(offers.now),
        ]
        if !offers.passed.isEmpty { values.append(.text(offers.passedKeys)) }
        let share = share(of: files, to: offers.destination)
        func first(_ sql: String, _ more: [Connection.Value] = []) throws -> QueueOffers.Entry? {
            try tx.connection.first(sql, values + more) {
                QueueOffers.Entry(
                    offer: FolderTurns.Offer(folder: folder, rank: $0.integer(0), id: $0.text(1)), sort: $0.integer(2),
                    share: share)
            }
        }
        let next = try first("SELECT rank, id, sort \(isNext) LIMIT 1")
        guard let next, let left = offers.freeBytes, let candidate = try candidate(next.offer.id),
            !offers.hasSpace(for: candidate)
        else { return next }
        // Over all classes of the folder together.
        let limit = max(20, furthestFit / max(1, offers.classCounts[folder] ?? 1))
        return try first(
            """
            SELECT rank, id, sort FROM (SELECT rank, sort, id, size - acked AS missing \(isNext) LIMIT \(limit))
            WHERE missing <= ?\(values.count + 1) OR EXISTS (SELECT 1 FROM checkpoint WHERE upload = id)
            ORDER BY rank, sort, id LIMIT 1
            """, [.integer(left)])
    }

    fileprivate func share(of files: FileClass, to destination: String) -> FolderTurns.Share? {
        tx.session.sorting.share(of: files, to: destination, tx.session.questions)
    }

    /// The first upload that waits for a destination only because it lacks more than `left` bytes there.
    package func first(
        waitingFor destination: String, lacking left: Int64, from isOpen: @Sendable (FileClass) -> Bool
    ) throws -> (upload: UploadRecord, asset: AssetRecord)? {
        let offers = try self.offers(
            to: destination, from: isOpen, within: nil, alike: [])
        for offer in offers.ofFolders(FolderTurns()).sorted(by: { ($0.rank, $0.id) < ($1.rank, $1.id) }) {
            guard let next = try candidate(offer.id), next.checkpoint == nil, next.missing > left else { continue }
            return (next.upload, next.asset)
        }
        return nil
    }

    /// The upload if it may be claimed whatever stands before it in the queue.
    func ready(_ id: String, skippingDuplicatesOf alike: [String]) throws -> Candidate? {
        guard let next = try candidate(id), next.upload.state == .queued, next.upload.pausedAt == nil,
            next.upload.standby == nil,
            next.upload.backoffUntil.map({ $0 <= tx.clocks.monotonic() }) ?? true, !alike.contains(next.upload.folder)
        else { return nil }
        return next
    }

    private func candidate(_ id: String) throws -> Candidate? {
        guard let upload = try tx.uploads.find(id), let asset = try tx.assets.find(upload.asset) else { return nil }
        return Candidate(upload: upload, asset: asset, checkpoint: try tx.checkpoints.find(id))
    }
}

extension ClaimQueue where Access == Writing {
    /// See ``Store/claim(filling:_:from:begunOnly:besides:within:skippingDuplicatesOf:reserving:onRepeat:)``.
    func claim(
        filling limits: BatchLimits, _ destination: String, from isOpen: (FileClass) -> Bool, begunOnly: Set<FileClass>,
        besides passed: Set<String>, within left: Int64?, skippingDuplicatesOf alike: [String],
        reserving: (Claim) -> Reservation?
    ) throws -> (claims: [Claim], repeats: [AssetRecord]) {
        let before = try tx.turns.of(.transfers(destination))
        var (batch, turns) = (limits, before)
        var offers = try self.offers(
            to: destination, from: isOpen, begunOnly: begunOnly, besides: passed, within: left, alike: alike)
        var claims: [Claim] = []
        var repeats: [AssetRecord] = []
        while let next = try next(in: offers, turns, batch) {
            let (upload, asset) = (next.upload, next.asset)
            // The uploads claimed before it have left less space.
            guard offers.hasSpace(for: next) else {
                try advance(&offers, upload.files)
                continue
            }
            if alike.contains(upload.folder), try completeIfDuplicate(upload, asset) {
                repeats.append(asset)
                try advance(&offers, upload.files)
                continue
            }
            guard batch.accept(size: asset.stagedSize, isBegun: next.goesAlone, of: upload.folder) else { break }
            claims.append(try lease(next, reserving))
            turns.recordTurn(upload.folder, share(of: upload.files, to: destination))
            offers.recordClaim(next)
            try advance(&offers, upload.files)
        }
        try tx.turns.store(turns, of: .transfers(destination), since: before)
        return (claims, repeats)
    }

    /// See ``Store/claim(only:skippingDuplicatesOf:reserving:)``.
    func claim(
        only id: String, skippingDuplicatesOf alike: [String], reserving: (Claim) -> Reservation?
    ) throws -> Claim? {
        try ready(id, skippingDuplicatesOf: alike).map { try lease($0, reserving) }
    }

    private func lease(_ next: Candidate, _ reserving: (Claim) -> Reservation?) throws -> Claim {
        let upload = next.upload
        try tx.connection.run(
            "UPDATE upload SET lease_owner = ?2, leased_at = ?3, started_at = coalesce(started_at, ?3) WHERE id = ?1",
            [.text(upload.id), .text(tx.session.owner), .integer(tx.clocks.wall().milliseconds)])
        try tx.transitions.move(upload, by: .claimed)
        tx.session.facts.failingTimes.beginAttempt(upload.id, at: tx.session.currentRunTime)
        var claim = Claim(
            upload: try tx.uploads.find(upload.id) ?? upload, asset: next.asset, checkpoint: next.checkpoint,
            file: try tx.masks.facts(of: upload))
        claim.step = try reserving(claim).map { try tx.ledger.open($0) }
        return claim
    }

    /// Whether the content has arrived since this copy was staged; if so, the upload is completed, or has ended because
    /// another destination that is enough has the content.
    func completeIfDuplicate(_ upload: UploadRecord, _ asset: AssetRecord) throws -> Bool {
        // A begun upload continues: its bytes at the remote may be the very object that it would count as.
        guard let sha256 = asset.sha256, try tx.checkpoints.find(upload.id) == nil else { return false }
        _ = try tx.staging.completeDuplicates(asset, StagedCopy(asset: asset.id, sha256: sha256, skipsDuplicates: true))
        return try tx.uploads.find(upload.id)?.state.isTerminal == true
    }
}

extension Transaction {
    package var queue: ClaimQueue<Access> { ClaimQueue(tx: self) }
}
