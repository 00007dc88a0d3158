internal import Config
internal import Core
internal import Linux
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
    let live: LiveUploads

    private final class Current: Sendable {
        let setup: Mutex<Setup>
        init(_ setup: Setup) { self.setup = Mutex(setup) }
    }

    init(setup: Setup, store: Store, clocks: any Clocks, log: Log) {
        current = Current(setup)
        self.store = store
        self.clocks = clocks
        self.log = log
        live = LiveUploads(clocks: clocks)
        stagerBell = Nudge(rest)
        dispatchBell = Nudge(rest)
        releaseBell = Nudge(rest)
        removalBell = Nudge(rest)
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
    /// Files came in, or the daemon has started: what is due once a day may be due.
    let upkeepBell = Nudge()
    let troubles = Troubles()
    /// Why single assets wait for their copy, by their number.
    let stagingHolds = Troubles()

    func folder(_ name: String) -> FolderSettings? { settings.folders.first { $0.watch.name == name } }

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
    private let standing = Mutex<[String: Hold]>([:])

    subscript(about: String) -> Hold? { standing.withLock { $0[about] } }
    var all: [Hold] { standing.withLock { Array($0.values) } }

    /// - Returns: Whether this is news: worth a line in the log.
    func set(_ about: String, _ hold: Hold) -> Bool {
        standing.withLock { standing in
            let isNews = standing[about]?.text != hold.text
            // It began when it began, however often it is found again.
            standing[about] =
                standing[about].map { Hold(hold.kind, since: $0.since, until: hold.until, text: hold.text) } ?? hold
            return isNews
        }
    }

    /// - Returns: Whether there was any.
    func clear(_ about: String) -> Bool { standing.withLock { $0.removeValue(forKey: about) != nil } }
}
