internal import Core
internal import Linux

/// Whether the wall clock is trusted, and which time zone holds.
struct ClockMonitor: Sendable, RecordsChanges {
    static let oldestClock = Zone.utc.start(of: earliestPlausibleDay)

    var changes: FactChanges = []
    private var trust = ClockTrust(oldest: oldestClock)
    /// Why the wall clock is not trusted; `nil` when it is, and where no rule depends on the time.
    private(set) var trouble: Hold? { didSet { if trouble != oldValue { changes.insert(.policy) } } }
    /// The source of the time zone as it was read last.
    private var zone: FileStatus?
    /// The number of the listener to the clock.
    private var listener: Int?

    /// Whether a clock that was set is being watched until it is trusted.
    var isWatching: Bool { trust.isWatching }

    /// Receives the events of a clock that is set.
    mutating func listen(_ log: Log, onEvent: @escaping @Sendable () -> Void) {
        do { listener = try ClockEvents.shared.listen(onEvent) } catch {
            log.warning("cannot watch the clock; a clock change will be noticed late", ["reason": "\(error)"])
        }
    }

    func stop() { if let listener { ClockEvents.shared.forget(listener) } }

    /// A file may have changed that tells the time zone: if another zone was set, it has to be read.
    mutating func filesChanged() { if ZoneSource.identity() != zone { changes.insert(.scheduling) } }

    /// The clock is not checked where no rule depends on it.
    mutating func reset() { trouble = nil }

    /// Reads the time zone again if another one was set.
    ///
    /// - Returns: Whether it was read: days and windows may begin at another moment.
    mutating func refreshZone(at now: WallTime, _ log: Log) -> Bool {
        let source = ZoneSource.identity()
        if source == zone { return false }
        let isFirst = zone == nil
        zone = source
        ZoneSource.read()
        changes.insert(.policy)
        if !isFirst { log.notice("time zone reloaded", ["now": LocalTime(now).clock]) }
        return true
    }

    /// Decides whether the wall clock is trusted.
    mutating func evaluate(_ clocks: any Clocks, _ log: Log) {
        let now = clocks.readBoth()
        let found = trust.evaluate(
            wall: now.wall, monotonic: now.monotonic, isSynchronised: clocks.isSynchronised)
        if let found, trouble?.text != found.text {
            log.warning("uploads that depend on the time wait because the clock is not trusted", ["reason": found.text])
        } else if found == nil, trouble != nil {
            log.notice("the clock is trusted again")
        }
        trouble = found
    }
}
