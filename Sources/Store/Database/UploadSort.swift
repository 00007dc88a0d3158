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

    /// The share of a file that waits for a destination; `nil` where the order is not mixed.
    func share(of files: FileClass, to destination: String, _ questions: FileQuestions) -> FolderTurns.Share? {
        if ordering(of: files.folder, to: destination) != .mixed { return nil }
        return questions.answers(in: files.mask).answer(to: UploadOrdering.isSmall) == true ? .small : .other
    }

    func share(ofSize size: Int64) -> FolderTurns.Share {
        UploadOrdering.isSmall.answer(of: FileFacts(size: size, kind: .other, duration: nil)) == true ? .small : .other
    }

    /// Whether small files of a folder are copied in turn with all others: its order is mixed on the way to at least
    /// one destination.
    func copiesInTurn(from folder: String) -> Bool {
        if let own = folders[folder] { return own == .mixed }
        return policy == .mixed || destinations.values.contains(.mixed)
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
        case .newestFirst, .mixed: "-modified"
        case .oldestFirst: "modified"
        case .smallestFirst: "size"
        case .largestFirst: "-size"
        }
    }
}

/// The stored order of waiting uploads. Changing it takes several transactions: SQLite holds in memory everything that
/// a transaction could undo, and a million uploads are too many.
package struct SortMigration<Access> {
    let tx: Transaction<Access>

    /// The name of the order in which all waiting uploads are; `nil` during a change of the order.
    func name() throws -> String? { try tx.settings.value("order") }
}

extension SortMigration where Access == Writing {
    /// Records that all waiting uploads have the current order.
    func recordSorted() throws { try tx.settings.set("order", tx.session.sorting.name) }

    /// Sorts the next uploads.
    ///
    /// - Parameter id: The last id that is sorted; empty at the beginning.
    /// - Returns: The last id of these; `nil` when there are no more after it.
    func sortNext(after id: String) throws -> String? {
        // Without it the next start begins from the front, if this one does not finish.
        if id.isEmpty { try tx.settings.remove("order") }
        let last = try tx.connection.first(
            "SELECT id FROM upload WHERE id > ?1 ORDER BY id LIMIT 1 OFFSET \(sortedAtOnce - 1)", [.text(id)]
        ) { $0.text(0) }
        // Sorts after every id: their alphabet ends with Z.
        let end = last ?? "["
        try tx.connection.run(
            """
            UPDATE upload SET sort = \(tx.session.sorting.expression) WHERE id > ?1 AND id <= ?2
            AND state IN ('staging', 'queued', 'uploading', 'failed')
            """, [.text(id), .text(end)])
        try tx.connection.run(
            """
            UPDATE asset SET sort = \(sortOfFirstUpload) WHERE state IN ('arrived', 'unsettled')
            AND id IN (SELECT asset FROM upload WHERE id > ?1 AND id <= ?2 AND state = 'staging')
            """, [.text(id), .text(end)])
        return last
    }
}

private let sortedAtOnce = 2_000

extension Transaction {
    var order: SortMigration<Access> { SortMigration(tx: self) }
}
