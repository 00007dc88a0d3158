import CSQLite
import Core
import Linux

/// Looks into the daemon's database without the daemon's own code.
enum Ledger {
    /// SQLite's own opinion of every database in the state folder: `ok`, or what is wrong.
    static func integrity(of state: FilePath) throws -> [String] {
        var opinions: [String] = []
        for name in try Files.names(in: state) {
            let path = state.appending(name)
            // Whoever closes a database last removes its log, and here that is us.
            guard let look = try FileLook.ifPresent(at: path), look.isRegular, try beginsLikeADatabase(path) else {
                continue
            }
            opinions += answer("PRAGMA integrity_check", of: path)
            opinions += answer("PRAGMA foreign_key_check", of: path).map { "foreign key: \($0)" }
        }
        return opinions
    }

    private static func beginsLikeADatabase(_ path: FilePath) throws -> Bool {
        var start = [UInt8](repeating: 0, count: 16)
        let got = try Descriptor.open(path, for: .reading).read(into: &start, named: path)
        return got == 16 && start.starts(with: "SQLite format 3".utf8)
    }

    private static func answer(_ sql: String, of path: FilePath) -> [String] {
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        let opened = path.withCString { sqlite3_open_v2($0, &database, SQLITE_OPEN_READWRITE, nil) }
        guard opened == SQLITE_OK else { return ["cannot open \(path): \(opened)"] }
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        guard sqlite3_prepare_v2(database, sql, -1, &statement, nil) == SQLITE_OK else {
            return [String(cString: sqlite3_errmsg(database))]
        }
        var rows: [String] = []
        while sqlite3_step(statement) == SQLITE_ROW {
            rows.append(sqlite3_column_text(statement, 0).map { String(cString: $0) } ?? "NULL")
        }
        return rows
    }
}
