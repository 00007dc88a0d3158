/// What is known of the room at one destination: what it said last, what was begun since then, what waits for it.
///
/// A value: the daemon tells it what it heard, and asks it what still fits and when to ask again.
package struct RemoteRoom: Sendable {
    /// The next upload, but that it does not fit.
    package struct Waiting: Hashable, Sendable {
        package var id: String
        package var name: String
        /// Bytes of it that are not there yet.
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
        /// `nil` when the destination said nothing of its room, or could not be asked.
        var space: RemoteSpace?
        var at: WallTime
        /// It counts until then.
        var until: WallTime
        var untilMonotonic: MonotonicTime
    }

    private var answer: Answer?
    /// Bytes and files of what was under way at the answer, or has begun since.
    private var promised: (bytes: Int64, files: Int64) = (0, 0)
    /// Something has happened that may have made room.
    private var isStale = false
    package private(set) var waiting: Waiting?

    package init() {}

    package var space: RemoteSpace? { answer?.space }
    package var askedAt: WallTime? { answer?.at }

    /// Whether it is to be asked before the next upload begins.
    package func isDue(at now: MonotonicTime) -> Bool {
        guard let answer else { return true }
        return isStale || now >= answer.untilMonotonic
    }

    /// When to ask again although nothing happens; `nil` while nothing waits for room.
    package var nextLook: MonotonicTime? { waiting == nil ? nil : answer?.untilMonotonic }

    /// Somebody may have made room there.
    package mutating func changed() { isStale = true }

    /// An upload there is over. What arrived has taken room and made none.
    package mutating func ended(hasArrived: Bool) {
        guard let waiting else { return }
        // What was promised may have been taken at the destination already, and was counted twice.
        if !hasArrived || space?.left ?? 0 >= waiting.missing { isStale = true }
    }

    /// The destination was asked.
    ///
    /// - Parameters:
    ///   - space: `nil` when it says nothing of its room, or could not be asked.
    ///   - underWay: Bytes that are missing of each upload on its way there: those have their room first.
    ///   - lasting: How long the answer counts.
    package mutating func told(
        _ space: RemoteSpace?, underWay: [Int64], now: WallTime, monotonic: MonotonicTime, lasting: Duration
    ) {
        answer = Answer(
            space: space, at: now, until: now.advanced(by: lasting), untilMonotonic: monotonic.advanced(by: lasting))
        promised = (0, 0)
        begun(missing: underWay)
        isStale = false
    }

    package mutating func begun(missing: [Int64]) {
        promised = (
            missing.reduce(promised.bytes) { $0.addingClamped(max(0, $1)) }, promised.files + Int64(missing.count)
        )
    }

    /// The most bytes that an upload may lack there and still fit: -1 when no file does; `nil` when nobody knows.
    package var left: Int64? {
        guard let space, let free = space.left else { return nil }
        switch space.unit {
        case .bytes: return max(0, free - promised.bytes)
        case .files: return free > promised.files ? nil : -1
        }
    }

    /// - Parameter upload: The first that does not fit; `nil` when none waits for room.
    package mutating func waits(_ upload: Waiting?) {
        var next = upload
        if let waiting { next?.since = waiting.since }
        waiting = next
    }

    /// Why an upload that lacks `missing` bytes there waits; `nil` when it does not wait for room.
    ///
    /// - Parameter name: The upload's, for a person.
    package func hold(at destination: String, missing: Int64, name: String) -> Hold? {
        guard let waiting, let answer, let space, let free = space.left, let left, missing > left else { return nil }
        var text = "\(space.shown(free)) free at \(destination)"
        switch space.unit {
        case .bytes:
            if missing <= free { text += ", \(shownBytes(promised.bytes)) of that for what is under way" }
            text += ", and \(name) needs \(shownBytes(missing)); what fits goes on"
        case .files:
            if free > 0 { text += ", and as many are under way" }
            text += ", and \(name) needs one more"
        }
        return Hold(.quota, since: waiting.since, until: space.resetsAt ?? answer.until, text: text)
    }
}
