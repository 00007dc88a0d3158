internal import Core

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
            if units[unit] == nil, let leader = arrival.joins {
                let earlier = try tx.connection.all(
                    """
                    SELECT id, unit, file_system FROM asset INDEXED BY asset_relative WHERE relative = ?1 AND folder = ?2
                    ORDER BY id DESC
                    """, [.blob(leader.bytes), .text(arrival.file.folder)]
                ) { (unit: $0.optionalInteger(1) ?? $0.integer(0), disk: $0.optionalText(2)) }
                .first { !FileIdentity.areOtherDisks($0.disk, arrival.file.identity.fileSystem) }?.unit
                // A group that was reported is over: in a directory that is used for years it would grow without end.
                let isOver = try earlier.map { try arrival.group != nil && tx.releases.isOver($0) } ?? true
                if let first = earlier, !isOver {
                    units[unit] = first
                    try tx.connection.run("UPDATE asset SET unit = ?1 WHERE id = ?1", [.integer(first)])
                }
            }
            let first = units[unit] ?? asset
            units[unit] = first
            try tx.connection.run(
                "UPDATE asset SET unit = ?2, group_name = ?3 WHERE id = ?1",
                [.integer(asset), .integer(first), .init(arrival.group?.bytes)])
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
            if waiting.identity.isSameVersion(as: identity) { return try renew(waiting.id, as: arrival, adding: []) }
            if same == nil, let missing = try missingUploads(of: waiting, for: arrival) {
                if let holder = try tx.uploads.keyHolder(missing) { return .keyTaken(holder) }
                return try renew(waiting.id, as: arrival, adding: missing)
            }
        }
        // A file that was only skipped, because it existed before or was empty, may be added by a person: it was never
        // sent.
        let isOnlySkipped = same?.wasRecorded == false && arrival.file.settledBy == .added
        if same != nil && !arrival.again && !isOnlySkipped { return .known }
        // Before the keys are checked: the earlier version may hold the key of this one.
        try tx.transitions.endSuperseded(by: identity)
        if let waiting { try endWaiting(waiting, as: arrival) }
        if let holder = try tx.uploads.keyHolder(arrival.orders) { return .keyTaken(holder) }
        let asset = try tx.assets.insert(arrival)
        let uploads = try arrival.orders.map { try tx.uploads.insert($0, of: asset, arrival) }
        try tx.tombstones.insert(identity, asset: asset)
        let isNewVersion =
            same == nil && stones.contains { $0.wasRecorded && !$0.identity.isOnOtherDisk(than: identity) }
        return isNewVersion
            ? .newVersion(asset: asset, uploads: uploads)
            : .recorded(asset: asset, uploads: uploads)
    }

    /// Whether a file that changed before it was copied may continue as the same asset, and with which further uploads.
    ///
    /// - Returns: `nil` if a destination of the new version has, or may have, the earlier one: as the same asset, the new
    ///   one would never go there.
    private func missingUploads(of asset: AssetRecord, for arrival: NewAsset) throws -> [NewAsset.PlannedUpload]? {
        let uploads = try tx.uploads.of(asset.id)
        // An upload that a person cancelled before the first copy stays so, whatever is still written to the file.
        let wasCopied = try tx.assets.wasCopied(asset.id)
        var missing: [NewAsset.PlannedUpload] = []
        for order in arrival.orders {
            let own = uploads.filter { $0.destination == order.destination }
            if own.isEmpty { missing.append(order) }
            let mayGoOn = own.contains { $0.state == .staging || !wasCopied && $0.ending == .cancelled }
            if !own.isEmpty && !mayGoOn { return nil }
        }
        return missing
    }

    /// Ends the uploads of an earlier version that wait for its copy. What a person adds goes to the named destinations
    /// only: the others get the new version as the same asset.
    private func endWaiting(_ asset: AssetRecord, as arrival: NewAsset) throws {
        let isAdded = arrival.file.settledBy == .added
        try tx.transitions.endWaiting(of: asset, to: isAdded ? Set(arrival.orders.map(\.destination)) : nil)
        let rest = try tx.uploads.of(asset.id).contains { $0.state == .staging }
        if rest { _ = try renew(asset.id, as: arrival, adding: []) }
    }

    private func renew(
        _ asset: Int64, as arrival: NewAsset, adding orders: [NewAsset.PlannedUpload]
    ) throws -> NewAssetOutcome {
        let (file, identity) = (arrival.file, arrival.file.identity)
        try tx.connection.run(
            """
            UPDATE asset SET state = 'arrived', size = ?2, modified = ?3, changed = ?4, inode = ?5, born = ?6,
            file_system = ?7, settled_by = ?8 WHERE id = ?1
            """,
            [
                .integer(asset), .integer(identity.size), .integer(identity.modified), .integer(file.status.changed),
                .init(identity.inode.map { Int64(bitPattern: $0) }), .init(identity.born), .init(identity.fileSystem),
                .text(file.settledBy.rawValue),
            ])
        tx.session.facts.changes.insert(.copies)
        try tx.assets.updateSize(asset, size: identity.size, modified: identity.modified)
        // The first bytes of this version must not be those of the earlier one.
        for upload in try tx.uploads.of(asset) where upload.state == .staging {
            try tx.transitions.forgetProgress(of: upload)
        }
        for order in orders { _ = try tx.uploads.insert(order, of: asset, arrival) }
        try tx.tombstones.insert(identity, asset: asset)
        return .renewed(asset: asset)
    }
}

extension Transaction {
    package var arrivals: Arrivals<Access> { Arrivals(tx: self) }
}
