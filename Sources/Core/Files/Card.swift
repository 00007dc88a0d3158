/// How much of a removable medium's content is still to come somewhere else. Counts may stop at a limit.
package struct CardWork: Hashable, Sendable {
    /// Something is being scanned, settles, or waits for its group.
    package var isSettling: Bool
    /// Files that exist nowhere but there, as far as anybody knows.
    package var unstaged: Int
    /// Uploads that are not verified, failed ones among them.
    package var unverified: Int
    /// Those of them that a person has to decide about.
    package var failed: Int
    /// Sources that are about to be deleted or moved.
    package var unreleased: Int
    /// Grows with every file that comes: one may come and be verified between two looks.
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

    package var level: CardLevel {
        if isSettling || unstaged > 0 { return .busy }
        return unverified > 0 || unreleased > 0 ? .staged : .verified
    }
}

/// What the loss of a removable medium would cost. Higher is better.
package enum CardLevel: String, Comparable, Hashable, Sendable, Codable, CaseIterable {
    /// Files.
    case busy
    /// Nothing: every file has a durable copy.
    case staged
    /// Nothing, and every file has arrived, verified; what was to be deleted or moved on it has been.
    case verified

    package static func < (a: Self, b: Self) -> Bool {
        allCases.firstIndex(of: a) ?? 0 < allCases.firstIndex(of: b) ?? 0
    }
}

/// Decides when a medium is said to be safe to remove: when it has reached a higher level than was told, and stayed there
/// for a moment. Files that come to it begin anew.
package struct CardWatch: Hashable, Sendable {
    /// Between two files that are written one after the other a level may be reached in passing.
    private static let moment: Duration = .seconds(2)

    private var told = CardLevel.busy
    private var level = CardLevel.busy
    private var arrivals: Int?
    private var since: MonotonicTime

    package init(at now: MonotonicTime) { since = now }

    /// Takes note of what is there now.
    ///
    /// - Returns: The level to tell of; `nil` when there is no news.
    package mutating func note(_ work: CardWork, at now: MonotonicTime) -> CardLevel? {
        if work.level != level {
            level = work.level
            since = now
        }
        if let arrivals, arrivals != work.arrivals {
            told = .busy
            since = now
        }
        arrivals = work.arrivals
        // Not so low again that it has to be told anew: a retry of what was verified leaves `staged` true.
        told = min(told, level)
        guard level > told, now.since(since) >= Self.moment else { return nil }
        told = level
        return level
    }

    /// When to look again, though nothing happens.
    package var next: MonotonicTime? { level > told ? since.advanced(by: Self.moment) : nil }
}
