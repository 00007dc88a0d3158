package import Core
internal import Glibc
package import Linux
internal import Synchronization

/// The durable record of every asset and upload. What it has answered survives a power cut.
///
/// An actor on its own thread. Each change is one piece of work inside a transaction; pieces that wait at the same
/// time share one transaction and one fsync (**group commit**): the first opens it, those that queued up behind it
/// join, then it is committed, and only then does each caller get its answer. A piece that fails is undone alone, by
/// its savepoint.
///
/// Reads outside a change go over a second connection and see only what is committed: no decision rests on a fact
/// that a crash or a full disk may still take back.
package actor Store {
    private let writer: Connection
    private let reader: Connection
    /// A piece of work runs: what it reads is what it wrote.
    private var isInside = false
    var connection: Connection { isInside ? writer : reader }
    package nonisolated let folder: FilePath
    nonisolated let name: FilePath
    /// The database.
    package nonisolated var path: FilePath { folder.appending(name) }
    let clocks: any Clocks
    /// By which the ledger keeps its hours and days.
    let zone: Zone
    let linkBytes: @Sendable (LinkQuestion) -> LinkBytes?
    /// Names this run in leases: claims of an earlier run are void, since the state folder has one daemon at a time.
    package nonisolated let owner: String
    /// What the files showed since they were opened.
    package nonisolated let damage: Damage
    private var lock: InstanceLock?
    private let thread: OwnThread
    private var waiting: [CheckedContinuation<Void, any Error>] = []
    private var isOpen = false
    var notedSent: Set<String> = []
    /// The last transaction did not fit on the disk.
    private var wasFull = false
    /// With less free on its disk the log is emptied before each change, so that it stays small. An empty log needs no
    /// room to be emptied; one that has taken the last of a disk could never be.
    package static let scarceRoom: Int64 = 16 << 20
    /// What is to be free again after the disk was full: enough for a batch of files, so that no change fits alone and
    /// the next does not.
    package static let neededRoom: Int64 = 1 << 20
    /// What one of its files gets to at work: the log between two checkpoints, and some ten thousand uploads.
    package static let neededFileSize: UInt64 = 64 << 20
    private var lastID: UploadID?
    /// The last upload of the runs before this one; empty when there is none.
    private(set) var lastOfBefore = ""
    /// When this run began.
    let openedAt: MonotonicTime
    private var listeners: [Int: @Sendable () -> Void] = [:]
    private var nextListener = 0
    /// The last event committed.
    package private(set) var seq: Int64 = 0
    /// How uploads ended since the start.
    var ends = EndBook()
    /// What ``ran`` was when the monotonic clock stood at 0, and what of it is on disk: in ms.
    private nonisolated let ranAtZero = Atomic<Int64>(0)
    private var ranStored: Int64 = 0
    /// Something has left a list, or may.
    var listsChanged = false
    private var onListChange: @Sendable () -> Void = {}
    var sorting: UploadSort
    /// Everything that waits is sorted so; not while a change of the order is on its way, or has ended half way.
    var isSorted = false

    package nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// See ``Connection/plans()``.
    func plans() throws -> [(sql: String, steps: [String])] { try reader.plans() + writer.plans() }

    /// See ``Connection/effort()``; of both connections.
    func effort(_ measure: Connection.Measure = .steps) -> [String: Int] {
        reader.effort(measure).merging(writer.effort(measure)) { $0 + $1 }
    }

    /// Opens or makes the database in `folder`, takes the lock on the folder, and brings the form up to date.
    ///
    /// - Parameters:
    ///   - zone: By which the ledger keeps its hours and days.
    ///   - linkBytes: ``askKernel(_:)``; without it, what a run leaves reserved behind was sent, all of it.
    ///   - copies: Counts the whole copies in the staging folder: with any, a database that is not there was lost.
    /// - Throws: ``StateLocked`` when another process has the folder; ``StateUnusable``; `SystemError`.
    package static func open(
        _ folder: FilePath, clocks: any Clocks, sorting: UploadSort, zone: Zone = .local,
        linkBytes: @escaping @Sendable (LinkQuestion) -> LinkBytes? = Store.askNobody,
        copies: @escaping @Sendable () throws -> Int = { 0 }
    ) async throws -> Store {
        try await open(folder, StateFiles.database, clocks, sorting, zone, linkBytes) { lock in
            try StateFiles.look(at: folder, wasUsed: lock.wasUsed, copies: copies)
            return try !lock.wasUsed && copies() == 0
        }
    }

    /// Makes a new database under a name of its own, which no daemon opens: ``install()`` puts it in place.
    ///
    /// - Parameter isTrial: It is only looked at, and thrown away.
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
            // A start that waits for room tries again.
            do { try await store.prepare() } catch { await store.close(); throw error }
            return store
        } catch let error as StoreError {
            throw StateUnusable(database: path, error: error)
        }
    }

    /// Carries the connection from the thread that opened it to the store, which alone uses it from then on.
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

    /// Runs questions that belong together as one read: each alone would lock the database and let it go again, which
    /// costs more than a small question does.
    func together<R>(_ body: () throws -> R) throws -> R {
        try reader.execute("BEGIN")
        // A read has nothing to take back, and an error of its end would hide the answer's own.
        defer { try? reader.execute("COMMIT") }
        return try body()
    }

    /// Runs `body` in the open transaction and returns when it is committed: durable.
    func change<R: Sendable>(_ body: (Connection) throws -> R) async throws -> R {
        if !isOpen {
            try begin()
            // Behind the pieces of work that are queued on this actor by now: they join this transaction.
            Task { self.commit() }
        }
        let result = try piece(body)
        try await withCheckedThrowingContinuation { waiting.append($0) }
        return result
    }

    private func begin() throws(StoreError) {
        // A rollback that failed has left the last one open.
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

    /// For how long daemons have run over this state, this one included, in ms: a clock that nobody sets. After a crash it may be
    /// behind, by as long as nothing was written, and a minute.
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

    /// Where room is scarce, moves what is in the log into the database, while that still fits.
    private func makeRoom() throws(StoreError) {
        // A file system that does not tell its space is written to until it says no.
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
            // SQLite undoes the whole transaction by itself on a full disk; then there is no savepoint to go back to.
            // What cannot be undone alone is undone with all that waits.
            if writer.isIdle {
                abandon(error)
            } else {
                ends.pending = before
                do { try writer.execute("ROLLBACK TO piece; RELEASE piece") } catch let second { abandon(second) }
            }
            throw error
        }
    }

    /// - Returns: Why nothing was committed; every caller that waited has been told.
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
        // Committed is committed: a number that cannot be read now is read after the next change.
        seq = (try? reader.first("SELECT max(seq) FROM event") { $0.integer(0) }) ?? seq
        for listener in listeners.values { listener() }
        for continuation in done { continuation.resume() }
        return nil
    }

    /// What cannot be committed did not happen, for nobody who waited for it.
    private func abandon(_ error: any Error) {
        isOpen = false
        ends.pending = []
        // Its own error would only say the same again, and the next beginning repeats it.
        if !writer.isIdle { try? writer.execute("ROLLBACK") }
        if (error as? StoreError)?.isFull == true {
            wasFull = true
            // The log keeps its size until it is emptied, which may be all the room that there is. Its own error would
            // be the same one.
            try? writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        }
        let failed = waiting
        waiting = []
        for continuation in failed { continuation.resume(throwing: error) }
    }

    /// Gives the files back, everything in them: for whoever moves them under the same lock.
    func closeFiles() {
        reader.close()
        writer.close()
    }

    /// Gives files and folder back. Nothing can be asked or changed afterwards.
    package func close() {
        // Without it what is over only counts as younger than it is.
        if !isOpen { try? storeRun() }
        closeFiles()
        lock?.release()
        lock = nil
    }

    /// Has `body` called after each commit, on the store's thread: it must only ring a bell.
    ///
    /// - Returns: The number for ``forget(_:)``.
    package func listen(_ body: @escaping @Sendable () -> Void) -> Int {
        nextListener += 1
        listeners[nextListener] = body
        return nextListener
    }

    /// Has `body` called after each commit in which something became over, as ``listen(_:)``.
    package func listenToLists(_ body: @escaping @Sendable () -> Void) { onListChange = body }

    package func forget(_ listener: Int) { listeners[listener] = nil }

    /// The id after the last one, in time order even when the clock steps back.
    func newID() -> String {
        let now = clocks.wall()
        let id: UploadID =
            if let lastID, lastID.milliseconds >= now.milliseconds { lastID.next(chance: Chance.bits()) } else {
                UploadID(time: now, chance: Chance.bits())
            }
        lastID = id
        return id.text
    }

    /// Writes an event into the open transaction.
    func note(_ type: String, _ upload: String? = nil, _ detail: [String: String] = [:]) throws {
        try connection.run(
            "INSERT INTO event (at, type, upload, detail) VALUES (?1, ?2, ?3, ?4)",
            [.integer(clocks.wall().milliseconds), .text(type), .init(upload), .text(TextMap.text(detail))])
        // The ring: old events go as new ones come, some at a time. Endings stay for a day.
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
