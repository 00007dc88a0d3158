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
                let earlier = try tx.connection.first(
                    """
                    SELECT id, unit FROM asset INDEXED BY asset_relative WHERE relative = ?1 AND folder = ?2
                    ORDER BY id DESC LIMIT 1
                    """, [.blob(leader.bytes), .text(arrival.file.folder)]
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
            try tx.connection.run(
                "UPDATE asset SET unit = ?2, group_name = ?3 WHERE id = ?1",
                [.integer(asset), .integer(first), .init(arrival.group?.bytes)])
        }
    }

    private func record(_ arrival: NewAsset) throws -> NewAssetOutcome {
        let identity = arrival.file.identity
        let place: [Connection.Value] = [.text(identity.folder), .blob(identity.relative.bytes)]
        // If an asset was recorded for this path and changed before its copy was made, it continues as the same asset. A
        // file of another disk is no version of it, and gets an asset of its own.
        let waiting = try tx.connection.all(
            """
            SELECT id, state = 'arrived' AND size = ?3 AND modified = ?4 AND changed = ?5, file_system FROM asset
            WHERE folder = ?1 AND relative = ?2 AND state IN ('arrived', 'unsettled') ORDER BY id DESC
            """,
            place + [.integer(identity.size), .integer(identity.modified), .integer(arrival.file.status.changed)]
        ) { (id: $0.integer(0), isSame: $0.integer(1) == 1, fileSystem: $0.optionalText(2)) }
        .first { !FileIdentity.areOtherDisks($0.fileSystem, identity.fileSystem) }
        // Nothing has changed: its copy is still to be made.
        if let waiting, waiting.isSame, !arrival.again { return .known }
        if let waiting = waiting?.id {
            try tx.connection.run(
                """
                UPDATE asset SET state = 'arrived', size = ?2, modified = ?3, changed = ?4, inode = ?5, born = ?6,
                file_system = ?7, settled_by = ?8 WHERE id = ?1
                """,
                [
                    .integer(waiting), .integer(identity.size), .integer(identity.modified),
                    .integer(arrival.file.status.changed), .init(identity.inode.map { Int64(bitPattern: $0) }),
                    .init(identity.born), .init(identity.fileSystem), .text(arrival.file.settledBy.rawValue),
                ])
            tx.session.facts.changes.insert(.copies)
            try tx.assets.updateSize(waiting, size: identity.size, modified: identity.modified)
            // The first bytes of this version must not be those of the earlier one.
            for upload in try tx.uploads.of(waiting) where upload.state == .staging {
                try tx.transitions.forgetProgress(of: upload)
            }
            try tx.tombstones.insert(identity, asset: waiting)
            return .renewed(asset: waiting)
        }
        let stones = try tx.tombstones.candidates(for: identity)
        let same = stones.first { $0.identity.isSameVersion(as: identity) }
        // A file that was only skipped, because it existed before or was empty, may be added by a person: it was never
        // sent.
        let isOnlySkipped = same?.wasRecorded == false && arrival.file.settledBy == .added
        if same != nil && !arrival.again && !isOnlySkipped { return .known }
        // Before the keys are checked: the earlier version may hold the key of this one.
        try tx.transitions.endSuperseded(by: identity)
        if let holder = try tx.uploads.keyHolder(arrival.orders) { return .keyTaken(holder) }
        let asset = try tx.assets.insert(arrival)
        let uploads = try arrival.orders.map { try tx.uploads.insert($0, of: asset, arrival) }
        try tx.tombstones.insert(identity, asset: asset)
        let isNewVersion =
            same == nil && stones.contains { $0.wasRecorded && !$0.identity.isOnOtherDisk(than: identity) }
        return isNewVersion
            ? .newVersion(asset: asset, uploads: uploads) : .recorded(asset: asset, uploads: uploads)
    }
}

extension Transaction {
    package var arrivals: Arrivals<Access> { Arrivals(tx: self) }
}
