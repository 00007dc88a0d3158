package import Core

// General queries: reads only.

extension Store {
    package func asset(_ id: Int64) throws -> AssetRecord? {
        try connection.first("SELECT \(AssetRecord.columns) FROM asset WHERE id = ?1", [.integer(id)]) {
            AssetRecord($0, 0)
        }
    }

    package func upload(_ id: String) throws -> UploadRecord? {
        try connection.first("SELECT \(UploadRecord.columns) FROM upload WHERE id = ?1", [.text(id)]) {
            UploadRecord($0, 0)
        }
    }

    package func uploads(of asset: Int64) throws -> [UploadRecord] {
        try connection.all("SELECT \(UploadRecord.columns) FROM upload WHERE asset = ?1 ORDER BY id", [.integer(asset)])
        {
            UploadRecord($0, 0)
        }
    }

    /// The same for several assets in one query.
    package func uploads(ofEach assets: [Int64]) throws -> [Int64: [UploadRecord]] {
        try together {
            try assets.reduce(into: [:]) { found, asset in found[asset] = try uploads(of: asset) }
        }
    }

    /// The uploads of other files of its unit to its destination. First come those of its own round: those that were
    /// recorded last before it or with it (they are recorded within a second), and then those recorded after it, in
    /// their order. A unit continues when a name is used again.
    package func companions(of upload: String) throws -> [Companion] {
        try connection.all(
            """
            SELECT other.media_type, CASE other.state WHEN 'removed' THEN other.ended ELSE other.state END, other.remote
            FROM upload JOIN asset ON asset.id = upload.asset JOIN asset AS mate ON mate.unit = asset.unit
            JOIN upload AS other ON other.asset = mate.id AND other.destination = upload.destination
            WHERE upload.id = ?1 AND mate.id <> asset.id
            ORDER BY CASE WHEN mate.arrived_at <= asset.arrived_at + 1000 THEN mate.id END DESC, mate.id
            """, [.text(upload)]
        ) { row in
            UploadState(rawValue: row.optionalText(1) ?? "").map { state in
                Companion(
                    mediaType: row.text(0), state: state,
                    remote: row.optionalText(2).flatMap { Self.value(RemoteObject.self, json: $0) })
            }
        }.compactMap { $0 }
    }

    package func checkpoint(_ upload: String) throws -> Checkpoint? {
        try connection.first("SELECT body FROM checkpoint WHERE upload = ?1", [.text(upload)]) { $0.text(0) }
            .flatMap { TextMap.map($0) }.map { Checkpoint($0) }
    }

    /// The failures of an upload, oldest first: generation, attempt, failure.
    ///
    /// Reasons for mere waits are not among them.
    package func failures(_ upload: String) throws -> [(generation: Int, attempt: Int, failure: Failure)] {
        try connection.all(
            "SELECT generation, attempt, body FROM failure WHERE upload = ?1 ORDER BY id", [.text(upload)]
        ) { row in
            (Int(row.integer(0)), Int(row.integer(1)), Self.value(Failure.self, json: row.text(2)))
        }.compactMap { row in row.2.flatMap { $0.isWait == true ? nil : (row.0, row.1, $0) } }
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
            let ids = try connection.all(
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
    package func rows(path: FilePath) throws -> [UploadRow] {
        // The border between the folder and the path below it is not known: each end of the path is looked up.
        let parts = path.components
        let ends = parts.indices.map {
            Connection.Value.blob(Array(parts[$0...].map(\.bytes).joined(separator: [0x2F])))
        }
        if ends.isEmpty { return [] }
        let assets = try connection.all(
            """
            SELECT id, root, relative FROM asset
            WHERE relative IN (\(ends.indices.map { "?\($0 + 1)" }.joined(separator: ", "))) ORDER BY id DESC
            """, ends
        ) { (id: $0.integer(0), path: FilePath(bytes: $0.blob(1)).appending(FilePath(bytes: $0.blob(2)))) }
        guard let newest = assets.first(where: { $0.path == path }) else { return [] }
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
        return try connection.all(
            """
            SELECT \(UploadRecord.qualified), \(AssetRecord.qualified),
            (SELECT body FROM failure WHERE failure.upload = upload.id ORDER BY failure.id DESC LIMIT 1)
            FROM upload JOIN asset ON asset.id = upload.asset \(condition)
            """, values
        ) { row in
            UploadRow(
                upload: UploadRecord(row, 0), asset: AssetRecord(row, assetStart),
                failure: row.optionalText(bodyAt).flatMap { Self.value(Failure.self, json: $0) })
        }
    }

    package func tallies() throws -> [Tally] {
        try connection.all(
            "SELECT destination, state, sum(uploads), sum(bytes) FROM tally GROUP BY destination, state"
        ) { row in
            (row.text(0), UploadState(rawValue: row.text(1)), Int(row.integer(2)), row.integer(3))
        }.compactMap { row in row.1.map { Tally(destination: row.0, state: $0, uploads: row.2, bytes: row.3) } }
    }

    /// Total bytes of all staged copies.
    package func stagedBytes() throws -> Int64 {
        try connection.first("SELECT bytes FROM staged_total") { $0.integer(0) } ?? 0
    }

    /// Events after `seq`, oldest first.
    package func events(after seq: Int64, limit: Int) throws -> [EventRecord] {
        try connection.all(
            "SELECT seq, at, type, upload, detail FROM event WHERE seq > ?1 AND seq <= ?3 ORDER BY seq LIMIT ?2",
            // Only committed events: an event that a crash takes back must not have been seen.
            [.integer(seq), .integer(Int64(limit)), .integer(self.seq)]
        ) { row in
            EventRecord(
                seq: row.integer(0), at: WallTime(milliseconds: row.integer(1)), type: row.text(2),
                upload: row.optionalText(3), detail: TextMap.map(row.text(4)) ?? [:])
        }
    }

    /// The number of the oldest event that still exists; 0 when there never was one.
    package func oldestEvent() throws -> Int64 {
        try connection.first("SELECT min(seq) FROM event") { $0.integer(0) } ?? 0
    }

    /// Writes an event of the daemon itself.
    package func announce(_ type: String, _ detail: [String: String]) async throws {
        try await change { _ in try self.note(type, nil, detail) }
    }
}

extension AssetRecord {
    private static let names = [
        "id", "folder", "root", "relative", "size", "modified", "changed", "inode", "born", "file_system",
        "settled_by", "state", "sha256", "action", "target", "source_state", "source_note", "priority",
        "keeping", "staged_size", "source_sha256", "arrived_at",
    ]
    static let columns = names.joined(separator: ", ")
    static let qualified = names.map { "asset." + $0 }.joined(separator: ", ")
    static let count = names.count

    init(_ row: Connection.Row, _ at: Int32) {
        let action: SourceAction =
            switch row.text(at + 13) {
            case "keep": .keep
            case "delete": .delete
            // If this program no longer understands a template, it keeps the source: the cautious reading.
            case "move": (try? Template(row.text(at + 14))).map { .move(to: $0) } ?? .leave
            default: .leave
            }
        let settledBy = SettledBy(rawValue: row.text(at + 10))
        let state = AssetState(rawValue: row.text(at + 11))
        let sourceState = SourceState(rawValue: row.text(at + 15))
        let stagingMode = StagingMode(rawValue: row.text(at + 18))
        self.init(
            id: row.integer(at), folder: row.text(at + 1), root: FilePath(bytes: row.blob(at + 2)),
            identity: StoredIdentity(
                folder: row.text(at + 1), relative: FilePath(bytes: row.blob(at + 3)), size: row.integer(at + 4),
                modified: row.integer(at + 5), inode: row.optionalInteger(at + 7).map { UInt64(bitPattern: $0) },
                born: row.optionalInteger(at + 8), fileSystem: row.optionalText(at + 9)),
            changed: row.integer(at + 6), settledBy: settledBy ?? .quiet,
            state: state ?? .dropped, sha256: row.optionalBlob(at + 12),
            action: action, sourceState: sourceState ?? .kept,
            sourceNote: row.optionalText(at + 16), priority: Int(row.integer(at + 17)),
            // An unknown keeping counts as a copy. The asset has a copy, or is found to have none.
            stagingMode: stagingMode ?? .copy,
            stagedSize: row.optionalInteger(at + 19) ?? row.integer(at + 4), sourceSHA256: row.optionalBlob(at + 20),
            arrivedAt: WallTime(milliseconds: row.integer(at + 21)))
        if settledBy == nil { unknown.settledBy = row.text(at + 10) }
        if state == nil { unknown.state = row.text(at + 11) }
        if sourceState == nil { unknown.sourceState = row.text(at + 15) }
        if stagingMode == nil { unknown.stagingMode = row.text(at + 18) }
        if !["keep", "leave", "delete", "move"].contains(row.text(at + 13)) { unknown.action = row.text(at + 13) }
    }
}

extension UploadRecord {
    private static let names = [
        "id", "asset", "folder", "destination", "name", "media_type", "key", "context", "metadata", "size",
        "modified", "rank", "state", "generation", "attempt", "paused_at", "backoff_until", "acked", "remote",
        "remote_delete", "created_at", "started_at", "finished_at", "ended", "ran_at", "approved", "headers",
        "url", "sent", "named", "named_url", "failing_since",
    ]
    /// Bytes up to which an upload has come: all sent bytes, unless the upload failed and the remote's state is
    /// unknown.
    static let reach = "max(acked, iif(failing_since IS NULL, sent, 0))"
    static let isBegun = "EXISTS (SELECT 1 FROM checkpoint WHERE checkpoint.upload = upload.id)"
    private static let isTroubled = "upload.trouble IS NOT NULL AND upload.tried_again = 0"
    static let columns = (names + [isTroubled, isBegun]).joined(separator: ", ")
    static let qualified = (names.map { "upload." + $0 } + [isTroubled, isBegun]).joined(separator: ", ")
    static let count = names.count + 2

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
            context: map(7), metadata: map(8), headers: map(26), url: row.optionalText(at + 27),
            size: row.integer(at + 9),
            modified: row.integer(at + 10),
            priority: Int(-rank), state: state ?? .failed,
            generation: Int(row.integer(at + 13)), attempt: Int(attempt), pausedAt: time(15),
            backoffUntil: backoff > 0 ? MonotonicTime(nanoseconds: backoff) : nil, acked: row.integer(at + 17),
            remote: row.optionalText(at + 18).flatMap { Store.value(RemoteObject.self, json: $0) },
            remoteDelete: row.optionalText(at + 19), createdAt: WallTime(milliseconds: row.integer(at + 20)),
            startedAt: time(21), finishedAt: time(22),
            ended: row.optionalText(at + 23).flatMap { UploadState(rawValue: $0) }, ranAt: row.optionalInteger(at + 24),
            isApproved: row.optionalInteger(at + 25) == row.integer(at + 13),
            // Not by negating the stored number, which a damaged one may not permit.
            isSkipped: row.optionalInteger(at + 25).map { $0 < 0 && $0 &+ row.integer(at + 13) == 0 } ?? false,
            sent: max(0, row.integer(at + 28)), named: row.optionalText(at + 29), namedURL: row.optionalText(at + 30),
            failingSince: row.optionalInteger(at + 31), isTroubled: row.integer(at + 32) == 1,
            isBegun: row.integer(at + 33) == 1)
        if state == nil { unknown.state = row.text(at + 12) }
    }
}
