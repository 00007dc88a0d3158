/// A request for exceptions from rules, for a while.
package struct AllowRequest: Codable, Sendable, Hashable {
    /// Uploads: ids, unique prefixes of at least 6 characters, or keys.
    package var ids: [String]
    package var folder: String?
    /// `window`, `metered`, `quota`, `rule`.
    package var kinds: [String]
    /// Names of rules under `pause`.
    package var rules: [String]?
    /// In seconds; 0 ends the exceptions.
    package var duration: Int64

    package init(ids: [String] = [], folder: String? = nil, kinds: [String], rules: [String]? = nil, duration: Int64) {
        self.ids = ids
        self.rules = rules
        self.folder = folder
        self.kinds = kinds
        self.duration = duration
    }
}

/// A rate limit that a person sets for all transfers.
package struct LimitRequest: Codable, Sendable, Hashable {
    /// In bytes a second; absent takes the limit back.
    package var rate: Int64?
    /// In seconds.
    package var duration: Int64?

    package init(rate: Int64?, duration: Int64?) {
        self.rate = rate
        self.duration = duration
    }
}

package struct OverrideView: Codable, Sendable, Hashable {
    /// `all`, `folder`, `upload`.
    package var scope: String
    /// The folder's name, or the upload's id.
    package var name: String?
    /// `window`, `metered`, `quota`, `rule`; `rate`.
    package var kind: String
    /// For a `rule`, its name; absent for all rules under `pause`.
    package var rule: String?
    /// In bytes a second, for a `rate`.
    package var rate: Int64?
    package var since: String
    package var until: String
    /// The user who made the exception.
    package var by: String

    package init(
        scope: String, name: String? = nil, kind: String, rule: String? = nil, rate: Int64? = nil, since: String,
        until: String, by: String
    ) {
        self.scope = scope
        self.name = name
        self.kind = kind
        self.rule = rule
        self.rate = rate
        self.since = since
        self.until = until
        self.by = by
    }

}

/// The exceptions in force after a change.
package struct OverridesReply: Codable, Sendable, Hashable {
    package var exceptions: [OverrideView]
    /// The exceptions that the request ended; absent if it was to end none.
    package var ended: [OverrideView]?
    /// Holds of the uploads of new exceptions from which no exception is made; absent if there are none.
    package var remaining: [HoldView]?

    package init(exceptions: [OverrideView], ended: [OverrideView]? = nil, remaining: [HoldView]? = nil) {
        self.exceptions = exceptions
        self.ended = ended
        self.remaining = remaining
    }
}
