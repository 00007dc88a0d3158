internal import Config
internal import Core
internal import Linux
internal import Store
internal import Watch

/// Says when a removable medium may be pulled out: when every file on it is staged, and again when every one is verified.
///
/// It only watches. After a restart it says again what holds then.
actor Cards {
    private let house: House
    private let states: @Sendable () -> [WatchState]
    /// How many files of each folder wait for their groups.
    private let gathering: @Sendable () async -> [String: Int]
    /// The disk of these folders is there again.
    private let onReturn: @Sendable (Set<String>) async throws -> Void
    /// What is known of a medium that is plugged in.
    private struct Card {
        let medium: Medium
        var watch: CardWatch
        var work = CardWork()
    }
    private var cards: [Card] = []
    /// What ``media`` was found out for.
    private var seen: Circumstances?
    private var media: [Medium] = []
    private var listener: Int?
    /// Never rung: only its time-out counts.
    private let pause = Nudge()

    /// The least time between two looks; a look that takes long makes it longer.
    private static let rhythm: Duration = .milliseconds(500)

    /// A file system that can be pulled out, and the folders on it.
    private struct Medium: Hashable {
        /// As in ``StoredIdentity/fileSystem``.
        let fileSystem: String?
        let device: UInt64
        let folders: [String]
        let place: FilePath
    }

    /// All that decides which media there are.
    private struct Circumstances: Hashable {
        struct Folder: Hashable {
            let name: String
            let isThere: Bool
            let device: UInt64
            let mounts: Int
        }
        let settings: WallTime
        let folders: [Folder]

        init(_ setup: Setup, _ states: [WatchState]) {
            settings = setup.since
            folders = states.map {
                Folder(name: $0.folder, isThere: Cards.isThere($0), device: $0.device, mounts: $0.mounts)
            }
        }

        /// The folders that are there and were not, or stand on another device.
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

    /// What is absent or does not answer is not asked.
    private static func isThere(_ state: WatchState) -> Bool {
        state.condition == .watching || state.condition == .scanning
    }

    init(
        house: House, states: @escaping @Sendable () -> [WatchState],
        gathering: @escaping @Sendable () async -> [String: Int],
        onReturn: @escaping @Sendable (Set<String>) async throws -> Void
    ) {
        self.house = house
        self.states = states
        self.gathering = gathering
        self.onReturn = onReturn
    }

    func run() async throws {
        while !Task.isCancelled {
            let start = house.clocks.monotonic()
            do { try await look() } catch let error as StoreError { house.stateFailed(error) }
            let end = house.clocks.monotonic()
            await listen(!cards.isEmpty)
            if !cards.isEmpty { await pause.wait(atMost: max(Self.rhythm, end.since(start) * 20)) }
            let next = cards.compactMap(\.watch.next).min()
            await house.cardBell.wait(atMost: next.map { max(.milliseconds(10), $0.since(house.clocks.monotonic())) })
        }
    }

    /// What the store writes is of interest only while there is a medium.
    private func listen(_ hasCards: Bool) async {
        if hasCards, listener == nil {
            listener = await house.store.listen { [bell = house.cardBell] in bell.ring() }
            // For what was written just before.
            house.cardBell.ring()
        } else if !hasCards, let old = listener {
            listener = nil
            await house.store.forget(old)
        }
    }

    private func look() async throws {
        // In the order in which a file goes on: one that moves meanwhile is seen at its next station.
        let states = states()
        let circumstances = Circumstances(house.setup, states)
        if circumstances != seen {
            let back = circumstances.returned(since: seen)
            if !back.isEmpty { try await onReturn(back) }
            media = await media(states)
            seen = circumstances
        }
        if media.isEmpty {
            cards = []
            return
        }
        let waiting = await gathering()
        var now: [Card] = []
        for medium in media {
            let clock = house.clocks.monotonic()
            var card = cards.first { $0.medium == medium } ?? Card(medium: medium, watch: CardWatch(at: clock))
            card.work = try await house.store.cardWork(in: Set(medium.folders), on: medium.fileSystem)
            card.work.arrivals = states.filter { medium.folders.contains($0.folder) }.reduce(0) { $0 + $1.settled }
            card.work.isSettling = !medium.folders.allSatisfy { folder in
                waiting[folder] == nil
                    && states.contains { $0.folder == folder && $0.isQuiet && $0.device == medium.device }
            }
            if let level = card.watch.note(card.work, at: clock) { try await tell(level, of: card) }
            now.append(card)
        }
        cards = now
    }

    private func tell(_ level: CardLevel, of card: Card) async throws {
        let folders = card.medium.folders.joined(separator: ", ")
        house.log.notice(
            level == .verified
                ? "safe to remove: every file on it is verified at its destinations"
                : "safe to remove: every file on it is staged, and uploads go on without it",
            ["folders": folders, "path": card.medium.place.display])
        try await house.store.announce(
            "safe_to_remove",
            [
                "level": level.rawValue, "folders": folders, "path": card.medium.place.display,
                "medium": card.medium.fileSystem ?? "", "unverified": "\(card.work.unverified)",
                "failed": "\(card.work.failed)",
            ])
    }

    /// The media that are there, each with its folders.
    private func media(_ states: [WatchState]) async -> [Medium] {
        let settings = house.settings
        let wanted = settings.folders.filter { folder in
            folder.removable != .never
                && states.contains { $0.folder == folder.watch.name && Self.isThere($0) }
        }
        // Only a stop is thrown.
        return wanted.isEmpty ? [] : (try? await blocking { Self.media(wanted) }) ?? []
    }

    private static func media(_ folders: [FolderSettings]) -> [Medium] {
        let (disks, fileSystems) = (RemovableDisk(), FileSystems())
        let root = try? FileLook(at: "/").device
        var media: [UInt64: [(name: String, place: FilePath)]] = [:]
        for folder in folders {
            // One that goes meanwhile is no medium.
            guard let place = Files.real(folder.watch.path), let device = try? FileLook(at: place).device,
                device != root
            else { continue }
            if folder.removable == .auto, !disks.holds(place) { continue }
            media[device, default: []].append((folder.watch.name, place))
        }
        return media.map { device, folders in
            Medium(
                fileSystem: fileSystems.identity(at: folders[0].place, device: device)?.name, device: device,
                folders: folders.map(\.name), place: folders[0].place)
        }.sorted { $0.place.bytes.lexicographicallyPrecedes($1.place.bytes) }
    }

    /// How the medium of a folder stands; `nil` where there is none.
    func view(_ folder: String) -> CardView? {
        guard let card = cards.first(where: { $0.medium.folders.contains(folder) }) else { return nil }
        let work = card.work
        return CardView(
            level: work.level.rawValue, settling: work.isSettling, unstaged: work.unstaged,
            unverified: work.unverified, failed: work.failed, unreleased: work.unreleased)
    }
}
