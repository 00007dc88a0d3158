package import Core
internal import Glibc
package import Linux
internal import Synchronization

/// The durable record of every asset and upload. Its answers survive a power cut.
///
/// An actor on its own thread. Each change is one piece of work inside a transaction. Pieces that wait at the same time
/// share one transaction and one fsync (**group commit**): the first opens it, those that queued up behind it join,
/// then it is committed, and only then does each caller get its answer. A piece that fails is undone alone, by its
/// savepoint.
///
/// Reads outside a change go over a second connection and see only committed data: no decision rests on a fact that a
/// crash or a full disk may still take back.
package actor Store {
    private let writer: Connection
    private let reader: Connection
    /// Whether a piece of work runs: its reads must see its own writes.
    private var isInside = false
    var connection: Connection { isInside ? writer : reader }
    package nonisolated let folder: FilePath
    nonisolated let name: FilePath
    /// The database.
    package nonisolated var path: FilePath { folder.appending(name) }
    let clocks: any Clocks
    /// The time zone for the ledger's hours and days.
    let zone: Zone
    let linkBytes: @Sendable (LinkQuestion) -> LinkBytes?
    /// Names this run in leases: claims of an earlier run are void, since the state folder has one daemon at a time.
    package nonisolated let owner: String
    /// Damage that was found in the files since they were opened.
    package nonisolated let damage: Damage
    private var lock: InstanceLock?
    private let thread: OwnThread
    private var waiting: [CheckedContinuation<Void, any Error>] = []
    private var isOpen = false
    var notedSent: Set<String> = []
    /// Whether the last transaction did not fit on the disk.
    private var wasFull = false
    /// With less free space on its disk, the log is emptied before each change, so that it stays small. An empty log
    /// needs no space to be emptied; a log that has taken the last space of a disk could never be emptied.
    package static let scarceRoom: Int64 = 16 << 20
    /// Free space that is required after the disk was full: room for a batch of files, and not just for one change.
    package static let neededRoom: Int64 = 1 << 20
    /// The size that one of its files reaches at work: the log between two checkpoints, and some ten thousand uploads.
    package static let neededFileSize: UInt64 = 64 << 20
    private var lastID: UploadID?
    /// The last upload of earlier runs; empty when there is none.
    private(set) var lastOfBefore = ""
    /// The start of this run.
    let openedAt: MonotonicTime
    private var listeners: [Int: @Sendable () -> Void] = [:]
    private var nextListener = 0
    /// The number of the last committed event.
    package private(set) var seq: Int64 = 0
    /// Counts of ended uploads since the start.
    var ends = OutcomeCounters()
    /// ``ran`` at 0 of the monotonic clock, and the part of it that is on disk: in ms.
    private nonisolated let ranAtZero = Atomic<Int64>(0)
    private var ranStored: Int64 = 0
    /// Whether an upload has left a list, or may leave one.
    var listsChanged = false
    private var onListChange: @Sendable () -> Void = {}
    var sorting: UploadSort
    /// Whether all waiting uploads are in this order; `false` during a change of the order, or after half of it.
    var isSorted = false

    package nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// See ``Connection/plans()``.
    func plans() throws -> [(sql: String, steps: [String])] { try reader.plans() + writer.plans() }

    /// See ``Connection/effort()``; for both connections.
    func effort(_ measure: Connection.Measure = .steps) -> [String: Int] {
        reader.effort(measure).merging(writer.effort(measure)) { $0 + $1 }
    }

    /// Opens or makes the database in `folder`, locks the folder, and brings the schema up to date.
    ///
    /// - Parameters:
    ///   - zone: The time zone for the ledger's hours and days.
    ///   - linkBytes: ``askKernel(_:)``; without it, everything that a run leaves reserved counts as sent.
    ///   - copies: Counts the whole copies in the staging folder. If there is any, a missing database was lost.
    /// - Throws: ``StateLocked`` when another process has the folder; ``StateUnusable``; `SystemError`.
    package static func open(
        _ folder: FilePath, clocks: any Clocks, sorting: UploadSort, zone: Zone = .local,
        linkBytes: @escaping @Sendable (LinkQuestion) -> LinkBytes? = Store.askNobody,
        copies: @escaping @Sendable () throws -> Int = { 0 }
    ) async throws -> Store {
        try await open(folder, StateFiles.database, clocks, sorting, zone, linkBytes) { lock in
            try StateFiles.check(at: folder, wasUsed: lock.wasUsed, copies: copies)
            return try !lock.wasUsed && copies() == 0
        }
    }

    /// Makes a new database under a separate name, which no daemon opens: ``install()`` puts it in place.
    ///
    /// - Parameter isTrial: Whether the database is only inspected, and then deleted.
    package static func openNew(
        _ folder: FilePath, clocks: any Clocks, sorting: UploadSort, isTrial: Bool
    ) async throws -> Store {
        let name = isTrial ? StateFiles.trial : StateFiles.rebuilt
        return try await open(folder, name, clocks, sorting, .local, askNobody) { _ in
            try StateFiles.remove(name, in: folder)
            return true
        }
    }

    private static func open(
        _ folder: FilePath, _ name: FilePath, _ clocks: any Clocks, _ sorting: UploadSort, _ zone: Zone,
        _ linkBytes: @escaping @Sendable (LinkQuestion) -> LinkBytes?,
        mayBegin: @escaping @Sendable (InstanceLock) throws -> Bool
    ) async throws -> Store {
        let thread = OwnThread(name: "store")
        let path = folder.appending(name)
        do {
            let opened = try await blocking {
                try Files.makeFolders(folder, durably: true)
                let lock = try InstanceLock(folder: folder)
                let mayBegin = try mayBegin(lock)
                let writer = try Self.connect(path)
                try Schema.migrate(writer, mayBegin: mayBegin)
                if name == StateFiles.database { try lock.noteUse() }
                return Opened(lock: lock, writer: writer, reader: try Self.connect(path))
            }
            let store = Store(
                opened, folder: folder, name: name, thread: thread, clocks: clocks, sorting: sorting, zone: zone,
                linkBytes: linkBytes)
            // A start that waits for space tries again.
            do { try await store.prepare() } catch { await store.close(); throw error }
            return store
        } catch let error as StoreError {
            throw StateUnusable(database: path, error: error)
        }
    }

    /// Carries the connection from the thread that opened it to the store, which is its only user from then on.
    private struct Opened: @unchecked Sendable {
        // Proof: made inside one closure, moved out of it once, and not used before the store owns it.
        let lock: InstanceLock
        let writer: Connection
        let reader: Connection
    }

    private init(
        _ opened: Opened, folder: FilePath, name: FilePath, thread: OwnThread, clocks: any Clocks, sorting: UploadSort,
        zone: Zone, linkBytes: @escaping @Sendable (LinkQuestion) -> LinkBytes?
    ) {
        let damage = Damage()
        writer = opened.writer
        reader = opened.reader
        writer.damage = damage
        reader.damage = damage
        self.damage = damage
        self.folder = folder
        self.name = name
        lock = opened.lock
        self.thread = thread
        self.clocks = clocks
        self.sorting = sorting
        self.zone = zone
        self.linkBytes = linkBytes
        openedAt = clocks.monotonic()
        owner = "\(getpid())-" + hexadecimal(Random.bytes(8))
    }

    private static func connect(_ path: FilePath) throws -> Connection {
        // SQLite makes the file with the umask; it contains names of private files.
        let connection = try Connection(path: path)
        _ = path.withCString { chmod($0, 0o600) }
        // FULL: an answered commit survives a power cut (https://www.sqlite.org/pragma.html#pragma_synchronous).
        try connection.execute(
            """
            PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
            PRAGMA temp_store = MEMORY; PRAGMA cache_size = -2048; PRAGMA wal_autocheckpoint = 1000;
            PRAGMA journal_size_limit = 16777216;
            """)
        return connection
    }

    private func prepare() async throws {
        seq = try connection.first("SELECT max(seq) FROM event") { $0.integer(0) } ?? 0
        lastID = try connection.first("SELECT max(id) FROM upload") { $0.optionalText(0) }.flatMap { $0 }.flatMap {
            UploadID($0)
        }
        lastOfBefore = lastID?.text ?? ""
        ranStored = try storedRun()
        ranAtZero.store(ranStored - Self.milliseconds(openedAt), ordering: .relaxed)
        try await awaitQuietLinks()
        try begin()
        try piece { connection in
            // A wait was measured by the clock of the run that set it, and a lease belongs to the process that took it.
            try connection.run("UPDATE upload INDEXED BY upload_backoff SET backoff_until = 0 WHERE backoff_until > 0")
            let left = try connection.all(
                "SELECT \(UploadRecord.columns) FROM upload INDEXED BY upload_list WHERE state = 'uploading'"
            ) {
                UploadRecord($0, 0)
            }
            for upload in left { try move(upload, by: .yielded) }
            try closeLeftSteps()
            try countWhatIsToCome()
        }
        if let error = commit() { throw error }
        try await sortWaiting()
    }

    /// Runs related queries as one read: each alone would lock and unlock the database, which costs more than a small
    /// query does.
    func together<R>(_ body: () throws -> R) throws -> R {
        try reader.execute("BEGIN")
        // A read has nothing to undo, and an error of its end would hide the answer's own.
        defer { try? reader.execute("COMMIT") }
        return try body()
    }

    /// Runs `body` in the open transaction and returns when it is committed: durable.
    func change<R: Sendable>(_ body: (Connection) throws -> R) async throws -> R {
        if !isOpen {
            try begin()
            // Runs after the pieces of work that are queued on this actor by now: they join this transaction.
            Task { self.commit() }
        }
        let result = try piece(body)
        try await withCheckedThrowingContinuation { waiting.append($0) }
        return result
    }

    private func begin() throws(StoreError) {
        // A failed rollback has left the last transaction open.
        if !writer.isIdle { try writer.execute("ROLLBACK") }
        do {
            try makeRoom()
            try writer.execute("BEGIN IMMEDIATE")
        } catch {
            wasFull = wasFull || error.isFull
            throw error
        }
        isOpen = true
        if ran - ranStored >= 60_000 { try storeRun() }
    }

    /// The total time that daemons have run over this state, this run included, in ms: a clock that cannot be set.
    /// After a crash it may be behind, by the time in which nothing was written, plus a minute.
    package nonisolated var ran: Int64 {
        ranAtZero.load(ordering: .relaxed) + Self.milliseconds(clocks.monotonic())
    }

    private static func milliseconds(_ time: MonotonicTime) -> Int64 { time.nanoseconds / 1_000_000 }

    func storeRun() throws(StoreError) {
        let ran = ran
        try writer.run("INSERT OR REPLACE INTO setting VALUES ('ran', ?1)", [.text("\(ran)")])
        ranStored = ran
    }

    private func storedRun() throws -> Int64 {
        let text = try connection.first("SELECT value FROM setting WHERE name = 'ran'") { $0.text(0) }
        return max(0, text.flatMap { Int64($0) } ?? 0)
    }

    /// When space is scarce, moves the contents of the log into the database, while that still fits.
    private func makeRoom() throws(StoreError) {
        // If a file system does not report its free space, writes continue until one is refused.
        guard let free = try? Space(at: folder).free, free < Self.scarceRoom else { return }
        if wasFull, free < Self.neededRoom { throw .full(sql: "begin") }
        try writer.execute("PRAGMA wal_checkpoint(RESTART)")
    }

    /// Writes a little, to find out whether the state can be written. Durable when it returns.
    package func prove() async throws {
        try await change { connection in
            try connection.run(
                "INSERT OR REPLACE INTO setting VALUES ('proved', ?1)", [.text("\(self.clocks.wall().milliseconds)")])
        }
    }

    /// One piece of work in the open transaction: all of it, or nothing of it.
    private func piece<R>(_ body: (Connection) throws -> R) throws -> R {
        isInside = true
        defer { isInside = false }
        let before = ends.pending
        do {
            try writer.execute("SAVEPOINT piece")
            let result = try body(writer)
            try writer.execute("RELEASE piece")
            return result
        } catch {
            // On a full disk SQLite undoes the whole transaction by itself; then there is no savepoint to return to. A
            // piece that cannot be undone alone is undone with all others that wait.
            if writer.isIdle {
                abandon(error)
            } else {
                ends.pending = before
                do { try writer.execute("ROLLBACK TO piece; RELEASE piece") } catch let second { abandon(second) }
            }
            throw error
        }
    }

    /// - Returns: The reason why nothing was committed; every waiting caller has received it.
    @discardableResult
    private func commit() -> (any Error)? {
        guard isOpen else { return nil }
        do { try writer.execute("COMMIT") } catch {
            abandon(error)
            return error
        }
        isOpen = false
        wasFull = false
        ends.settle()
        if listsChanged {
            listsChanged = false
            onListChange()
        }
        CrashPoint.reached("committed")
        let done = waiting
        waiting = []
        // The commit stands: if the number cannot be read now, it is read after the next change.
        seq = (try? reader.first("SELECT max(seq) FROM event") { $0.integer(0) }) ?? seq
        for listener in listeners.values { listener() }
        for continuation in done { continuation.resume() }
        return nil
    }

    /// Undoes the transaction that cannot be committed, and fails all callers that wait for it.
    private func abandon(_ error: any Error) {
        isOpen = false
        ends.pending = []
        // Its own error would only repeat the first one, and the next beginning tries again.
        if !writer.isIdle { try? writer.execute("ROLLBACK") }
        if (error as? StoreError)?.isFull == true {
            wasFull = true
            // The log, which may take all the space that there is, keeps its size until it is emptied. Its own error is
            // the same.
            try? writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        }
        let failed = waiting
        waiting = []
        for continuation in failed { continuation.resume(throwing: error) }
    }

    /// Closes the files, with all data in them, for a caller that moves them under the same lock.
    func closeFiles() {
        reader.close()
        writer.close()
    }

    /// Closes the files and unlocks the folder. No read or change works afterwards.
    package func close() {
        // Without it, ended uploads only count as younger than they are.
        if !isOpen { try? storeRun() }
        closeFiles()
        lock?.release()
        lock = nil
    }

    /// Calls `body` after each commit, on the store's thread: it must only wake a waiter.
    ///
    /// - Returns: The number for ``forget(_:)``.
    package func listen(_ body: @escaping @Sendable () -> Void) -> Int {
        nextListener += 1
        listeners[nextListener] = body
        return nextListener
    }

    /// Calls `body` after each commit in which an upload ended, as ``listen(_:)`` does.
    package func listenToLists(_ body: @escaping @Sendable () -> Void) { onListChange = body }

    package func forget(_ listener: Int) { listeners[listener] = nil }

    /// The next id, in time order even when the clock steps back.
    func newID() -> String {
        let now = clocks.wall()
        let id: UploadID =
            if let lastID, lastID.milliseconds >= now.milliseconds { lastID.next(chance: Random.bits()) } else {
                UploadID(time: now, chance: Random.bits())
            }
        lastID = id
        return id.text
    }

    /// Writes an event into the open transaction.
    func note(_ type: String, _ upload: String? = nil, _ detail: [String: String] = [:]) throws {
        try connection.run(
            "INSERT INTO event (at, type, upload, detail) VALUES (?1, ?2, ?3, ?4)",
            [.integer(clocks.wall().milliseconds), .text(type), .init(upload), .text(TextMap.text(detail))])
        // The event table is a ring: old events are deleted, several at a time. Endings stay for a day.
        let last = connection.lastRow
        guard last % 256 == 0 else { return }
        try connection.run(
            """
            DELETE FROM event WHERE seq > ?1 AND seq <= ?2
            AND type NOT IN ('completed', 'failed', 'cancelled', 'removed', 'flushed')
            """, [.integer(last - 11_024), .integer(last - 10_000)])
        try connection.run(
            "DELETE FROM event WHERE seq IN (SELECT seq FROM event ORDER BY seq LIMIT 1024) AND seq <= ?1 AND at < ?2",
            [.integer(last - 10_000), .integer(clocks.wall().milliseconds - 86_400_000)])
    }
}
