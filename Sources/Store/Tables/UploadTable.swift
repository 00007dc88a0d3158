package import Core

/// Rows of `upload`: one for each file and destination.
package struct UploadTable<Access> {
    let tx: Transaction<Access>

    /// The newest upload that was ever recorded and still exists.
    func lastID() throws -> UploadID? {
        try tx.connection.first("SELECT max(id) FROM upload") { $0.optionalText(0) }.flatMap { $0 }.flatMap {
            UploadID($0)
        }
    }

    package func find(_ id: String) throws -> UploadRecord? {
        try tx.connection.first("SELECT \(UploadRecord.columns) FROM upload WHERE id = ?1", [.text(id)]) {
            UploadRecord($0, 0)
        }
    }

    package func of(_ asset: Int64) throws -> [UploadRecord] {
        try tx.connection.all(
            "SELECT \(UploadRecord.columns) FROM upload WHERE asset = ?1 ORDER BY id", [.integer(asset)]
        ) {
            UploadRecord($0, 0)
        }
    }

    /// The uploads of several assets.
    package func ofEach(_ assets: [Int64]) throws -> [Int64: [UploadRecord]] {
        try assets.reduce(into: [:]) { found, asset in found[asset] = try of(asset) }
    }

    /// The uploads of other files of its unit to its destination. First come those of its own round: those that were
    /// recorded last before it or with it (they are recorded within a second), and then those recorded after it, in
    /// their order. A unit continues when a name is used again.
    package func companions(of upload: String) throws -> [Companion] {
        guard let asset = try find(upload)?.asset else { return [] }
        return try mates(of: asset).flatMap { mate in
            try tx.connection.all(
                """
                SELECT other.media_type, CASE other.state WHEN 'removed' THEN other.ended ELSE other.state END,
                other.remote FROM upload AS other JOIN upload ON upload.id = ?1
                WHERE other.asset = ?2 AND other.destination = upload.destination
                """, [.text(upload), .integer(mate)]
            ) { row in
                UploadState(rawValue: row.optionalText(1) ?? "").map { state in
                    Companion(
                        mediaType: row.text(0), state: state,
                        remote: row.optionalText(2).flatMap { StoredJSON.decode(RemoteObject.self, json: $0) })
                }
            }.compactMap { $0 }
        }
    }

    /// The other files of its unit with the same stem, in the order of ``companions(of:)``. A directory that goes as one
    /// may have thousands of files with other names.
    func mates(of asset: Int64) throws -> [Int64] {
        guard
            let own = try tx.connection.first(
                "SELECT relative, unit, arrived_at FROM asset WHERE id = ?1 AND unit IS NOT NULL", [.integer(asset)],
                { (path: FilePath(bytes: $0.blob(0)), unit: $0.integer(1), arrivedAt: $0.integer(2)) })
        else { return [] }
        let start = own.path.parent.appending(own.path.name.beforeDots)
        return try tx.connection.all(
            """
            SELECT id, relative FROM asset INDEXED BY asset_relative
            WHERE (relative = ?3 OR relative > ?4 AND relative < ?5) AND unit = ?2 AND id <> ?1
            ORDER BY CASE WHEN arrived_at <= ?6 + 1000 THEN id END DESC, id
            """,
            [
                .integer(asset), .integer(own.unit), .blob(start.bytes), .blob(start.bytes + [UInt8(ascii: ".")]),
                // All that follows a dot sorts before the byte after the dot.
                .blob(start.bytes + [UInt8(ascii: "/")]), .integer(own.arrivedAt),
            ]
        ) { (id: $0.integer(0), path: FilePath(bytes: $0.blob(1))) }.filter { $0.path.sharesStem(with: own.path) }
            .map(\.id)
    }

    package func row(_ id: String) throws -> UploadRow? {
        try rows("WHERE upload.id = ?1", [.text(id)]).first
    }

    /// Uploads whose id begins with `prefix`, at most `limit`.
    package func rows(idPrefix prefix: String, limit: Int) throws -> [UploadRow] {
        // The alphabet of ids ends with Z: everything that begins with the prefix sorts below prefix + "[".
        try rows(
            "WHERE upload.id >= ?1 AND upload.id < ?2 LIMIT ?3",
            [.text(prefix), .text(prefix + "["), .integer(Int64(limit))])
    }

    /// The newest uploads that have this id or this address at the remote.
    package func rows(remote name: String) throws -> [UploadRow] {
        for (index, field) in [("upload_remote_id", "id"), ("upload_remote_url", "url")] {
            let ids = try tx.connection.all(
                """
                SELECT id FROM upload INDEXED BY \(index) WHERE remote IS NOT NULL
                AND \(Schema.remoteName(field)) = ?1 ORDER BY id DESC LIMIT 20
                """, [.text(name)]
            ) { $0.text(0) }
            if !ids.isEmpty { return try ids.compactMap { try row($0) } }
        }
        for field in ["named", "named_url"] {
            let found = try rows("WHERE upload.\(field) = ?1 ORDER BY upload.id DESC LIMIT 20", [.text(name)])
            if !found.isEmpty { return found }
        }
        return []
    }

    package func rows(key: String) throws -> [UploadRow] {
        try rows("WHERE upload.key = ?1 ORDER BY upload.id DESC LIMIT 20", [.text(key)])
    }

    /// The newest uploads of the file at `path`.
    ///
    /// - Parameter disk: Not those of a file that is certainly on another one, as in ``Core/FileIdentity/fileSystem``.
    package func rows(path: FilePath, on disk: String? = nil) throws -> [UploadRow] {
        // The border between the folder and the path below it is not known: each end of the path is looked up.
        let parts = path.components
        let ends = parts.indices.map {
            Connection.Value.blob(Array(parts[$0...].map(\.bytes).joined(separator: [0x2F])))
        }
        if ends.isEmpty { return [] }
        let assets = try tx.connection.all(
            """
            SELECT id, root, relative, file_system FROM asset
            WHERE relative IN (\(ends.indices.map { "?\($0 + 1)" }.joined(separator: ", "))) ORDER BY id DESC
            """, ends
        ) {
            (
                id: $0.integer(0), path: FilePath(bytes: $0.blob(1)).appending(FilePath(bytes: $0.blob(2))),
                disk: $0.optionalText(3)
            )
        }
        let newest = assets.first { $0.path == path && !FileIdentity.areOtherDisks($0.disk, disk) }
        guard let newest else { return [] }
        return try rows("WHERE upload.asset = ?1 ORDER BY upload.id", [.integer(newest.id)])
    }

    /// The newest uploads of files whose path ends in this name, at most `limit`.
    package func rows(named leaf: FilePath, limit: Int) throws -> [UploadRow] {
        try rows(
            "WHERE \(Schema.leaf) = ?1 ORDER BY asset.id DESC, upload.id DESC LIMIT ?2",
            [.blob(leaf.bytes), .integer(Int64(limit))])
    }

    func rows(_ condition: String, _ values: [Connection.Value]) throws -> [UploadRow] {
        let assetStart = Int32(UploadRecord.count)
        let bodyAt = assetStart + Int32(AssetRecord.count)
        return try tx.connection.all(
            """
            SELECT \(UploadRecord.qualified), \(AssetRecord.qualified),
            (SELECT body FROM failure WHERE failure.upload = upload.id ORDER BY failure.id DESC LIMIT 1)
            FROM upload JOIN asset ON asset.id = upload.asset \(condition)
            """, values
        ) { row in
            UploadRow(
                upload: UploadRecord(row, 0), asset: AssetRecord(row, assetStart),
                failure: row.optionalText(bodyAt).flatMap { StoredJSON.decode(Failure.self, json: $0) })
        }
    }

    /// The ongoing upload that has the key of one of these, and its destination. One file has a key at several.
    ///
    /// - Parameter orEnded: Also one of the list or the history that has ended.
    package func keyHolder(_ orders: [NewAsset.PlannedUpload], orEnded: Bool = false) throws -> String? {
        for order in orders {
            guard let key = order.key else { continue }
            let holder = try tx.connection.first(
                """
                SELECT id FROM upload WHERE key = ?1 AND destination = ?2
                \(orEnded ? "" : "AND state IN ('staging', 'queued', 'uploading')") LIMIT 1
                """, [.text(key), .text(order.destination)]
            ) { $0.text(0) }
            if let holder { return holder }
        }
        return nil
    }

    /// Another upload of the same content to the same destination that this one waits for, where duplicates are
    /// skipped.
    package func duplicate(_ upload: UploadRecord, sha256: [UInt8]) throws -> UploadRecord? {
        guard upload.state == .queued, upload.size >= smallestDuplicate else { return nil }
        let sending = try tx.connection.first(
            """
            SELECT other.id FROM upload AS other INDEXED BY upload_list JOIN asset AS theirs ON theirs.id = other.asset
            WHERE other.state = 'uploading' AND other.destination = ?1 AND theirs.sha256 = ?2 LIMIT 1
            """, [.text(upload.destination), .blob(sha256)]
        ) { $0.text(0) }
        if let sending { return try find(sending) }
        guard try tx.checkpoints.find(upload.id) == nil else { return nil }
        let begun = try tx.connection.first(
            """
            SELECT other.id FROM upload AS other INDEXED BY upload_begun JOIN asset AS theirs ON theirs.id = other.asset
            WHERE other.state = 'queued' AND other.started_at IS NOT NULL AND other.destination = ?1
            AND EXISTS (SELECT 1 FROM checkpoint WHERE checkpoint.upload = other.id) AND theirs.sha256 = ?2 LIMIT 1
            """, [.text(upload.destination), .blob(sha256)]
        ) { $0.text(0) }
        return try begun.flatMap { try find($0) }
    }
}

extension UploadTable where Access == Writing {
    /// - Parameter number: The id to give it; `nil` for the next.
    func insert(
        _ order: NewAsset.PlannedUpload, of asset: Int64, _ arrival: NewAsset, numbered number: String? = nil
    ) throws -> String {
        let id = number ?? tx.session.newUploadID()
        let identity = arrival.file.identity
        try tx.connection.run(
            """
            INSERT INTO upload (id, asset, folder, destination, name, media_type, key, context, metadata, size,
                modified, rank, sort, state, generation, attempt, backoff_until, acked, created_at, headers, url, choice,
                standby)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 'staging', 1, 0, 0, 0, ?14, ?15, ?16, ?17,
                ?18)
            """,
            [
                .text(id), .integer(asset), .text(identity.folder), .text(order.destination), .blob(order.name.bytes),
                .text(order.mediaType), .init(order.key), .text(TextMap.text(order.context)),
                .text(TextMap.text(order.metadata)), .integer(identity.size), .integer(identity.modified),
                .integer(Int64(-arrival.priority)),
                .integer(
                    tx.session.sortKey(
                        identity.folder, order.destination, size: identity.size, modified: identity.modified)),
                .integer(tx.clocks.wall().milliseconds), .text(TextMap.text(order.headers)), .init(order.url?.stored),
                .init(order.choice.map { Int64($0.number) }), .integer(order.choice.map(standby) ?? 0),
            ])
        try tx.masks.update(id)
        try tx.events.append(.added, of: id)
        return id
    }

    /// When an upload of a choice may go: at once if it is the first.
    private func standby(of choice: NewAsset.Choice) -> Int64 {
        let wait = min(choice.wait.inSeconds, 1e9) * 1000
        return wait > 0 ? max(1, tx.session.currentRunTime + Int64(wait)) : 0
    }

    /// Records that `before_upload` approves an upload that this run holds, perhaps with changes.
    ///
    /// - Returns: The upload as it is to be sent.
    /// - Throws: ``LeaseLostError`` when the upload was cancelled meanwhile.
    package func approve(_ id: String, _ changes: BeforeUpload.Changes) throws -> UploadRecord {
        guard let upload = try find(id), upload.state == .uploading else { throw LeaseLostError() }
        try tx.connection.run(
            "UPDATE upload SET approved = generation, name = ?2, metadata = ?3, context = ?4 WHERE id = ?1",
            [
                .text(id), .blob((changes.name ?? upload.name).bytes),
                .text(TextMap.text(upload.metadata.merging(changes.metadata) { $1 })),
                .text(TextMap.text(upload.context.merging(changes.context) { $1 })),
            ])
        return try find(id) ?? upload
    }
}

extension Transaction {
    package var uploads: UploadTable<Access> { UploadTable(tx: self) }
    package var masks: FileMasks<Access> { FileMasks(tx: self) }
    package var alternatives: Alternatives<Access> { Alternatives(tx: self) }
}

extension UploadRecord {
    private static let names = [
        "id", "asset", "folder", "destination", "name", "media_type", "key", "context", "metadata", "size",
        "modified", "rank", "state", "generation", "attempt", "paused_at", "backoff_until", "acked", "remote",
        "remote_delete", "created_at", "started_at", "finished_at", "ended", "ran_at", "approved", "headers",
        "url", "sent", "named", "named_url", "failing_since", "furthest", "mask", "choice",
        "standby",
    ]
    /// Bytes up to which an upload has come: all sent bytes, unless the upload failed and the remote's state is
    /// unknown.
    static let reach = "max(acked, iif(failing_since IS NULL, sent, 0))"
    static let isBegun = "EXISTS (SELECT 1 FROM checkpoint WHERE checkpoint.upload = upload.id)"
    private static let isTroubled = "upload.trouble IS NOT NULL AND upload.tried_again = 0"
    private static let expiry = "(SELECT expires FROM checkpoint WHERE checkpoint.upload = upload.id)"
    private static let derived = [isTroubled, isBegun, expiry]
    static let columns = (names + derived).joined(separator: ", ")
    static let qualified = (names.map { "upload." + $0 } + derived).joined(separator: ", ")
    static let count = names.count + derived.count

    init(_ row: Connection.Row, _ at: Int32) {
        func time(_ column: Int32) -> WallTime? { row.optionalInteger(at + column).map { WallTime(milliseconds: $0) } }
        func map(_ column: Int32) -> [String: String] {
            TextMap.map(row.text(at + column)) ?? [:]
        }
        let backoff = row.integer(at + 16)
        // A damaged number is limited, so that counting on from it does not trap.
        let rank = max(row.integer(at + 11), -.max)
        let attempt = min(max(row.integer(at + 14), 0), 1 << 40)
        let state = UploadState(rawValue: row.text(at + 12))
        self.init(
            id: row.text(at), asset: row.integer(at + 1), folder: row.text(at + 2), destination: row.text(at + 3),
            name: FilePath(bytes: row.blob(at + 4)), mediaType: row.text(at + 5), key: row.optionalText(at + 6),
            context: map(7), metadata: map(8), headers: map(26),
            url: row.optionalText(at + 27).map(GivenURL.init(stored:)),
            size: row.integer(at + 9),
            modified: row.integer(at + 10),
            priority: Int(-rank), state: state ?? .failed,
            generation: Int(row.integer(at + 13)), attempt: Int(attempt), pausedAt: time(15),
            backoffUntil: backoff > 0 ? MonotonicTime(nanoseconds: backoff) : nil, acked: row.integer(at + 17),
            remote: row.optionalText(at + 18).flatMap { StoredJSON.decode(RemoteObject.self, json: $0) },
            remoteDelete: row.optionalText(at + 19), createdAt: WallTime(milliseconds: row.integer(at + 20)),
            startedAt: time(21), finishedAt: time(22),
            ended: row.optionalText(at + 23).flatMap { UploadState(rawValue: $0) }, ranAt: row.optionalInteger(at + 24),
            isApproved: row.optionalInteger(at + 25) == row.integer(at + 13),
            // Not by negating the stored number, which a damaged one may not permit.
            isSkipped: row.optionalInteger(at + 25).map { $0 < 0 && $0 &+ row.integer(at + 13) == 0 } ?? false,
            sent: max(0, row.integer(at + 28)), named: row.optionalText(at + 29), namedURL: row.optionalText(at + 30),
            failingSince: row.optionalInteger(at + 31),
            furthest: max(row.integer(at + 17), row.integer(at + 32)), mask: FileMask(row.text(at + 33)),
            choice: row.optionalInteger(at + 34), standby: row.integer(at + 35) > 0 ? row.integer(at + 35) : nil,
            isTroubled: row.integer(at + 36) == 1, isBegun: row.integer(at + 37) == 1, expires: time(38))
        if state == nil { unknown.state = row.text(at + 12) }
    }
}
