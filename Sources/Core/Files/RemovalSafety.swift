/// How much work is left until every file on a removable medium is safe elsewhere. Counts may stop at a limit.
package struct RemovableMediaBacklog: Hashable, Sendable {
    /// A file is being scanned, settles, or waits for its group.
    package var isSettling: Bool
    /// Files that exist nowhere else, as far as is known.
    package var unstaged: Int
    /// Uploads that are not verified, including failed ones.
    package var unverified: Int
    /// Unverified uploads that a person has to decide about.
    package var failed: Int
    /// Sources that will be deleted or moved.
    package var unreleased: Int
    /// Grows with every new file: a file may appear and be verified between two checks.
    package var arrivals: Int

    package init(
        isSettling: Bool = false, unstaged: Int = 0, unverified: Int = 0, failed: Int = 0, unreleased: Int = 0,
        arrivals: Int = 0
    ) {
        self.arrivals = arrivals
        self.isSettling = isSettling
        self.unstaged = unstaged
        self.unverified = unverified
        self.failed = failed
        self.unreleased = unreleased
    }

    package var level: RemovalSafety {
        if isSettling || unstaged > 0 { return .busy }
        return unverified > 0 || unreleased > 0 ? .staged : .verified
    }
}

/// The loss if a removable medium were gone. Higher is better.
package enum RemovalSafety: String, Comparable, Hashable, Sendable, Codable, CaseIterable {
    /// Files would be lost.
    case busy
    /// Nothing would be lost: every file has a durable copy.
    case staged
    /// Nothing would be lost, and every file has arrived, verified; sources that were to be deleted or moved have been.
    case verified

    package static func < (a: Self, b: Self) -> Bool {
        allCases.firstIndex(of: a) ?? 0 < allCases.firstIndex(of: b) ?? 0
    }
}

/// Decides when a medium is reported as safe to remove: when it has reached a higher level than was reported, and
/// stayed there for a moment. New files on it start this again.
package struct RemovalSafetyReporter: Hashable, Sendable {
    /// Between two files that are written one after the other, a level may be reached for a moment.
    private static let moment: Duration = .seconds(2)

    private var reportedLevel = RemovalSafety.busy
    private var level = RemovalSafety.busy
    private var arrivals: Int?
    private var since: MonotonicTime

    package init(at now: MonotonicTime) { since = now }

    /// Records the present state.
    ///
    /// - Returns: The level to report; `nil` when there is nothing new.
    package mutating func note(_ work: RemovableMediaBacklog, at now: MonotonicTime) -> RemovalSafety? {
        if work.level != level {
            level = work.level
            since = now
        }
        if let arrivals, arrivals != work.arrivals {
            reportedLevel = .busy
            since = now
        }
        arrivals = work.arrivals
        // The level has not dropped so far that it has to be reported again: a retry of a verified upload leaves
        // `staged` true.
        reportedLevel = min(reportedLevel, level)
        guard level > reportedLevel, now.since(since) >= Self.moment else { return nil }
        reportedLevel = level
        return level
    }

    /// When to look again if nothing happens.
    package var next: MonotonicTime? { level > reportedLevel ? since.advanced(by: Self.moment) : nil }
}
