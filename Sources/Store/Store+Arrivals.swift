package import Core

// From "settled" to "staged".

extension Store {
    /// Marks files as known without ever uploading them (`existing: skip`).
    package func skip(_ identities: [StoredIdentity]) async throws {
        try await change { _ in
            for identity in identities { try self.bury(identity, asset: nil) }
        }
    }

    /// Whether this folder was never scanned to the end with this state.
    package func isFirstWatch(of folder: String) throws -> Bool {
        try connection.first("SELECT 1 FROM setting WHERE name = ?1", [.text("watched:" + folder)]) { _ in true } == nil
    }

    /// The first scans of these folders are over.
    package func noteWatched(_ folders: [String]) async throws {
        try await change { connection in
            for folder in folders {
                try connection.run(
                    "INSERT OR IGNORE INTO setting VALUES (?1, ?2)",
                    [.text("watched:" + folder), .text("\(self.clocks.wall())")])
            }
        }
    }

    /// Writes settled files down, each with its uploads and its tombstone: one transaction for all.
    package func record(_ arrivals: [Arrival]) async throws -> [ArrivalOutcome] {
        try await change { connection in
            let outcomes = try arrivals.map { try self.record($0, connection) }
            try self.unite(arrivals, outcomes, connection)
            return outcomes
        }
    }

    /// Those that travel together are told by the number of the first of them.
    private func unite(
        _ arrivals: [Arrival], _ outcomes: [ArrivalOutcome], _ connection: Connection
    ) throws {
        var units: [Int: Int64] = [:]
        for (arrival, outcome) in zip(arrivals, outcomes) {
            guard let unit = arrival.unit, let asset = outcome.asset else { continue }
            if units[unit] == nil, let leader = arrival.joins {
                units[unit] = try connection.first(
                    """
                    SELECT id, unit FROM asset INDEXED BY asset_relative WHERE relative = ?1 AND folder = ?2
                    ORDER BY id DESC LIMIT 1
                    """, [.blob(leader.bytes), .text(arrival.file.folder)]
                ) { $0.optionalInteger(1) ?? $0.integer(0) }
                if let first = units[unit] {
                    try connection.run("UPDATE asset SET unit = ?1 WHERE id = ?1", [.integer(first)])
                }
            }
            let first = units[unit] ?? asset
            units[unit] = first
            try connection.run(
                "UPDATE asset SET unit = ?2 WHERE id = ?1", [.integer(asset), .integer(first)])
        }
    }

    private func record(_ arrival: Arrival, _ connection: Connection) throws -> ArrivalOutcome {
        let identity = arrival.file.identity
        let place: [Connection.Value] = [.text(identity.folder), .blob(identity.relative.bytes)]
        // The asset that was recorded for this path and changed before its copy was made goes on as the same asset.
        let waiting = try connection.first(
            """
            SELECT id, state = 'arrived' AND size = ?3 AND modified = ?4 AND changed = ?5 FROM asset
            WHERE folder = ?1 AND relative = ?2 AND state IN ('arrived', 'unsettled') ORDER BY id DESC
            """,
            place + [.integer(identity.size), .integer(identity.modified), .integer(arrival.file.look.changed)]
        ) { (id: $0.integer(0), isSame: $0.integer(1) == 1) }
        // Nothing new of it: its copy is to be made.
        if let waiting, waiting.isSame, !arrival.again { return .known }
        if let waiting = waiting?.id {
            try connection.run(
                """
                UPDATE asset SET state = 'arrived', size = ?2, modified = ?3, changed = ?4, inode = ?5, born = ?6,
                file_system = ?7, settled_by = ?8 WHERE id = ?1
                """,
                [
                    .integer(waiting), .integer(identity.size), .integer(identity.modified),
                    .integer(arrival.file.look.changed), .init(identity.inode.map { Int64(bitPattern: $0) }),
                    .init(identity.born), .init(identity.fileSystem), .text(arrival.file.settledBy.rawValue),
                ])
            try connection.run(
                "UPDATE upload SET size = ?2, modified = ?3, sort = ?4 WHERE asset = ?1 AND state = 'staging'",
                [
                    .integer(waiting), .integer(identity.size), .integer(identity.modified),
                    .integer(sorting.value(size: identity.size, modified: identity.modified)),
                ])
            // Bytes of the version before must not become the first ones of this.
            for upload in try uploads(of: waiting) where upload.state == .staging { try forgetProgress(of: upload) }
            try bury(identity, asset: waiting)
            return .renewed(asset: waiting)
        }
        let stone = try tombstone(identity.folder, identity.relative)
        let isSameVersion = stone.map { $0.identity.isSameVersion(as: identity) } ?? false
        if isSameVersion && !arrival.again { return .known }
        for order in arrival.orders {
            guard let key = order.key else { continue }
            let holder = try connection.first(
                """
                SELECT id FROM upload WHERE key = ?1 AND destination = ?2
                AND state IN ('staging', 'queued', 'uploading')
                """, [.text(key), .text(order.destination)]
            ) { $0.text(0) }
            if let holder { return .keyTaken(holder) }
        }
        let asset = try insert(arrival, connection)
        let uploads = try arrival.orders.map { try insert($0, of: asset, arrival, connection) }
        try bury(identity, asset: asset)
        return stone?.wasRecorded == true && !isSameVersion
            ? .newVersion(asset: asset, uploads: uploads) : .recorded(asset: asset, uploads: uploads)
    }

    /// - Parameter number: The number to give it; `nil` for the next.
    func insert(_ arrival: Arrival, numbered number: Int64? = nil, _ connection: Connection) throws -> Int64 {
        let (file, identity) = (arrival.file, arrival.file.identity)
        let (action, target): (String, String?) =
            switch arrival.action {
            case .keep: ("keep", nil)
            case .leave: ("leave", nil)
            case .delete: ("delete", nil)
            case .move(let template): ("move", template.source)
            }
        try connection.run(
            """
            INSERT INTO asset (folder, root, relative, size, modified, changed, inode, born, file_system, settled_by,
                state, action, target, source_state, priority, arrived_at, id, keeping)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'arrived', ?11, ?12, 'untouched', ?13, ?14, ?15, ?16)
            """,
            [
                .text(identity.folder), .blob(file.root.bytes), .blob(identity.relative.bytes),
                .integer(identity.size), .integer(identity.modified), .integer(file.look.changed),
                .init(identity.inode.map { Int64(bitPattern: $0) }), .init(identity.born),
                .init(identity.fileSystem), .text(file.settledBy.rawValue), .text(action), .init(target),
                .integer(Int64(arrival.priority)), .integer(clocks.wall().milliseconds), .init(number),
                .text(arrival.keeping.rawValue),
            ])
        return connection.lastRow
    }

    /// - Parameter number: The id to give it; `nil` for the next.
    func insert(
        _ order: Arrival.Order, of asset: Int64, _ arrival: Arrival, numbered number: String? = nil,
        _ connection: Connection
    ) throws -> String {
        let id = number ?? newID()
        let identity = arrival.file.identity
        try connection.run(
            """
            INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, size,
                modified, rank, sort, state, generation, attempt, backoff_until, acked, created_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 'staging', 1, 0, 0, 0, ?14)
            """,
            [
                .text(id), .integer(asset), .text(identity.folder), .text(order.destination), .blob(order.name.bytes),
                .text(order.mediaType), .init(order.key), .text(TextMap.text(order.context)),
                .text(TextMap.text(order.metadata)), .integer(identity.size), .integer(identity.modified),
                .integer(Int64(-arrival.priority)),
                .integer(sorting.value(size: identity.size, modified: identity.modified)),
                .integer(clocks.wall().milliseconds),
            ])
        try note("added", id)
        return id
    }

    /// Assets whose copy is to be made, the highest priority first, without those being copied now.
    ///
    /// - Parameter exports: Those that a command makes, and no others; else all but those.
    package func arrived(limit: Int, except: Set<Int64>, exports: Bool = false) throws -> [AssetRecord] {
        let (index, kind) = exports ? ("asset_to_export", "=") : ("asset_to_copy", "<>")
        return try connection.query(
            """
            SELECT \(AssetRecord.columns) FROM asset INDEXED BY \(index)
            WHERE state IN ('arrived', 'unsettled') AND keeping \(kind) 'export' AND state = 'arrived'
            ORDER BY priority DESC, id
            """
        ) { row throws(StoreError) in
            var found: [AssetRecord] = []
            // Others may be passed over by the hundred thousand: their number is all that is read of them.
            while found.count < limit, try row.next() {
                if !except.contains(row.integer(0)) { found.append(AssetRecord(row, 0)) }
            }
            return found
        }
    }

    /// A copy that is whole and durable under its name in the staging folder.
    package struct Copied: Sendable {
        package var asset: Int64
        package var sha256: [UInt8]
        /// The same content from another path counts as sent already (`duplicates: skip`).
        package var skipsDuplicates: Bool
        /// Bytes of it, and the digest of the source, where it is not a copy of that.
        package var export: (size: Int64, sourceSHA256: [UInt8]?)?

        package init(
            asset: Int64, sha256: [UInt8], skipsDuplicates: Bool = false,
            export: (size: Int64, sourceSHA256: [UInt8]?)? = nil
        ) {
            self.export = export
            self.asset = asset
            self.sha256 = sha256
            self.skipsDuplicates = skipsDuplicates
        }
    }

    /// The copies are in place: their uploads may go. One transaction for all.
    ///
    /// - Parameter facts: What they say of themselves, by their assets.
    /// - Returns: The assets whose content was already uploaded from the same path, or from any where duplicates are
    ///   skipped: their uploads are completed without sending, their sources kept.
    @discardableResult
    package func staged(_ copies: [Copied], facts: [Int64: MediaFacts] = [:]) async throws -> [Int64] {
        try await change { connection in
            var repeats: [Int64] = []
            for copy in copies {
                try connection.run(
                    """
                    UPDATE asset SET state = 'staged', sha256 = ?2, staged_at = ?3, staged_size = ?4, source_sha256 = ?5
                    WHERE id = ?1 AND state = 'arrived'
                    """,
                    [
                        .integer(copy.asset), .blob(copy.sha256), .integer(self.clocks.wall().milliseconds),
                        .init(copy.export?.size), .init(copy.export.flatMap(\.sourceSHA256)),
                    ])
                guard connection.changes > 0, let asset = try self.asset(copy.asset) else { continue }
                if let facts = facts[copy.asset] { try self.note(facts, of: copy.asset, connection) }
                if let export = copy.export { try self.resize(copy.asset, to: export.size, asset.identity.modified) }
                for upload in try self.uploads(of: copy.asset) where upload.state == .staging {
                    try self.move(upload, by: .staged)
                }
                if try self.settleRepeat(asset, copy) { repeats.append(asset.id) }
            }
            return repeats
        }
    }

    /// Smaller files are alike too often to be told by their content: another path means another file.
    static let smallestDuplicate: Int64 = 4096

    /// The same content, uploaded and verified before: from the same path (touched, copied back, restored), or from
    /// another where the folder skips duplicates.
    func settleRepeat(_ asset: AssetRecord, _ copy: Copied) throws -> Bool {
        let anywhere = copy.skipsDuplicates && asset.size >= Self.smallestDuplicate
        let uploads = try uploads(of: asset.id).filter { $0.state == .queued && $0.generation == 1 }
        guard !uploads.isEmpty, asset.settledBy != .added else { return false }
        var isRepeat = true
        for upload in uploads {
            let samePath = try earlier(
                copy.sha256, upload.destination, "AND folder = ?3 AND relative = ?4 ORDER BY id DESC",
                [.text(asset.folder), .blob(asset.identity.relative.bytes)])
            // Without an order: they all hold the same.
            let found = anywhere && samePath == nil ? try earlier(copy.sha256, upload.destination) : samePath
            guard let before = found else {
                isRepeat = false
                continue
            }
            var remote =
                before.remote.flatMap { Self.value(RemoteObject.self, json: $0) }
                ?? RemoteObject(id: nil, url: nil, verifiedBy: "history")
            let isSamePath = before.folder == asset.folder && before.relative == asset.identity.relative
            let place = isSamePath ? "from this path" : "as \(before.relative.display) of folder \(before.folder)"
            remote.warnings = [
                "not sent again: the same content was uploaded \(place) at \(before.at); the source is kept"
            ]
            try connection.run("UPDATE asset SET action = 'leave', target = NULL WHERE id = ?1", [.integer(asset.id)])
            try move(upload, by: .claimed)
            var claimed = upload
            claimed.state = .uploading
            try complete(claimed, remote)
        }
        return isRepeat
    }

    private struct Earlier {
        let remote: String?
        let folder: String
        let relative: FilePath
        let at: WallTime
    }

    /// A completed upload of this content to `destination`.
    private func earlier(
        _ sha256: [UInt8], _ destination: String, _ condition: String = "", _ values: [Connection.Value] = []
    ) throws -> Earlier? {
        try connection.first(
            """
            SELECT remote, folder, relative, finished_at FROM history INDEXED BY history_content
            WHERE sha256 = ?1 AND destination = ?2 AND outcome = 'completed' \(condition) LIMIT 1
            """, [.blob(sha256), .text(destination)] + values
        ) {
            Earlier(
                remote: $0.optionalText(0), folder: $0.text(1), relative: FilePath(bytes: $0.blob(2)),
                at: WallTime(milliseconds: $0.integer(3)))
        }
    }

    /// The source is no longer what was recorded: it settles again, and comes back as an arrival.
    package func unsettle(_ asset: Int64) async throws {
        try await change { connection in
            try connection.run(
                "UPDATE asset SET state = 'unsettled' WHERE id = ?1 AND state = 'arrived'", [.integer(asset)])
            // Perhaps only its ctime moved: the watcher must not take it for a known version.
            try self.digUp(asset)
        }
    }

    /// Assets that settle again after they had been recorded.
    package func unsettled() throws -> [AssetRecord] {
        try connection.all(
            """
            SELECT \(AssetRecord.columns) FROM asset INDEXED BY asset_unsettled WHERE state = 'unsettled'
            ORDER BY id LIMIT 1000
            """
        ) { AssetRecord($0, 0) }
    }

    /// The source cannot be copied, for its own sake (gone, too large): its uploads fail.
    ///
    /// - Parameter isGone: The source is not there, so its path may be used again. Otherwise the tombstone stays, or
    ///   every scan would find the file anew and fail it once more.
    package func cannotStage(_ asset: Int64, _ failure: Failure, isGone: Bool) async throws {
        try await change { connection in
            for upload in try self.uploads(of: asset) where upload.state == .staging {
                try self.note(failure, upload)
                try self.move(upload, by: .refused)
                try self.remember(upload, .failed, code: failure.code)
            }
            try connection.run(
                "UPDATE asset SET state = 'dropped' WHERE id = ?1 AND state IN ('arrived', 'unsettled')",
                [.integer(asset)])
            // Nothing of this version was sent.
            if isGone { try self.digUp(asset) }
        }
    }

    // MARK: Tombstones

    /// Takes the tombstone of this version away.
    func digUp(_ asset: Int64) throws(StoreError) {
        // By its place, which is the key: a search by the asset's number would read every tombstone.
        try connection.run(
            """
            DELETE FROM tombstone
            WHERE (folder, relative) = (SELECT folder, relative FROM asset WHERE id = ?1) AND asset = ?1
            """, [.integer(asset)])
    }

    struct Tombstone {
        var identity: StoredIdentity
        var seenAt: Int64
        /// An asset was made of it; otherwise it was only left alone.
        var wasRecorded: Bool
    }

    func tombstone(_ folder: String, _ relative: FilePath) throws(StoreError) -> Tombstone? {
        try connection.first(
            "SELECT size, modified, inode, born, file_system, seen_at, asset IS NOT NULL FROM tombstone WHERE folder = ?1 AND relative = ?2",
            [.text(folder), .blob(relative.bytes)]
        ) { row in
            Tombstone(
                identity: StoredIdentity(
                    folder: folder, relative: relative, size: row.integer(0), modified: row.integer(1),
                    inode: row.optionalInteger(2).map { UInt64(bitPattern: $0) }, born: row.optionalInteger(3),
                    fileSystem: row.optionalText(4)),
                seenAt: row.integer(5), wasRecorded: row.integer(6) != 0)
        }
    }

    func bury(_ identity: StoredIdentity, asset: Int64?) throws(StoreError) {
        try connection.run(
            """
            INSERT OR REPLACE INTO tombstone (folder, relative, size, modified, inode, born, file_system, asset, seen_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
            """,
            [
                .text(identity.folder), .blob(identity.relative.bytes), .integer(identity.size),
                .integer(identity.modified), .init(identity.inode.map { Int64(bitPattern: $0) }), .init(identity.born),
                .init(identity.fileSystem), .init(asset), .integer(clocks.wall().milliseconds),
            ])
    }

    /// Tombstones not renewed for 90 days, oldest first: their sources are to be looked for before they may go.
    package func oldTombstones(limit: Int) throws -> [StoredIdentity] {
        let horizon = clocks.wall().milliseconds - 90 * 86_400_000
        return try connection.all(
            """
            SELECT folder, relative, size, modified, inode, born, file_system FROM tombstone
            WHERE seen_at < ?1 ORDER BY seen_at LIMIT ?2
            """, [.integer(horizon), .integer(Int64(limit))]
        ) { row in
            StoredIdentity(
                folder: row.text(0), relative: FilePath(bytes: row.blob(1)), size: row.integer(2),
                modified: row.integer(3), inode: row.optionalInteger(4).map { UInt64(bitPattern: $0) },
                born: row.optionalInteger(5), fileSystem: row.optionalText(6))
        }
    }

    /// Tombstones whose source stands (`renewed`) live on; those whose source is gone (`gone`) go.
    package func tend(renewed: [StoredIdentity], gone: [StoredIdentity]) async throws {
        let now = clocks.wall().milliseconds
        try await change { connection in
            for identity in renewed {
                try connection.run(
                    "UPDATE tombstone SET seen_at = ?3 WHERE folder = ?1 AND relative = ?2",
                    [.text(identity.folder), .blob(identity.relative.bytes), .integer(now)])
            }
            for identity in gone {
                try connection.run(
                    "DELETE FROM tombstone WHERE folder = ?1 AND relative = ?2",
                    [.text(identity.folder), .blob(identity.relative.bytes)])
            }
        }
    }
}
