/// A reason why an upload does not run now. An upload runs when it has none.
package struct Hold: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, Codable, CaseIterable {
        /// A person paused this upload. Stored; only a person clears it.
        case `operator`
        /// A person paused everything, or this folder or destination. Stored.
        case global
        case metered, offline
        /// A quota of ours is exhausted; or the destination has no space, or not enough for this upload.
        case quota
        /// The destination asked for a pause (`Retry-After`, 429).
        case rateLimit = "rate_limit"
        /// This upload failed and waits for its next attempt.
        case backoff
        /// No space in staging, or the state cannot be written.
        case disk
        /// The destination does not answer, or answers with errors of its own; one upload probes it from time to time.
        case destination
        /// The destination refuses the credential; it is read again every 15 minutes.
        case auth
        case clock, busy
        /// A rule under `pause`, `windows`, `metered: pause`, or a `bandwidth` of 0.
        case rule
        /// Another destination of `first_of` is to have the file first.
        case alternative
        /// The folder of the source is missing.
        case absent
        /// A file that is not an upload yet: it is not known to be finished.
        case settling
        /// A file that is not an upload yet: it waits for the rest of its group.
        case gathering

        /// Whether the hold is about the destination's own trouble.
        package var isOfDestination: Bool { self == .destination || self == .rateLimit || self == .auth }
    }

    package var kind: Kind
    /// When it began.
    package var since: WallTime
    /// When it is evaluated again, if that is known.
    package var until: WallTime?
    /// A sentence for a person.
    package var text: String
    /// Holds only uploads that are not begun yet.
    package var holdsOnlyNewUploads = false
    /// Only for ``Kind/rule``.
    package var rule: HoldingRule?
    /// Nothing but the time ends it. Without ``until``, it never ends.
    package var isByTimeAlone: Bool

    package init(
        _ kind: Kind, since: WallTime, until: WallTime? = nil, holdsOnlyNewUploads: Bool = false,
        rule: HoldingRule? = nil,
        isByTimeAlone: Bool = false, text: String
    ) {
        self.kind = kind
        self.rule = rule
        self.isByTimeAlone = isByTimeAlone
        self.holdsOnlyNewUploads = holdsOnlyNewUploads
        self.since = since
        self.until = until
        self.text = text
    }
}

/// The rule of the configuration that a hold of the kind ``Hold/Kind/rule`` comes from.
package struct HoldingRule: Hashable, Sendable {
    package var name: String
    /// The file that has it, and the line there.
    package var (file, line): (String, Int)
    /// The keys of the facts of which one has to change for the hold to end: only those that may change while an upload
    /// waits. Empty where there is none.
    package var facts: [String]
    /// `sluice allow` makes no exception from it.
    package var isFixed: Bool

    /// - Parameter place: `sluice.yaml:12`.
    init(name: String, place: String, facts: [String], isFixed: Bool) {
        self.name = name
        let colon = place.lastIndex(of: ":")
        file = colon.map { String(place[..<$0]) } ?? place
        line = colon.flatMap { Int(place[place.index(after: $0)...]) } ?? 0
        self.facts = facts
        self.isFixed = isFixed
    }
}

extension Sequence<Hold> {
    /// When all of them have ended, by the time alone; `nil` where that is not known.
    package var lastEnd: WallTime? {
        var last: WallTime?
        for hold in self {
            guard let until = hold.until else { return nil }
            last = last.map { Swift.max($0, until) } ?? until
        }
        return last
    }

    /// The hold that ends last, as far as is known: when it is over, the others are too. A hold without an end counts
    /// as later than all others.
    package var lastEnding: Hold? {
        var binding: Hold?
        for hold in self {
            guard let last = binding else {
                binding = hold
                continue
            }
            if let until = last.until, hold.until.map({ $0 > until }) ?? true { binding = hold }
        }
        return binding
    }
}
