package import Core

/// A copy that is whole and durable under its name in the staging folder.
package struct StagedCopy: Sendable {
    package var asset: Int64
    /// The version that was copied; `nil` for a state that the caller made itself, where there can be only one.
    package var version: AssetVersion?
    package var sha256: [UInt8]
    package var parts: PartDigests
    /// Whether the same content from another path counts as sent already (`duplicates: skip`).
    package var skipsDuplicates: Bool
    /// Its size, and the digest of the source, where it is no plain copy of that.
    package var export: (size: Int64, sourceSHA256: [UInt8]?)?
    /// The token of the source's release, which the copy also holds.
    package var releaseToken: ReleaseToken?

    package init(
        asset: Int64, version: AssetVersion? = nil, sha256: [UInt8], parts: PartDigests = PartDigests(),
        skipsDuplicates: Bool = false,
        export: (size: Int64, sourceSHA256: [UInt8]?)? = nil, releaseToken: ReleaseToken? = nil
    ) {
        self.asset = asset
        self.version = version
        self.sha256 = sha256
        self.parts = parts
        self.skipsDuplicates = skipsDuplicates
        self.export = export
        self.releaseToken = releaseToken
    }
}

/// Smaller files have equal content too often to be recognised by it: another path means another file.
let smallestDuplicate: Int64 = 4096

/// Files of a folder that are examined for one of each share.
private let furthestShare = 2_000

/// The next files of a folder to be copied, with the numbers of assets as the ids of their offers.
private struct WaitingCopies {
    private var offers: [(offer: FolderTurns.Offer<Int64>, share: FolderTurns.Share?)] = []

    func count(of share: FolderTurns.Share?) -> Int { offers.count { $0.share == share } }

    mutating func append(_ offer: FolderTurns.Offer<Int64>, _ share: FolderTurns.Share?) {
        offers.append((offer, share))
    }

    /// The first in their order; in mixed order, of the share whose turn it is.
    func first(_ turns: FolderTurns) -> FolderTurns.Offer<Int64>? {
        guard let first = offers.first else { return nil }
        let other = offers.first { $0.share != first.share && $0.offer.rank == first.offer.rank }
        guard let other, let (one, two) = first.share.flatMap({ one in other.share.map { (one, $0) } }) else {
            return first.offer
        }
        let folder = first.offer.folder
        return turns.last(of: two, in: folder) < turns.last(of: one, in: folder) ? other.offer : first.offer
    }

    /// - Returns: Its share.
    mutating func remove(_ id: Int64) -> FolderTurns.Share? {
        offers.firstIndex { $0.offer.id == id }.flatMap { offers.remove(at: $0).share }
    }
}

private struct EarlierUpload {
    let remote: String?
    let folder: String
    let relative: FilePath
    let at: WallTime
}

/// Files that wait to be copied, and their copies: from "recorded" to "staged".
package struct StagingQueue<Access> {
    let tx: Transaction<Access>

    /// Files that wait to be copied. Only the highest priority counts; its folders take turns, and each offers first
    /// the file that it would upload first.
    ///
    /// - Parameters:
    ///   - except: Files that are passed over, which may be a hundred thousand: only the index is read for them.
    ///   - exports: The files that a command converts, and no others.
    package func waiting(
        limit: Int, except: Set<Int64>, exports: Bool = false, turns: FolderTurns = FolderTurns()
    ) throws -> [AssetRecord] {
        let waiting = waitingFiles(exports: exports)
        func folder(behind last: String) throws -> String? {
            try tx.connection.first(
                "SELECT folder FROM \(waiting) AND folder > ?1 ORDER BY folder LIMIT 1", [.text(last)]
            ) { $0.text(0) }
        }
        var lines: [String: WaitingCopies] = [:]
        var last = ""
        while let next = try folder(behind: last) {
            lines[next] = try first(limit, of: next, waiting, except)
            last = next
        }
        var turns = turns
        var found: [AssetRecord] = []
        while found.count < limit, let next = turns.next(lines.values.compactMap { $0.first(turns) }) {
            let share = lines[next.folder]?.remove(next.id)
            turns.recordTurn(next.folder, share)
            if let asset = try tx.assets.find(next.id) { found.append(asset) }
        }
        return found
    }

    /// The table and the condition of files that wait to be copied.
    private func waitingFiles(exports: Bool) -> String {
        exports
            ? "asset INDEXED BY asset_to_export WHERE state = 'arrived' AND keeping = 'export'"
            : "asset INDEXED BY asset_to_copy WHERE state = 'arrived' AND keeping <> 'export'"
    }

    /// All files that wait to be copied from the disk of this one in the same way: by a command, or not.
    package func waitingOnDisk(of asset: AssetRecord) throws -> [Int64] {
        try tx.connection.all(
            """
            SELECT id FROM \(waitingFiles(exports: asset.stagingMode == .export))
            AND folder = ?1 AND root = ?2 AND file_system IS ?3
            """,
            [.text(asset.folder), .blob(asset.root.bytes), asset.identity.fileSystem.map { .text($0) } ?? .null]
        ) { $0.integer(0) }
    }

    private func first(
        _ limit: Int, of folder: String, _ waiting: String, _ except: Set<Int64>
    ) throws -> WaitingCopies {
        let isMixed = tx.session.sorting.copiesInTurn(from: folder)
        return try tx.connection.query(
            "SELECT id, priority, \(isMixed ? "size" : "0") FROM \(waiting) AND folder = ?1 ORDER BY priority DESC, sort, id",
            [.text(folder)]
        ) { row throws(StoreError) in
            var found = WaitingCopies()
            var examined = 0
            while try row.next() {
                let number = row.integer(0)
                if except.contains(number) { continue }
                // An attempt that goes on with a new copy could mix it with the bytes of a damaged one.
                if try tx.copyLosses.isRead(number) { continue }
                let share: FolderTurns.Share? = isMixed ? tx.session.sorting.share(ofSize: row.integer(2)) : nil
                let offer = FolderTurns.Offer(folder: folder, rank: -row.integer(1), id: number)
                examined += 1
                if found.count(of: share) < limit { found.append(offer, share) }
                let isFull =
                    isMixed ? found.count(of: .small) == limit && found.count(of: .other) == limit : examined == limit
                // A folder with more files of one share is not read through for one of the other.
                if isFull || examined == max(limit, furthestShare) { break }
            }
            return found
        }
    }

    private func isCurrent(_ asset: Int64, _ version: AssetVersion?) throws -> Bool {
        guard let version else { return true }
        return try tx.connection.first(
            "SELECT 1 FROM asset WHERE id = ?1 \(AssetVersion.condition)", version.values(of: asset)
        ) { _ in true } == true
    }

    /// Total bytes of all staged copies.
    package func totalBytes() throws -> Int64 {
        try tx.connection.first("SELECT bytes FROM staged_total") { $0.integer(0) } ?? 0
    }

    /// Recorded assets that settle again.
    package func unsettled() throws -> [AssetRecord] {
        try tx.connection.all(
            """
            SELECT \(AssetRecord.columns) FROM asset INDEXED BY asset_unsettled WHERE state = 'unsettled'
            ORDER BY id LIMIT 1000
            """
        ) { AssetRecord($0, 0) }
    }

    /// A completed upload of this content to `destination`.
    private func findCompleted(
        _ sha256: [UInt8], _ destination: String, _ condition: String = "", _ values: [Connection.Value] = []
    ) throws -> EarlierUpload? {
        try tx.connection.first(
            """
            SELECT remote, folder, relative, finished_at FROM history INDEXED BY history_content
            WHERE sha256 = ?1 AND destination = ?2 AND outcome = 'completed' \(condition) LIMIT 1
            """, [.blob(sha256), .text(destination)] + values
        ) {
            EarlierUpload(
                remote: $0.optionalText(0), folder: $0.text(1), relative: FilePath(bytes: $0.blob(2)),
                at: WallTime(milliseconds: $0.integer(3)))
        }
    }
}

extension StagingQueue where Access == Writing {
    /// Records that the copies are in place: their uploads may go.
    ///
    /// A copy of a version that was replaced meanwhile does not count: its asset waits to be copied.
    ///
    /// - Parameter facts: Their metadata, by asset.
    /// - Returns: The assets whose content was already uploaded from the same path, or from any where duplicates are
    ///   skipped: their uploads are completed without sending, their sources kept.
    @discardableResult
    package func record(_ copies: [StagedCopy], facts: [Int64: MediaFacts] = [:]) throws -> [Int64] {
        var repeats: [Int64] = []
        let before = try tx.turns.of(.copies)
        var turns = before
        for copy in copies where try isCurrent(copy.asset, copy.version) {
            try tx.connection.run(
                """
                UPDATE asset SET state = 'staged', sha256 = ?2, staged_at = ?3, staged_size = ?4, source_sha256 = ?5,
                release_token = coalesce(?6, release_token)
                WHERE id = ?1 AND state = 'arrived'
                """,
                [
                    .integer(copy.asset), .blob(copy.sha256), .integer(tx.clocks.wall().milliseconds),
                    .init(copy.export?.size), .init(copy.export.flatMap(\.sourceSHA256)),
                    .init(copy.releaseToken?.description),
                ])
            guard tx.connection.changes > 0, let asset = try tx.assets.find(copy.asset) else { continue }
            let isMixed = tx.session.sorting.copiesInTurn(from: asset.folder)
            turns.recordTurn(asset.folder, isMixed ? tx.session.sorting.share(ofSize: asset.size) : nil)
            try tx.partDigests.set(copy.parts, of: copy.asset)
            if let facts = facts[copy.asset] { try tx.media.set(facts, of: copy.asset) }
            if let export = copy.export {
                try tx.assets.updateSize(copy.asset, size: export.size, modified: asset.identity.modified)
            }
            for upload in try tx.uploads.of(copy.asset) where upload.state == .staging {
                try tx.transitions.move(upload, by: .staged)
            }
            if try completeDuplicates(asset, copy) { repeats.append(asset.id) }
        }
        try tx.turns.store(turns, of: .copies, since: before)
        return repeats
    }

    /// Completes uploads whose content was uploaded and verified before: from the same path (touched, copied back,
    /// restored), or from another where the folder skips duplicates.
    func completeDuplicates(_ asset: AssetRecord, _ copy: StagedCopy) throws -> Bool {
        let anywhere = copy.skipsDuplicates && asset.size >= smallestDuplicate
        let uploads = try tx.uploads.of(asset.id).filter { $0.state == .queued && $0.generation == 1 }
        guard !uploads.isEmpty, asset.settledBy != .added else { return false }
        for upload in uploads {
            // Ended by another destination that is enough.
            if try tx.uploads.find(upload.id)?.state != .queued { continue }
            let samePath = try findCompleted(
                copy.sha256, upload.destination, "AND folder = ?3 AND relative = ?4 ORDER BY id DESC",
                [.text(asset.folder), .blob(asset.identity.relative.bytes)])
            // Without an order: all matches hold the same content.
            let found = anywhere && samePath == nil ? try findCompleted(copy.sha256, upload.destination) : samePath
            guard let before = found else { continue }
            var remote =
                before.remote.flatMap { StoredJSON.decode(RemoteObject.self, json: $0) }
                ?? RemoteObject(id: nil, url: nil, verifiedBy: "history")
            let isSamePath = before.folder == asset.folder && before.relative == asset.identity.relative
            let place = isSamePath ? "from this path" : "as \(before.relative.display) of folder \(before.folder)"
            remote.warnings = [
                "not sent again: the same content was uploaded \(place) at \(before.at); the source is kept"
            ]
            try tx.connection.run(
                "UPDATE asset SET action = 'leave', target = NULL WHERE id = ?1", [.integer(asset.id)])
            try tx.transitions.move(upload, by: .claimed)
            var claimed = upload
            claimed.state = .uploading
            try tx.transitions.complete(claimed, remote, as: .duplicate)
        }
        return try uploads.allSatisfy { try tx.uploads.find($0.id)?.state.isTerminal ?? true }
    }

    /// The source differs from the record: it settles again, and comes back as an arrival. Does nothing if it has come
    /// back already. If another version is known, this one is never there again, and its uploads that wait for it end.
    package func unsettle(_ asset: Int64, version: AssetVersion? = nil) throws {
        guard try isCurrent(asset, version) else { return }
        // Perhaps only its ctime moved: the watcher must not take it for a known version.
        try tx.tombstones.remove(asset)
        guard let record = try tx.assets.find(asset), record.state == .arrived else { return }
        let others = try tx.tombstones.candidates(for: record.identity).map(\.identity)
            .filter { !$0.isOnOtherDisk(than: record.identity) }
        let isReplaced = others.contains { !$0.isSameVersion(as: record.identity) }
        if try isReplaced || tx.assets.hasNewerVersion(record) {
            return try tx.transitions.endWaiting(of: record, "the newer version is recorded on its own")
        }
        // Of the same version, recorded once more.
        if !others.isEmpty { try tx.tombstones.remove(record.identity) }
        try tx.connection.run("UPDATE asset SET state = 'unsettled' WHERE id = ?1", [.integer(asset)])
        tx.session.facts.changes.insert(.unsettled)
    }

    /// Fails the uploads of a source that cannot be copied for a reason of its own (gone, too large).
    ///
    /// - Parameter isGone: Whether the source is gone, so that its path may be used again. Otherwise the tombstone
    ///   stays, or every scan would find the file again and fail it once more.
    /// - Returns: `false` when another version has come meanwhile, which has not been tried.
    @discardableResult
    package func fail(
        _ asset: Int64, _ failure: Failure, isGone: Bool, version: AssetVersion? = nil
    ) throws -> Bool {
        guard try isCurrent(asset, version) else { return false }
        for upload in try tx.uploads.of(asset) where upload.state == .staging {
            try tx.failures.record(failure, upload)
            try tx.transitions.move(upload, by: .refused)
            try tx.history.record(upload, .failed, code: failure.code)
        }
        try tx.connection.run(
            "UPDATE asset SET state = 'dropped' WHERE id = ?1 AND state IN ('arrived', 'unsettled')",
            [.integer(asset)])
        // No bytes of this version were sent.
        if isGone { try tx.tombstones.remove(asset) }
        return true
    }
}

extension Transaction {
    package var staging: StagingQueue<Access> { StagingQueue(tx: self) }
}
