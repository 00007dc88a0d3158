/// The known free space at one destination: its last answer, the uploads that were begun since then, and those that
/// wait for space.
///
/// A value: the daemon passes answers to it, and it decides which upload still fits and when the next query is due.
package struct RemoteCapacity: Sendable {
    /// The next upload, which does not fit.
    package struct Waiting: Hashable, Sendable {
        package var id: String
        package var name: String
        /// Its missing bytes.
        package var missing: Int64
        package var since: WallTime

        package init(id: String, name: String, missing: Int64, since: WallTime) {
            self.id = id
            self.name = name
            self.missing = missing
            self.since = since
        }
    }

    /// The last answer.
    private struct Answer: Hashable {
        /// `nil` if the destination did not report its space, or could not be queried.
        var space: RemoteSpace?
        var at: WallTime
        /// The answer is valid until then.
        var until: WallTime
        var untilMonotonic: MonotonicTime
    }

    private var answer: Answer?
    /// Bytes and files of uploads that were running at the answer, or have begun since.
    private var reserved: (bytes: Int64, files: Int64) = (0, 0)
    /// An event may have freed space.
    private var isStale = false
    package private(set) var waiting: Waiting?

    package init() {}

    package var space: RemoteSpace? { answer?.space }
    package var queriedAt: WallTime? { answer?.at }

    /// Whether a query is due before the next upload starts.
    package func isDue(at now: MonotonicTime) -> Bool {
        guard let answer else { return true }
        return isStale || now >= answer.untilMonotonic
    }

    /// When to ask again without another event; `nil` while no upload waits for space.
    package var nextCheck: MonotonicTime? { waiting == nil ? nil : answer?.untilMonotonic }

    /// Space may have been freed there.
    package mutating func markStale() { isStale = true }

    /// Records that an upload there is over. An upload that arrived has used space and freed none.
    package mutating func ended(hasArrived: Bool) {
        guard let waiting else { return }
        // The destination may have counted the promised bytes already, so that they were counted twice.
        if !hasArrived || space?.left ?? 0 >= waiting.missing { isStale = true }
    }

    /// Records an answer of the destination.
    ///
    /// - Parameters:
    ///   - space: `nil` if the destination does not report its space, or could not be queried.
    ///   - underWay: Missing bytes of each running upload to it: their space is reserved first.
    ///   - lasting: How long the answer is valid.
    package mutating func update(
        _ space: RemoteSpace?, underWay: [Int64], now: WallTime, monotonic: MonotonicTime, lasting: Duration
    ) {
        answer = Answer(
            space: space, at: now, until: now.advanced(by: lasting), untilMonotonic: monotonic.advanced(by: lasting))
        reserved = (0, 0)
        reserve(missing: underWay)
        isStale = false
    }

    package mutating func reserve(missing: [Int64]) {
        reserved = (
            missing.reduce(reserved.bytes) { $0.addingClamped(max(0, $1)) }, reserved.files + Int64(missing.count)
        )
    }

    /// The most bytes that an upload may still need there and fit: -1 when no file fits; `nil` when that is unknown.
    package var left: Int64? {
        guard let space, let free = space.left else { return nil }
        switch space.unit {
        case .bytes: return max(0, free - reserved.bytes)
        case .files: return free > reserved.files ? nil : -1
        }
    }

    /// - Parameter upload: The first that does not fit; `nil` when none waits for space.
    package mutating func setWaiting(_ upload: Waiting?) {
        var next = upload
        if let waiting { next?.since = waiting.since }
        waiting = next
    }

    /// The reason why an upload with `missing` bytes waits; `nil` when it does not wait for space.
    ///
    /// - Parameter name: The upload's name, for a person.
    package func hold(at destination: String, missing: Int64, name: String) -> Hold? {
        guard let waiting, let answer, let space, let free = space.left, let left, missing > left else { return nil }
        var text = "\(space.shown(free)) free at \(destination)"
        switch space.unit {
        case .bytes:
            if missing <= free { text += ", \(shownBytes(reserved.bytes)) of that for running uploads" }
            text += ", and \(name) needs \(shownBytes(missing)); uploads that fit continue"
        case .files:
            if free > 0 { text += ", and as many are being uploaded" }
            text += ", and \(name) needs one more"
        }
        return Hold(.quota, since: waiting.since, until: space.resetsAt ?? answer.until, text: text)
    }
}
