package import Config
package import Core
internal import Credentials
package import Destinations
package import Linux
internal import Staging
internal import Store
internal import Synchronization
internal import Transport
internal import Watch

/// The daemon: opens the rooms, connects them, and runs their loops until it is cancelled.
///
/// ```
/// let agent = try await Agent.start(loaded.settings, kinds: DestinationTable.builtIn, log: log)
/// try await agent.run()
/// ```
package final class Agent: Sendable {
    let house: House
    let dispatcher: Dispatcher
    let watcher: Watcher
    let intake: Intake
    let fileSystems: FileSystems
    let startedAt: WallTime
    let batch = Batch()
    let board: EventBoard
    let stager: Stager
    private let releaser: Releaser
    private let removals: RemoteRemovals
    private let firstWatch: Set<String>
    private let transport: Transport
    private let isReady = Atomic(false)

    /// Opens the state and the staging folder, and makes the destinations. Uploads that an earlier process left under
    /// way are queued again; nothing is sent yet.
    ///
    /// - Throws: `StateLocked`, `StoreError`, `SystemError`, or what a destination says of its settings.
    package static func start(
        _ settings: Settings, kinds: [DestinationKind], clocks: any Clocks = SystemClocks(), log: Log
    ) async throws -> Agent {
        let store = try await Store.open(settings.state, clocks: clocks, sorting: sorting(settings.policy.order))
        let staging = StagingArea(folder: settings.staging.path, method: method(settings.staging.copy))
        let copies = try await blocking { try staging.prepare() }
        let transport = Transport()
        let destinations = try makeDestinations(settings, kinds, transport, clocks, log)
        var firstWatch: Set<String> = []
        for folder in settings.folders where try await store.isFirstWatch(of: folder.watch.name) {
            firstWatch.insert(folder.watch.name)
        }
        let house = House(
            settings: settings, store: store, staging: staging, clocks: clocks, log: log, destinations: destinations,
            live: LiveUploads(clocks: clocks))
        _ = await store.listen(house.stateWorks)
        let agent = Agent(house, transport, firstWatch: firstWatch)
        try await agent.sweep(copies)
        return agent
    }

    private init(_ house: House, _ transport: Transport, firstWatch: Set<String>) {
        self.house = house
        self.transport = transport
        self.firstWatch = firstWatch
        startedAt = house.clocks.wall()
        fileSystems = FileSystems()
        intake = Intake(house: house)
        dispatcher = Dispatcher(house: house)
        board = EventBoard(house: house)
        let store = house.store
        let skipping = house.settings.folders.filter { $0.watch.existing == .skip }.map(\.watch.name)
        let watcher = Watcher(
            rules: house.settings.folders.map(\.watch), skipExisting: firstWatch.intersection(skipping),
            clocks: house.clocks, isKnown: { try await store.known($0) },
            log: { house.log.notice($0) })
        self.watcher = watcher
        stager = Stager(house: house) { watcher.reconsider(folder: $0, relative: $1) }
        releaser = Releaser(house: house)
        removals = RemoteRemovals(house: house, dispatcher: dispatcher)
    }

    /// Runs until the task is cancelled; then stops every transfer at once, with its checkpoint stored, and returns.
    package func run() async throws {
        await announceStart()
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await self.watch() }
                group.addTask { try await self.stager.run() }
                group.addTask { try await self.dispatcher.run() }
                group.addTask { try await self.releaser.run() }
                group.addTask { try await self.removals.run() }
                group.addTask { try await Upkeep(house: self.house, fileSystems: self.fileSystems).run() }
                for bell in [house.stagerBell, house.releaseBell, house.upkeepBell] { bell.ring() }
                // The first loop that ends, ends all: by the cancel, or by an error that none of them can mend.
                defer { group.cancelAll() }
                try await group.next()
            }
        } catch is CancellationError {
            // How a stop looks from inside.
        }
        await transport.stop()
        house.log.notice("stopped")
    }

    /// Start-up is over: changing verbs are taken.
    var isStarting: Bool { !isReady.load(ordering: .acquiring) }

    private func watch() async throws {
        let store = house.store
        try await watcher.run(
            onSettled: { [intake] in try await intake.take($0) },
            onSkipped: { [intake] in try await intake.skipExisting($0) },
            // Only now: a process that dies before would take the rest of the old files for new ones.
            onScanned: { [firstWatch] folder in
                if firstWatch.contains(folder) { try await store.noteWatched(folder) }
            })
    }

    private func announceStart() async {
        do {
            let tallies = try await house.store.tallies()
            let ongoing = tallies.filter { !$0.state.isTerminal }.reduce(0) { $0 + $1.uploads }
            try await house.store.announce("loaded", ["ongoing": "\(ongoing)"])
            house.log.notice(
                "started",
                [
                    "version": sluiceVersion, "state": house.settings.state.display,
                    "staging": house.staging.folder.display, "folders": "\(house.settings.folders.count)",
                    "destinations": "\(house.settings.destinations.count)", "ongoing": "\(ongoing)",
                ])
            await warnOfLittleRoom()
        } catch {
            if let error = error as? StoreError { house.stateFailed(error) }
            house.log.error("the start could not be recorded", ["reason": "\(error)"])
        }
        isReady.store(true, ordering: .releasing)
    }

    private func warnOfLittleRoom() async {
        let folder = house.settings.state
        // A file system that does not tell its space is no fault.
        guard let free = try? await blocking({ try Space(at: folder).free }), free < Store.scarceRoom else { return }
        house.log.warning(
            "little room for the state: it works on, with more writes to the disk",
            ["path": folder.display, "free": "\(free)", "wanted": "\(Store.scarceRoom)"])
    }

    /// Removes copies that no asset counts on: from a crash between the rename and its record, or after the release.
    private func sweep(_ copies: [FilePath]) async throws {
        for chunk in stride(from: 0, to: copies.count, by: 500).map({ copies[$0..<min($0 + 500, copies.count)] }) {
            let numbers = chunk.compactMap { $0.text.flatMap { Int64($0) } }
            let owned = try await house.store.owned(numbers)
            let staging = house.staging
            let stray = numbers.filter { !owned.contains($0) }
            try await blocking { for name in stray { try staging.remove(FilePath("\(name)")) } }
            if !stray.isEmpty { house.log.info("swept copies that nobody needs", ["files": "\(stray.count)"]) }
        }
    }

    private static func makeDestinations(
        _ settings: Settings, _ kinds: [DestinationKind], _ transport: Transport, _ clocks: any Clocks, _ log: Log
    ) throws -> [String: any Destination] {
        var made: [String: any Destination] = [:]
        for destination in settings.destinations {
            guard let kind = kinds.first(where: { $0.type.name == destination.type }) else { continue }
            made[destination.name] = try kind.make(
                destination.values,
                DestinationTools(
                    transport: transport, secrets: SecretReader(), clocks: clocks, name: destination.name,
                    log: { log.notice($0, ["destination": destination.name]) }))
        }
        return made
    }

    private static func sorting(_ order: PolicySettings.Order) -> UploadSort {
        switch order {
        case .newestFirst: .newestFirst
        case .oldestFirst: .oldestFirst
        case .smallestFirst: .smallestFirst
        case .largestFirst: .largestFirst
        }
    }

    private static func method(_ copy: StagingSettings.Copy) -> StagingArea.Method {
        switch copy {
        case .auto: .auto
        case .copy: .copy
        case .reflink: .reflink
        }
    }
}
