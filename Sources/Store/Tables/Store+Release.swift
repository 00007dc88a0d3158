package import Core

// From "verified" to "the source is gone and the copy too".

extension Store {
    /// Assets whose uploads have all ended, in the order of their numbers: the release handles them until it is done.
    package func releasable(limit: Int, after asset: Int64 = 0) throws -> [(
        asset: AssetRecord, verdict: ReleaseVerdict
    )] {
        try releasable(dueAssets(limit: limit, after: asset))
    }

    /// Only the numbers of ``releasable(limit:after:)``: many may be postponed, and this costs almost nothing.
    package func dueAssets(limit: Int, after asset: Int64) throws -> [Int64] {
        try connection.all(
            "SELECT id FROM asset WHERE due = 1 AND id > ?1 ORDER BY id LIMIT ?2",
            [.integer(asset), .integer(Int64(limit))]
        ) { $0.integer(0) }
    }

    /// Those of `assets` that are still on the release's list.
    package func releasable(_ assets: [Int64]) throws -> [(asset: AssetRecord, verdict: ReleaseVerdict)] {
        try assets.compactMap { id in
            try connection.first(
                "SELECT \(AssetRecord.columns) FROM asset WHERE id = ?1 AND due = 1", [.integer(id)]
            ) { AssetRecord($0, 0) }
        }.map { ($0, try verdict($0.id)) }
    }

    /// The decision for an asset: none while another asset that travels with it still needs its data.
    func verdict(_ asset: Int64) throws -> ReleaseVerdict {
        let uploads = try uploads(of: asset)
        let dismissed = uploads.contains { $0.state == .removed && $0.ended == .failed }
        let own = ReleaseVerdict(
            uploads: uploads.map { $0.state == .removed && $0.ended != .failed ? $0.ended ?? .removed : $0.state },
            keepsSource: try dismissed || uploads.contains { try isUnasked($0) })
        guard own != .keepBoth, let unit = try unit(of: asset) else { return own }
        let isOver = try connection.first(Self.unitIsOver, [.integer(unit)]) { _ in true } == nil
        return isOver ? own : .keepBoth
    }

    private func unit(of asset: Int64) throws -> Int64? {
        try connection.first("SELECT unit FROM asset WHERE id = ?1", [.integer(asset)]) { $0.optionalInteger(0) } ?? nil
    }

    /// A row for as long as an upload of the unit is still to come or has failed.
    private static let unitIsOver = """
        SELECT 1 FROM asset JOIN upload ON upload.asset = asset.id WHERE asset.unit = ?1
        AND upload.state IN ('staging', 'queued', 'uploading', 'failed') LIMIT 1
        """

    /// Puts the asset on the release's list when its uploads have all ended. Part of the transaction that ended the
    /// last.
    func noteDue(_ asset: Int64) throws {
        if let unit = try unit(of: asset) {
            // If it waits for its companion, it need not wait longer.
            try connection.run(
                """
                UPDATE upload SET backoff_until = 0 WHERE state = 'queued' AND backoff_until > 0
                AND asset IN (SELECT id FROM asset WHERE unit = ?1)
                """, [.integer(unit)])
            // All of the unit: the last one that ends frees the others.
            if try connection.first(Self.unitIsOver, [.integer(unit)], { _ in true }) == nil {
                try connection.run("UPDATE asset SET due = 1 WHERE unit = ?1", [.integer(unit)])
            }
            return
        }
        try connection.run(
            """
            UPDATE asset SET due = 1 WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM upload WHERE asset = ?1
            AND state IN ('staging', 'queued', 'uploading', 'failed'))
            """, [.integer(asset)])
    }

    /// Records that the source is about to be taken from its place. Durable when it returns.
    ///
    /// - Parameter fresh: For an asset that has no token yet.
    /// - Returns: The token of its hidden name.
    package func beginRelease(_ asset: Int64, token fresh: ReleaseToken) async throws -> ReleaseToken {
        try await change { connection in
            try connection.run(
                """
                UPDATE asset SET source_state = 'releasing', source_note = NULL,
                release_token = coalesce(release_token, ?2) WHERE id = ?1 AND source_state = 'untouched'
                """, [.integer(asset), .text(fresh.description)])
            let text = try connection.first("SELECT release_token FROM asset WHERE id = ?1", [.integer(asset)]) {
                $0.optionalText(0)
            }
            if let token = text.flatMap({ $0 }).flatMap({ ReleaseToken($0) }) { return token }
            // The release was begun by an older program, without a token.
            try connection.run(
                "UPDATE asset SET release_token = ?2 WHERE id = ?1", [.integer(asset), .text(fresh.description)])
            return fresh
        }
    }

    /// The time for which the release of an asset has waited for it to stay the same, in ms. Its clock counts only
    /// while the machine is up: runs of the daemon that end before the time is over (`run --once`) are one wait. The
    /// wait begins now if it did not begin before, or began in another boot, or before the asset was verified.
    ///
    /// - Parameters:
    ///   - verified: ``ran`` at the time when the last of its uploads was verified.
    ///   - boot: ``Linux/Machine/boot``.
    package func waited(_ asset: Int64, since verified: Int64, boot: String) async throws -> Int64 {
        let now = clocks.monotonic().nanoseconds / 1_000_000
        let name = Self.waitName(asset)
        let begun = try connection.first("SELECT value FROM setting WHERE name = ?1", [.text(name)]) { $0.text(0) }
        let words = begun?.split(separator: " ") ?? []
        if words.count == 3, words[0] == boot, let ran = Int64(words[1]), ran >= verified, let at = Int64(words[2]) {
            return max(0, now - at)
        }
        let text = "\(boot) \(max(ran, verified)) \(now)"
        try await change { connection in
            try connection.run("INSERT OR REPLACE INTO setting VALUES (?1, ?2)", [.text(name), .text(text)])
        }
        return 0
    }

    private static func waitName(_ asset: Int64) -> String { "unsure:\(asset)" }

    /// Records why the source could not be released yet; another try follows.
    package func releaseFailed(_ asset: Int64, note: String) async throws {
        try await change { connection in
            try connection.run(
                "UPDATE asset SET source_note = ?2 WHERE id = ?1", [.integer(asset), .text(note)])
        }
    }

    /// Forgets why sources of these folders could not be released.
    package func forgetNotes(of folders: Set<String>) async throws {
        try await change { connection in
            for folder in folders {
                try connection.run(
                    """
                    UPDATE asset INDEXED BY asset_due SET source_note = NULL
                    WHERE due = 1 AND folder = ?1 AND source_state IN ('untouched', 'releasing')
                    """, [.text(folder)])
            }
        }
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
    package func finishRelease(
        _ asset: Int64, _ source: SourceState? = nil, note: String? = nil, isChanged: Bool = false
    ) async throws {
        try await finishReleases([(asset, source)], note: note, isChanged: isChanged)
    }

    /// The same for several at once: one transaction.
    package func finishReleases(
        _ ends: [(asset: Int64, source: SourceState?)], note: String? = nil, isChanged: Bool = false
    ) async throws {
        try await change { connection in
            for (asset, source) in ends {
                try self.dropCopy(asset)
                // Its size and time may be those of the version that was sent: the watcher would take it for known.
                if isChanged { try self.removeTombstone(asset) }
                try connection.run("UPDATE asset SET due = 0 WHERE id = ?1", [.integer(asset)])
                try connection.run("DELETE FROM setting WHERE name = ?1", [.text(Self.waitName(asset))])
                guard let source else { continue }
                try connection.run(
                    """
                    UPDATE asset SET source_state = ?2, source_note = ?3, kept_at = CASE WHEN action = 'keep'
                    AND ?2 = 'kept' AND ?3 IS NULL THEN ?4 END WHERE id = ?1
                    """,
                    [.integer(asset), .text(source.rawValue), .init(note), .integer(self.clocks.wall().milliseconds)])
                for upload in try self.uploads(of: asset) {
                    try self.note("source", upload.id, ["state": source.rawValue, "note": note ?? ""])
                }
            }
        }
    }

    /// Assets whose source was kept for this reason. Reads every asset: for a start, and a change of settings.
    package func kept(because note: String) throws -> [AssetRecord] {
        try connection.all(
            "SELECT \(AssetRecord.columns) FROM asset WHERE source_state = 'kept' AND source_note = ?1 ORDER BY id",
            [.text(note)]
        ) { AssetRecord($0, 0) }
    }

    /// Puts kept sources on the release's list again.
    package func judgeAgain(_ assets: [Int64]) async throws {
        for start in stride(from: 0, to: assets.count, by: 200) {
            try await change { connection in
                for asset in assets[start..<min(start + 200, assets.count)] {
                    try connection.run(
                        """
                        UPDATE asset SET source_state = 'untouched', source_note = NULL
                        WHERE id = ?1 AND source_state = 'kept'
                        """, [.integer(asset)])
                    try self.noteDue(asset)
                }
            }
        }
    }

    /// Records that the staged copy is gone, while the source is still to be released: its disk is away.
    package func copyDropped(_ asset: Int64) async throws { try await change { _ in try self.dropCopy(asset) } }

    private func dropCopy(_ asset: Int64) throws {
        try connection.run(
            """
            UPDATE asset SET state = 'dropped' WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM upload WHERE asset = ?1
            AND state IN ('staging', 'queued', 'uploading', 'failed'))
            """, [.integer(asset)])
    }

    /// Takes the asset off the list, as it has new uploads: the release is notified when they have ended.
    package func notDue(_ asset: Int64) async throws {
        try await change { connection in
            try connection.run("UPDATE asset SET due = 0 WHERE id = ?1", [.integer(asset)])
            try self.noteDue(asset)
        }
    }

    /// Those of these names in the staging folder that belong to an asset which needs them.
    package func owned(_ names: [Int64]) throws -> Set<Int64> {
        var owned: Set<Int64> = []
        // Numbers are close together when the copies were made together: a range of the table costs less than a search
        // for each.
        if let first = names.min(), let last = names.max(), last - first < 8 * Int64(names.count) {
            let wanted = Set(names)
            try connection.query(
                "SELECT id, state FROM asset WHERE id BETWEEN ?1 AND ?2", [.integer(first), .integer(last)]
            ) { row throws(StoreError) in
                while try row.next() {
                    let isOwned = AssetState.ownsCopy(row.text(1))
                    if isOwned, wanted.contains(row.integer(0)) { owned.insert(row.integer(0)) }
                }
            }
            return owned
        }
        for name in names {
            let state = try connection.first("SELECT state FROM asset WHERE id = ?1", [.integer(name)]) { $0.text(0) }
            if let state, AssetState.ownsCopy(state) { owned.insert(name) }
        }
        return owned
    }

    /// Those of these assets that exist.
    package func recorded(_ assets: [Int64]) throws -> Set<Int64> {
        var recorded: Set<Int64> = []
        for asset in assets {
            let isThere = try connection.first(
                "SELECT 1 FROM asset WHERE id = ?1 UNION SELECT 1 FROM reception WHERE asset = ?1", [.integer(asset)]
            ) { _ in true }
            if isThere == true { recorded.insert(asset) }
        }
        return recorded
    }
}

extension AssetState {
    /// Whether an asset whose stored state is `word` counts on its copy. Of a state that this program does not know, the copy may be all
    /// that is left of the file.
    fileprivate static func ownsCopy(_ word: String) -> Bool {
        AssetState(rawValue: word).map { $0 == .staged } ?? true
    }
}
