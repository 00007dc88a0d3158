internal import Core
internal import Linux
internal import Media

/// The watching thread: reads events, scans directories, lets files settle.
///
/// It owns the run loop and the order of the work; each component owns its own state. It works in short turns, so that
/// events are read every few milliseconds during any other work, and sleeps when nothing is due. Not `Sendable`: made,
/// used and ended on one thread.
final class WatchLoop {
    /// Called on the watching thread.
    struct Handlers {
        /// Answers whether the identities are recorded by an order to the mailbox.
        let query: (PackedFileVersions) -> Void
        let deliver: (Mailbox.Delivery) -> Void
        /// Called when nothing is left to do; without it that is never determined.
        var onRest: (() -> Void)?
        /// Called after a mount or unmount, before any folder is examined again.
        var onMounts: (() -> Void)?
        /// Called when the state of a folder changes.
        var onStateChange: (() -> Void)?
    }

    let pace: WatchLimits
    let clocks: any Clocks
    let log: WatchLog
    private let mailbox: Mailbox
    private let signal: EventFD
    let handlers: Handlers
    let fileSystems = FileSystems()
    /// `nil` without `/proc`: mounts are then noticed by the next scan.
    private let mounts = try? MountEvents()

    var roots: WatchRoots
    var tree: WatchTree
    let scanner = DirectoryScanner()
    var found = FoundFiles()
    var polls: PollSchedule
    let tracker: SettleTracker
    var deliveries: DeliveryQueue
    var board = StatusBoard()
    /// The start of the current turn.
    var now: MonotonicTime

    /// - Parameters:
    ///   - ours: Paths of the trees that this thread watches.
    init(
        rules: [CompiledRule], ours: Set<FilePath>, folders: SourceFolders, pace: WatchLimits, clocks: any Clocks,
        mailbox: Mailbox, signal: EventFD, handlers: Handlers, log: @escaping (WatchLogEntry) -> Void
    ) {
        self.pace = pace
        self.clocks = clocks
        self.mailbox = mailbox
        self.signal = signal
        self.handlers = handlers
        self.log = WatchLog(retry: pace.absent, write: log)
        now = clocks.monotonic()
        roots = WatchRoots(rules: rules, ours: ours, in: folders, at: now)
        polls = PollSchedule(pace: pace)
        deliveries = DeliveryQueue(limit: pace.batch)
        tracker = SettleTracker(pace: pace, clocks: clocks, log: self.log, fileSystems: fileSystems) { number, source in
            inBackground {
                // A file that cannot be read here cannot be copied either, and that is reported then.
                let verdict = try? Container.verdict(
                    of: HeaderReader(of: source.open(), named: source.path.shown), named: source.name)
                mailbox.post(.checked(number, verdict))
            }
        }
        do { tree = WatchTree(inotify: try Inotify(limit: pace.watches)) } catch {
            tree = WatchTree(inotify: nil)
            self.log.notice(
                "cannot use inotify (\(error)); scanning folders every \(words(pace.poll)) to "
                    + "\(words(pace.pollMost)) instead. The limit is fs.inotify.max_user_instances, now "
                    + "\(Inotify.instanceLimit); raise it with `sysctl fs.inotify.max_user_instances=512`")
        }
    }

    func run() {
        var hasMountEvent = false
        while true {
            now = clocks.monotonic()
            mailbox.watchdog?.beginTurn(at: now)
            mailbox.turns.beginTurn()
            if hasMountEvent { handlers.onMounts?() }
            if applyOrders() { break }
            if hasMountEvent { checkMounts() }
            hasMountEvent = false
            if readEvents() { deliveries.addSkipped(found.removeSkipped()) }
            forget(tree.expireRenames(at: now))
            checkRoots()
            visitPolled()
            evaluateDue()
            scan()
            queryFound()
            reportFirstScans()
            if let delivery = deliveries.next() { handlers.deliver(delivery) }
            let isAtRest = handlers.onRest != nil && isAtRest
            // The receiver of the rest notification reads the board.
            if isAtRest { board.publishWithoutDelay() }
            publish()
            mailbox.setAtRest(isAtRest)
            if isAtRest { handlers.onRest?() }
            // Files to be skipped wait only for the events that are queued already.
            if !canScan && !found.hasSkipped {
                let longest = nextDeadline.map { $0.since(clocks.monotonic()) }
                mailbox.watchdog?.endTurn()
                hasMountEvent = signal.wait(orEventsOf: tree.inotify, mounts: mounts, longest: longest)
            }
        }
        mailbox.watchdog?.endTurn()
        // Parents and children hold references to each other.
        for root in roots.watched { _ = tree.forgetContent(of: root) }
    }

    private var nextDeadline: MonotonicTime? {
        var times = roots.watched.map(\.state.nextCheck)
        let others = [
            tree.nextDeadline, polls.nextDeadline,
            // With a full delivery, its end wakes us.
            deliveries.freeSlots > 0 ? tracker.nextDeadline : nil, board.nextDeadline,
        ]
        times += others.compactMap { $0 }
        return times.min()
    }

    // MARK: - Orders

    /// - Returns: Whether the loop has to end.
    private func applyOrders() -> Bool {
        var isStopped = false
        for order in mailbox.removeOrders() {
            board.markChanged()
            switch order {
            case .stop: isStopped = true
            case .rescan(let folders): scanAll(folders)
            case .change(let rules, let skipping, let ours):
                change(to: rules.map { CompiledRule($0, skipsExisting: skipping.contains($0.name)) }, ours: ours)
            case .reconsider(let folder, let relative): reconsider(folder, relative)
            case .known(let known): applyAnswer(known)
            case .checked(let number, let verdict): tracker.finishCheck(number, verdict, at: now)
            case .delivered: deliveries.confirm()
            }
        }
        return isStopped
    }

    /// Requests a scan of everything, or of the folders with these names.
    func scanAll(_ folders: Set<String>? = nil) {
        for root in roots.watched
        where folders.map({ names in root.rules.contains { names.contains(roots.name(of: $0)) } }) ?? true {
            root.state.requestCheck(at: now)
        }
    }

    /// Checks a file again that turned out to be changing still.
    private func reconsider(_ folder: String, _ relative: FilePath) {
        guard let root = roots.root(ofFolder: folder) else { return }
        if let directory = tree.directory(relative.parent, in: root) {
            noteFile(relative.name, in: directory, .event)
        } else {
            // Not seen yet, or moved: a scan finds it in its current place.
            root.state.requestCheck(at: now)
        }
    }

    /// Lets the new files among those of a query settle.
    private func applyAnswer(_ known: [Bool]) {
        found.endQuery(known) { file in
            // An event may have come first, and has newer information.
            guard !file.directory.isGone, !tracker.contains(file.place),
                tracker.accepts(
                    file.place, rule: roots.rules[file.rule],
                    at: file.directory.relative ?? file.identity.relative.parent, at: now)
            else { return }
            board.addNew(in: roots.name(of: file.rule))
            tracker.note(file.place, file.evidence, rule: file.rule, of: roots.rules, file.status, at: file.at)
            polls.accelerate(file.directory, at: now)
        }
    }

    // MARK: - Changes of the rules

    /// Applies other rules. A tree with unchanged matches keeps its watches, its settling files and the files found in
    /// it. A tree with changed matches is scanned as if for the first time, with its watches in place.
    private func change(to new: [CompiledRule], ours: Set<FilePath>) {
        let change = roots.change(to: new, ours: ours, at: now)
        for root in change.dropped { drop(root) }
        tree.invalidatePaths()
        reassign(change.oldFolders)
        board.markChanged()
        // People must see their changes at once.
        board.publishWithoutDelay()
    }

    private func drop(_ root: Root) {
        scanner.drop(root)
        found.drop(root)
        tracker.drop(root)
        polls.drop(root)
        deliveries.drop(root)
        board.drop(root)
        tree.drop(root)
    }

    /// Determines the rules again of files that are being processed.
    private func reassign(_ oldFolders: [String]) {
        let rules = roots.rules
        func rule(_ place: WatchedFile, _ size: Int64) -> Int? {
            guard !place.directory.isGone, let folder = place.directory.relative else { return nil }
            return place.directory.rule(for: place.name, size: size, at: folder, among: rules)
        }
        // A file of another folder is another file: the scan after the change finds it under its new name.
        func rule(_ place: WatchedFile, _ size: Int64, ofFolder name: String) -> Int? {
            rule(place, size).flatMap { rules[$0].settings.name == name ? $0 : nil }
        }
        found.reassign({ rule($0.place, $0.status.size, ofFolder: $0.identity.folder) }) { place, file in
            rule(place, file.status.size, ofFolder: file.folder).map { rules[$0].skipsExisting } ?? false
        }
        deliveries.keepSettled { place, file in rule(place, file.status.size, ofFolder: file.folder) != nil }
        tracker.reassign(rules, oldFolders: oldFolders)
    }

    // MARK: - Settling

    private func evaluateDue() {
        let due = tracker.due(at: now, limit: deliveries.freeSlots)
        if !due.isEmpty { board.markChanged() }
        for place in due {
            switch tracker.evaluate(place, rules: roots.rules, at: now) {
            case .dropped, .postponed: break
            case .waiting: polls.accelerate(place.directory, at: now)
            case .settled(let file): deliveries.addSettled(file, at: place)
            }
        }
    }

    // MARK: - State

    /// Publishes the state of the folders, if it is due.
    private func publish() {
        guard board.beginPublication(at: now) else { return }
        if found.isEmpty { board.recordFinishedScans(roots) }
        let content = board.content(roots, tracker, polls, deliveries, overflows: tree.overflows, at: now) { root in
            root.state.isScanned(at: clocks.monotonic()) && found.isEmpty && !deliveries.isBusy
                && !tree.isRenaming(in: root)
        }
        mailbox.publish(content)
        if board.replaceStates(content.states) { handlers.onStateChange?() }
    }

    private var isAtRest: Bool {
        guard scanner.isIdle, !tree.isRenaming, found.isEmpty, !deliveries.isBusy else { return false }
        let areScanned = roots.watched.allSatisfy { $0.state.condition.isAway || $0.state.isScanned(at: now) }
        return areScanned && tracker.isAtRest(roots.rules, at: now)
    }

    /// Removes directories that left the tree from the other components.
    func forget(_ directories: [WatchedDirectory]) {
        for directory in directories {
            if polls.remove(directory) { board.markChanged() }
            board.remove(directory)
        }
    }
}
