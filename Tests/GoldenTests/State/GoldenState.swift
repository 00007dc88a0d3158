import Core
import Linux
import TestKit

@testable import Store

/// A copy of the recorded state.
extension GoldenScene {
    /// Puts the copy in place. The clocks of the programs then go on a minute after the recording.
    ///
    /// - Parameter server: Started when its folder is there, and before the database names its address.
    func load(before server: (() async throws -> Void)? = nil) async throws {
        let moment = Int64(try fixture("moment").filter(\.isNumber)) ?? 0
        clock = (moment - SystemClocks().wall().milliseconds) / 1000 + 60
        try await shell(
            "cd \"$1\"; for name in staging received archive; do tar -xzf \"$2/$name.tar.gz\"; done",
            [root.display, Self.fixtures.display])
        try await server?()
        let database = try Connection(path: state.appending("sluice.db"))
        defer { database.close() }
        try database.execute("PRAGMA journal_mode = WAL")
        try database.execute(filled(try fixture("state.sql")))
        try database.execute(filled(try fixture("more.sql")))
    }

    /// Opens the database for `body`, while no daemon uses it.
    func withDatabase<R>(_ body: (Connection) throws -> R) throws -> R {
        let database = try Connection(path: state.appending("sluice.db"))
        defer { database.close() }
        return try body(database)
    }

    /// Rows as text, each with its columns.
    func rows(_ question: String) throws -> [String] {
        try withDatabase { database in
            try database.query(question) { row throws(StoreError) in
                var rows: [String] = []
                while try row.next() { rows.append(row.text(0)) }
                return rows
            }
        }
    }

    func columns(of name: String) throws -> [String] { try rows("SELECT name FROM pragma_table_info('\(name)')") }

    /// The rows of a table, all columns of each in one text, without those in `left`.
    ///
    /// - Parameter columns: Its columns; all that it has by default.
    func table(_ name: String, _ columns: [String]? = nil, without left: Set<String> = []) throws -> Set<String> {
        let columns = try (columns ?? self.columns(of: name)).filter { !left.contains($0) }
        let asked = columns.map { "'\($0)=' || ifnull(quote(\($0)), '')" }.joined(separator: " || ' ' || ")
        return Set(try rows("SELECT \(asked) FROM \(name)"))
    }
}
