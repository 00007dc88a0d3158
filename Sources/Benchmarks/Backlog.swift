internal import Core
internal import Glibc
internal import Linux
internal import Store

/// A state folder with many uploads in it, as after weeks without a network. Made through the store's own interface, so
/// that counters, tombstones, history and events are those that the daemon would have written.
///
/// Of a hundred uploads 92 are queued, two wait for their copy, one was cancelled, one has failed and four are
/// completed.
struct Backlog: Sendable {
    static let folders = ["front-door", "garden", "attic", "inbox"]
    static let destinations = ["archive", "nas", "pictures"]

    /// Eight questions that conditions may ask of these files, whose sizes are from 1 to 61 kB.
    static let questions: [FilePredicate] =
        [5_000, 10_000, 20_000, 30_000, 40_000, 50_000].map { .largerThan($0) } + [
            .smallerThan(3_000), .kind([.photo]),
        ]

    /// The number of uploads, each with an asset of its own.
    var uploads: Int
    /// The folder above the watched ones, which have the names of ``folders``.
    var watched: FilePath = "/srv/cameras"
    /// Whether the sources are made, as sparse files, so that a scan meets them; and the copies, if the folder is
    /// given.
    var makesFiles = false
    var staging: FilePath?
    /// Whether each waiting upload has its copy, so that without files there is nothing to copy.
    var isCopied = false

    /// More in one piece would be slower: at the end of each statement, SQLite walks its records for an undo.
    private static let batch = 500
    private static let lanes = 64

    /// Fills `state`, which must not be in use.
    ///
    /// - Parameter told: Called with the number so far, from time to time.
    func fill(_ state: FilePath, told: (Int) -> Void = { _ in }) async throws {
        let clocks = SystemClocks()
        let store = try await Store.open(state, clocks: clocks, sorting: .newestFirst)
        if let staging { try Files.makeFolders(staging, mode: 0o700) }
        let fileSystems = FileSystems()
        for start in stride(from: 0, to: uploads, by: Self.batch) {
            let numbers = start..<min(start + Self.batch, uploads)
            let arrivals = try numbers.map { try arrival($0, fileSystems) }
            let outcomes = try await store.write { try $0.arrivals.record(arrivals) }
            var made: [(number: Int, asset: Int64, upload: String)] = []
            for (number, outcome) in zip(numbers, outcomes) {
                guard case .recorded(let asset, let uploads) = outcome, let upload = uploads.first else {
                    throw WrongResult("upload \(number) was not recorded, but \(outcome)")
                }
                made.append((number, asset, upload))
            }
            let cancelled = made.filter { Fate($0.number) == .cancelled }
            _ = try await store.write { try $0.transitions.cancel(cancelled.map(\.upload)) }
            let copied = made.filter { entry in
                [.queued, .completed].contains(Fate(entry.number)) || isCopied && Fate(entry.number) == .staging
            }
            let copies = copied.map { StagedCopy(asset: $0.asset, sha256: Self.digest($0.number)) }
            try await store.write { try $0.staging.record(copies) }
            if let staging {
                for entry in copied {
                    try make(staging.appending(FilePath("\(entry.asset)")), size: size(entry.number))
                }
            }
            let failure = Failure(
                .local, code: .sourceMissing, message: "the file was removed before it could be copied into staging",
                at: clocks.wall(), retryable: false)
            try await inLanes(made.filter { Fate($0.number) == .failed }) { entry in
                _ = try await store.write { try $0.staging.fail(entry.asset, failure, isGone: false) }
            }
            try await inLanes(cancelled) { entry in
                try await store.write { try $0.releases.finish(entry.asset) }
            }
            try await inLanes(made.filter { Fate($0.number) == .completed }) { entry in
                // Any upload: as many as must be completed.
                guard let claim = try await store.claim(destination(entry.number), passingOver: []) else {
                    throw WrongResult("nothing to claim for \(destination(entry.number))")
                }
                let remote = RemoteObject(id: nil, url: nil, verifiedBy: "offset")
                try await store.write {
                    try $0.attempts.finish(
                        claim.upload.id, .verified(remote),
                        payments: [
                            Payment(
                                SpendingAccount(
                                    destination: claim.upload.destination, folder: claim.upload.folder, network: .any),
                                Spending(bytes: claim.upload.size, files: 1))
                        ])
                }
                if let staging { try Files.removeIfPresent(staging.appending(claim.asset.stagedName)) }
                try await store.write { try $0.releases.finish(claim.asset.id, .kept) }
            }
            told(numbers.upperBound)
        }
        try await store.write { try $0.folders.recordWatched(Self.folders) }
        // The folder is opened again at once, and the last job of an actor may keep it for longer than its caller waits.
        await store.close()
    }

    /// Asks the files of all waiting uploads ``questions``.
    ///
    /// - Returns: The time that it took.
    static func ask(_ state: FilePath) async throws -> Duration {
        let store = try await Store.open(state, clocks: SystemClocks(), sorting: .newestFirst)
        let took = try await ContinuousClock().measure {
            _ = try await store.ask(questions)
            while try await store.askWaitingFiles() {}
        }
        await store.close()
        return took
    }

    /// The final state of the upload with a number.
    enum Fate {
        case queued, staging, cancelled, failed, completed

        init(_ number: Int) {
            switch number % 100 {
            case 3, 53: self = .staging
            case 17: self = .cancelled
            case 31: self = .failed
            case 42, 64, 77, 98: self = .completed
            default: self = .queued
            }
        }
    }

    private func folder(_ number: Int) -> String { Self.folders[number % Self.folders.count] }

    private func destination(_ number: Int) -> String {
        Self.destinations[number / Self.folders.count % Self.destinations.count]
    }

    /// Of few files all sizes as well.
    private func size(_ number: Int) -> Int64 { 1_000 + Int64(number * 7_919 % 60_000) }

    /// In a camera's scheme: a folder for each day, a thousand files in each.
    static func relative(_ number: Int) -> FilePath {
        let inFolder = number / folders.count
        let day = inFolder / 1_000
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let date = "\(2020 + day / 336)-\(two(1 + day / 28 % 12))-\(two(1 + day % 28))"
        return FilePath("\(date)/\(folders[number % folders.count])_\(date)T\(10_000_000 + inFolder).mp4")
    }

    private func arrival(_ number: Int, _ fileSystems: FileSystems) throws -> NewAsset {
        let folder = folder(number)
        let root = watched.appending(FilePath(folder))
        let relative = Self.relative(number)
        var status = FileStatus(
            device: 1, inode: UInt64(number + 100), size: size(number),
            modified: 1_700_000_000_000_000_000 + Int64(number) * 1_000_000_000,
            changed: 1_700_000_000_000_000_000 + Int64(number) * 1_000_000_000, born: nil, mode: 0o100644)
        var fileSystem = "0b1a4f0e-6c1c-4a53-9a57-000000000001"
        if makesFiles {
            let path = root.appending(relative)
            if number / Self.folders.count % 1_000 == 0 { try Files.makeFolders(path.parent) }
            try make(path, size: size(number))
            status = try FileStatus(at: path)
            guard let here = fileSystems.identity(at: path, device: status.device), here.keepsInodes else {
                throw WrongResult("the file system of \(path.display) does not keep inodes")
            }
            fileSystem = here.name
        }
        let identity = FileIdentity(
            folder: folder, relative: relative, size: status.size, modified: status.modified, inode: status.inode,
            born: status.born, fileSystem: fileSystem)
        let file = SettledFile(
            folder: folder, root: root, relative: relative, status: status, identity: identity, settledBy: .lease)
        let order = NewAsset.PlannedUpload(
            destination: destination(number), name: relative, mediaType: "video/mp4", key: nil,
            context: ["camera": folder], metadata: ["filename": relative.name.display])
        return NewAsset(file: file, action: .keep, priority: number % 50 == 0 ? 10 : 0, orders: [order])
    }

    /// Makes a sparse file of `size` bytes.
    private func make(_ path: FilePath, size: Int64) throws {
        let file = try Descriptor.open(path, for: .updating)
        try file.withNumber { number throws(SystemError) in
            guard ftruncate(number, off_t(size)) == 0 else {
                throw SystemError(call: "ftruncate", subject: path.display, code: errno)
            }
        }
    }

    /// 32 bytes that look like a digest, different for each number (splitmix64, https://prng.di.unimi.it/splitmix64.c).
    private static func digest(_ number: Int) -> [UInt8] {
        var state = UInt64(number)
        return (0..<4).flatMap { _ in
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            z ^= z >> 31
            return (0..<8).map { UInt8(truncatingIfNeeded: z >> (8 * $0)) }
        }
    }

    /// Runs many at a time, so that they share transactions and syncs.
    private func inLanes<Entry: Sendable>(
        _ entries: [Entry], _ body: @escaping @Sendable (Entry) async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (count, entry) in entries.enumerated() {
                if count >= Self.lanes { try await group.next() }
                group.addTask { try await body(entry) }
            }
            try await group.waitForAll()
        }
    }
}

extension Backlog {
    /// `Benchmarks fill STATE COUNT [WATCHED [STAGING]]`: with the last one, the files are made too.
    init?(_ arguments: ArraySlice<String>) {
        let words = Array(arguments)
        guard (2...4).contains(words.count), let count = Int(words[1]), count > 0 else { return nil }
        self.init(uploads: count)
        if words.count > 2 { watched = FilePath(words[2]) }
        isCopied = words.count == 3
        guard words.count == 4 else { return }
        staging = FilePath(words[3])
        makesFiles = true
    }
}

/// The median time of a claim in a state folder, and of a change that writes one small row. The difference is the cost
/// of the claim, and the rest is the disk's.
///
/// - Parameter rounds: Claims; each is given back.
func claimTimes(_ state: FilePath, rounds: Int = 200) async throws -> (claim: Duration, smallest: Duration) {
    let store = try await Store.open(state, clocks: SystemClocks(), sorting: .newestFirst)
    let clock = ContinuousClock()
    var (claims, small): ([Duration], [Duration]) = ([], [])
    for _ in 0..<rounds {
        var start = clock.now
        guard let claim = try await store.claim(Backlog.destinations[1], passingOver: [Backlog.folders[0]]) else {
            throw WrongResult("nothing to claim")
        }
        claims.append(start.duration(to: clock.now))
        try await store.write { try $0.attempts.finish(claim.upload.id, .yielded) }
        start = clock.now
        try await store.write { try $0.events.append(.loaded(ongoing: 0)) }
        small.append(start.duration(to: clock.now))
    }
    return (claims.sorted()[rounds / 2], small.sorted()[rounds / 2])
}
