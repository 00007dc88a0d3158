internal import Core
internal import Linux

/// The watching thread: reads events, scans directories, lets files settle.
///
/// It works in short turns, so that events are read every few milliseconds during any other work, and sleeps when
/// nothing is due. Not `Sendable`: made, used and ended on one thread.
final class WatchLoop {
    var rules: [Rule]
    let folders: SourceFolders
    let pace: WatchPace
    let clocks: any Clocks
    let mailbox: Mailbox
    let signal: EventFD
    let ask: (Identities) -> Void
    let deliver: (Mailbox.Delivery) -> Void
    let onRest: (() -> Void)?
    /// Called when the state of a folder changes.
    let onNews: (() -> Void)?
    let log: (Remark) -> Void
    /// Called after a mount or unmount, before any folder is examined again.
    let onMounts: (() -> Void)?

    let fileSystems = FileSystems()
    var roots: [Root]
    /// Trees that another thread watches: they take files of ours where one tree contains the other.
    var others: [Root] = []
    let openFiles: OpenFiles
    /// `nil` without `/proc`: mounts are then noticed by the next scan.
    let mounts = try? MountEvents()
    /// `nil` when the kernel gives no instance: everything is then polled.
    var inotify: Inotify?
    /// The directories of a watch. There are several where trees overlap: the kernel has one watch for a directory.
    var watches: [Int32: [Directory]] = [:]
    /// Polled directories.
    var polled: [ObjectIdentifier: Directory] = [:]
    var polls = Deadlines<ObjectIdentifier>()
    var hasSaidLimit = false
    /// Problems for a person to fix, by directory.
    var troubles: [ObjectIdentifier: Trouble] = [:]
    /// Directories that left one name and may appear under another.
    var moving: [(cookie: UInt32, directory: Directory, until: MonotonicTime)] = []
    /// Incremented with every directory that moves, and when claims change: paths and claims computed before are then
    /// no longer valid.
    var moves = 0
    var overflows = 0
    /// The time when the kernel last lost events: later losses within ``burst`` belong to the same burst, and are
    /// reported once.
    var lastOverflow: MonotonicTime?
    static let burst: Duration = .seconds(10)

    /// Directories with events, and all others.
    var urgent = Queue<Directory>()
    var ordinary = Queue<Directory>()
    var cursor: DirectoryScan?
    var generation = 0
    /// Names of the directory that is being listed, to be examined together; each with the rule that takes it.
    var listed = FolderStatusReader()
    /// Files found by a scan that were not queried yet; and those of the query under way.
    var found = ScanBatch()
    var asked: ScanBatch?
    /// Empty, with the memory of the last query, for as long as a scan runs.
    var spare = ScanBatch()
    /// Files of a first scan that are to be skipped, unless an event that is still queued reports them.
    var skipped: [Place: SettledFile] = [:]

    var settling: Settling<Place>
    var containers = ContainerChecks()
    /// Files that wait for the marker at a place.
    var awaited: [Place: Set<Place>] = [:]
    /// Files that were reported as unreadable.
    var complained: Set<Place> = []
    var lastMarkerSweep: MonotonicTime?
    /// Whether it was reported that `/proc` does not show everything.
    var hasSaidClosed = false
    /// Settled files that wait to be taken. At most ``WatchPace/batch``.
    var ready: [(place: Place, file: SettledFile)] = []
    var outbox = Queue<Mailbox.Delivery>()
    var isDelivering = false

    var now: MonotonicTime
    var isStopped = false
    private var hasMountNews = false
    /// Whether a visible value has changed since the board was last written.
    var hasNews = true
    var lastPublished: MonotonicTime?
    private var told: [WatchState] = []
    /// The number of settled files of each folder so far.
    var settled: [String: Int] = [:]
    struct Count {
        var files = 0
        var new = 0
    }

    /// Files that current scans have met so far, by folder, and those that the last finished scan met.
    var cameAcross: [String: Count] = [:]
    private var lastLook: [String: Count] = [:]
    /// The number of mount changes.
    var mountNews = 0

    /// - Parameters:
    ///   - ours: Paths of the trees that this thread watches.
    init(
        rules: [Rule], ours: Set<FilePath>, folders: SourceFolders, pace: WatchPace, clocks: any Clocks,
        mailbox: Mailbox, signal: EventFD,
        ask: @escaping (Identities) -> Void, deliver: @escaping (Mailbox.Delivery) -> Void,
        onRest: (() -> Void)? = nil, onMounts: (() -> Void)? = nil, onNews: (() -> Void)? = nil,
        log: @escaping (Remark) -> Void
    ) {
        self.rules = rules
        self.folders = folders
        self.pace = pace
        self.clocks = clocks
        self.mailbox = mailbox
        self.signal = signal
        self.ask = ask
        self.deliver = deliver
        self.onRest = onRest
        self.onMounts = onMounts
        self.onNews = onNews
        self.log = log
        openFiles = OpenFiles(clocks: clocks)
        settling = Settling(quiet: pace.quiet)
        let start = clocks.monotonic()
        now = start
        (roots, others) = Self.roots(of: rules, in: folders, ours: ours, nextCheck: start)
        reclaim()
        do { inotify = try Inotify(limit: pace.watches) } catch {
            notice(
                "no events from the kernel (\(error)); folders are looked through every \(words(pace.poll)) to "
                    + "\(words(pace.pollMost)) instead. The limit is fs.inotify.max_user_instances, now "
                    + "\(Inotify.instanceLimit); raise it with `sysctl fs.inotify.max_user_instances=512`")
        }
    }

    func notice(_ text: String) { log(Remark(.notice, text)) }

    /// Reports that something below a root cannot be examined. A disk that was pulled out fails for each file on it:
    /// that is reported once.
    func notice(_ error: SystemError, below root: Root, _ text: String) {
        guard error.isOfDisk else { return notice(text) }
        root.hasFailed = true
        if root.hasLostDisk { return }
        root.hasLostDisk = true
        root.nextCheck = min(root.nextCheck, now.advanced(by: pace.absent))
        notice("the disk of folder \(root.path.display) fails (\(error)); its files wait until it works, or is back")
    }

    /// Determines the claimants of all roots again.
    func reclaim() {
        for root in roots { root.claimants = RuleMatcher.all(for: root, among: roots + others, rules: rules) }
        moves += 1
    }

    func run() {
        while true {
            now = clocks.monotonic()
            mailbox.watchdog?.pass(now)
            if hasMountNews { onMounts?() }
            takeOrders()
            if isStopped { break }
            if hasMountNews { lookForMounts() }
            hasMountNews = false
            if readNews() { passOnSkipped() }
            expireMoves()
            lookAtRoots()
            visitPolled()
            settle()
            scan()
            askAboutFound()
            noteScanned()
            passOn()
            let isAtRest = onRest != nil && isAtRest
            // The receiver of the rest notification reads the board.
            if isAtRest { lastPublished = nil }
            publish()
            mailbox.note(isAtRest: isAtRest)
            if isAtRest { onRest?() }
            // Files to be skipped wait only for the events that are queued already.
            if !canScan && skipped.isEmpty {
                let longest = nextDeadline.map { $0.since(clocks.monotonic()) }
                mailbox.watchdog?.rest()
                hasMountNews = signal.wait(orNewsOf: inotify, mounts: mounts, longest: longest)
            }
        }
        mailbox.watchdog?.rest()
        // Parents and children hold references to each other.
        for root in roots { dissolve(root.top) }
    }

    private var nextDeadline: MonotonicTime? {
        var times = roots.map(\.nextCheck) + moving.map(\.until)
        if let poll = polls.first { times.append(poll.at) }
        // With a full batch, the end of the next delivery wakes us.
        if ready.count < pace.batch, let next = settling.next { times.append(next) }
        if hasNews, let lastPublished { times.append(lastPublished.advanced(by: Self.publishEvery)) }
        return times.min()
    }

    private func takeOrders() {
        for order in mailbox.takeOrders() {
            hasNews = true
            switch order {
            case .stop: isStopped = true
            case .rescan(let folders): scanAll(folders)
            case .change(let rules, let skipping, let ours):
                change(to: rules.map { Rule($0, skipsExisting: skipping.contains($0.name)) }, ours: ours)
            case .reconsider(let folder, let relative): reconsider(folder, relative)
            case .answered(let known): takeAnswer(known)
            case .checked(let number, let verdict): takeVerdict(number, verdict)
            case .delivered: isDelivering = false
            }
        }
    }

    /// Looks for absent folders, and scans those whose time has come.
    private func lookAtRoots() {
        for root in roots where root.nextCheck <= now {
            fileSystems.forget()
            hasNews = true
            root.nextCheck = now.advanced(by: pace.reconcile)
            // Not `now`, which may be earlier than the request.
            root.lookBegan = clocks.monotonic()
            root.before = cameAcross
            root.hasFailed = false
            enqueue(root.top, root.isFirst ? .first : .reconcile)
        }
    }

    /// Whether files are between their scan or settling and the receiver.
    private var isHandingOn: Bool {
        !found.isEmpty || asked != nil || !skipped.isEmpty || !ready.isEmpty || !outbox.isEmpty || isDelivering
    }

    private var isAtRest: Bool {
        guard cursor == nil, urgent.isEmpty, ordinary.isEmpty, moving.isEmpty, !isHandingOn else { return false }
        let areScanned = roots.allSatisfy { root in
            switch root.condition {
            case .absent, .failed: true
            case .unknown: false
            case .present: !root.isFirst && root.visits == 0 && root.nextCheck > now
            }
        }
        return areScanned
            && settling.all.values.allSatisfy { candidate in
                candidate.isGrowing || candidate.isBusy || candidate.hold == .container || candidate.hold == .marker
                    || ofAge(candidate) != nil
            }
    }

    /// Requests a scan of everything, or of the folders with these names.
    func scanAll(_ folders: Set<String>? = nil) {
        for root in roots
        where folders.map({ names in root.rules.contains { names.contains(rules[$0].settings.name) } }) ?? true {
            root.nextCheck = now
        }
    }

    /// Records finished scans: the files that they met are known, or settle.
    private func noteLooked() {
        guard found.isEmpty, asked == nil, skipped.isEmpty else { return }
        for root in roots where root.visits == 0 && root.lookedSince != root.lookBegan {
            root.lookedSince = root.lookBegan
            for rule in root.rules {
                let name = rules[rule].settings.name
                let (now, before) = (cameAcross[name] ?? Count(), root.before[name] ?? Count())
                lastLook[name] = Count(files: now.files - before.files, new: now.new - before.new)
            }
        }
    }

    // MARK: - Reporting

    private static let publishEvery = Duration.milliseconds(200)

    private func publish() {
        guard hasNews else { return }
        if let lastPublished, now.since(lastPublished) < Self.publishEvery { return }
        hasNews = false
        lastPublished = now
        noteLooked()
        let board = board()
        mailbox.publish(board)
        if board.states != told { onNews?() }
        told = board.states
    }

    private func board() -> Mailbox.Board {
        var counts = [Int](repeating: 0, count: rules.count)
        var oldest = [MonotonicTime?](repeating: nil, count: rules.count)
        var young = [WatchState.Young](repeating: WatchState.Young(), count: rules.count)
        var waiting: [(place: Place, candidate: Settling<Place>.Candidate)] = []
        for (place, candidate) in settling.all {
            let group = candidate.group
            counts[group] += 1
            oldest[group] = min(oldest[group] ?? candidate.first, candidate.first)
            if let at = ofAge(candidate) { young[group].add(at) }
            waiting.append((place, candidate))
        }
        waiting.sort { $0.candidate.first < $1.candidate.first }
        var missing = [ObjectIdentifier: Int](), looked = [ObjectIdentifier: Int]()
        for directory in polled.values {
            let root = ObjectIdentifier(directory.root)
            looked[root, default: 0] += 1
            if directory.watch == nil && !directory.root.isPolled { missing[root, default: 0] += 1 }
        }
        let troubles = shownTroubles()
        var states: [WatchState] = []
        var owners = [Root?](repeating: nil, count: rules.count)
        for root in roots { for rule in root.rules { owners[rule] = root } }
        for (index, rule) in rules.enumerated() {
            guard let root = owners[index] else { continue }
            states.append(
                WatchState(
                    folder: rule.settings.name, path: rule.settings.path, condition: condition(of: root),
                    settling: counts[index], young: young[index], oldest: oldest[index],
                    unwatched: missing[ObjectIdentifier(root)] ?? 0, polled: looked[ObjectIdentifier(root)] ?? 0,
                    troubles: troubles[ObjectIdentifier(root)]?.texts ?? [],
                    moreTroubles: troubles[ObjectIdentifier(root)]?.more ?? 0,
                    settled: settled[rule.settings.name] ?? 0, lookedSince: root.lookedSince,
                    found: lastLook[rule.settings.name]?.files ?? 0, fresh: lastLook[rule.settings.name]?.new ?? 0,
                    isQuiet: isQuiet(root) && counts[index] == 0, mounts: mountNews, device: root.top.device))
        }
        return Mailbox.Board(
            states: states,
            waiting: waiting.prefix(100).compactMap { place, candidate in
                guard let relative = place.directory.relative else { return nil }
                let path = SourcePath(root: place.directory.root.path, relative: relative.appending(place.name))
                return waitingFile(place, candidate, path)
            }, overflows: overflows)
    }

    /// The first texts of each root.
    private func shownTroubles() -> [ObjectIdentifier: (texts: [String], more: Int)] {
        Dictionary(grouping: troubles.values) { ObjectIdentifier($0.directory.root) }.mapValues { troubles in
            let texts = troubles.map(\.text).sorted()
            return (Array(texts.prefix(Self.mostTroubles)), max(0, texts.count - Self.mostTroubles))
        }
    }

    private static let mostTroubles = 3

    private func isQuiet(_ root: Root) -> Bool {
        root.condition == .present && !root.isFirst && root.visits == 0 && root.nextCheck > clocks.monotonic()
            && !isHandingOn && !moving.contains { $0.directory.root === root }
    }

    private func condition(of root: Root) -> WatchState.Condition {
        switch root.condition {
        case .absent(let reason): .absent(reason)
        case .failed(let reason): .failed(reason)
        case .unknown: .scanning
        case .present: root.visits > 0 ? .scanning : .watching
        }
    }
}
