/// The bytes that the throttles of one transfer have granted, and its wait for more.
struct ThrottleWait {
    /// Bytes of the body that are granted, and that libcurl has not fetched yet.
    private var granted = 0
    private var since: ContinuousClock.Instant?
    /// Part of the answer came while it waits.
    private(set) var isAnsweredInLine = false

    var isWaiting: Bool { since != nil }

    /// Takes granted bytes.
    ///
    /// - Returns: 0 where none are granted; `nil` while it waits.
    mutating func take(upTo wanted: Int) -> Int? {
        guard since == nil else { return nil }
        let count = min(granted, wanted)
        granted -= count
        return count
    }

    /// Begins to wait, unless it waits already.
    mutating func wait(from now: ContinuousClock.Instant) { if since == nil { since = now } }

    /// Part of the answer has come.
    mutating func answered() { isAnsweredInLine = isWaiting }

    /// Ends the wait, with `count` more bytes.
    ///
    /// - Returns: The begin of the wait; `nil` where it did not wait.
    mutating func resume(with count: Int) -> ContinuousClock.Instant? {
        defer { (since, isAnsweredInLine) = (nil, false) }
        granted += count
        return since
    }

    /// Takes the granted bytes that are not sent.
    mutating func takeAll() -> Int {
        defer { granted = 0 }
        return granted
    }
}
