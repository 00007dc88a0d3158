internal import CSQLite
package import Core
internal import Linux

/// The database's files in the state folder, and the checks on them before SQLite opens them.
package enum StateFiles {
    package static let database: FilePath = "sluice.db"
    /// A new database that is being made. While it exists, no daemon starts: the old one may be half moved aside.
    static let rebuilt: FilePath = "sluice.db.rebuild"
    /// The new database of a trial; nothing depends on it.
    static let trial: FilePath = "sluice.db.trial"
    /// The files that SQLite keeps for a database: the database, its log, and the log's index.
    private static let companions = ["", "-wal", "-shm"]

    /// All files of the database `name`.
    static func files(of name: FilePath, in folder: FilePath) -> [FilePath] {
        companions.map { FilePath(bytes: folder.appending(name).bytes + Array($0.utf8)) }
    }

    static func remove(_ name: FilePath, in folder: FilePath) throws(SystemError) {
        for file in files(of: name, in: folder) { try Files.removeIfPresent(file) }
    }

    static func damaged(_ path: FilePath, _ what: String) -> UnusableStateError {
        UnusableStateError(database: path, error: StoreError(code: SQLITE_CORRUPT, message: what, sql: "open"))
    }

    /// Refuses files that SQLite would take for a new or an older database, so that a loss never looks like a first
    /// start.
    ///
    /// - Parameters:
    ///   - wasUsed: Whether there was a database here before.
    ///   - copies: Counts the whole copies in the staging folder, which can only come from a database. There may be a
    ///     million, so it is called only when it matters.
    ///   - isRebuilding: Whether the caller is the rebuild.
    static func check(at folder: FilePath, wasUsed: Bool, copies: () throws -> Int, isRebuilding: Bool = false) throws {
        let path = folder.appending(database)
        if try !isRebuilding && FileStatus.ifPresent(at: folder.appending(rebuilt)) != nil {
            throw damaged(path, "a rebuild of it was begun and not finished")
        }
        let log = files(of: database, in: folder)[1]
        let logSize = try FileStatus.ifPresent(at: log)?.size ?? 0
        guard let status = try FileStatus.ifPresent(at: path), status.size > 0 else {
            let what = try FileStatus.ifPresent(at: path) == nil ? "it is missing" : "it is empty"
            let copies = try copies()
            if copies > 0 { throw damaged(path, "\(what), but the staging folder holds \(copies) whole copies") }
            if wasUsed { throw damaged(path, "\(what), but there was one before") }
            if logSize > 0 { throw damaged(path, "\(what), but its log is there") }
            return
        }
        guard status.isRegular else { throw damaged(path, "it is no file") }
        let magic = Array("SQLite format 3\0".utf8)
        var head = [UInt8](repeating: 0, count: magic.count)
        let file = try Descriptor.open(path, for: .reading)
        let got = try head.withUnsafeMutableBytes { try file.read(into: $0, at: 0, named: path) }
        // A log may hold the first page of a database that was never written back.
        if got < magic.count || head != magic { throw damaged(path, "it is no database") }
        if logSize > 0, let problem = try WriteAheadLog.problem(of: log) { throw damaged(path, problem) }
    }

    /// The problem of the database in `folder`, found by reading all of it; `nil` when there is none. Changes nothing.
    package static func problem(in folder: FilePath, copies: () throws -> Int) throws -> String? {
        let path = folder.appending(database)
        do {
            try check(at: folder, wasUsed: true, copies: copies, isRebuilding: true)
            let connection = try Connection(path: path, asEvidence: true)
            defer { connection.close() }
            try Schema.verify(connection)
            let found = try connection.all("PRAGMA quick_check(1)") { $0.text(0) }
            return found == ["ok"] ? nil : found.first.map { "a check of its pages says: \(printable($0))" }
        } catch let error as UnusableStateError {
            return error.error.message
        } catch let error as StoreError {
            if error.isTransient && error.code & 0xFF != SQLITE_IOERR {
                throw UnusableStateError(database: path, error: error)
            }
            return error.message
        }
    }

    /// Why a start would refuse the database in `folder`, which a daemon may be using; `nil` where none is there, and where
    /// it may be used. Reads a few pages, and changes nothing.
    package static func refusal(in folder: FilePath) throws -> UnusableStateError? {
        let path = folder.appending(database)
        guard try FileStatus.ifPresent(at: path) != nil else { return nil }
        do throws(StoreError) {
            let connection = try Connection(path: path, asEvidence: true)
            defer { connection.close() }
            try Schema.verify(connection)
        } catch {
            // Other errors depend on who asks, and when.
            if error.isCorrupt || error.code == Schema.tooNew {
                return UnusableStateError(database: path, error: error)
            }
        }
        return nil
    }

    /// Whether the log of the database in `folder` exists with all its frames: no committed data is missing.
    package static func hasCompleteLog(in folder: FilePath) throws -> Bool {
        let log = files(of: database, in: folder)[1]
        guard let size = try FileStatus.ifPresent(at: log)?.size, size > 0 else { return false }
        return try WriteAheadLog.problem(of: log) == nil
    }

    /// The pauses that can be read from the database in `folder`; `nil` when they cannot be read. Changes nothing.
    package static func pauses(in folder: FilePath) -> [PauseRecord]? {
        do {
            let connection = try Connection(path: folder.appending(database), asEvidence: true)
            defer { connection.close() }
            return try connection.all("SELECT scope, name, since, until FROM pause") { row in
                PauseRecord(
                    scope: PauseRecord.Scope(rawValue: row.text(0)), name: row.text(1),
                    since: WallTime(milliseconds: row.integer(2)),
                    until: row.optionalInteger(3).map { WallTime(milliseconds: $0) })
            }
        } catch {
            // The reason is in the report already: it is the database that is given up.
            return nil
        }
    }

    /// The name of an old database that was replaced.
    private static func aside(_ stamp: String) -> FilePath { FilePath("\(database).damaged-\(stamp)") }

    /// `moment`, with a number when another database of the same second was set aside.
    static func freeStamp(in folder: FilePath, at moment: String) throws(SystemError) -> String {
        var stamp = moment
        var number = 1
        while try isTaken(stamp, in: folder) {
            number += 1
            stamp = "\(moment)-\(number)"
        }
        return stamp
    }

    private static func isTaken(_ stamp: String, in folder: FilePath) throws(SystemError) -> Bool {
        for file in files(of: aside(stamp), in: folder) where try FileStatus.ifPresent(at: file) != nil { return true }
        return false
    }

    /// Puts the finished new database in place of the old one, which keeps its bytes under another name.
    ///
    /// During this, the new one's name keeps every daemon from starting; its rename is the last step. May be repeated
    /// after a crash at any line.
    ///
    /// - Parameter stamp: From ``freeStamp(in:at:)``, the same each time.
    /// - Returns: The old database's new path; `nil` when there was none.
    static func install(in folder: FilePath, stamp: String) throws(SystemError) -> FilePath? {
        let aside = aside(stamp)
        for (old, new) in zip(files(of: database, in: folder), files(of: aside, in: folder)) {
            if try FileStatus.ifPresent(at: old) != nil { try Files.renameNoReplace(old, to: new) }
            CrashPoint.reached("rebuild-aside")
        }
        try Files.syncFolder(folder)
        CrashPoint.reached("rebuild-set-aside")
        // SQLite makes the index of the log again when the database is opened; the log itself was emptied.
        for file in files(of: rebuilt, in: folder).dropFirst() { try Files.removeIfPresent(file) }
        try Files.rename(folder.appending(rebuilt), to: folder.appending(database))
        try Files.syncFolder(folder)
        CrashPoint.reached("rebuild-done")
        return try FileStatus.ifPresent(at: folder.appending(aside)) == nil ? nil : folder.appending(aside)
    }
}
