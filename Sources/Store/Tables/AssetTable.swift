internal import Core

/// SQL: the position of an asset among those that wait to be copied.
let sortOfFirstUpload =
    "coalesce((SELECT sort FROM upload WHERE upload.asset = asset.id ORDER BY id LIMIT 1), sort)"

/// Rows of `asset`: one for each version of a file that was recorded.
package struct AssetTable<Access> {
    let tx: Transaction<Access>

    package func find(_ id: Int64) throws -> AssetRecord? {
        try tx.connection.first("SELECT \(AssetRecord.columns) FROM asset WHERE id = ?1", [.integer(id)]) {
            AssetRecord($0, 0)
        }
    }

    /// Those of a path that are to be copied or to settle again, oldest first. Files of several disks may have the path.
    func waiting(at relative: FilePath, in folder: String) throws(StoreError) -> [AssetRecord] {
        try tx.connection.all(
            """
            SELECT \(AssetRecord.columns) FROM asset INDEXED BY asset_relative
            WHERE relative = ?1 AND folder = ?2 AND state IN ('arrived', 'unsettled') ORDER BY id
            """, [.blob(relative.bytes), .text(folder)]
        ) { AssetRecord($0, 0) }
    }

    /// Whether a copy of the asset was ever complete.
    func wasCopied(_ id: Int64) throws(StoreError) -> Bool {
        try tx.connection.first("SELECT staged_at IS NOT NULL FROM asset WHERE id = ?1", [.integer(id)]) {
            $0.integer(0) == 1
        } ?? false
    }

    /// Whether a later version of the asset's file was recorded. A file of another disk with its path is none.
    package func hasNewerVersion(_ asset: AssetRecord) throws -> Bool {
        let later = try tx.connection.all(
            """
            SELECT \(AssetRecord.columns) FROM asset INDEXED BY asset_relative
            WHERE relative = ?1 AND folder = ?2 AND id > ?3
            """, [.blob(asset.identity.relative.bytes), .text(asset.folder), .integer(asset.id)]
        ) { AssetRecord($0, 0) }
        return later.contains {
            !$0.identity.isSameVersion(as: asset.identity) && !$0.identity.isOnOtherDisk(than: asset.identity)
        }
    }

    /// The number of those that travel together with an asset, and the name by which they are reported as one.
    func unit(of id: Int64) throws(StoreError) -> (number: Int64, group: FilePath?)? {
        try tx.connection.first("SELECT unit, group_name FROM asset WHERE id = ?1 AND unit IS NOT NULL", [.integer(id)])
        {
            ($0.integer(0), $0.optionalBlob(1).map { FilePath(bytes: $0) })
        }
    }

    /// The given names in the staging folder that belong to an asset which needs them.
    package func owned(_ names: [Int64]) throws -> Set<Int64> {
        var owned: Set<Int64> = []
        // Numbers are close together when the copies were made together: a range of the table costs less than a search
        // for each.
        if let first = names.min(), let last = names.max(), last - first < 8 * Int64(names.count) {
            let wanted = Set(names)
            try tx.connection.query(
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
            let state = try tx.connection.first("SELECT state FROM asset WHERE id = ?1", [.integer(name)]) {
                $0.text(0)
            }
            if let state, AssetState.ownsCopy(state) { owned.insert(name) }
        }
        return owned
    }

    /// The given assets that exist.
    package func existing(_ assets: [Int64]) throws -> Set<Int64> {
        var recorded: Set<Int64> = []
        for asset in assets {
            let isThere = try tx.connection.first(
                "SELECT 1 FROM asset WHERE id = ?1 UNION SELECT 1 FROM reception WHERE asset = ?1", [.integer(asset)]
            ) { _ in true }
            if isThere == true { recorded.insert(asset) }
        }
        return recorded
    }

    /// The highest number that an asset has or had.
    package func lastNumber() throws(StoreError) -> Int64 {
        try tx.connection.first("SELECT seq FROM sqlite_sequence WHERE name = 'asset'") { $0.integer(0) } ?? 0
    }
}

extension AssetTable where Access == Writing {
    /// - Parameter number: The number to give it; `nil` for the next.
    func insert(_ arrival: NewAsset, numbered number: Int64? = nil) throws -> Int64 {
        let (file, identity) = (arrival.file, arrival.file.identity)
        let (action, target): (String, String?) =
            switch arrival.action {
            case .keep: ("keep", nil)
            case .leave: ("leave", nil)
            case .delete: ("delete", nil)
            case .move(let template): ("move", template.source)
            }
        try tx.connection.run(
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
                .integer(Int64(arrival.priority)), .integer(tx.clocks.wall().milliseconds), .init(number),
                .text(arrival.stagingMode.rawValue),
                .integer(
                    tx.session.sortKey(
                        identity.folder, arrival.orders.first?.destination ?? "", size: identity.size,
                        modified: identity.modified)),
            ])
        tx.session.facts.changes.formUnion([.arrivals, .copies])
        return tx.connection.lastRow
    }

    func join(_ unit: (number: Int64, group: FilePath?), _ asset: Int64) throws(StoreError) {
        try tx.connection.run(
            "UPDATE asset SET unit = ?2, group_name = ?3 WHERE id = ?1",
            [.integer(asset), .integer(unit.number), .init(unit.group?.bytes)])
    }

    /// Takes an asset out of its unit, so that its end is not the unit's: another version takes its place there.
    func leaveUnit(_ asset: Int64) throws(StoreError) -> (number: Int64, group: FilePath?)? {
        guard let unit = try unit(of: asset) else { return nil }
        try tx.connection.run("UPDATE asset SET unit = NULL, group_name = NULL WHERE id = ?1", [.integer(asset)])
        return unit
    }

    /// Updates the uploads of an asset that wait for its copy to a changed size or time.
    func updateSize(_ asset: Int64, size: Int64, modified: Int64) throws {
        for upload in try tx.uploads.of(asset) where upload.state == .staging {
            try tx.connection.run(
                "UPDATE upload SET size = ?2, modified = ?3, sort = ?4 WHERE id = ?1",
                [
                    .text(upload.id), .integer(size), .integer(modified),
                    .integer(tx.session.sortKey(upload.folder, upload.destination, size: size, modified: modified)),
                ])
            try tx.masks.update(upload.id)
        }
        try tx.connection.run("UPDATE asset SET sort = \(sortOfFirstUpload) WHERE id = ?1", [.integer(asset)])
    }

    /// Drops the copy that was to be made, unless another upload waits for it.
    func dropUnneededCopy(_ asset: Int64) throws {
        try tx.connection.run(
            """
            UPDATE asset SET state = 'dropped' WHERE id = ?1 AND state IN ('arrived', 'unsettled') AND NOT EXISTS
            (SELECT 1 FROM upload WHERE asset = ?1 AND state = 'staging')
            """, [.integer(asset)])
        if tx.connection.changes > 0 { tx.session.facts.changes.insert(.copies) }
    }

    /// Records that the source of an asset that is uploaded in place has another ctime, and the same content.
    package func recordVerified(_ asset: Int64, changed: Int64) throws {
        try tx.connection.run(
            "UPDATE asset SET changed = ?2 WHERE id = ?1 AND keeping = 'in-place'",
            [.integer(asset), .integer(changed)])
    }

    func setLastNumber(_ number: Int64) throws(StoreError) {
        try tx.connection.run("UPDATE sqlite_sequence SET seq = ?1 WHERE name = 'asset'", [.integer(number)])
        if tx.connection.changes == 0 {
            try tx.connection.run("INSERT INTO sqlite_sequence (name, seq) VALUES ('asset', ?1)", [.integer(number)])
        }
    }

    /// Ensures that no new asset gets a number up to this one: copies and caught sources have these numbers in their
    /// names.
    package func reserveNumbers(upTo number: Int64) throws {
        if try lastNumber() < number { try setLastNumber(number) }
    }
}

extension Transaction {
    package var assets: AssetTable<Access> { AssetTable(tx: self) }
}

extension AssetState {
    /// Whether an asset whose stored state is `word` counts on its copy. If this program does not know the state, the
    /// copy may be all that is left of the file.
    fileprivate static func ownsCopy(_ word: String) -> Bool {
        AssetState(rawValue: word).map { $0 == .staged } ?? true
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
        let settledBy = SettleProof(rawValue: row.text(at + 10))
        let state = AssetState(rawValue: row.text(at + 11))
        let sourceState = SourceState(rawValue: row.text(at + 15))
        let stagingMode = StagingMode(rawValue: row.text(at + 18))
        self.init(
            id: row.integer(at), folder: row.text(at + 1), root: FilePath(bytes: row.blob(at + 2)),
            identity: FileIdentity(
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
