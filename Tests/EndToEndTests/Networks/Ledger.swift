import CSQLite
import Core
import Linux
import TestKit

/// Reads the daemon's database without the daemon's own code.
enum Ledger {
    /// SQLite's own check of every database in the state folder: `ok`, or the errors.
    static func integrity(of state: FilePath) throws -> [String] {
        var opinions: [String] = []
        for name in try Files.names(in: state) {
            let path = state.appending(name)
            // The last program to close a database removes its log, and here this is the test.
            guard let status = try FileStatus.ifPresent(at: path), status.isRegular, try beginsLikeADatabase(path)
            else {
                continue
            }
            opinions += answer("PRAGMA integrity_check", of: path)
            opinions += answer("PRAGMA foreign_key_check", of: path).map { "foreign key: \($0)" }
        }
        return opinions
    }

    /// A file as recorded by the daemon.
    struct Asset {
        let id: Int64
        let relative: FilePath
        let size: Int64
        /// Distinguishes this version of the file from others.
        let version: String
        let isStaged: Bool
        /// In hexadecimal; `nil` while it has no copy.
        let digest: String?
    }

    /// All files in the order of their arrival. The daemon may be running.
    static func assets(of state: FilePath) throws -> [Asset] {
        for name in try Files.names(in: state) where name.fileExtension != "lock" {
            let path = state.appending(name)
            guard try FileStatus.ifPresent(at: path)?.isRegular == true, try beginsLikeADatabase(path) else { continue }
            return try answer(
                """
                SELECT id || ' ' || hex(relative) || ' ' || size || ' ' || modified || '/' || coalesce(inode, '') || ' '
                || state || ' ' || coalesce(lower(hex(sha256)), '') FROM asset ORDER BY id
                """, of: path
            ).map { row in
                let fields = row.split(separator: " ", omittingEmptySubsequences: false)
                guard fields.count == 6, let id = Int64(fields[0]), let size = Int64(fields[2]) else {
                    throw Unreadable(row: row)
                }
                return Asset(
                    id: id, relative: FilePath(bytes: bytes(fields[1])), size: size,
                    version: "\(fields[2])/\(fields[3])", isStaged: fields[4] == "staged",
                    digest: fields[5].isEmpty ? nil : String(fields[5]))
            }
        }
        return []
    }

    /// Files with an upload that is recorded as completed.
    static func completed(of state: FilePath) throws -> Set<FilePath> {
        Set(
            try answer(
                "SELECT hex(relative) FROM asset JOIN upload ON upload.asset = asset.id WHERE upload.state = 'completed'",
                ofCopy: state
            ).map { FilePath(bytes: bytes($0[...])) })
    }

    /// The recorded names of cards.
    static func cards(of state: FilePath) throws -> [String] {
        try answer("SELECT name FROM card ORDER BY name", ofCopy: state)
    }

    /// Reads a copy, so that the next daemon finds the state as it was left.
    private static func answer(_ sql: String, ofCopy state: FilePath) throws -> [String] {
        let copy = TemporaryFolder()
        for name in try Files.names(in: state) where name.fileExtension != "lock" {
            let path = state.appending(name)
            guard try FileStatus.ifPresent(at: path)?.isRegular == true else { continue }
            _ = try copy.write(name, try Files.read(path, limit: 1 << 30))
        }
        for name in try Files.names(in: copy.path) {
            let path = copy.path.appending(name)
            guard try beginsLikeADatabase(path) else { continue }
            return answer(sql, of: path)
        }
        return []
    }

    struct Unreadable: Error { let row: String }

    private static func bytes(_ hex: Substring) -> [UInt8] {
        let digits = hex.utf8.map { $0 < 65 ? $0 - 48 : $0 - 55 }
        return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
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
