internal import Core

/// The scheduler's cycles since the start: how many there were, what they did, and whether another one follows at once.
struct Cycles: Sendable {
    private(set) var count = 0
    /// How many evaluations of policy for a class there were.
    private(set) var evaluations = 0
    /// How many snapshots of policy were made.
    private(set) var snapshots = 0
    /// When the last cycle began, by both clocks.
    private(set) var began = MonotonicTime(nanoseconds: 0)
    private(set) var beganWall: WallTime?
    /// Uploads that were completed.
    private(set) var completed = 0
    /// The destination that something was started to last.
    private var lastServed = ""
    /// Whether claims were given back that others may take the place of, or that no later event would start.
    private var needsRepeat = false

    mutating func begin(at now: MonotonicTime, _ wall: WallTime) {
        (began, beganWall) = (now, wall)
        count += 1
    }

    mutating func evaluated(classes: Int) { evaluations += classes }

    mutating func madeSnapshot() { snapshots += 1 }

    /// An upload was completed.
    mutating func uploadCompleted() { completed += 1 }

    /// Uploads to a destination were started.
    mutating func served(_ destination: String) { lastServed = destination }

    /// The destinations in the order in which they are tried. They take turns, so that one with many files does not use
    /// all slots: the one that was served last comes last.
    func inTurn(_ destinations: [String]) -> [String] {
        guard let last = destinations.firstIndex(of: lastServed) else { return destinations }
        return Array(destinations[(last + 1)...] + destinations[...last])
    }

    mutating func repeatSoon() { needsRepeat = true }

    /// - Returns: Whether another cycle follows at once.
    mutating func takeRepeat() -> Bool {
        defer { needsRepeat = false }
        return needsRepeat
    }
}
