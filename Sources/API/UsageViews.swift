/// The periods, filter and grouping of a request for usage.
package struct UsageQuery: Sendable, Hashable {
    /// The number of days up to today; 0 for none.
    package var days = 7
    /// The number of months up to this one; 0 for none.
    package var months = 3
    /// The number of minutes up to this one; 0 for none. The daemon remembers an hour, since it started.
    package var minutes = 0
    /// `destination`, `folder` or `network`; `nil` for sums alone.
    package var by: String?
    /// Only bytes to this destination.
    package var destination: String?
    /// Only bytes from this folder.
    package var folder: String?

    /// The time that the ledger covers.
    package static let maxDays = 400
    package static let maxMonths = 13
    package static let maxMinutes = 60

    package init() {}
}

/// Sent and received bytes, and the state of the quotas.
package struct UsageView: Codable, Sendable, Hashable {
    /// The oldest first.
    package var days: [UsagePeriodView]
    package var months: [UsagePeriodView]
    /// Absent without a request for them.
    package var minutes: [UsagePeriodView]?
    /// The grouping of the parts; absent without one.
    package var by: String?
    package var quotas: [QuotaView]

    package init(
        days: [UsagePeriodView], months: [UsagePeriodView], minutes: [UsagePeriodView]? = nil, by: String? = nil,
        quotas: [QuotaView]
    ) {
        self.days = days
        self.months = months
        self.minutes = minutes
        self.by = by
        self.quotas = quotas
    }
}

package struct UsagePeriodView: Codable, Sendable, Hashable {
    /// `2026-11-20`, `2026-11`, `14:05`: by the daemon's wall clock.
    package var name: String
    package var from: String
    package var until: String
    /// Bytes that were sent.
    package var bytes: Int64
    /// Bytes that were received.
    package var received: Int64
    package var files: Int64
    /// The most bytes first; absent without a grouping.
    package var parts: [UsagePartView]?

    package init(
        name: String, from: String, until: String, bytes: Int64, received: Int64, files: Int64,
        parts: [UsagePartView]? = nil
    ) {
        self.name = name
        self.from = from
        self.until = until
        self.bytes = bytes
        self.received = received
        self.files = files
        self.parts = parts
    }
}

package struct UsagePartView: Codable, Sendable, Hashable {
    /// Empty for bytes that belong to no file of a folder.
    package var name: String
    package var bytes: Int64
    package var received: Int64
    package var files: Int64

    package init(name: String, bytes: Int64, received: Int64, files: Int64) {
        self.name = name
        self.bytes = bytes
        self.received = received
        self.files = files
    }
}

/// A request to set the usage of a quota with a condition in its present period.
package struct UsageChangeRequest: Codable, Sendable, Hashable {
    /// The name of the quota.
    package var name: String
    /// Its place, as in ``QuotaView/place``; needed where several quotas have the name.
    package var place: String?
    /// Counted bytes, in the direction of the quota.
    package var bytes: Int64?
    /// Counted files.
    package var files: Int64?

    package init(name: String, place: String? = nil, bytes: Int64? = nil, files: Int64? = nil) {
        self.name = name
        self.place = place
        self.bytes = bytes
        self.files = files
    }
}

/// The usage of a quota that a person has set.
package struct UsageChangeView: Codable, Sendable, Hashable {
    package var place: String
    package var name: String
    /// `bytes` or `files`.
    package var counts: String
    /// The usage before, without reserved bytes.
    package var before: Int64
    package var used: Int64
    /// The start of the quota's period.
    package var from: String
    package var by: String

    package init(
        place: String, name: String, counts: String, before: Int64, used: Int64, from: String, by: String
    ) {
        self.place = place
        self.name = name
        self.counts = counts
        self.before = before
        self.used = used
        self.from = from
        self.by = by
    }
}

/// One limit of a quota, with the remaining amount.
package struct QuotaView: Codable, Sendable, Hashable {
    /// `policy`, `destinations.nas`, `folder door`.
    package var place: String
    /// In words: `20 GB a day`.
    package var text: String
    /// `bytes` or `files`.
    package var counts: String
    /// The name of its count; absent without a condition.
    package var name: String?
    /// What it counts, in words; absent where it counts everything.
    package var when: String?
    /// `sent`, `received` or `both`: which bytes count. Of files: `sent`.
    package var direction: String
    package var limit: Int64
    /// Counted bytes or files, without the reserved ones.
    package var used: Int64
    /// Reserved for running transfers.
    package var reserved: Int64
    package var left: Int64
    /// The start of the quota's period.
    package var from: String
    /// The start of the next period.
    package var until: String

    package init(
        place: String, text: String, counts: String, name: String? = nil, when: String? = nil, direction: String,
        limit: Int64, used: Int64,
        reserved: Int64, left: Int64, from: String, until: String
    ) {
        self.place = place
        self.text = text
        self.counts = counts
        self.name = name
        self.when = when
        self.direction = direction
        self.limit = limit
        self.used = used
        self.reserved = reserved
        self.left = left
        self.from = from
        self.until = until
    }
}

/// The space and quotas that are left for uploads to a destination: by its own report, and by the configuration.
package struct AllowanceView: Codable, Sendable, Hashable {
    package var destination: String
    /// Its latest report of its free space; absent where it reports none, or was not queried yet.
    package var space: SpaceView?
    /// The configured quotas that count bytes to it.
    package var quotas: [QuotaView]

    package init(destination: String, space: SpaceView?, quotas: [QuotaView]) {
        self.destination = destination
        self.space = space
        self.quotas = quotas
    }
}

package struct AllowancesReply: Codable, Sendable, Hashable {
    package var destinations: [AllowanceView]
    package init(destinations: [AllowanceView]) { self.destinations = destinations }
}
