internal import Core
internal import Linux
internal import Watch

/// Settled files whose facts are read before they are recorded, as for `{recorded}`. `ffprobe` may need seconds for each:
/// meanwhile files of other folders are recorded, and those of several such folders in turns.
///
/// It keeps the files in memory only: after a restart the scan finds them again.
actor MediaQueue {
    private struct Entry {
        var file: SettledFile
        var since: MonotonicTime
    }

    private let context: Context
    private let intake: Intake
    private let signal: AsyncSignal
    private let media: AsyncSignal
    private let hasRoom = AsyncSignal()
    private var waiting: [String: [Entry]] = [:]
    /// The folders with waiting files, the next one first.
    private var turns: [String] = []
    private var current: [Entry] = []

    /// With more files than this the next ones wait in the folders' watch.
    private static let most = 2000
    /// A folder's turn: at most so many files, and no new one after this long.
    private static let (share, turn) = (512, Duration.seconds(1))

    /// - Parameter media: Signalled when files are recorded: what waits on a card has changed.
    init(context: Context, intake: Intake, signal: AsyncSignal, media: AsyncSignal) {
        (self.context, self.intake, self.signal, self.media) = (context, intake, signal, media)
    }

    /// Takes files over, and waits while there are too many. An earlier version of a file that waits is replaced.
    func add(_ files: [SettledFile]) async {
        let since = context.clocks.monotonic()
        for (folder, files) in Dictionary(grouping: files, by: \.folder) {
            let replaced = Set(files.map(\.relative))
            waiting[folder, default: []].removeAll { replaced.contains($0.file.relative) }
            waiting[folder, default: []] += files.map { Entry(file: $0, since: since) }
            if !turns.contains(folder) { turns.append(folder) }
        }
        signal.signal()
        while count > Self.most, !Task.isCancelled { await hasRoom.wait() }
    }

    func run() async throws {
        while !Task.isCancelled {
            guard let folder = turns.first, let files = waiting[folder] else {
                await signal.wait()
                continue
            }
            turns.removeFirst()
            current = Array(files.prefix(Self.share))
            waiting[folder] = Array(files.dropFirst(current.count))
            let left = try await intake.record(current.map(\.file), within: Self.turn)
            // Others may have come meanwhile, and newer versions of these.
            let arrived = waiting[folder, default: []]
            let again = Set(left.map(\.relative)).subtracting(arrived.map(\.file.relative))
            waiting[folder] = current.filter { again.contains($0.file.relative) } + arrived
            current = []
            turns.removeAll { $0 == folder }
            if waiting[folder]?.isEmpty == true { waiting[folder] = nil } else { turns.append(folder) }
            hasRoom.signal()
            media.signal()
        }
    }

    private var entries: [Entry] { current + waiting.values.joined() }
    private var count: Int { waiting.values.reduce(current.count) { $0 + $1.count } }

    // MARK: Reported to other components

    /// The waiting files, by folder.
    ///
    /// - Parameter most: Files to name in each.
    func waits(naming most: Int) -> [String: GroupWaits] {
        Dictionary(grouping: entries, by: \.file.folder).mapValues { entries in
            GroupWaits(
                files: entries.count,
                first: entries.prefix(most).map {
                    GroupWait(
                        file: $0.file, reason: "waits until its date and camera are read, one file after another",
                        since: $0.since)
                })
        }
    }

    /// The number of files of each folder that are only here so far.
    var held: [String: Int] { Dictionary(grouping: entries, by: \.file.folder).mapValues(\.count) }

    var isAtRest: Bool { turns.isEmpty && current.isEmpty }
}
