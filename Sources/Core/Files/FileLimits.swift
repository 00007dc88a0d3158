/// Limits on the size and age of a folder's files. Files outside them are ignored.
package struct FileLimits: Hashable, Sendable {
    /// In bytes.
    package var minSize: Int64?
    package var maxSize: Int64?
    package var minAge: Duration?
    package var maxAge: Duration?

    package init(
        minSize: Int64? = nil, maxSize: Int64? = nil, minAge: Duration? = nil, maxAge: Duration? = nil
    ) {
        self.minSize = minSize
        self.maxSize = maxSize
        self.minAge = minAge
        self.maxAge = maxAge
    }

    package static let none = FileLimits()

    /// Why a file is left alone, for people; `nil` when it is not.
    ///
    /// The result is not stored, because every scan computes it again: a clock that was wrong does no harm once it is
    /// right. A time in the future gives no age.
    package func objection(to status: FileStatus, now: WallTime) -> String? {
        if let minSize, status.size < minSize {
            return "it has \(shownBytes(status.size)), less than min_size: \(shownBytes(minSize))"
        }
        if let maxSize, status.size > maxSize {
            return "it has \(shownBytes(status.size)), more than max_size: \(shownBytes(maxSize))"
        }
        if let maxAge, Self.age(status, now) > maxAge {
            return "it was last written longer ago than max_age: \(writtenTime(maxAge))"
        }
        return nil
    }

    /// Whether a file of this size is within the limits.
    package func allows(size: Int64) -> Bool { size >= minSize ?? 0 && size <= maxSize ?? .max }

    /// How long a file still has to wait for its `min_age`; zero or less when it is old enough.
    ///
    /// - Parameter unchanged: How long it was seen not to change, by a clock that cannot be set. A file with a future
    ///   time, or one whose clock was set back, waits no longer than the age measured by that clock.
    package func wait(for status: FileStatus, unchanged: Duration, now: WallTime) -> Duration {
        guard let minAge else { return .zero }
        return minAge - max(Self.age(status, now), unchanged)
    }

    /// Time since its content was last written.
    private static func age(_ status: FileStatus, _ now: WallTime) -> Duration {
        .milliseconds(now.milliseconds) - .nanoseconds(status.modified)
    }
}
