/// The space that a destination reports. A missing value is unknown.
package struct RemoteSpace: Hashable, Sendable {
    /// The unit of ``free``, ``used`` and ``limit``.
    package enum Unit: String, Hashable, Sendable, Codable { case bytes, files }

    package var unit: Unit
    /// The amount that may still be sent.
    package var free: Int64?
    package var used: Int64?
    /// The total.
    package var limit: Int64?
    /// When all of it is free again, where the destination counts by the day or the month.
    package var resetsAt: WallTime?

    package init(
        _ unit: Unit = .bytes, free: Int64? = nil, used: Int64? = nil, limit: Int64? = nil, resetsAt: WallTime? = nil
    ) {
        self.unit = unit
        self.free = free
        self.used = used
        self.limit = limit
        self.resetsAt = resetsAt
    }

    /// ``free``, if it is reported or follows from the other values.
    package var left: Int64? {
        if let free { return max(0, free) }
        guard let used, let limit else { return nil }
        return max(0, limit.addingClamped(used > .min ? -used : .max))
    }

    package func shown(_ count: Int64) -> String {
        unit == .bytes ? shownBytes(count) : "\(count) \(count == 1 ? "file" : "files")"
    }

    /// `1.2 GB free, 8.8 GB of 10 GB used`; empty when nothing is known.
    package var text: String {
        var parts: [String] = []
        if let left { parts.append("\(shown(left)) free") }
        switch (used, limit) {
        case (let used?, let limit?): parts.append("\(shown(used)) of \(shown(limit)) used")
        case (let used?, nil): parts.append("\(shown(used)) used")
        case (nil, let limit?): parts.append("\(shown(limit)) in all")
        case (nil, nil): break
        }
        return parts.joined(separator: ", ")
    }
}
