package import Core
internal import Linux

// Makes a new database from the contents of folders, staging and destinations.

/// A file that a rebuild found, with the known facts about its uploads.
package struct Restored: Sendable {
    /// The known state of one upload.
    package enum Knowledge: Sendable, Hashable {
        /// It must be sent.
        case toSend
        /// The destination holds it, or a person has confirmed it.
        case done(RemoteObject)
        /// It is unknown whether it was sent: a person decides.
        case undecided(Failure)
    }

    package var arrival: NewAsset
    /// The number of its copy in the staging folder; `nil` when it has none.
    package var copy: Int64?
    /// Digest of the content, where it was read.
    package var sha256: [UInt8]?
    /// One for each of the arrival's orders: its former id, if that is known, and its state.
    package var uploads: [Upload]
    /// Size of the copy, where a command made it.
    package var stagedSize: Int64?
    /// Digest of its source in that case, where it was computed.
    package var sourceSHA256: [UInt8]?
    /// The copy's metadata; without a value it is read when there is a copy.
    package var media = MediaFacts()

    package struct Upload: Sendable {
        /// Its former id, if that is known.
        package var id: String?
        package var standing: Knowledge
        /// Its progress, as the old database has it.
        package var checkpoint: Checkpoint?
        package var generation = 1
        package var acked: Int64 = 0

        package init(id: String?, standing: Knowledge) {
            self.id = id
            self.standing = standing
        }
    }

    package init(arrival: NewAsset, copy: Int64?, sha256: [UInt8]?, uploads: [Upload]) {
        self.arrival = arrival
        self.copy = copy
        self.sha256 = sha256
        self.uploads = uploads
    }
}

extension Store {
    /// Records restored files: one transaction for all.
    ///
    /// - Returns: The numbers of their assets, in their order.
    package func restore(_ files: [Restored]) async throws -> [Int64] {
        try await change { connection in try files.map { try self.restore($0, connection) } }
    }

    /// Records that these travel together: the assets of each unit.
    package func unite(_ units: [[Int64]]) async throws {
        try await change { connection in
            for unit in units {
                guard let first = unit.min() else { continue }
                for asset in unit {
                    try connection.run(
                        "UPDATE asset SET unit = ?2, due = 0 WHERE id = ?1", [.integer(asset), .integer(first)])
                }
                try self.noteDue(first)
            }
        }
    }

    private func restore(_ file: Restored, _ connection: Connection) throws -> Int64 {
        let asset = try insert(file.arrival, numbered: file.copy, connection)
        let isToSend = file.uploads.contains { $0.standing == .toSend }
        // Without a copy it is staged when one of its uploads must be sent; otherwise nothing is necessary.
        let state: AssetState = file.copy != nil ? .staged : isToSend ? .arrived : .dropped
        try connection.run(
            "UPDATE asset SET state = ?2, sha256 = ?3, staged_at = ?4, staged_size = ?5, source_sha256 = ?6 WHERE id = ?1",
            [
                .integer(asset), .text(state.rawValue), .init(state == .arrived ? nil : file.sha256),
                file.copy == nil ? .null : .integer(clocks.wall().milliseconds), .init(file.stagedSize),
                .init(file.sourceSHA256),
            ])
        // Copies come first, so the version that is in the folder is the one that stays known.
        try insertTombstone(file.arrival.file.identity, asset: asset)
        for (order, upload) in zip(file.arrival.orders, file.uploads) {
            try restore(order, upload, of: asset, file, connection)
        }
        if let size = file.stagedSize {
            try connection.run("UPDATE upload SET size = ?2 WHERE asset = ?1", [.integer(asset), .integer(size)])
        }
        if !file.media.isEmpty { try note(file.media, of: asset, connection) }
        try noteDue(asset)
        return asset
    }

    private func restore(
        _ order: NewAsset.Order, _ known: Restored.Upload, of asset: Int64, _ file: Restored, _ connection: Connection
    ) throws {
        let (old, standing) = (known.id, known.standing)
        var order = order
        if let key = order.key, try isTaken(key, order.destination, connection) { order.key = nil }
        let isFree = try old.map { try self.upload($0) == nil } ?? false
        let id = try insert(order, of: asset, file.arrival, numbered: isFree ? old : nil, connection)
        let (state, over): (UploadState, Bool) =
            switch standing {
            case .toSend: (file.copy == nil ? .staging : .queued, false)
            case .done: (.completed, true)
            case .undecided: (.failed, true)
            }
        try connection.run(
            "UPDATE upload SET state = ?2, finished_at = ?3, generation = ?4, acked = ?5 WHERE id = ?1",
            [
                .text(id), .text(state.rawValue), over ? .integer(clocks.wall().milliseconds) : .null,
                .integer(Int64(known.generation)), .integer(known.checkpoint == nil ? 0 : known.acked),
            ])
        if let checkpoint = known.checkpoint, !over {
            try connection.run(
                "INSERT OR REPLACE INTO checkpoint VALUES (?1, ?2)",
                [.text(id), .text(try Self.json(checkpoint.fields))])
        }
        guard over, let upload = try upload(id) else { return }
        switch standing {
        case .toSend: break
        case .done(let remote):
            try connection.run(
                "UPDATE upload SET acked = size, remote = ?2 WHERE id = ?1", [.text(id), .text(try Self.json(remote))])
            try remember(upload, .completed, remote: remote)
            try connection.run(
                "UPDATE tombstone SET sha256 = ?3 WHERE folder = ?1 AND relative = ?2 AND asset = ?4",
                [
                    .text(upload.folder), .blob(file.arrival.file.relative.bytes), .init(file.sha256), .integer(asset),
                ])
            try note(UploadState.completed.rawValue, id, ["from": "rebuild", "to": state.rawValue])
        case .undecided(let failure):
            try note(failure, upload)
            try remember(upload, .failed, code: failure.code)
            try note(UploadState.failed.rawValue, id, ["from": "rebuild", "to": state.rawValue])
        }
    }

    private func isTaken(_ key: String, _ destination: String, _ connection: Connection) throws -> Bool {
        try connection.first(
            "SELECT 1 FROM upload WHERE key = ?1 AND destination = ?2 AND state IN ('staging', 'queued', 'uploading')",
            [.text(key), .text(destination)]
        ) { _ in true } ?? false
    }

    /// Ensures that no new asset gets a number up to this one: copies and caught sources have these numbers in their
    /// names.
    package func reserve(upTo number: Int64) async throws {
        try await change { connection in
            if try self.lastAsset() < number { try self.setLastAsset(number, connection) }
        }
    }

    /// Puts this complete new database in place of the old one. The store is closed then.
    ///
    /// - Returns: The old database's new path; `nil` when there was none.
    package func install(stamp: String) async throws -> FilePath? {
        try await change { connection in
            try connection.run("INSERT OR REPLACE INTO setting VALUES (?1, ?2)", [.text("rebuilt"), .text(stamp)])
        }
        closeFiles()
        defer { close() }
        CrashPoint.reached("rebuild-finished")
        return try StateFiles.install(in: folder, stamp: stamp)
    }

    /// Removes this new database completely: it was a trial, or could not be made.
    package func discard() throws {
        closeFiles()
        defer { close() }
        if name != StateFiles.database { try StateFiles.remove(name, in: folder) }
    }
}

extension StateFiles {
    /// Ends a rebuild that was complete when it was interrupted: only the last renames are missing.
    ///
    /// - Returns: `nil` when there was none; otherwise the old database's new path, if there was one.
    package static func finishRebuild(in folder: FilePath) throws -> FilePath?? {
        guard try FileStatus.ifPresent(at: folder.appending(rebuilt)) != nil else { return nil }
        let lock = try InstanceLock(folder: folder)
        defer { withExtendedLifetime(lock) {} }
        let stamp: String?
        do {
            let connection = try Connection(path: folder.appending(rebuilt))
            defer { connection.close() }
            stamp = try connection.first("SELECT value FROM setting WHERE name = 'rebuilt'") { $0.text(0) }
        } catch {
            // Interrupted so early that it is no database yet: it is made again.
            return nil
        }
        guard let stamp else { return nil }
        return try install(in: folder, stamp: stamp)
    }
}
