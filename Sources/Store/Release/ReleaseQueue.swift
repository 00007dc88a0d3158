package import Core

/// A row for as long as an upload of the unit is still to come or has failed. The last files of a large unit usually go
/// last.
private let unitIsOver = """
    SELECT 1 FROM asset JOIN upload ON upload.asset = asset.id WHERE asset.unit = ?1
    AND upload.state IN ('staging', 'queued', 'uploading', 'failed') ORDER BY asset.id DESC LIMIT 1
    """

/// Assets whose uploads have ended: from "verified" to "the source is gone and the copy too".
package struct ReleaseQueue<Access> {
    let tx: Transaction<Access>

    /// The time for which the release of an asset has waited, in ms. See ``Store/waitedTime(_:since:boot:)``.
    ///
    /// - Returns: `nil` when the wait is to begin.
    func waitedTime(_ asset: Int64, since verified: Int64, boot: String) throws -> Int64? {
        let now = tx.clocks.monotonic().nanoseconds / 1_000_000
        let words = try tx.settings.value(Self.waitName(asset))?.split(separator: " ") ?? []
        guard words.count == 3, words[0] == boot, let ran = Int64(words[1]), ran >= verified, let at = Int64(words[2])
        else { return nil }
        return max(0, now - at)
    }

    /// Assets whose uploads have all ended, in the order of their numbers: the release handles them until it is done.
    package func releasable(limit: Int, after asset: Int64 = 0) throws -> [(
        asset: AssetRecord, verdict: ReleaseVerdict
    )] {
        try releasable(dueAssets(limit: limit, after: asset))
    }

    /// Only the numbers of ``releasable(limit:after:)``: many may be postponed, and this costs almost nothing.
    package func dueAssets(limit: Int, after asset: Int64) throws -> [Int64] {
        try tx.connection.all(
            "SELECT id FROM asset WHERE due = 1 AND id > ?1 ORDER BY id LIMIT ?2",
            [.integer(asset), .integer(Int64(limit))]
        ) { $0.integer(0) }
    }

    /// The given assets that are still on the release's list.
    package func releasable(_ assets: [Int64]) throws -> [(asset: AssetRecord, verdict: ReleaseVerdict)] {
        // A unit may have thousands of files: whether it is over is asked once.
        var units: [Int64: Bool] = [:]
        return try assets.compactMap { id in
            try tx.connection.first(
                "SELECT \(AssetRecord.columns) FROM asset WHERE id = ?1 AND due = 1", [.integer(id)]
            ) { AssetRecord($0, 0) }
        }.map { ($0, try verdict($0.id, &units)) }
    }

    /// The decision for an asset: none while another asset that travels with it still needs its data.
    func verdict(_ asset: Int64) throws -> ReleaseVerdict {
        var units: [Int64: Bool] = [:]
        return try verdict(asset, &units)
    }

    /// - Parameter units: Units of which it is known whether they are over.
    private func verdict(_ asset: Int64, _ units: inout [Int64: Bool]) throws -> ReleaseVerdict {
        let all = try tx.uploads.of(asset)
        // Of a choice only the verified upload counts: the others are superfluous, however they ended.
        let decided = Set(all.filter { $0.ending == .completed }.compactMap(\.choice))
        let uploads = all.filter { $0.ending == .completed || !($0.choice.map(decided.contains) ?? false) }
        let dismissed = uploads.contains { $0.state == .removed && $0.ended == .failed }
        let own = ReleaseVerdict(
            uploads: uploads.map { $0.state == .removed && $0.ended != .failed ? $0.ended ?? .removed : $0.state },
            keepsSource: try dismissed || uploads.contains { try endedAutomatically($0) })
        guard own != .keepBoth, let unit = try unit(of: asset) else { return own }
        let isOver = try units[unit] ?? self.isOver(unit)
        units[unit] = isOver
        return isOver ? own : .keepBoth
    }

    /// Whether it ended because of its age, or because `before_upload` rejected it: no person asked for that by name.
    func endedAutomatically(_ upload: UploadRecord) throws -> Bool {
        guard upload.ending == .cancelled, let row = try tx.uploads.row(upload.id) else { return false }
        return row.isExpired || row.isSkipped
    }

    /// Whether no upload of the unit is to come, under way or failed.
    func isOver(_ unit: Int64) throws -> Bool {
        try tx.connection.first(unitIsOver, [.integer(unit)]) { _ in true } == nil
    }

    private func unit(of asset: Int64) throws -> Int64? {
        try tx.connection.first("SELECT unit FROM asset WHERE id = ?1", [.integer(asset)]) { $0.optionalInteger(0) }
            ?? nil
    }

    /// Assets whose source was kept for this reason. Reads every asset: for a start, and a change of settings.
    package func kept(because note: String) throws -> [AssetRecord] {
        try tx.connection.all(
            "SELECT \(AssetRecord.columns) FROM asset WHERE source_state = 'kept' AND source_note = ?1 ORDER BY id",
            [.text(note)]
        ) { AssetRecord($0, 0) }
    }

    private static func waitName(_ asset: Int64) -> String { "unsure:\(asset)" }
}

extension ReleaseQueue where Access == Writing {
    /// Part of the transaction that ended an upload of the asset.
    func uploadEnded(of asset: Int64) throws {
        try updateDue(asset)
        if let unit = try unit(of: asset) { try tx.groups.reportEnd(of: unit) }
    }

    /// Puts the asset on the release's list when its uploads have all ended. Part of the transaction that ended the
    /// last.
    func updateDue(_ asset: Int64) throws {
        if let unit = try unit(of: asset) {
            // If it waits for its companion, it need not wait longer.
            for mate in try tx.uploads.mates(of: asset) {
                try tx.connection.run(
                    "UPDATE upload SET backoff_until = 0 WHERE asset = ?1 AND state = 'queued' AND backoff_until > 0",
                    [.integer(mate)])
                if tx.connection.changes > 0 { tx.session.facts.changes.insert(.queued) }
            }
            // All of the unit: the last one that ends frees the others.
            if try isOver(unit) {
                try tx.connection.run("UPDATE asset SET due = 1 WHERE unit = ?1", [.integer(unit)])
                tx.session.facts.changes.insert(.due)
            }
            return
        }
        try tx.connection.run(
            """
            UPDATE asset SET due = 1 WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM upload WHERE asset = ?1
            AND state IN ('staging', 'queued', 'uploading', 'failed'))
            """, [.integer(asset)])
        if tx.connection.changes > 0 { tx.session.facts.changes.insert(.due) }
    }

    /// Records that the source is about to be taken from its place.
    ///
    /// - Parameter fresh: For an asset that has no token yet.
    /// - Returns: The token of its hidden name.
    package func begin(_ asset: Int64, token fresh: ReleaseToken) throws -> ReleaseToken {
        try tx.connection.run(
            """
            UPDATE asset SET source_state = 'releasing', source_note = NULL,
            release_token = coalesce(release_token, ?2) WHERE id = ?1 AND source_state = 'untouched'
            """, [.integer(asset), .text(fresh.description)])
        let text = try tx.connection.first("SELECT release_token FROM asset WHERE id = ?1", [.integer(asset)]) {
            $0.optionalText(0)
        }
        if let token = text.flatMap({ $0 }).flatMap({ ReleaseToken($0) }) { return token }
        // The release was begun by an older program, without a token.
        try tx.connection.run(
            "UPDATE asset SET release_token = ?2 WHERE id = ?1", [.integer(asset), .text(fresh.description)])
        return fresh
    }

    func beginWait(_ asset: Int64, since verified: Int64, boot: String) throws {
        let now = tx.clocks.monotonic().nanoseconds / 1_000_000
        try tx.settings.set(Self.waitName(asset), "\(boot) \(max(tx.session.currentRunTime, verified)) \(now)")
    }

    /// Puts a kept source on the release's list again.
    func queueAgain(_ asset: Int64) throws {
        try tx.connection.run(
            """
            UPDATE asset SET source_state = 'untouched', source_note = NULL
            WHERE id = ?1 AND source_state = 'kept'
            """, [.integer(asset)])
        try updateDue(asset)
    }

    /// Records why the source could not be released yet; another try follows.
    package func recordFailure(_ asset: Int64, note: String) throws {
        try tx.connection.run(
            "UPDATE asset SET source_note = ?2 WHERE id = ?1", [.integer(asset), .text(note)])
        tx.session.facts.changes.insert(.releaseNotes)
    }

    /// Forgets why sources of these folders could not be released.
    package func clearNotes(of folders: Set<String>) throws {
        for folder in folders {
            try tx.connection.run(
                """
                UPDATE asset INDEXED BY asset_due SET source_note = NULL
                WHERE due = 1 AND folder = ?1 AND source_state IN ('untouched', 'releasing')
                """, [.text(folder)])
        }
        if !folders.isEmpty { tx.session.facts.changes.insert(.due) }
    }

    /// The release is over: the staged copy is gone, and the source is in its final place.
    ///
    /// If a person has started another generation of the asset meanwhile, it keeps its state: it finds no copy, and
    /// makes it again.
    ///
    /// - Parameters:
    ///   - source: The result for the source; `nil` when there was nothing to do, or that is recorded already.
    ///   - note: For a person: the source's new place, or why it was kept.
    ///   - isChanged: Another version of the file was proven to have its name, and may be recorded from now on.
    package func finish(
        _ asset: Int64, _ source: SourceState? = nil, note: String? = nil, isChanged: Bool = false
    ) throws {
        try finish([(asset, source)], note: note, isChanged: isChanged)
    }

    /// As ``finish(_:_:note:isChanged:)``, for several assets.
    package func finish(
        _ ends: [(asset: Int64, source: SourceState?)], note: String? = nil, isChanged: Bool = false
    ) throws {
        for (asset, source) in ends {
            try dropCopy(asset)
            // Its size and time may be those of the version that was sent: the watcher would take it for known.
            if isChanged { try tx.tombstones.remove(asset) }
            try tx.connection.run("UPDATE asset SET due = 0 WHERE id = ?1", [.integer(asset)])
            try tx.connection.run("DELETE FROM setting WHERE name = ?1", [.text(Self.waitName(asset))])
            guard let source else { continue }
            try tx.connection.run(
                """
                UPDATE asset SET source_state = ?2, source_note = ?3, kept_at = CASE WHEN action = 'keep'
                AND ?2 = 'kept' AND ?3 IS NULL THEN ?4 END WHERE id = ?1
                """,
                [.integer(asset), .text(source.rawValue), .init(note), .integer(tx.clocks.wall().milliseconds)])
            for upload in try tx.uploads.of(asset) {
                try tx.events.append(.source(source, note: note), of: upload.id)
            }
        }
    }

    /// Records that the staged copy is gone, while the source is still to be released: its disk is away.
    package func recordDroppedCopy(_ asset: Int64) throws { try dropCopy(asset) }

    private func dropCopy(_ asset: Int64) throws {
        tx.session.facts.changes.insert(.released)
        try tx.connection.run(
            """
            UPDATE asset SET state = 'dropped' WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM upload WHERE asset = ?1
            AND state IN ('staging', 'queued', 'uploading', 'failed'))
            """, [.integer(asset)])
    }

    /// Takes the asset off the list, as it has new uploads: the release is notified when they have ended.
    package func clearDue(_ asset: Int64) throws {
        try tx.connection.run("UPDATE asset SET due = 0 WHERE id = ?1", [.integer(asset)])
        try updateDue(asset)
    }
}

extension Transaction {
    package var releases: ReleaseQueue<Access> { ReleaseQueue(tx: self) }
    package var groups: GroupQuery<Access> { GroupQuery(tx: self) }
}
