package import Core

// Files that a client sends in: they are recorded only when they are whole and durable.

extension Store {
    /// Reserves the numbers of a future asset and its uploads. Durable: a file with such a number that is found after a
    /// crash, and is no asset, is incomplete and was promised to no client.
    package func beginReception(uploads count: Int) async throws -> (asset: Int64, uploads: [String]) {
        try await change { connection in
            let number = try self.lastAsset() + 1
            try self.setLastAsset(number, connection)
            try connection.run("INSERT INTO reception VALUES (?1)", [.integer(number)])
            return (number, (0..<count).map { _ in self.newID() })
        }
    }

    /// The reception failed, and no file of it is left in the staging folder.
    package func endReception(_ asset: Int64) async throws {
        try await change { connection in
            try connection.run("DELETE FROM reception WHERE asset = ?1", [.integer(asset)])
        }
    }

    /// Forgets receptions of an earlier run, whose files were swept.
    package func forgetReceptions() async throws {
        let isAny = try connection.first("SELECT 1 FROM reception LIMIT 1") { _ in true } ?? false
        if isAny { try await change { connection in try connection.run("DELETE FROM reception") } }
    }

    /// Records a file whose bytes are whole and durable in the staging folder: an asset that is *staged* from the
    /// start, with its uploads. One transaction, and no tombstone, since no scan can find it.
    ///
    /// - Returns: The ongoing upload that has got the key meanwhile; `nil` when the file is recorded.
    package func receive(
        _ arrival: NewAsset, as number: Int64, uploads ids: [String], sha256: [UInt8], facts: MediaFacts
    ) async throws -> String? {
        try await change { connection in
            if let holder = try self.keyHolder(arrival.orders) { return holder }
            let asset = try self.insert(arrival, numbered: number, connection)
            for (order, id) in zip(arrival.orders, ids) {
                _ = try self.insert(order, of: asset, arrival, numbered: id, connection)
            }
            try connection.run("DELETE FROM reception WHERE asset = ?1", [.integer(asset)])
            _ = try self.stage([Copied(asset: asset, sha256: sha256)], facts: [asset: facts], connection)
            return nil
        }
    }

    /// The highest number that an asset has or had.
    func lastAsset() throws(StoreError) -> Int64 {
        try connection.first("SELECT seq FROM sqlite_sequence WHERE name = 'asset'") { $0.integer(0) } ?? 0
    }

    func setLastAsset(_ number: Int64, _ connection: Connection) throws(StoreError) {
        try connection.run("UPDATE sqlite_sequence SET seq = ?1 WHERE name = 'asset'", [.integer(number)])
        if connection.changes == 0 {
            try connection.run("INSERT INTO sqlite_sequence (name, seq) VALUES ('asset', ?1)", [.integer(number)])
        }
    }
}
