package import Core

/// Rows of `reception`: files that a client sends in. They are recorded only when they are whole and durable.
package struct ReceptionTable<Access> {
    let tx: Transaction<Access>

    func hasRows() throws -> Bool {
        try tx.connection.first("SELECT 1 FROM reception LIMIT 1") { _ in true } ?? false
    }
}

extension ReceptionTable where Access == Writing {
    func endAll() throws { try tx.connection.run("DELETE FROM reception") }

    /// Reserves the numbers of a future asset and its uploads. Durable: a file with such a number that is found after a
    /// crash, and is no asset, is incomplete and was promised to no client.
    package func begin(uploads count: Int) throws -> (asset: Int64, uploads: [String]) {
        let number = try tx.assets.lastNumber() + 1
        try tx.assets.setLastNumber(number)
        try tx.connection.run("INSERT INTO reception VALUES (?1)", [.integer(number)])
        return (number, (0..<count).map { _ in tx.session.newUploadID() })
    }

    /// The reception failed, and no file of it is left in the staging folder.
    package func end(_ asset: Int64) throws {
        try tx.connection.run("DELETE FROM reception WHERE asset = ?1", [.integer(asset)])
    }

    /// Records a file whose bytes are whole and durable in the staging folder: an asset that is *staged* from the
    /// start, with its uploads. One transaction, and no tombstone, since no scan can find it.
    ///
    /// - Parameter isKeyOnce: Whether an ended upload with the key counts too.
    /// - Returns: The ongoing upload that has got the key meanwhile; `nil` when the file is recorded.
    package func record(
        _ arrival: NewAsset, as number: Int64, uploads ids: [String], sha256: [UInt8], facts: MediaFacts,
        isKeyOnce: Bool = false
    ) throws -> String? {
        if let holder = try tx.uploads.keyHolder(arrival.orders, orEnded: isKeyOnce) { return holder }
        let asset = try tx.assets.insert(arrival, numbered: number)
        for (order, id) in zip(arrival.orders, ids) {
            _ = try tx.uploads.insert(order, of: asset, arrival, numbered: id)
        }
        try tx.connection.run("DELETE FROM reception WHERE asset = ?1", [.integer(asset)])
        _ = try tx.staging.record([StagedCopy(asset: asset, sha256: sha256)], facts: [asset: facts])
        return nil
    }
}

extension Transaction {
    package var receptions: ReceptionTable<Access> { ReceptionTable(tx: self) }
}
