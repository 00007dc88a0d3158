internal import Core
internal import Linux
internal import Synchronization

/// The receiver's own folder, `.sluice-receive`, with all known uploads.
///
/// Each upload has two files: `ID.json`, the record, and until it is finished `ID.data`, its bytes.
final class UploadDirectory: Sendable {
    /// The upload is just being created by another request.
    struct BusyError: Error {}

    let root: FilePath
    let folder: FilePath
    let log: @Sendable (String) -> Void
    private let clocks: any Clocks
    /// Stored in new records: see ``Record/boot``.
    let boot: String

    /// Held while this folder is in use.
    private final class Lock: Sendable {
        private let file: Descriptor
        init(_ file: consuming Descriptor) { self.file = file }
        deinit { file.unlock() }
    }
    private struct Index {
        var arrivals: [String: IncomingUpload] = [:]
        /// Maps a sender's name of an upload, together with length and digest, to our id; empty while it is being
        /// created.
        var senders: [String: String] = [:]
    }
    private let lock: Mutex<Lock?>
    private let index = Mutex(Index())
    /// Number of background tasks.
    private let runningTasks = ConditionLock(0)

    /// Opens the folder and reads its records. Waits for the disk.
    init(root: FilePath, clocks: any Clocks, log: @escaping @Sendable (String) -> Void) throws {
        self.root = root
        self.clocks = clocks
        self.log = log
        folder = root.appending(FinalName.ownFolder)
        try Files.makeFolders(folder, durably: true)
        // Also where an earlier run created it and was killed before its sync.
        try Files.syncFolder(root)
        boot = Record.currentBoot(at: folder)
        let path = folder.appending("lock")
        let file = try Descriptor.open(path, for: .updating)
        guard try file.tryLock(named: path) else {
            throw ReceiverError(
                "\(root.display) is in use by another receiver: stop that one, or choose another folder")
        }
        lock = Mutex(Lock(file))
        try load()
        prune()
    }

    func now() -> WallTime { clocks.wall() }
    func data(of id: String) -> FilePath { folder.appending(FilePath("\(id).data")) }
    func record(of id: String) -> FilePath { folder.appending(FilePath("\(id).json")) }
    func find(_ id: String) -> IncomingUpload? { index.withLock { $0.arrivals[id] } }

    /// Whether another finished upload refers to the same file.
    func isShared(_ name: String, by id: String) -> Bool {
        let all = index.withLock { Array($0.arrivals.values) }
        return all.contains { $0.id != id && $0.isFinished && $0.record.name == name }
    }

    /// The record of a finished upload that matches.
    func finished(_ fits: (Record) -> Bool) -> Record? {
        index.withLock { Array($0.arrivals.values) }.first { $0.isFinished && fits($0.record) }?.record
    }

    /// Runs `body` on a thread that may wait. ``close()`` waits for it.
    func inBackground(_ body: @escaping @Sendable () -> Void) {
        runningTasks.withLock { $0 += 1 }
        Linux.inBackground {
            body()
            self.runningTasks.change { $0 -= 1 }
        }
    }

    /// Waits for background tasks, makes all received bytes durable, and releases the folder.
    func close() {
        runningTasks.wait { $0 == 0 ? () : nil }
        for arrival in index.withLock({ Array($0.arrivals.values) }) where !arrival.isFinished { commit(arrival) }
        lock.withLock { $0 = nil }
    }

    /// Like ``IncomingUpload/commit(on:)`` without a waiting client.
    func commit(_ arrival: IncomingUpload) {
        do {
            if case .refused(let why) = try arrival.commit(on: self) {
                log("refused upload \(arrival.shownID): \(why)")
            }
        } catch { log("upload \(arrival.shownID) is not synced yet: \(error)") }
    }

    // MARK: Creating and removing

    /// An upload that is not known yet: ``create(_:with:)`` makes it known.
    func newUpload(_ creation: CreationRequest) -> IncomingUpload {
        let now = now().milliseconds
        let record = Record(
            id: hexadecimal(Random.bytes(16)), length: creation.length, metadata: creation.metadata.header,
            created: now, touched: now, boot: boot)
        return IncomingUpload(
            record, metadata: creation.metadata, requestedPath: creation.requestedPath, offset: 0, isFinished: false)
    }

    /// A new upload, or the one that the same sender has created before for the same content. Durable when this
    /// returns, except where all bytes came with the creation: then ``IncomingUpload/commit(on:)``, which has to follow,
    /// writes the only record. A crash before that leaves bytes without a record, which the next start removes, and the
    /// sender has no answer.
    ///
    /// - Parameter body: The bytes that came with the creation. They are removed if the upload is not new.
    func create(
        _ creation: CreationRequest, with body: UploadBodyWriter?
    ) throws -> (IncomingUpload, isNew: Bool) {
        let sender = creation.metadata.text("sluiceId").map { Self.key($0, creation.length, creation.metadata) }
        if let sender {
            let known: IncomingUpload? = try index.withLock { index in
                guard let id = index.senders[sender] else {
                    index.senders[sender] = ""
                    return nil
                }
                guard let arrival = index.arrivals[id] else { throw BusyError() }
                return arrival
            }
            if let known {
                body?.discard()
                return (known, false)
            }
        }
        let arrival = body?.arrival ?? newUpload(creation)
        let id = arrival.id
        do {
            if body == nil { try Descriptor.open(data(of: id), for: .creating).close(named: data(of: id)) }
            // Syncs the folder, and with it the data's name.
            if body == nil || !arrival.hasAllBytes { try arrival.record.write(self.record(of: id)) }
        } catch {
            if let sender { index.withLock { _ = $0.senders.removeValue(forKey: sender) } }
            // The thrown error says more than an error of this clean-up, which the next start does too.
            try? Files.removeIfPresent(data(of: id))
            throw error
        }
        index.withLock { index in
            index.arrivals[id] = arrival
            if let sender { index.senders[sender] = id }
        }
        return (arrival, true)
    }

    /// Removes record and data, durably.
    func discard(_ record: Record) throws {
        try Files.removeIfPresent(self.record(of: record.id))
        try Files.removeIfPresent(data(of: record.id))
        try Files.syncFolder(folder)
        index.withLock { index in
            guard let arrival = index.arrivals.removeValue(forKey: record.id) else { return }
            if let sender = arrival.metadata.text("sluiceId").map({ Self.key($0, arrival.length, arrival.metadata) }),
                index.senders[sender] == record.id
            {
                index.senders[sender] = nil
            }
        }
    }

    /// Forgets finished uploads after 7 days, or the oldest when there are more than 10,000, and unfinished ones that
    /// were not used for 90 days. Waits for the disk.
    func prune() {
        let now = now()
        let all = index.withLock { Array($0.arrivals.values) }
        let finished = all.filter(\.isFinished).sorted { $0.record.touched < $1.record.touched }
        let old = WallTime(milliseconds: now.milliseconds).advanced(by: .seconds(-7 * 86_400)).milliseconds
        let abandoned = now.advanced(by: .seconds(-90 * 86_400)).milliseconds
        var leaving = finished.prefix(max(0, finished.count - 10_000)).map(\.self)
        leaving += finished.dropFirst(leaving.count).prefix { $0.record.touched < old }
        for arrival in all where !arrival.isFinished && arrival.record.touched < abandoned {
            log(
                "dropped \(arrival.requestedPath.display), unfinished and untouched for 90 days, upload \(arrival.shownID)"
            )
            leaving.append(arrival)
        }
        for arrival in leaving {
            do { try discard(arrival.record) } catch { log("cannot forget upload \(arrival.shownID): \(error)") }
        }
    }

    private static func key(_ sender: String, _ length: Int64, _ metadata: UploadMetadataHeader) -> String {
        "\(length) \(metadata.text("sha256") ?? "-") \(sender)"
    }

    // MARK: Start

    private func load() throws {
        let names = Set(try Files.names(in: folder))
        for name in names where name.fileExtension == "json" {
            do { try loadUpload(name) } catch { log("cannot read \(name.display), left as it is: \(error)") }
        }
        // A crash during the creation of an upload leaves data without a record; a crash during the writing of a record
        // leaves a partial file.
        for name in names {
            let isOrphan =
                name.fileExtension == "data" && !names.contains(FilePath(bytes: name.stem.bytes + Array(".json".utf8)))
            if isOrphan || name.fileExtension == "part" { try Files.removeIfPresent(folder.appending(name)) }
        }
        for arrival in index.withLock({ Array($0.arrivals.values) }) where !arrival.isFinished && arrival.hasAllBytes {
            inBackground { self.commit(arrival) }
        }
    }

    private func loadUpload(_ name: FilePath) throws {
        let record = try Record.read(folder.appending(name))
        guard let metadata = UploadMetadataHeader(header: record.metadata) else {
            throw ReceiverError("its metadata is damaged")
        }
        let requestedPath = try FinalName.path(from: metadata)
        let status = try FileStatus.ifPresent(at: data(of: record.id))
        var offset = record.length
        if let status {
            // A power cut may leave a file of the right length without content: only synced bytes count then.
            offset = min(record.boot == boot ? status.size : min(record.offset, status.size), record.length)
            if offset < status.size {
                try Descriptor.open(data(of: record.id), for: .updating).setSize(offset, named: data(of: record.id))
            }
        } else if record.name == nil {
            throw ReceiverError("its data is gone")
        }
        let arrival = IncomingUpload(
            record, metadata: metadata, requestedPath: requestedPath, offset: offset, isFinished: status == nil)
        index.withLock { index in
            index.arrivals[record.id] = arrival
            if let sender = metadata.text("sluiceId") {
                index.senders[Self.key(sender, record.length, metadata)] = record.id
            }
        }
    }
}
