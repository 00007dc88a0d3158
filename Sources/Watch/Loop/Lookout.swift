internal import Core
internal import Linux

/// The watching thread: reads events, walks directories, lets files settle.
///
/// It works in short turns, so that events are read every few milliseconds whatever else there is to do, and sleeps when
/// nothing is due. Not `Sendable`: made, used and ended on one thread.
final class Lookout {
    var rules: [Rule]
    let folders: SourceFolders
    let pace: WatchPace
    let clocks: any Clocks
    let mailbox: Mailbox
    let bell: Bell
    let ask: (Identities) -> Void
    let deliver: (Mailbox.Delivery) -> Void
    let onRest: (() -> Void)?
    /// Called when folders do otherwise than before.
    let onNews: (() -> Void)?
    let log: (Remark) -> Void
    /// Called when something was mounted or unmounted, before anything is looked at again.
    let onMounts: (() -> Void)?

    let fileSystems = FileSystems()
    var roots: [Root]
    /// Trees that another thread watches: they take files of ours where they lie in each other.
    var others: [Root] = []
    let openFiles: OpenFiles
    /// `nil` without `/proc`: mounts are then noticed by the next scan.
    let mounts = try? MountNews()
    /// `nil` when the kernel has no instance for us: everything is scanned from time to time then.
    var inotify: Inotify?
    /// The directories of a watch. Several where trees overlap: the kernel has one watch for a directory.
    var watches: [Int32: [Directory]] = [:]
    /// Directories that are looked through from time to time, and when.
    var polled: [ObjectIdentifier: Directory] = [:]
    var polls = Deadlines<ObjectIdentifier>()
    var hasSaidLimit = false
    /// What somebody has to mend, by the directory.
    var troubles: [ObjectIdentifier: Trouble] = [:]
    /// Directories that left one name and may turn up under another.
    var moving: [(cookie: UInt32, directory: Directory, until: MonotonicTime)] = []
    /// Grows with every directory that moves, and when claims change: paths and claims worked out before are no longer to
    /// be trusted.
    var moves = 0
    var overflows = 0
    /// When the kernel last lost events: what follows within ``burst`` belongs to the same burst, and is said once.
    var lastOverflow: MonotonicTime?
    static let burst: Duration = .seconds(10)

    /// Directories that events told of, and all others.
    var urgent = Queue<Directory>()
    var ordinary = Queue<Directory>()
    var cursor: Cursor?
    var generation = 0
    /// Names of the directory that is being listed, to be looked at together; each with the rule that takes it.
    var listed = FolderLooks()
    /// Files that a scan found and nobody has been asked about; and those that the question out there is about.
    var found = Finds()
    var asked: Finds?
    /// Empty, with the memory of the last question, for as long as a scan goes on.
    var spare = Finds()
    /// Files of a first scan that are to be skipped, unless an event that is still queued tells of them.
    var skipped: [Place: SettledFile] = [:]

    var settling: Settling<Place>
    var containers = ContainerChecks()
    /// Files that wait for the marker at a place.
    var awaited: [Place: Set<Place>] = [:]
    /// Files of which it was said that they cannot be looked at.
    var complained: Set<Place> = []
    var lastMarkerSweep: MonotonicTime?
    /// It was said that `/proc` does not show everything.
    var hasSaidClosed = false
    /// Settled, and waiting to be taken. At most ``WatchPace/batch``.
    var ready: [(place: Place, file: SettledFile)] = []
    var outbox = Queue<Mailbox.Delivery>()
    var isDelivering = false

    var now: MonotonicTime
    var isStopped = false
    private var hasMountNews = false
    /// Something that people can see has changed since the board was last written.
    var hasNews = true
    var lastPublished: MonotonicTime?
    private var told: [WatchState] = []
    /// How many files of each folder have settled so far.
    var settled: [String: Int] = [:]
    struct Count {
        var files = 0
        var new = 0
    }

    /// What looks have come across so far, by folder, and what the last one that is over came across.
    var cameAcross: [String: Count] = [:]
    private var lastLook: [String: Count] = [:]
    /// How often mounts have changed.
    var mountNews = 0

    /// - Parameters:
    ///   - ours: Paths of the trees that this thread watches.
    init(
        rules: [Rule], ours: Set<FilePath>, folders: SourceFolders, pace: WatchPace, clocks: any Clocks,
        mailbox: Mailbox, bell: Bell,
        ask: @escaping (Identities) -> Void, deliver: @escaping (Mailbox.Delivery) -> Void,
        onRest: (() -> Void)? = nil, onMounts: (() -> Void)? = nil, onNews: (() -> Void)? = nil,
        log: @escaping (Remark) -> Void
    ) {
        self.rules = rules
        self.folders = folders
        self.pace = pace
        self.clocks = clocks
        self.mailbox = mailbox
        self.bell = bell
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
        (roots, others) = Self.roots(of: rules, in: folders, ours: ours, nextLook: start)
        reclaim()
        do { inotify = try Inotify(limit: pace.watches) } catch {
            notice(
                "no events from the kernel (\(error)); folders are looked through every \(words(pace.poll)) to "
                    + "\(words(pace.pollMost)) instead. The limit is fs.inotify.max_user_instances, now "
                    + "\(Inotify.instanceLimit); raise it with `sysctl fs.inotify.max_user_instances=512`")
        }
    }

    func notice(_ text: String) { log(Remark(.notice, text)) }

    /// Says that something below a root cannot be looked at. A disk that was pulled out fails for each file on it: that is
    /// said once.
    func notice(_ error: SystemError, below root: Root, _ text: String) {
        guard error.isOfDisk else { return notice(text) }
        root.hasFailed = true
        if root.hasLostDisk { return }
        root.hasLostDisk = true
        root.nextLook = min(root.nextLook, now.advanced(by: pace.absent))
        notice("the disk of folder \(root.path.display) fails (\(error)); its files wait until it works, or is back")
    }

    /// Asks anew who may claim files where.
    func reclaim() {
        for root in roots { root.claimants = Claimant.all(for: root, among: roots + others, rules: rules) }
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
            // Whoever hears of the rest looks at the board.
            if isAtRest { lastPublished = nil }
            publish()
            mailbox.note(isAtRest: isAtRest)
            if isAtRest { onRest?() }
            // Files to be skipped wait only for the events that are queued already.
            if !canScan && skipped.isEmpty {
                let longest = nextDeadline.map { $0.since(clocks.monotonic()) }
                mailbox.watchdog?.rest()
                hasMountNews = bell.wait(orNewsOf: inotify, mounts: mounts, longest: longest)
            }
        }
        mailbox.watchdog?.rest()
        // Parents and children hold each other.
        for root in roots { dissolve(root.top) }
    }

    private var nextDeadline: MonotonicTime? {
        var times = roots.map(\.nextLook) + moving.map(\.until)
        if let poll = polls.first { times.append(poll.at) }
        // With a full tray the next delivery's end wakes us.
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

    /// Looks for folders that are absent, and scans those whose time has come.
    private func lookAtRoots() {
        for root in roots where root.nextLook <= now {
            fileSystems.forget()
            hasNews = true
            root.nextLook = now.advanced(by: pace.reconcile)
            // Not `now`, which may be from before somebody asked for it.
            root.lookBegan = clocks.monotonic()
            root.before = cameAcross
            root.hasFailed = false
            enqueue(root.top, root.isFirst ? .first : .reconcile)
        }
    }

    /// Files are between the scan or their settling and whoever takes them.
    private var isHandingOn: Bool {
        !found.isEmpty || asked != nil || !skipped.isEmpty || !ready.isEmpty || !outbox.isEmpty || isDelivering
    }

    private var isAtRest: Bool {
        guard cursor == nil, urgent.isEmpty, ordinary.isEmpty, moving.isEmpty, !isHandingOn else { return false }
        let areScanned = roots.allSatisfy { root in
            switch root.condition {
            case .absent, .failed: true
            case .unknown: false
            case .present: !root.isFirst && root.visits == 0 && root.nextLook > now
            }
        }
        return areScanned
            && settling.all.values.allSatisfy { candidate in
                candidate.isGrowing || candidate.isBusy || candidate.hold == .container || candidate.hold == .marker
                    || ofAge(candidate) != nil
            }
    }

    /// Everything is to be looked at again, or what these folders name.
    func scanAll(_ folders: Set<String>? = nil) {
        for root in roots
        where folders.map({ names in root.rules.contains { names.contains(rules[$0].settings.name) } }) ?? true {
            root.nextLook = now
        }
    }

    /// What the last looks came across is known, or settles.
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

    // MARK: - Telling

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

    /// The first of each root by their texts.
    private func shownTroubles() -> [ObjectIdentifier: (texts: [String], more: Int)] {
        Dictionary(grouping: troubles.values) { ObjectIdentifier($0.directory.root) }.mapValues { troubles in
            let texts = troubles.map(\.text).sorted()
            return (Array(texts.prefix(Self.mostTroubles)), max(0, texts.count - Self.mostTroubles))
        }
    }

    private static let mostTroubles = 3

    private func isQuiet(_ root: Root) -> Bool {
        root.condition == .present && !root.isFirst && root.visits == 0 && root.nextLook > clocks.monotonic()
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
