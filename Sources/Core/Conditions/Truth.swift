/// Whether a condition holds. The known facts may not be enough to tell.
package enum Truth: Hashable, Sendable {
    case no, yes
    /// One of these facts would decide it.
    case unknown([UnknownFact])

    package init(_ isTrue: Bool) { self = isTrue ? .yes : .no }

    /// A restriction applies then.
    package var mayHold: Bool { self != .no }

    /// True where all are; false where one is, whatever the others.
    static func all(_ truths: some Sequence<Truth>) -> Truth {
        var missing: [UnknownFact] = []
        for truth in truths {
            switch truth {
            case .no: return .no
            case .yes: continue
            case .unknown(let facts): missing += facts
            }
        }
        return missing.isEmpty ? .yes : .unknown(missing)
    }

    /// True where one is, whatever the others; false where all are.
    static func any(_ truths: some Sequence<Truth>) -> Truth { !all(truths.lazy.map { !$0 }) }

    static prefix func ! (truth: Truth) -> Truth {
        switch truth {
        case .no: .yes
        case .yes: .no
        case .unknown: truth
        }
    }
}

/// A fact that cannot be told now.
package struct UnknownFact: Hashable, Sendable {
    /// A clause for people: `whether wwan0 roams`.
    package var question: String
    /// How a person can make it known.
    package var remedy: String
    /// The clock is not set, which has a hold of its own.
    package var isClock = false

    package init(_ question: String, remedy: String, isClock: Bool = false) {
        self.question = question
        self.remedy = remedy
        self.isClock = isClock
    }
}
