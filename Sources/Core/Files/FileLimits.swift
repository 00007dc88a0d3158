/// Which files of a folder are taken, by size and age.
package struct FileLimits: Hashable, Sendable {
    /// Bytes.
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
    /// Nothing of it is written down: a clock that was wrong has done no harm when it is right again, for every scan asks
    /// anew. A time in the future is no age at all.
    package func objection(to look: FileLook, now: WallTime) -> String? {
        if let minSize, look.size < minSize {
            return "it has \(shownBytes(look.size)), less than min_size: \(shownBytes(minSize))"
        }
        if let maxSize, look.size > maxSize {
            return "it has \(shownBytes(look.size)), more than max_size: \(shownBytes(maxSize))"
        }
        if let maxAge, Self.age(look, now) > maxAge {
            return "it was last written longer ago than max_age: \(writtenTime(maxAge))"
        }
        return nil
    }

    /// Whether a file of this size is taken, as far as size goes.
    package func takes(size: Int64) -> Bool { size >= minSize ?? 0 && size <= maxSize ?? .max }

    /// How long a file has still to wait for its `min_age`; nothing or less when it is old enough.
    ///
    /// - Parameter unchanged: For how long it was seen not to change, by a clock that cannot be set: a file from the future,
    ///   or of a clock that was set back, waits no longer than the age by that one.
    package func wait(for look: FileLook, unchanged: Duration, now: WallTime) -> Duration {
        guard let minAge else { return .zero }
        return minAge - max(Self.age(look, now), unchanged)
    }

    /// Since its content was last written.
    private static func age(_ look: FileLook, _ now: WallTime) -> Duration {
        .milliseconds(now.milliseconds) - .nanoseconds(look.modified)
    }
}
