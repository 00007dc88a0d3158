package import Core

/// The order of uploads of the same folder, destination and priority. The folder's own order counts first, then the
/// destination's, then that of `policy`.
package struct UploadSort: Hashable, Sendable {
    private let policy: UploadOrdering
    private let destinations: [String: UploadOrdering]
    private let folders: [String: UploadOrdering]

    package static let newestFirst = UploadSort(.newestFirst)
    package static let oldestFirst = UploadSort(.oldestFirst)
    package static let smallestFirst = UploadSort(.smallestFirst)
    package static let largestFirst = UploadSort(.largestFirst)

    package init(
        _ policy: UploadOrdering, destinations: [String: UploadOrdering] = [:], folders: [String: UploadOrdering] = [:]
    ) {
        self.policy = policy
        self.destinations = destinations
        self.folders = folders
    }

    func ordering(of folder: String, to destination: String) -> UploadOrdering {
        folders[folder] ?? destinations[destination] ?? policy
    }

    /// The name that is stored in the database; if the order is the same everywhere, only its bare name.
    var name: String {
        func list(_ what: String, _ orders: [String: UploadOrdering]) -> [String] {
            orders.sorted { $0.key < $1.key }.map { "\(what) \($0.key) \($0.value.rawValue)" }
        }
        return ([policy.rawValue] + list("destination", destinations) + list("folder", folders)).joined(separator: "\n")
    }

    /// SQL over a row of `upload`: a lower value goes first.
    fileprivate var expression: String {
        Self.choice("folder", folders, else: Self.choice("destination", destinations, else: policy.expression))
    }

    private static func choice(_ column: String, _ orders: [String: UploadOrdering], else other: String) -> String {
        if orders.isEmpty { return other }
        let cases = orders.sorted { $0.key < $1.key }.map { "WHEN \(literal($0.key)) THEN \($0.value.expression)" }
        return "CASE \(column) \(cases.joined(separator: " ")) ELSE \(other) END"
    }

    /// A text literal in SQL (https://www.sqlite.org/lang_expr.html#literal_values_constants_): only quotes have a
    /// meaning.
    private static func literal(_ text: String) -> String {
        "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''") + "'"
    }
}

extension UploadOrdering {
    fileprivate var expression: String {
        switch self {
        case .newestFirst: "-modified"
        case .oldestFirst: "modified"
        case .smallestFirst: "size"
        case .largestFirst: "-size"
        }
    }
}

extension Store {
    /// The position of an upload among those of its folder to its destination.
    func place(_ folder: String, _ destination: String, size: Int64, modified: Int64) -> Int64 {
        sorting.ordering(of: folder, to: destination).value(size: size, modified: modified)
    }

    /// Updates the uploads of an asset that wait for its copy to a changed size or time.
    func measure(_ asset: Int64, size: Int64, modified: Int64) throws {
        for upload in try uploads(of: asset) where upload.state == .staging {
            try connection.run(
                "UPDATE upload SET size = ?2, modified = ?3, sort = ?4 WHERE id = ?1",
                [
                    .text(upload.id), .integer(size), .integer(modified),
                    .integer(place(upload.folder, upload.destination, size: size, modified: modified)),
                ])
        }
        try connection.run("UPDATE asset SET sort = \(Self.sortOfFirst) WHERE id = ?1", [.integer(asset)])
    }

    /// SQL: the position of an asset among those that wait to be copied.
    private static let sortOfFirst =
        "coalesce((SELECT sort FROM upload WHERE upload.asset = asset.id ORDER BY id LIMIT 1), sort)"

    /// Sorts all waiting uploads again, and later ones by the same order. Durable when it returns.
    package func sort(by sorting: UploadSort) async throws {
        guard sorting != self.sorting || !isSorted else { return }
        let before = self.sorting
        // At once, so that a row that is recorded between two pieces has the new order too.
        self.sorting = sorting
        do { try await sortWaiting() } catch {
            self.sorting = before
            throw error
        }
    }

    /// Sorts the waiting uploads by ``sorting``, unless they are sorted.
    ///
    /// Works in pieces: SQLite holds in memory everything that a transaction could undo, and a million uploads are too
    /// many. Claims in between see some in the old order and some in the new one.
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

    /// - Returns: The last id of the piece; `nil` when there are no more after it.
    private func sortPiece(after id: String, _ connection: Connection) throws -> String? {
        // Without it the next start begins from the front, if this one does not finish.
        if id.isEmpty { try connection.run("DELETE FROM setting WHERE name = 'order'") }
        let last = try connection.first(
            "SELECT id FROM upload WHERE id > ?1 ORDER BY id LIMIT 1 OFFSET \(Self.sortedAtOnce - 1)", [.text(id)]
        ) { $0.text(0) }
        // Sorts after every id: their alphabet ends with Z.
        let end = last ?? "["
        try connection.run(
            """
            UPDATE upload SET sort = \(sorting.expression) WHERE id > ?1 AND id <= ?2
            AND state IN ('staging', 'queued', 'uploading', 'failed')
            """, [.text(id), .text(end)])
        try connection.run(
            """
            UPDATE asset SET sort = \(Self.sortOfFirst) WHERE state IN ('arrived', 'unsettled')
            AND id IN (SELECT asset FROM upload WHERE id > ?1 AND id <= ?2 AND state = 'staging')
            """, [.text(id), .text(end)])
        return last
    }
}
