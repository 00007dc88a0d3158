internal import CSQLite
internal import Core
internal import Linux

/// An error of SQLite for a statement: its code, its message, and the SQL.
package struct StoreError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The extended result code, as in https://www.sqlite.org/rescode.html.
    package let code: Int32
    package let message: String
    /// The text of the statement, without the bound values: those can be a person's paths.
    package let sql: String
    /// The kernel's error number; 0 where it is not known.
    var systemCode: Int32 = 0

    /// Whether the kernel reported that there is no space.
    var isKernelOutOfSpace: Bool { SystemError(call: "", subject: "", code: systemCode).isFull }

    /// The low byte groups the extended codes.
    package var isFull: Bool { code & 0xFF == SQLITE_FULL }
    /// The file is damaged, or no database of ours at all.
    package var isCorrupt: Bool { code & 0xFF == SQLITE_CORRUPT || code & 0xFF == SQLITE_NOTADB }

    /// The error that SQLite would report for a full disk, made before SQLite is called.
    static func full(sql: String) -> StoreError {
        StoreError(code: SQLITE_FULL, message: "database or disk is full", sql: sql)
    }

    /// Whether the cause (the disk or another process) may go away after a while.
    package var isTransient: Bool { isFull || [SQLITE_BUSY, SQLITE_NOMEM, SQLITE_IOERR].contains(code & 0xFF) }

    /// The file or its folder cannot be written.
    package var isReadOnly: Bool { [SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM].contains(code & 0xFF) }

    package var description: String { "SQLite \(code): \(message) in: \(sql)" }
}

/// One connection to the database and its prepared statements. Used by one thread at a time: the Store's.
final class Connection {
    private let handle: OpaquePointer
    /// Statements are prepared once and kept: preparing costs as much as running a small statement.
    private var prepared: [String: OpaquePointer] = [:]
    private var isClosed = false
    /// Notified of the first statement that found the file damaged.
    var damage: Damage?

    /// - Parameter asEvidence: Leaves the file and its log unchanged: for reading a database that is given up.
    init(path: FilePath, asEvidence: Bool = false) throws(StoreError) {
        var handle: OpaquePointer?
        let code = path.withCString {
            sqlite3_open_v2(
                $0, &handle,
                (asEvidence ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
                    | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
        }
        guard code == SQLITE_OK, let handle else {
            let message = handle.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
            let reason = handle.map { sqlite3_system_errno($0) } ?? 0
            // SQLite returns a handle even when opening fails, and it has to be closed.
            sqlite3_close_v2(handle)
            throw StoreError(code: code, message: message, sql: "open", systemCode: reason)
        }
        self.handle = handle
        // Other programs may read or copy the database. A program that replays the log of a killed daemon, or writes,
        // locks it.
        sqlite3_busy_timeout(handle, 5000)
        if asEvidence { sluice_leave_log(handle) }
    }

    deinit { close() }

    /// Closes the files now; no call works afterwards. The last connection to close empties the log.
    func close() {
        if isClosed { return }
        isClosed = true
        for statement in prepared.values { sqlite3_finalize(statement) }
        prepared = [:]
        sqlite3_close_v2(handle)
    }

    /// Runs statements that take no values and whose rows are not needed.
    func execute(_ sql: String) throws(StoreError) {
        try requireOpen(sql)
        try check(sqlite3_exec(handle, sql, nil, nil, nil), sql)
    }

    /// Lends the statement of `sql` to `body`, and resets it however `body` ends.
    func query<R>(_ sql: String, _ values: [Value] = [], _ body: (Row) throws(StoreError) -> R) throws(StoreError) -> R
    {
        let statement = try statement(sql)
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        for (index, value) in values.enumerated() { try check(bind(value, statement, Int32(index + 1)), sql) }
        return try body(Row(statement: statement, sql: sql, connection: self))
    }

    /// Runs a statement to its end.
    func run(_ sql: String, _ values: [Value] = []) throws(StoreError) {
        try query(sql, values) { row throws(StoreError) in while try row.next() {} }
    }

    /// All rows, converted by `make`.
    func all<R>(_ sql: String, _ values: [Value] = [], _ make: (Row) -> R) throws(StoreError) -> [R] {
        try query(sql, values) { row throws(StoreError) in
            var rows: [R] = []
            while try row.next() { rows.append(make(row)) }
            return rows
        }
    }

    /// The first row, converted by `make`; `nil` when there is none.
    func first<R>(_ sql: String, _ values: [Value] = [], _ make: (Row) -> R) throws(StoreError) -> R? {
        try query(sql, values) { row throws(StoreError) in try row.next() ? make(row) : nil }
    }

    /// SQLite's query plan for each statement that has run so far. For tests: no plan may scan a large table.
    func plans() throws(StoreError) -> [(sql: String, steps: [String])] {
        var plans: [(sql: String, steps: [String])] = []
        for sql in prepared.keys.sorted() where !sql.hasPrefix("PRAGMA") && !sql.hasPrefix("EXPLAIN") {
            plans.append((sql, try all("EXPLAIN QUERY PLAN " + sql) { $0.text(3) }))
        }
        return plans
    }

    /// The measure of a statement's cost: its number of runs, or its steps on SQLite's virtual machine.
    enum Measure { case runs, steps }

    /// The cost of each statement since the last call. For tests: steps measure the work and not the time.
    func statementCosts(_ measure: Measure) -> [String: Int] {
        let counter = measure == .runs ? SQLITE_STMTSTATUS_RUN : SQLITE_STMTSTATUS_VM_STEP
        return prepared.mapValues { Int(sqlite3_stmt_status($0, counter, 1)) }
    }

    /// Rows that the last statement inserted, changed or deleted.
    var changes: Int { Int(sqlite3_changes64(handle)) }
    var lastRow: Int64 { sqlite3_last_insert_rowid(handle) }
    /// Whether no transaction is open, as after SQLite rolled one back by itself.
    var isIdle: Bool { sqlite3_get_autocommit(handle) != 0 }

    /// A value to bind, in the order of the parameters.
    enum Value {
        case null
        case integer(Int64)
        case text(String)
        case blob([UInt8])

        init(_ value: Int64?) { self = value.map { .integer($0) } ?? .null }
        init(_ value: String?) { self = value.map { .text($0) } ?? .null }
        init(_ value: [UInt8]?) { self = value.map { .blob($0) } ?? .null }
    }

    /// The current row of a statement. Valid until the next step, inside the closure that receives it.
    struct Row {
        fileprivate let statement: OpaquePointer
        fileprivate let sql: String
        fileprivate let connection: Connection

        /// Steps to the next row. Returns `false` when there is none.
        func next() throws(StoreError) -> Bool {
            let code = sqlite3_step(statement)
            if code == SQLITE_ROW { return true }
            try connection.check(code, sql)
            return false
        }

        func isNull(_ column: Int32) -> Bool { sqlite3_column_type(statement, column) == SQLITE_NULL }
        func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }
        func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }
        func text(_ column: Int32) -> String {
            sqlite3_column_text(statement, column).map { String(cString: $0) } ?? ""
        }
        func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }
        func blob(_ column: Int32) -> [UInt8] {
            let count = Int(sqlite3_column_bytes(statement, column))
            guard count > 0, let start = sqlite3_column_blob(statement, column) else { return [] }
            return Array(UnsafeRawBufferPointer(start: start, count: count))
        }
        /// Lends the bytes of a text or blob, for a comparison without a copy.
        func withBytes<R>(_ column: Int32, _ body: (UnsafeRawBufferPointer) -> R) -> R {
            // In this order: the pointer stays valid when the count is read after it.
            let start = sqlite3_column_blob(statement, column)
            return body(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column))))
        }
        func optionalBlob(_ column: Int32) -> [UInt8]? { isNull(column) ? nil : blob(column) }
    }

    private func requireOpen(_ sql: String) throws(StoreError) {
        if isClosed { throw StoreError(code: SQLITE_MISUSE, message: "the database is closed", sql: sql) }
    }

    private func statement(_ sql: String) throws(StoreError) -> OpaquePointer {
        try requireOpen(sql)
        if let known = prepared[sql] { return known }
        var statement: OpaquePointer?
        try check(sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil), sql)
        guard let statement else {
            throw StoreError(code: SQLITE_MISUSE, message: "no statement in the text", sql: sql)
        }
        prepared[sql] = statement
        return statement
    }

    private func bind(_ value: Value, _ statement: OpaquePointer, _ index: Int32) -> Int32 {
        switch value {
        case .null: sqlite3_bind_null(statement, index)
        case .integer(let number): sqlite3_bind_int64(statement, index, number)
        case .text(let text): sluice_bind_text(statement, index, text, -1)
        case .blob(let bytes):
            bytes.withUnsafeBytes { sluice_bind_blob(statement, index, $0.baseAddress, Int32($0.count)) }
        }
    }

    fileprivate func check(_ code: Int32, _ sql: String) throws(StoreError) {
        guard code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE else { return }
        var message = String(cString: sqlite3_errmsg(handle))
        // SQLite's message is only “disk I/O error”, so the kernel's reason is added.
        let reason = code & 0xFF == SQLITE_IOERR ? sqlite3_system_errno(handle) : 0
        if reason != 0 { message += ": " + SystemError(call: "", subject: "", code: reason).reason }
        let error = StoreError(code: code, message: message, sql: sql, systemCode: reason)
        if error.isCorrupt { damage?.report(error) }
        throw error
    }
}
