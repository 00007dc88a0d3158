package import Core
internal import FoundationEssentials
internal import Glibc
internal import Linux

/// The durable record of every asset and upload. What it has answered survives a power cut.
///
/// An actor on its own thread. Each change is one piece of work inside a transaction; pieces that wait at the same
/// time share one transaction and one fsync (**group commit**): the first opens it, those that queued up behind it
/// join, then it is committed, and only then does each caller get its answer. A piece that fails is undone alone, by
/// its savepoint.
package actor Store {
    let connection: Connection
    let clocks: any Clocks
    /// Names this run in leases: claims of an earlier run are void, since the state folder has one daemon at a time.
    package nonisolated let owner: String
    private let lock: InstanceLock
    private let thread: OwnThread
    private var waiting: [CheckedContinuation<Void, any Error>] = []
    private var isOpen = false
    private var lastID: UploadID?
    private var listeners: [Int: @Sendable () -> Void] = [:]
    private var nextListener = 0
    /// The last event committed.
    package private(set) var seq: Int64 = 0
    let sorting: UploadSort

    package nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Opens or makes the database in `folder`, takes the lock on the folder, and brings the form up to date.
    ///
    /// - Throws: ``StateLocked`` when another process has the folder; ``StoreError``; `SystemError`.
    package static func open(_ folder: FilePath, clocks: any Clocks, sorting: UploadSort) async throws -> Store {
        let thread = OwnThread(name: "store")
        let opened = try await blocking {
            try Files.makeFolders(folder)
            let lock = try InstanceLock(folder: folder)
            return Opened(lock: lock, connection: try Self.connect(folder.appending("sluice.db")))
        }
        let store = Store(opened, thread: thread, clocks: clocks, sorting: sorting)
        try await store.prepare()
        return store
    }

    /// Carries the connection from the thread that opened it to the store, which alone uses it from then on.
    private struct Opened: @unchecked Sendable {
        // Proof: made inside one closure, moved out of it once, and not used before the store owns it.
        let lock: InstanceLock
        let connection: Connection
    }

    private init(_ opened: Opened, thread: OwnThread, clocks: any Clocks, sorting: UploadSort) {
        connection = opened.connection
        lock = opened.lock
        self.thread = thread
        self.clocks = clocks
        self.sorting = sorting
        owner = "\(getpid())-" + hexadecimal(Chance.bytes(8))
    }

    private static func connect(_ path: FilePath) throws -> Connection {
        // SQLite makes the file with the umask; names of private files are in it.
        let connection = try Connection(path: path)
        _ = path.withCString { chmod($0, 0o600) }
        // FULL: a commit that was answered is on disk, also after a power cut (https://www.sqlite.org/pragma.html#pragma_synchronous).
        try connection.execute(
            """
            PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
            PRAGMA temp_store = MEMORY; PRAGMA cache_size = -2048; PRAGMA wal_autocheckpoint = 1000;
            """)
        try Schema.migrate(connection)
        return connection
    }

    private func prepare() throws {
        seq = try connection.first("SELECT max(seq) FROM event") { $0.integer(0) } ?? 0
        lastID = try connection.first("SELECT max(id) FROM upload") { $0.optionalText(0) }.flatMap { $0 }.flatMap {
            UploadID($0)
        }
        let order = try connection.first("SELECT value FROM setting WHERE name = 'order'") { $0.text(0) }
        if order != sorting.name {
            try connection.execute("BEGIN IMMEDIATE")
            try connection.run(
                "UPDATE upload SET sort = \(sorting.expression) WHERE state IN ('staging', 'queued', 'uploading', 'failed')"
            )
            try connection.run("INSERT OR REPLACE INTO setting VALUES ('order', ?1)", [.text(sorting.name)])
            try connection.execute("COMMIT")
        }
        // A wait was measured by the clock of the run that set it, and a lease belongs to the process that took it.
        try connection.execute("BEGIN IMMEDIATE")
        try connection.run("UPDATE upload SET backoff_until = 0 WHERE backoff_until > 0")
        try connection.run(
            "UPDATE upload SET state = 'queued', lease_owner = NULL, leased_at = NULL WHERE state = 'uploading'")
        try connection.execute("COMMIT")
    }

    /// Runs `body` in the open transaction and returns when it is committed: durable.
    func change<R: Sendable>(_ body: (Connection) throws -> R) async throws -> R {
        if !isOpen {
            try connection.execute("BEGIN IMMEDIATE")
            isOpen = true
            // Behind the pieces of work that are queued on this actor by now: they join this transaction.
            Task { self.commit() }
        }
        try connection.execute("SAVEPOINT piece")
        let result: R
        do {
            result = try body(connection)
            try connection.execute("RELEASE piece")
        } catch {
            // SQLite undoes the whole transaction by itself on a full disk; then there is no savepoint to go back to.
            if connection.isIdle {
                isOpen = false
                fail(error)
            } else {
                try connection.execute("ROLLBACK TO piece; RELEASE piece")
            }
            throw error
        }
        try await withCheckedThrowingContinuation { waiting.append($0) }
        return result
    }

    private func commit() {
        guard isOpen else { return }
        isOpen = false
        do {
            try connection.execute("COMMIT")
            CrashPoint.reached("committed")
            let done = waiting
            waiting = []
            seq = try connection.first("SELECT max(seq) FROM event") { $0.integer(0) } ?? seq
            for listener in listeners.values { listener() }
            for continuation in done { continuation.resume() }
        } catch {
            // What cannot be committed did not happen. The rollback's own error would only say the same again.
            try? connection.execute("ROLLBACK")
            fail(error)
        }
    }

    private func fail(_ error: any Error) {
        let failed = waiting
        waiting = []
        for continuation in failed { continuation.resume(throwing: error) }
    }

    /// Has `body` called after each commit, on the store's thread: it must only ring a bell.
    ///
    /// - Returns: The number for ``forget(_:)``.
    package func listen(_ body: @escaping @Sendable () -> Void) -> Int {
        nextListener += 1
        listeners[nextListener] = body
        return nextListener
    }

    package func forget(_ listener: Int) { listeners[listener] = nil }

    /// The id after the last one, in time order even when the clock steps back.
    func newID() -> String {
        let now = clocks.wall()
        let id: UploadID =
            if let lastID, lastID.milliseconds >= now.milliseconds { lastID.next } else {
                UploadID(time: now, chance: Chance.bits())
            }
        lastID = id
        return id.text
    }

    /// Writes an event into the open transaction.
    func note(_ type: String, _ upload: String? = nil, _ detail: [String: String] = [:]) throws {
        try connection.run(
            "INSERT INTO event (at, type, upload, detail) VALUES (?1, ?2, ?3, ?4)",
            [.integer(clocks.wall().milliseconds), .text(type), .init(upload), .text(try Self.json(detail))])
        // The ring: old events go as new ones come, some at a time. Endings stay for a day.
        if connection.lastRow % 256 == 0 {
            try connection.run(
                """
                DELETE FROM event WHERE seq <= ?1
                AND (at < ?2 OR type NOT IN ('completed', 'failed', 'cancelled', 'removed', 'flushed'))
                """,
                [.integer(connection.lastRow - 10_000), .integer(clocks.wall().milliseconds - 86_400_000)])
        }
    }

    static func json(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    /// - Returns: `nil` for a text that this program did not write.
    static func value<T: Decodable>(_ type: T.Type, json: String) -> T? {
        // A damaged column must not hide the row: it shows without the detail.
        try? JSONDecoder().decode(type, from: Data(json.utf8))
    }
}

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
