package import Core
internal import Glibc
package import Linux

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
    let session: Session
    package nonisolated let folder: FilePath
    nonisolated let name: FilePath
    /// The database.
    package nonisolated var path: FilePath { folder.appending(name) }
    private nonisolated let linkBytes: @Sendable (LinkQuestion) -> LinkBytes?
    private nonisolated let runTime: RunTime
    /// Names this run in leases: claims of an earlier run are void, since the state folder has one daemon at a time.
    package nonisolated let owner: String
    /// Damage that was found in the files since they were opened.
    package nonisolated let damage: Damage
    private var lock: InstanceLock?
    private let thread: OwnThread
    private var waiting: [CheckedContinuation<Void, any Error>] = []
    private var isOpen = false
    /// Whether the last transaction did not fit on the disk.
    private var wasFull = false
    /// With less free space on its disk, the log is emptied before each change, so that it stays small. An empty log
    /// needs no space to be emptied; a log that has taken the last space of a disk could never be emptied.
    package static let scarceSpace: Int64 = 16 << 20
    /// Free space that is required after the disk was full: enough for a batch of files, and not just for one change.
    package static let neededSpace: Int64 = 1 << 20
    /// The size that one of its files reaches at work: the log between two checkpoints, and some ten thousand uploads.
    package static let neededFileSize: UInt64 = 64 << 20
    /// The amount that was counted as sent at the start, since an earlier run did not settle it; `nil` for none.
    package private(set) var leftCharge: CrashCharge?
    private var listeners: [Int: @Sendable () -> Void] = [:]
    private var nextListener = 0
    private var onChange: @Sendable (ChangeSet) -> Void = { _ in }
    /// Whether all waiting uploads are in this order; `false` during a change of the order, or after half of it.
    var isSorted = false

    package nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// See ``Connection/plans()``.
    func plans() throws -> [(sql: String, steps: [String])] { try reader.plans() + writer.plans() }

    /// See ``Connection/statementCosts(_:)``; for both connections.
    func statementCosts(_ measure: Connection.Measure = .steps) -> [String: Int] {
        reader.statementCosts(measure).merging(writer.statementCosts(measure)) { $0 + $1 }
    }

    /// Opens or makes the database in `folder`, locks the folder, and brings the schema up to date.
    ///
    /// - Parameters:
    ///   - zone: The time zone for the ledger's hours and days.
    ///   - linkBytes: ``LinkQuestion/kernelReader(_:)``; without it, everything that a run leaves reserved counts as sent.
    ///   - copies: Counts the whole copies in the staging folder. If there is any, a missing database was lost.
    /// - Throws: ``StateLockedError`` when another process has the folder; ``UnusableStateError``; `SystemError`.
    package static func open(
        _ folder: FilePath, clocks: any Clocks, sorting: UploadSort, zone: Zone = .local,
        linkBytes: @escaping @Sendable (LinkQuestion) -> LinkBytes? = LinkQuestion.unanswered,
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
        return try await open(folder, name, clocks, sorting, .local, LinkQuestion.unanswered) { _ in
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
            throw UnusableStateError(database: path, error: error)
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
        self.linkBytes = linkBytes
        owner = "\(getpid())-" + hexadecimal(Random.bytes(8))
        runTime = RunTime(clocks: clocks)
        session = Session(
            clocks: clocks, zone: zone, linkBytes: linkBytes, owner: owner, runTime: runTime, sorting: sorting)
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
        let (last, lastEvent, earlier, hasLeftSteps, questions) = try read { tx in
            (
                try tx.uploads.lastID(), try tx.events.newest(), try tx.settings.runTime(),
                try tx.leftSteps.haveLinks(), try tx.masks.questions()
            )
        }
        session.questions = questions
        session.continueIDs(after: last)
        session.continueEvents(after: lastEvent)
        runTime.begin(after: earlier, at: session.openedAt)
        if hasLeftSteps { try await awaitQuietLinks() }
        try begin()
        leftCharge = try withSavepoint { tx in
            try tx.waits.endAll()
            try tx.attempts.endAllOfEarlierRuns()
            let charge = try tx.leftSteps.close()
            try tx.ledger.countFutureRows()
            return charge
        }
        if let error = commit() { throw error }
        try await sortWaiting()
    }

    /// Data that a killed run had given to the kernel leaves after its end. That takes a moment when the next run
    /// begins at once.
    private func awaitQuietLinks() async throws {
        guard linkBytes(.now) != nil else { return }
        for _ in 0..<20 where linkBytes(.whenQuiet) == nil { try await Alarms.shared.sleep(for: .milliseconds(50)) }
    }

    // MARK: Transactions

    /// Runs `body` in a transaction that sees committed data only.
    package func read<R: Sendable>(_ body: @Sendable (ReadTransaction) throws -> R) throws -> R {
        try reader.execute("BEGIN")
        // A read has nothing to undo, and an error of its end would hide the answer's own.
        defer { try? reader.execute("COMMIT") }
        return try body(ReadTransaction(connection: reader, session: session))
    }

    /// Runs `body` in the open transaction and returns when it is committed: durable. If `body` throws, its changes are
    /// undone, and those of others stay.
    @discardableResult
    package func write<R: Sendable>(_ body: @Sendable (WriteTransaction) throws -> R) async throws -> R {
        if !isOpen {
            try begin()
            // Runs after the pieces of work that are queued on this actor by now: they join this transaction.
            Task { self.commit() }
        }
        let result = try withSavepoint(body)
        try await withCheckedThrowingContinuation { waiting.append($0) }
        return result
    }

    /// As ``write(_:)``, for a change of an upload that this run must hold.
    ///
    /// - Parameter body: Returns `false` if the upload was cancelled meanwhile. Its changes are committed all the same.
    /// - Throws: ``LeaseLostError`` if it was.
    package func writeHeld(_ body: @Sendable (WriteTransaction) throws -> Bool) async throws {
        if try await !write(body) { throw LeaseLostError() }
    }

    private func begin() throws(StoreError) {
        // A failed rollback has left the last transaction open.
        if !writer.isIdle { try writer.execute("ROLLBACK") }
        do {
            try emptyLogIfScarce()
            try writer.execute("BEGIN IMMEDIATE")
        } catch {
            wasFull = wasFull || error.isFull
            throw error
        }
        isOpen = true
        if runTime.shouldStore { try WriteTransaction(connection: writer, session: session).settings.storeRunTime() }
    }

    /// The total time that daemons have run over this state, this run included, in ms. See ``RunTime``.
    package nonisolated var currentRunTime: Int64 { runTime.now }

    /// When space is scarce, moves the contents of the log into the database, while that still fits.
    private func emptyLogIfScarce() throws(StoreError) {
        // If a file system does not report its free space, writes continue until one is refused.
        guard let free = try? Space(at: folder).free, free < Self.scarceSpace else { return }
        if wasFull, free < Self.neededSpace { throw .full(sql: "begin") }
        try writer.execute("PRAGMA wal_checkpoint(RESTART)")
    }

    /// Writes a little, to find out whether the state can be written. Durable when it returns.
    package func testWrite() async throws {
        try await write { tx in try tx.settings.set("proved", "\(tx.clocks.wall().milliseconds)") }
    }

    /// One piece of work in the open transaction: all of it, or nothing of it.
    private func withSavepoint<R>(_ body: (WriteTransaction) throws -> R) throws -> R {
        let before = session.facts
        do {
            try writer.execute("SAVEPOINT piece")
            let result = try body(WriteTransaction(connection: writer, session: session))
            try writer.execute("RELEASE piece")
            return result
        } catch {
            // On a full disk SQLite undoes the whole transaction by itself; then there is no savepoint to return to. A
            // piece that cannot be undone alone is undone with all others that wait.
            if writer.isIdle {
                abandon(error)
            } else {
                session.facts = before
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
        let changes = session.commit()
        if !changes.isEmpty { onChange(changes) }
        CrashPoint.reached("committed")
        let done = waiting
        waiting = []
        for listener in listeners.values { listener() }
        for continuation in done { continuation.resume() }
        return nil
    }

    /// Returns when the store's thread has taken the call: none of its statements and commits hangs.
    package func confirmTurn() {}

    /// The number of the last committed event.
    package var seq: Int64 { session.committedEvent }

    /// Undoes the transaction that cannot be committed, and fails all callers that wait for it.
    private func abandon(_ error: any Error) {
        isOpen = false
        session.abandon()
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
        if !isOpen { try? WriteTransaction(connection: writer, session: session).settings.storeRunTime() }
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

    /// Calls `body` after each commit that has made something wait, on the store's thread: it must only wake those who
    /// wait for that.
    package func onChange(_ body: @escaping @Sendable (ChangeSet) -> Void) { onChange = body }

    package func forget(_ listener: Int) { listeners[listener] = nil }

    /// Counts of uploads that have ended since the start.
    package func endingCounts() -> [EndingCount] { session.endingCounts }

    /// Bytes that the links have sent and received so far; `nil` where they are not known.
    package nonisolated func currentLinkBytes() -> LinkBytes? { linkBytes(.now) }
}
