package import Core

/// A file that a rebuild found, with the known facts about its uploads.
package struct RestoredFile: Sendable {
    /// The known state of one upload.
    package enum Knowledge: Sendable, Hashable {
        /// It must be sent.
        case toSend
        /// The destination holds it.
        case done(RemoteObject)
        /// It counts as uploaded by a person's decision or an old row, which is no reason to touch a source.
        case assumed(RemoteObject)
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
        package var knowledge: Knowledge
        /// Its progress, as the old database has it.
        package var checkpoint: Checkpoint?
        package var generation = 1
        package var acked: Int64 = 0

        package init(id: String?, knowledge: Knowledge) {
            self.id = id
            self.knowledge = knowledge
        }
    }

    package init(arrival: NewAsset, copy: Int64?, sha256: [UInt8]?, uploads: [Upload]) {
        self.arrival = arrival
        self.copy = copy
        self.sha256 = sha256
        self.uploads = uploads
    }
}

extension RestoredFile {
    /// Whether no copy, no upload and no remote file of it was found.
    package var isNew: Bool {
        copy == nil && uploads.allSatisfy { $0.knowledge == .toSend && $0.id == nil && $0.checkpoint == nil }
    }

    /// Whether another destination, which is enough, holds the file.
    fileprivate func isSuperfluous(_ order: NewAsset.PlannedUpload, _ upload: Upload) -> Bool {
        guard let choice = order.choice?.number, !upload.knowledge.isHeld else { return false }
        return zip(arrival.orders, uploads).contains { $0.choice?.number == choice && $1.knowledge.isHeld }
    }
}

extension RestoredFile.Knowledge {
    fileprivate var isHeld: Bool {
        switch self {
        case .done, .assumed: true
        case .toSend, .undecided: false
        }
    }
}

/// Files that travel together.
package struct RestoredUnit: Sendable {
    package var assets: [Int64]
    /// The name under which they are reported as one.
    package var name: FilePath?

    package init(assets: [Int64], name: FilePath?) { (self.assets, self.name) = (assets, name) }
}

/// Files that a rebuild found.
package struct RestoredFiles<Access> {
    let tx: Transaction<Access>

    private func isTaken(_ key: String, _ destination: String) throws -> Bool {
        try tx.connection.first(
            "SELECT 1 FROM upload WHERE key = ?1 AND destination = ?2 AND state IN ('staging', 'queued', 'uploading')",
            [.text(key), .text(destination)]
        ) { _ in true } ?? false
    }
}

extension RestoredFiles where Access == Writing {
    /// Records restored files.
    ///
    /// - Returns: The numbers of their assets, in their order.
    package func record(_ files: [RestoredFile]) throws -> [Int64] {
        try files.map { try restore($0) }
    }

    /// Records that the files of each unit travel together.
    package func unite(_ units: [RestoredUnit]) throws {
        for unit in units {
            guard let first = unit.assets.min() else { continue }
            for asset in unit.assets {
                try tx.connection.run(
                    "UPDATE asset SET unit = ?2, group_name = ?3, due = 0 WHERE id = ?1",
                    [.integer(asset), .integer(first), .init(unit.name?.bytes)])
            }
            try tx.releases.updateDue(first)
        }
    }

    private func restore(_ file: RestoredFile) throws -> Int64 {
        let asset = try tx.assets.insert(file.arrival, numbered: file.copy)
        let isToSend = zip(file.arrival.orders, file.uploads).contains {
            $1.knowledge == .toSend && !file.isSuperfluous($0, $1)
        }
        // Without a copy it is staged when one of its uploads must be sent; otherwise nothing is necessary.
        let state: AssetState = file.copy != nil ? .staged : isToSend ? .arrived : .dropped
        try tx.connection.run(
            "UPDATE asset SET state = ?2, sha256 = ?3, staged_at = ?4, staged_size = ?5, source_sha256 = ?6 WHERE id = ?1",
            [
                .integer(asset), .text(state.rawValue), .init(state == .arrived ? nil : file.sha256),
                file.copy == nil ? .null : .integer(tx.clocks.wall().milliseconds), .init(file.stagedSize),
                .init(file.sourceSHA256),
            ])
        // Copies come first, so the version that is in the folder is the one that stays known.
        try tx.tombstones.insert(file.arrival.file.identity, asset: asset)
        for (order, upload) in zip(file.arrival.orders, file.uploads) where !file.isSuperfluous(order, upload) {
            try restore(order, upload, of: asset, file)
        }
        if let size = file.stagedSize {
            try tx.connection.run("UPDATE upload SET size = ?2 WHERE asset = ?1", [.integer(asset), .integer(size)])
        }
        if !file.media.isEmpty { try tx.media.set(file.media, of: asset) }
        for upload in try tx.uploads.of(asset) { try tx.masks.update(upload.id) }
        try tx.releases.updateDue(asset)
        return asset
    }

    private func restore(
        _ order: NewAsset.PlannedUpload, _ known: RestoredFile.Upload, of asset: Int64, _ file: RestoredFile
    ) throws {
        let (old, knowledge) = (known.id, known.knowledge)
        var order = order
        if let key = order.key, try isTaken(key, order.destination) { order.key = nil }
        let isFree = try old.map { try tx.uploads.find($0) == nil } ?? false
        let id = try tx.uploads.insert(order, of: asset, file.arrival, numbered: isFree ? old : nil)
        let (state, over): (UploadState, Bool) =
            switch knowledge {
            case .toSend: (file.copy == nil ? .staging : .queued, false)
            case .done, .assumed: (.completed, true)
            case .undecided: (.failed, true)
            }
        try tx.connection.run(
            "UPDATE upload SET state = ?2, finished_at = ?3, generation = ?4, acked = ?5 WHERE id = ?1",
            [
                .text(id), .text(state.rawValue), over ? .integer(tx.clocks.wall().milliseconds) : .null,
                .integer(Int64(known.generation)), .integer(known.checkpoint == nil ? 0 : known.acked),
            ])
        if let checkpoint = known.checkpoint, !over {
            try tx.connection.run(
                "INSERT OR REPLACE INTO checkpoint VALUES (?1, ?2)",
                [.text(id), .text(try StoredJSON.encode(checkpoint.fields))])
        }
        guard over, let upload = try tx.uploads.find(id) else { return }
        switch knowledge {
        case .toSend: break
        case .done(let remote), .assumed(let remote):
            try tx.connection.run(
                "UPDATE upload SET acked = size, remote = ?2 WHERE id = ?1",
                [.text(id), .text(try StoredJSON.encode(remote))])
            try tx.history.record(upload, .completed, remote: remote)
            try tx.connection.run(
                "UPDATE tombstone SET sha256 = ?3 WHERE folder = ?1 AND relative = ?2 AND asset = ?4",
                [
                    .text(upload.folder), .blob(file.arrival.file.relative.bytes), .init(file.sha256), .integer(asset),
                ])
            try tx.events.append(.rebuilt(.completed), of: id)
        case .undecided(let failure):
            try tx.failures.record(failure, upload)
            try tx.history.record(upload, .failed, code: failure.code)
            try tx.events.append(.rebuilt(.failed), of: id)
        }
    }
}

extension Transaction {
    package var restoredFiles: RestoredFiles<Access> { RestoredFiles(tx: self) }
}
