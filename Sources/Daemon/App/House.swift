internal import Config
internal import Core
internal import Credentials
internal import Linux
internal import Names
internal import Staging
internal import Store
internal import Synchronization

/// What a reload replaces, as one value: nobody sees half of the new and half of the old.
struct Setup: Sendable {
    var settings: Settings
    var staging: StagingArea
    var destinations: [String: any Destination]
    /// Since when it is in force.
    var since: WallTime
}

/// What every part of the daemon shares: the rooms as they were opened at start, and the bells between the loops.
struct House: Sendable {
    private let current: Current
    let store: Store
    let clocks: any Clocks
    let log: Log
    /// The configured folders: every source is reached through them.
    let sources: SourceFolders
    let live: LiveUploads
    /// Copies that are being made.
    let making: LiveStaging
    /// How fast bytes may go.
    let lanes: Lanes
    let nameBook = NameBook()
    let secrets = SecretReader()
    let ledger: Ledger
    /// What happened since the start, in numbers.
    let counters = Counters()

    private final class Current: Sendable {
        let setup: Mutex<Setup>
        init(_ setup: Setup) { self.setup = Mutex(setup) }
    }

    init(
        setup: Setup, store: Store, clocks: any Clocks, log: Log, sources: SourceFolders = SourceFolders()
    ) {
        self.sources = sources
        current = Current(setup)
        self.store = store
        self.clocks = clocks
        self.log = log
        live = LiveUploads(clocks: clocks)
        making = LiveStaging(clocks: clocks)
        lanes = Lanes(clocks: clocks)
        ledger = Ledger(store: store, clocks: clocks, log: log, settings: setup.settings, counters: counters)
        stagerBell = Nudge(rest)
        dispatchBell = Nudge(rest)
        releaseBell = Nudge(rest)
        removalBell = Nudge(rest)
        roomBell = Nudge(rest)
        gatheringBell = Nudge(rest)
        let hookBell = Nudge(rest)
        self.hookBell = hookBell
        hookSlots = HookSlots { hookBell.ring() }
    }

    /// What is in force now. Whoever asks it twice takes it once.
    var setup: Setup { current.setup.withLock { $0 } }
    var settings: Settings { setup.settings }
    var staging: StagingArea { setup.staging }
    var destinations: [String: any Destination] { setup.destinations }

    /// Only for ``Dispatcher/take(_:changed:)``, which sees to what runs.
    func replace(_ setup: Setup) { current.setup.withLock { $0 = setup } }

    let rest = Rest()
    /// Assets may be waiting to be copied.
    let stagerBell: Nudge
    /// Uploads may be waiting to go.
    let dispatchBell: Nudge
    /// Assets may be waiting for their release.
    let releaseBell: Nudge
    /// Remote remains may be waiting to be removed.
    let removalBell: Nudge
    /// Files came that travel with others.
    let gatheringBell: Nudge
    /// Verified sources that are kept for a while may be due.
    let roomBell: Nudge
    /// Hooks may have something to be told of.
    let hookBell: Nudge
    let hookSlots: HookSlots
    let questions = Questions()
    /// Files came in, or the daemon has started: what is due once a day may be due.
    let upkeepBell = Nudge()
    /// Folders of removable media may do otherwise than before.
    let cardBell = Nudge()
    /// Something is over, and leaves its list one day.
    let listBell = Nudge()
    /// What is written for those who do not ask may be due.
    let reportBell = Nudge()
    let mediaReading = MediaReading()
    let troubles = Troubles()
    /// Why that cannot be written, which holds nothing.
    let reportTroubles = Troubles()
    /// Why single assets wait for their copy, by their number.
    let stagingHolds = Troubles()
    /// Folders with verified sources that stay, since it cannot be known whether they are open for writing.
    let unsureReleases = Troubles()
    /// Folders whose disk is away, with files that wait for it.
    let away = Troubles()

    /// Says that the state cannot be written: once, whoever finds it and however often. The dispatcher then tries it
    /// every few seconds until it can; ``stateWorks`` takes it back.
    func stateFailed(_ error: StoreError) {
        var text = "the state in \(settings.state.display) cannot be written: \(error.message)"
        let reason = text
        // A disk that does not tell its space may be the very trouble.
        if error.isFull, let space = try? Space(at: settings.state) {
            text += "; \(space.free) bytes are free there, and \(Store.neededRoom) are needed"
        }
        guard troubles.set("state", Hold(.disk, since: clocks.wall(), text: text), news: reason) else { return }
        log.error("the state cannot be written: nothing is taken in, sent or released", ["reason": text])
        dispatchBell.ring()
    }

    /// Says that files wait for the disk of their folder: once, however many they are. ``disksAreBack(_:)`` takes it back.
    func diskIsAway(_ folder: String, _ reason: String) {
        guard away.set(folder, Hold(.absent, since: clocks.wall(), text: reason), news: "") else { return }
        log.notice("files of a folder wait for its disk", ["folder": folder, "reason": reason])
    }

    func disksAreBack(_ folders: Set<String>) { for folder in folders { _ = away.clear(folder) } }

    /// Called after each commit: what waits for the state goes on.
    var stateWorks: @Sendable () -> Void {
        // Not `self`: the store keeps this, and would keep itself.
        let (troubles, log) = (troubles, log)
        let bells = [dispatchBell, stagerBell, releaseBell, removalBell, roomBell, cardBell, hookBell]
        return {
            guard troubles.clear("state") else { return }
            log.notice("the state can be written again")
            for bell in bells { bell.ring() }
        }
    }

    func source(of asset: AssetRecord) -> SourceFile { sources.source(asset.path) }

    func folder(_ name: String) -> FolderSettings? {
        settings.folders.first { $0.watch.name == name }
            ?? (name == FolderSettings.received.watch.name ? .received : nil)
    }

    /// Of all that uploads may come from.
    var folderNames: [String] { settings.folders.map(\.watch.name) + [FolderSettings.received.watch.name] }

    func settings(ofDestination name: String) -> DestinationSettings? {
        settings.destinations.first { $0.name == name }
    }

    /// How long to wait between attempts for a destination: its own setting, else the folder's, else the global one.
    func retry(folder: String, destination: String) -> Backoff {
        settings(ofDestination: destination)?.policy.retry ?? self.folder(folder)?.policy.retry ?? settings.policy.retry
    }
}

/// What stands in the way of everybody, by what it is about: shown by `status`, logged when it comes and when it goes.
final class Troubles: Sendable {
    private let standing = Mutex<[String: (hold: Hold, news: String, count: Int)]>([:])

    subscript(about: String) -> Hold? { standing.withLock { $0[about]?.hold } }
    var all: [Hold] { standing.withLock { $0.values.map(\.hold) } }
    var byName: [String: Hold] { standing.withLock { $0.mapValues(\.hold) } }

    /// - Parameter news: The part of the text whose change is worth telling; all of it by default.
    /// - Returns: Whether this is news: worth a line in the log.
    func set(_ about: String, _ hold: Hold, news: String? = nil) -> Bool {
        let news = news ?? hold.text
        return standing.withLock { standing in
            let isNews = standing[about]?.news != news
            // It began when it began, however often it is found again.
            let since = standing[about]?.hold.since ?? hold.since
            let count = (standing[about]?.count ?? 0) + 1
            standing[about] = (Hold(hold.kind, since: since, until: hold.until, text: hold.text), news, count)
            return isNews
        }
    }

    /// How often it was met since it came.
    func count(_ about: String) -> Int { standing.withLock { $0[about]?.count ?? 0 } }

    /// - Returns: Whether there was any.
    func clear(_ about: String) -> Bool { standing.withLock { $0.removeValue(forKey: about) != nil } }
}
