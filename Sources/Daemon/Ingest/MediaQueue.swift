internal import Config
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
        /// The folder's rule by which it settled.
        var rule: WatchRule?
    }

    private let context: Context
    private let intake: Intake
    private let signal: AsyncSignal
    private let media: AsyncSignal
    private let reconsider: @Sendable (_ folder: String, _ relative: FilePath) -> Void
    private let hasRoom = AsyncSignal()
    private var waiting: [String: [Entry]] = [:]
    /// The folders with waiting files, the next one first.
    private var turns: [String] = []
    private var current: [Entry] = []

    /// With more files than this the next ones wait in the folders' watch.
    private static let most = 20_000
    /// A folder's turn: at most so many files, and no new one after this long.
    private static let (share, turn) = (512, Duration.seconds(1))

    /// - Parameters:
    ///   - media: Signalled when files are recorded: what waits on a card has changed.
    ///   - reconsider: Called for a file whose folder has another rule now: it settles again, if it is still wanted.
    init(
        context: Context, intake: Intake, signal: AsyncSignal, media: AsyncSignal,
        reconsider: @escaping @Sendable (_ folder: String, _ relative: FilePath) -> Void
    ) {
        (self.context, self.intake, self.reconsider) = (context, intake, reconsider)
        (self.signal, self.media) = (signal, media)
    }

    /// Takes settled files that travel alone. Those whose facts need no reading are recorded at once. Waits while too
    /// many wait. An earlier version of a file that waits is replaced.
    func take(_ files: [SettledFile]) async throws {
        let configuration = context.configuration
        let isRead = Dictionary(
            uniqueKeysWithValues: Set(files.map(\.folder)).map { ($0, configuration.asksMedia(of: $0)) })
        let others = files.filter { isRead[$0.folder] != true }
        if !others.isEmpty { try await intake.record(others) }
        let since = context.clocks.monotonic()
        for (folder, files) in Dictionary(grouping: files, by: \.folder) where isRead[folder] == true {
            let (replaced, rule) = (Set(files.map(\.relative)), configuration.folder(folder)?.watch)
            waiting[folder, default: []].removeAll { replaced.contains($0.file.relative) }
            waiting[folder, default: []] += files.map { Entry(file: $0, since: since, rule: rule) }
            if !turns.contains(folder) { turns.append(folder) }
        }
        if isRead.values.contains(true) { signal.signal() }
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
            dropOutdated(of: folder)
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

    /// Drops the files that settled by another rule than the folder has now.
    private func dropOutdated(of folder: String) {
        let settings = context.configuration.folder(folder)
        let isOutdated = { (entry: Entry) in entry.rule != settings?.watch || settings?.group != nil }
        for entry in current where isOutdated(entry) { reconsider(folder, entry.file.relative) }
        current.removeAll(where: isOutdated)
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
