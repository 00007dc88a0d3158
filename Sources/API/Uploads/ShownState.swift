/// A word of an answer that this version knows by `Known`. A newer daemon may have more words: any is kept.
package struct Shown<Known: RawRepresentable<String>>: RawRepresentable, Hashable, Sendable, Codable {
    package let rawValue: String

    package init(rawValue: String) { self.rawValue = rawValue }
    package init(_ known: Known) { rawValue = known.rawValue }

    /// `nil` for a word that only another version knows.
    package var known: Known? { Known(rawValue: rawValue) }
}

/// The state of an upload as people and programs see it: finer than the stored one. For a file without an upload, and for
/// a watched folder, `why` has states of its own.
///
/// A newer daemon may know more states: any word is kept.
package struct ShownState: RawRepresentable, Hashable, Sendable, Codable {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }

    // MARK: Of uploads

    package static let settling = Self(rawValue: "settling")
    package static let staging = Self(rawValue: "staging")
    package static let queued = Self(rawValue: "queued")
    package static let waiting = Self(rawValue: "waiting")
    package static let opening = Self(rawValue: "opening")
    package static let uploading = Self(rawValue: "uploading")
    package static let finishing = Self(rawValue: "finishing")
    package static let completed = Self(rawValue: "completed")
    package static let failed = Self(rawValue: "failed")
    package static let cancelled = Self(rawValue: "cancelled")
    package static let expired = Self(rawValue: "expired")
    package static let superseded = Self(rawValue: "superseded")
    /// Only as a filter: a view shows `waiting`, with the hold.
    package static let paused = Self(rawValue: "paused")

    /// The states that a list can be filtered by, by name.
    package static let all: [ShownState] = [
        .cancelled, .completed, .expired, .failed, .finishing, .opening, .paused, .queued, .settling, .staging,
        .superseded, .uploading, .waiting,
    ]

    // MARK: Of files without an upload, and of folders

    package static let expected = Self(rawValue: "expected")
    package static let folder = Self(rawValue: "folder")
    package static let gathering = Self(rawValue: "gathering")
    package static let known = Self(rawValue: "known")
    package static let leftAlone = Self(rawValue: "left_alone")
    package static let outside = Self(rawValue: "outside")
    package static let unknown = Self(rawValue: "unknown")
}

/// The state of a watched folder: a word, or `absent: …` or `failed: …` with the reason.
package enum ShownFolderState: RawRepresentable, Hashable, Sendable, Codable {
    case watching, scanning
    case absent(String)
    case failed(String)
    /// A text that only another version knows.
    case other(String)

    package init(rawValue: String) {
        func reason(after word: String) -> String? {
            rawValue.hasPrefix(word + ": ") ? String(rawValue.dropFirst(word.count + 2)) : nil
        }
        switch rawValue {
        case "watching": self = .watching
        case "scanning": self = .scanning
        default:
            self =
                reason(after: "absent").map { .absent($0) } ?? reason(after: "failed").map { .failed($0) }
                ?? .other(rawValue)
        }
    }

    package var rawValue: String {
        switch self {
        case .watching: "watching"
        case .scanning: "scanning"
        case .absent(let reason): "absent: \(reason)"
        case .failed(let reason): "failed: \(reason)"
        case .other(let text): text
        }
    }

    /// Whether its files are found.
    package var isWatched: Bool { self == .watching || self == .scanning }
}

/// `up`, or the reason for its hold.
package enum ShownDestinationState: RawRepresentable, Hashable, Sendable, Codable {
    case up
    case held(String)

    package init(rawValue: String) { self = rawValue == "up" ? .up : .held(rawValue) }

    package var rawValue: String {
        switch self {
        case .up: "up"
        case .held(let reason): reason
        }
    }
}
