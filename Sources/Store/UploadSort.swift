/// The order of uploads of the same priority, as SQL over a row of `upload`: lower goes first.
package struct UploadSort: Sendable {
    let name: String
    let expression: String

    package static let newestFirst = UploadSort(name: "newest-first", expression: "-modified")
    package static let oldestFirst = UploadSort(name: "oldest-first", expression: "modified")
    package static let smallestFirst = UploadSort(name: "smallest-first", expression: "size")
    package static let largestFirst = UploadSort(name: "largest-first", expression: "-size")

    func value(size: Int64, modified: Int64) -> Int64 {
        switch name {
        case "newest-first": -modified
        case "oldest-first": modified
        case "smallest-first": size
        default: -size
        }
    }
}

extension Store {
    /// Sorts what is to come anew, and what comes from now on by the same order. Durable when it returns.
    package func sort(by sorting: UploadSort) async throws {
        guard sorting.name != self.sorting.name || !isSorted else { return }
        let before = self.sorting
        // At once, so that a row that is recorded between two pieces has the new order too.
        self.sorting = sorting
        do { try await sortWaiting() } catch {
            self.sorting = before
            throw error
        }
    }

    /// Sorts what waits by ``sorting``, unless it is.
    ///
    /// A piece at a time: what a transaction could take back is held in memory, and a million uploads are too many.
    /// Claims in between see some in the old order and some in the new one.
    func sortWaiting() async throws {
        let order = try connection.first("SELECT value FROM setting WHERE name = 'order'") { $0.text(0) }
        if order == sorting.name {
            isSorted = true
            return
        }
        isSorted = false
        var last: String? = ""
        while let after = last { last = try await change { try self.sortPiece(after: after, $0) } }
        try await change { connection in
            try connection.run("INSERT OR REPLACE INTO setting VALUES ('order', ?1)", [.text(self.sorting.name)])
        }
        isSorted = true
    }

    private static let sortedAtOnce = 2_000

    /// - Returns: The last id of the piece; `nil` when there are no more behind it.
    private func sortPiece(after id: String, _ connection: Connection) throws -> String? {
        // Without it the next start begins from the front, should this one not come to its end.
        if id.isEmpty { try connection.run("DELETE FROM setting WHERE name = 'order'") }
        let last = try connection.first(
            "SELECT id FROM upload WHERE id > ?1 ORDER BY id LIMIT 1 OFFSET \(Self.sortedAtOnce - 1)", [.text(id)]
        ) { $0.text(0) }
        // Behind every id: their alphabet ends with Z.
        let end = last ?? "["
        try connection.run(
            """
            UPDATE upload SET sort = \(sorting.expression) WHERE id > ?1 AND id <= ?2
            AND state IN ('staging', 'queued', 'uploading', 'failed')
            """, [.text(id), .text(end)])
        return last
    }
}
