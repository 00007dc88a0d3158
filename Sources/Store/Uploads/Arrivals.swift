internal import Core

/// SQL: the opposite of ``Core/FileIdentity/identifiesDisk(_:)``.
private let isUnnamedDisk = "file_system IS NULL OR instr(file_system, ':/dev/') > 0"

/// Settled files: from "settled" to "recorded".
package struct Arrivals<Access> {
    let tx: Transaction<Access>
}

extension Arrivals where Access == Writing {
    /// Records settled files, each with its uploads and its tombstone.
    package func record(_ arrivals: [NewAsset]) throws -> [NewAssetOutcome] {
        let outcomes = try arrivals.map { try record($0) }
        try unite(arrivals, outcomes)
        return outcomes
    }

    /// Files that travel together have the number of the first of them in common.
    private func unite(
        _ arrivals: [NewAsset], _ outcomes: [NewAssetOutcome]
    ) throws {
        var units: [Int: Int64] = [:]
        for (arrival, outcome) in zip(arrivals, outcomes) {
            guard let unit = arrival.unit, let asset = outcome.asset else { continue }
            // A new version has the unit of the one that it replaced.
            if let own = try tx.assets.unit(of: asset) { units[unit] = own.number }
            if units[unit] == nil, let leader = arrival.joins {
                let earlier = try tx.connection.first(
                    """
                    SELECT id, unit FROM asset INDEXED BY asset_relative
                    WHERE relative = ?1 AND folder = ?2 AND (file_system IS ?3 OR ?4 OR \(isUnnamedDisk))
                    ORDER BY id DESC LIMIT 1
                    """,
                    [
                        .blob(leader.bytes), .text(arrival.file.folder), .init(arrival.file.identity.fileSystem),
                        .integer(FileIdentity.identifiesDisk(arrival.file.identity.fileSystem) ? 0 : 1),
                    ]
                ) { $0.optionalInteger(1) ?? $0.integer(0) }
                // A group that was reported is over: in a directory that is used for years it would grow without end.
                let isOver = try earlier.map { try arrival.group != nil && tx.releases.isOver($0) } ?? true
                if let first = earlier, !isOver {
                    units[unit] = first
                    try tx.connection.run("UPDATE asset SET unit = ?1 WHERE id = ?1", [.integer(first)])
                }
            }
            let first = units[unit] ?? asset
            units[unit] = first
            try tx.assets.join((first, arrival.group), asset)
        }
    }

    private func record(_ arrival: NewAsset) throws -> NewAssetOutcome {
        let identity = arrival.file.identity
        let stones = try tx.tombstones.candidates(for: identity)
        let same = stones.first { $0.identity.isSameVersion(as: identity) }
        // A file of another disk is no version of the asset that waits to be copied.
        let waiting = try tx.assets.waiting(at: identity.relative, in: identity.folder)
            .last { !$0.identity.isOnOtherDisk(than: identity) }
        if let waiting {
            let version = AssetVersion(
                size: identity.size, modified: identity.modified, changed: arrival.file.status.changed,
                inode: waiting.identity.inode)
            // Nothing has changed: its copy is still to be made.
            if waiting.state == .arrived, waiting.version == version, !arrival.again {
                if same == nil { try tx.tombstones.insert(identity, asset: waiting.id) }
                return .known
            }
            let isSame = waiting.identity.isSameVersion(as: identity)
            if arrival.file.settledBy == .added, isSame || same == nil || arrival.again {
                if try waitingUploadsFit(waiting, arrival) { return try renew(waiting.id, as: arrival.file) }
                let upload = try tx.uploads.of(waiting.id).first { $0.state == .staging }
                if let upload { return .copyAwaited(upload.id) }
            } else if try isSame || same == nil && waitingUploadsFit(waiting, arrival) {
                return try renew(waiting.id, as: arrival.file)
            }
        }
        // A file that was only skipped, because it existed before or was empty, may be added by a person: it was never
        // sent.
        let isOnlySkipped = same?.wasRecorded == false && arrival.file.settledBy == .added
        if same != nil && !arrival.again && !isOnlySkipped { return .known }
        // Before the keys are checked: the earlier version may hold the key of this one.
        try tx.transitions.endSuperseded(by: identity)
        let unit = try waiting.flatMap { try tx.assets.leaveUnit($0.id) }
        if let waiting { try tx.transitions.endWaiting(of: waiting, "the newer version has uploads of its own") }
        if let holder = try tx.uploads.keyHolder(arrival.orders) { return .keyTaken(holder) }
        let asset = try tx.assets.insert(arrival)
        if let unit { try tx.assets.join(unit, asset) }
        let uploads = try arrival.orders.map { try tx.uploads.insert($0, of: asset, arrival) }
        try tx.tombstones.insert(identity, asset: asset)
        let isNewVersion =
            same == nil && stones.contains { $0.wasRecorded && !$0.identity.isOnOtherDisk(than: identity) }
        return isNewVersion
            ? .newVersion(asset: asset, uploads: uploads)
            : .recorded(asset: asset, uploads: uploads)
    }

    /// Whether a file that changed before it was copied may continue as the same asset: the uploads of that are those that
    /// the new version is to have, and none has, or may have, an earlier version at its destination.
    private func waitingUploadsFit(_ asset: AssetRecord, _ arrival: NewAsset) throws -> Bool {
        let uploads = try tx.uploads.of(asset.id)
        let waiting = uploads.filter { $0.state == .staging }
        // An upload that a person cancelled before the first copy stays so, whatever is still written to the file.
        let wasCopied = try tx.assets.wasCopied(asset.id)
        for upload in uploads where upload.state != .staging {
            guard !wasCopied, upload.ending == .cancelled, try tx.uploads.row(upload.id)?.failure?.cause == nil else {
                return false
            }
        }
        if try tx.assets.hasNewerVersion(asset) { return false }
        func isPlanned(_ order: NewAsset.PlannedUpload, in uploads: [UploadRecord]) -> Bool {
            uploads.contains {
                $0.destination == order.destination && $0.choice == order.choice.map { Int64($0.number) }
            }
        }
        if arrival.file.settledBy == .added { return arrival.orders.allSatisfy { isPlanned($0, in: waiting) } }
        // What a person has added goes where the person said.
        if asset.settledBy == .added { return true }
        return uploads.count == arrival.orders.count && arrival.orders.allSatisfy { isPlanned($0, in: uploads) }
    }

    private func renew(_ asset: Int64, as file: SettledFile) throws -> NewAssetOutcome {
        let identity = file.identity
        try tx.connection.run(
            """
            UPDATE asset SET state = 'arrived', size = ?2, modified = ?3, changed = ?4, inode = ?5, born = ?6,
            file_system = ?7, settled_by = CASE WHEN settled_by = ?9 OR ?8 = ?9 THEN settled_by ELSE ?8 END WHERE id = ?1
            """,
            [
                .integer(asset), .integer(identity.size), .integer(identity.modified), .integer(file.status.changed),
                .init(identity.inode.map { Int64(bitPattern: $0) }), .init(identity.born), .init(identity.fileSystem),
                .text(file.settledBy.rawValue), .text(SettleProof.added.rawValue),
            ])
        tx.session.facts.changes.insert(.copies)
        try tx.assets.updateSize(asset, size: identity.size, modified: identity.modified)
        // The first bytes of this version must not be those of the earlier one.
        for upload in try tx.uploads.of(asset) where upload.state == .staging {
            try tx.transitions.forgetProgress(of: upload)
            try tx.connection.run("UPDATE upload SET approved = NULL WHERE id = ?1", [.text(upload.id)])
        }
        try tx.tombstones.insert(identity, asset: asset)
        return .renewed(asset: asset)
    }
}

extension Transaction {
    package var arrivals: Arrivals<Access> { Arrivals(tx: self) }
}
