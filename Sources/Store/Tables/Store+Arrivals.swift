package import Core

// From "settled" to "recorded".

extension Store {
    /// Marks files as known without ever uploading them (`existing: skip`).
    package func skip(_ identities: [StoredIdentity]) async throws {
        try await change { _ in
            for identity in identities { try self.insertTombstone(identity, asset: nil) }
        }
    }

    /// Whether this folder was never scanned to the end with this state.
    package func isFirstWatch(of folder: String) throws -> Bool {
        try connection.first("SELECT 1 FROM setting WHERE name = ?1", [.text("watched:" + folder)]) { _ in true } == nil
    }

    /// Records that the first scans of these folders are over.
    package func noteWatched(_ folders: [String]) async throws {
        try await change { connection in
            for folder in folders {
                try connection.run(
                    "INSERT OR IGNORE INTO setting VALUES (?1, ?2)",
                    [.text("watched:" + folder), .text("\(self.clocks.wall())")])
            }
        }
    }

    /// Files of a folder that were recorded, by the beginning of their paths below it.
    ///
    /// - Parameter since: Only those that were seen since then.
    package func taken(in folder: String, beginningWith start: FilePath, since: WallTime) throws -> [FilePath] {
        // All byte strings with this beginning sort between it and the next byte string of its length.
        guard let last = start.bytes.last, last < 255 else { return [] }
        let end = Array(start.bytes.dropLast()) + [last + 1]
        return try connection.all(
            """
            SELECT relative FROM tombstone
            WHERE folder = ?1 AND relative >= ?2 AND relative < ?3 AND asset IS NOT NULL AND seen_at >= ?4 LIMIT 100
            """, [.text(folder), .blob(start.bytes), .blob(end), .integer(since.milliseconds)]
        ) { FilePath(bytes: $0.blob(0)) }
    }

    /// Records settled files, each with its uploads and its tombstone: one transaction for all.
    package func record(_ arrivals: [NewAsset]) async throws -> [NewAssetOutcome] {
        try await change { connection in
            let outcomes = try arrivals.map { try self.record($0, connection) }
            try self.unite(arrivals, outcomes, connection)
            return outcomes
        }
    }

    /// Files that travel together have the number of the first of them in common.
    private func unite(
        _ arrivals: [NewAsset], _ outcomes: [NewAssetOutcome], _ connection: Connection
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

    private func record(_ arrival: NewAsset, _ connection: Connection) throws -> NewAssetOutcome {
        let identity = arrival.file.identity
        let place: [Connection.Value] = [.text(identity.folder), .blob(identity.relative.bytes)]
        // If an asset was recorded for this path and changed before its copy was made, it continues as the same asset.
        let waiting = try connection.first(
            """
            SELECT id, state = 'arrived' AND size = ?3 AND modified = ?4 AND changed = ?5 FROM asset
            WHERE folder = ?1 AND relative = ?2 AND state IN ('arrived', 'unsettled') ORDER BY id DESC
            """,
            place + [.integer(identity.size), .integer(identity.modified), .integer(arrival.file.status.changed)]
        ) { (id: $0.integer(0), isSame: $0.integer(1) == 1) }
        // Nothing has changed: its copy is still to be made.
        if let waiting, waiting.isSame, !arrival.again { return .known }
        if let waiting = waiting?.id {
            try connection.run(
                """
                UPDATE asset SET state = 'arrived', size = ?2, modified = ?3, changed = ?4, inode = ?5, born = ?6,
                file_system = ?7, settled_by = ?8 WHERE id = ?1
                """,
                [
                    .integer(waiting), .integer(identity.size), .integer(identity.modified),
                    .integer(arrival.file.status.changed), .init(identity.inode.map { Int64(bitPattern: $0) }),
                    .init(identity.born), .init(identity.fileSystem), .text(arrival.file.settledBy.rawValue),
                ])
            try measure(waiting, size: identity.size, modified: identity.modified)
            // The first bytes of this version must not be those of the earlier one.
            for upload in try uploads(of: waiting) where upload.state == .staging { try forgetProgress(of: upload) }
            try insertTombstone(identity, asset: waiting)
            return .renewed(asset: waiting)
        }
        let stone = try tombstone(identity.folder, identity.relative)
        let isSameVersion = stone.map { $0.identity.isSameVersion(as: identity) } ?? false
        // A file that was only skipped, because it existed before or was empty, may be added by a person: it was never
        // sent.
        let isOnlySkipped = stone?.wasRecorded == false && arrival.file.settledBy == .added
        if isSameVersion && !arrival.again && !isOnlySkipped { return .known }
        // Before the keys are checked: the earlier version may hold the key of this one.
        try endSuperseded(by: identity)
        if let holder = try keyHolder(arrival.orders) { return .keyTaken(holder) }
        let asset = try insert(arrival, connection)
        let uploads = try arrival.orders.map { try insert($0, of: asset, arrival, connection) }
        try insertTombstone(identity, asset: asset)
        return stone?.wasRecorded == true && !isSameVersion
            ? .newVersion(asset: asset, uploads: uploads) : .recorded(asset: asset, uploads: uploads)
    }

    /// The ongoing upload that has the key of one of these.
    package func keyHolder(_ orders: [NewAsset.Order]) throws -> String? {
        for order in orders {
            guard let key = order.key else { continue }
            let holder = try connection.first(
                """
                SELECT id FROM upload WHERE key = ?1 AND destination = ?2
                AND state IN ('staging', 'queued', 'uploading')
                """, [.text(key), .text(order.destination)]
            ) { $0.text(0) }
            if let holder { return holder }
        }
        return nil
    }

    /// - Parameter number: The number to give it; `nil` for the next.
    func insert(_ arrival: NewAsset, numbered number: Int64? = nil, _ connection: Connection) throws -> Int64 {
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
                state, action, target, source_state, priority, arrived_at, id, keeping, sort)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'arrived', ?11, ?12, 'untouched', ?13, ?14, ?15, ?16, ?17)
            """,
            [
                .text(identity.folder), .blob(file.root.bytes), .blob(identity.relative.bytes),
                .integer(identity.size), .integer(identity.modified), .integer(file.status.changed),
                .init(identity.inode.map { Int64(bitPattern: $0) }), .init(identity.born),
                .init(identity.fileSystem), .text(file.settledBy.rawValue), .text(action), .init(target),
                .integer(Int64(arrival.priority)), .integer(clocks.wall().milliseconds), .init(number),
                .text(arrival.stagingMode.rawValue),
                .integer(
                    place(
                        identity.folder, arrival.orders.first?.destination ?? "", size: identity.size,
                        modified: identity.modified)),
            ])
        return connection.lastRow
    }

    /// - Parameter number: The id to give it; `nil` for the next.
    func insert(
        _ order: NewAsset.Order, of asset: Int64, _ arrival: NewAsset, numbered number: String? = nil,
        _ connection: Connection
    ) throws -> String {
        let id = number ?? newID()
        let identity = arrival.file.identity
        try connection.run(
            """
            INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, size,
                modified, rank, sort, state, generation, attempt, backoff_until, acked, created_at, headers, url)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 'staging', 1, 0, 0, 0, ?14, ?15, ?16)
            """,
            [
                .text(id), .integer(asset), .text(identity.folder), .text(order.destination), .blob(order.name.bytes),
                .text(order.mediaType), .init(order.key), .text(TextMap.text(order.context)),
                .text(TextMap.text(order.metadata)), .integer(identity.size), .integer(identity.modified),
                .integer(Int64(-arrival.priority)),
                .integer(
                    place(identity.folder, order.destination, size: identity.size, modified: identity.modified)),
                .integer(clocks.wall().milliseconds), .text(TextMap.text(order.headers)), .init(order.url),
            ])
        try note("added", id)
        return id
    }

    /// Removes the tombstone of this version.
    func removeTombstone(_ asset: Int64) throws(StoreError) {
        // By its path, which is the key: a search by the asset's number would read every tombstone.
        try connection.run(
            """
            DELETE FROM tombstone
            WHERE (folder, relative) = (SELECT folder, relative FROM asset WHERE id = ?1) AND asset = ?1
            """, [.integer(asset)])
    }

    struct Tombstone {
        var identity: StoredIdentity
        var seenAt: Int64
        /// Whether an asset was made of it; otherwise it was only skipped.
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

    func insertTombstone(_ identity: StoredIdentity, asset: Int64?) throws(StoreError) {
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

    /// Tombstones not renewed for 90 days, oldest first: they may be deleted only after a check that their sources are
    /// gone.
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

    /// Renews tombstones whose source exists (`renewed`), and deletes those whose source is gone (`gone`).
    package func prune(renewed: [StoredIdentity], gone: [StoredIdentity]) async throws {
        let now = clocks.wall().milliseconds
        try await change { connection in
            for identity in renewed {
                try connection.run(
                    "UPDATE tombstone SET seen_at = ?3 WHERE folder = ?1 AND relative = ?2",
                    [.text(identity.folder), .blob(identity.relative.bytes), .integer(now)])
            }
            for identity in gone {
                try self.forgetSent(identity)
                try connection.run(
                    "DELETE FROM tombstone WHERE folder = ?1 AND relative = ?2",
                    [.text(identity.folder), .blob(identity.relative.bytes)])
            }
        }
    }
}
