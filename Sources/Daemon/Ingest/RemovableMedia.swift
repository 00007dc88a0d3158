internal import API
internal import Config
internal import Core
internal import Linux
internal import Store
internal import Watch

/// Reports when a removable medium may be pulled out: when every file on it is staged, and again when every file is
/// verified.
///
/// It only watches. After a restart it reports again what holds then.
actor RemovableMedia {
    private let context: Context
    private let stateHealth: StateHealth
    private let signal: AsyncSignal
    private let states: @Sendable () -> [WatchState]
    /// The number of files of each folder that wait for their groups, or until they are read.
    private let held: @Sendable () async -> [String: Int]
    /// Called when the disk of these folders is present again.
    private let onReturn: @Sendable (Set<String>) async throws -> Void
    /// The state of a medium that is plugged in.
    private struct MediumProgress {
        let medium: Medium
        var watch: RemovalSafetyReporter
        var work = RemovableMediaBacklog()
    }
    private var cards: [MediumProgress] = []
    /// The circumstances that ``media`` was computed for.
    private var seen: Circumstances?
    private var media: [Medium] = []
    /// Folders with files that wait for a disk, and the file systems that were there last: the next disk may have the
    /// device number of the last one.
    private let awaited: @Sendable () -> Set<String>
    private var disks: [String: String] = [:]
    /// Never set: only the time limit of its wait is used.
    private let pause = AsyncSignal()

    /// The shortest interval between two inspections; a slow inspection makes it longer.
    private static let minInspectionInterval: Duration = .milliseconds(500)

    /// A file system that can be pulled out, with the folders on it.
    private struct Medium: Hashable {
        /// As in ``FileIdentity/fileSystem``.
        let fileSystem: String?
        let device: UInt64
        let folders: [String]
        let place: FilePath
    }

    /// All facts that determine which media there are.
    private struct Circumstances: Hashable {
        struct Folder: Hashable {
            let name: String
            let isThere: Bool
            let device: UInt64
            let mounts: Int
        }
        let settings: WallTime
        let folders: [Folder]

        init(_ runtime: RuntimeConfiguration, _ states: [WatchState]) {
            settings = runtime.since
            folders = states.map {
                Folder(name: $0.folder, isThere: RemovableMedia.isThere($0), device: $0.device, mounts: $0.mounts)
            }
        }

        /// The folders that are present and were not, or that stand on another device.
        func returned(since before: Circumstances?) -> Set<String> {
            guard let before else { return [] }
            let known = Dictionary(before.folders.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
            return Set(
                folders.filter { now in
                    guard now.isThere, let old = known[now.name] else { return false }
                    return !old.isThere || old.device != now.device
                }.map(\.name))
        }
    }

    /// An absent folder, or one that does not respond, is not accessed.
    private static func isThere(_ state: WatchState) -> Bool {
        state.condition == .watching || state.condition == .scanning
    }

    init(
        context: Context, stateHealth: StateHealth, signal: AsyncSignal, states: @escaping @Sendable () -> [WatchState],
        held: @escaping @Sendable () async -> [String: Int],
        awaited: @escaping @Sendable () -> Set<String> = { [] },
        onReturn: @escaping @Sendable (Set<String>) async throws -> Void
    ) {
        (self.context, self.stateHealth, self.signal) = (context, stateHealth, signal)
        self.states = states
        self.held = held
        self.awaited = awaited
        self.onReturn = onReturn
    }

    func run() async throws {
        while !Task.isCancelled {
            let start = context.clocks.monotonic()
            do { try await refresh() } catch let error as StoreError { stateHealth.failed(error) }
            let end = context.clocks.monotonic()
            await pause.wait(atMost: max(Self.minInspectionInterval, end.since(start) * 20))
            let next = cards.compactMap(\.watch.next).min()
            await signal.wait(
                atMost: next.map { max(.milliseconds(10), $0.since(context.clocks.monotonic())) })
        }
    }

    private func refresh() async throws {
        // In the order in which a file moves on: a file that moves during the inspection is seen at its next station.
        let states = states()
        let circumstances = Circumstances(context.configuration.value, states)
        if circumstances != seen {
            let disks = await disks(of: awaited(), states)
            let back = circumstances.returned(since: seen).union(disks.filter { self.disks[$0.key] != $0.value }.keys)
            if !back.isEmpty { try await onReturn(back) }
            self.disks = disks
            media = await media(states)
            seen = circumstances
        }
        if media.isEmpty {
            cards = []
            return
        }
        let waiting = await held()
        var now: [MediumProgress] = []
        for medium in media {
            let clock = context.clocks.monotonic()
            var card =
                cards.first { $0.medium == medium }
                ?? MediumProgress(medium: medium, watch: RemovalSafetyReporter(at: clock))
            card.work = try await context.store.read {
                try $0.removableMedia.work(in: Set(medium.folders), on: medium.fileSystem)
            }
            card.work.arrivals = states.filter { medium.folders.contains($0.folder) }.reduce(0) { $0 + $1.settled }
            card.work.isSettling = !medium.folders.allSatisfy { folder in
                waiting[folder] == nil
                    && states.contains { $0.folder == folder && $0.isQuiet && $0.device == medium.device }
            }
            if let level = card.watch.note(card.work, at: clock) { try await report(level, of: card) }
            now.append(card)
        }
        cards = now
    }

    private func report(_ level: RemovalSafety, of card: MediumProgress) async throws {
        let folders = card.medium.folders.joined(separator: ", ")
        context.log.notice(
            level == .verified
                ? "safe to remove: every file on it is verified at its destinations"
                : "safe to remove: every file on it is staged, and uploads continue without it",
            ["folders": folders, "path": card.medium.place.display])
        try await context.store.write {
            try $0.events.append(
                .safeToRemove(
                    level, folders: card.medium.folders, path: card.medium.place, medium: card.medium.fileSystem,
                    unverified: card.work.unverified, failed: card.work.failed))
        }
    }

    /// The file systems of the present ones of these folders.
    private func disks(of folders: Set<String>, _ states: [WatchState]) async -> [String: String] {
        let wanted = context.settings.presentFolders.filter { folder in
            folders.contains(folder.watch.name)
                && states.contains { $0.folder == folder.watch.name && Self.isThere($0) }
        }
        if wanted.isEmpty { return [:] }
        // Only a stop is thrown.
        return
            (try? await blocking {
                let fileSystems = FileSystems()
                return Dictionary(
                    wanted.map { folder in
                        let device = Files.real(folder.watch.path).flatMap { try? FileStatus(at: $0).device }
                        let system = device.flatMap { fileSystems.identity(at: folder.watch.path, device: $0)?.name }
                        return (folder.watch.name, system ?? "")
                    }, uniquingKeysWith: { $1 })
            }) ?? [:]
    }

    /// The present media, each with its folders.
    private func media(_ states: [WatchState]) async -> [Medium] {
        let settings = context.settings
        let wanted = settings.presentFolders.filter { folder in
            folder.removable != .never
                && states.contains { $0.folder == folder.watch.name && Self.isThere($0) }
        }
        // Only a stop is thrown.
        return wanted.isEmpty ? [] : (try? await blocking { Self.media(wanted) }) ?? []
    }

    private static func media(_ folders: [FolderSettings]) -> [Medium] {
        let (disks, fileSystems) = (RemovableDisk(), FileSystems())
        let root = try? FileStatus(at: "/").device
        var media: [UInt64: [(name: String, place: FilePath)]] = [:]
        for folder in folders {
            // A folder that disappears meanwhile is no medium.
            guard let place = Files.real(folder.watch.path), let device = try? FileStatus(at: place).device,
                device != root
            else { continue }
            if folder.removable == .auto, !disks.contains(place) { continue }
            media[device, default: []].append((folder.watch.name, place))
        }
        return media.map { device, folders in
            Medium(
                fileSystem: fileSystems.identity(at: folders[0].place, device: device)?.name, device: device,
                folders: folders.map(\.name), place: folders[0].place)
        }.sorted { $0.place.bytes.lexicographicallyPrecedes($1.place.bytes) }
    }

    /// The state of a folder's medium; `nil` where there is none.
    func view(_ folder: String) -> CardView? {
        guard let card = cards.first(where: { $0.medium.folders.contains(folder) }) else { return nil }
        let work = card.work
        return CardView(
            level: work.level.rawValue, settling: work.isSettling, unstaged: work.unstaged,
            unverified: work.unverified, failed: work.failed, unreleased: work.unreleased)
    }
}
