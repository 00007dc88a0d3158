/// The kind of an event, by the word that is stored, sent to hooks and shown.
///
/// A newer program may have stored other types, and a newer daemon may send them: any word is kept.
package struct EventType: RawRepresentable, Hashable, Sendable, Codable {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }

    // MARK: Stored, and sent to hooks

    package static let loaded = Self(rawValue: "loaded")
    package static let added = Self(rawValue: "added")
    package static let state = Self(rawValue: "state")
    package static let attempt = Self(rawValue: "attempt")
    package static let attemptFailed = Self(rawValue: "attempt_failed")
    package static let recovered = Self(rawValue: "recovered")
    package static let completed = Self(rawValue: "completed")
    package static let alsoVerified = Self(rawValue: "also_verified")
    package static let failed = Self(rawValue: "failed")
    package static let cancelled = Self(rawValue: "cancelled")
    package static let removed = Self(rawValue: "removed")
    package static let flushed = Self(rawValue: "flushed")
    package static let source = Self(rawValue: "source")
    package static let credential = Self(rawValue: "credential")
    package static let groupEnded = Self(rawValue: "group_ended")
    package static let safeToRemove = Self(rawValue: "safe_to_remove")
    package static let paused = Self(rawValue: "paused")
    package static let resumed = Self(rawValue: "resumed")
    package static let quotaReached = Self(rawValue: "quota_reached")
    package static let remoteDelete = Self(rawValue: "remote_delete")

    /// The types for hooks. `progress` is not among them: it comes twice a second, and is not stored.
    package static let forHooks: [EventType] = [
        .loaded, .added, .state, .attempt, .attemptFailed, .recovered, .completed, .alsoVerified, .failed, .cancelled,
        .removed,
        .flushed, .source, .credential, .groupEnded, .safeToRemove, .paused, .resumed, .quotaReached, .remoteDelete,
    ]

    // MARK: Stored, and only sent to readers of the stream

    package static let allowed = Self(rawValue: "allowed")
    package static let usageSet = Self(rawValue: "usage_set")

    // MARK: Not stored

    package static let progress = Self(rawValue: "progress")
    /// The reader's position no longer exists: it has to read everything again.
    package static let reset = Self(rawValue: "reset")
    /// The reader was too slow, and has to connect again.
    package static let overflow = Self(rawValue: "overflow")
    /// Sent to a hook by hand.
    package static let test = Self(rawValue: "test")

    /// The types that a reader of the stream can get.
    package static let inStream = forHooks + [.allowed, .progress, .reset, .overflow]
    /// Whether it is about the stream itself, and has no number of its own.
    package var isAboutStream: Bool { self == .reset || self == .overflow }

    /// The end of an upload in this state; `nil` for a state that is no end.
    package init?(endIn state: UploadState) {
        guard state.isTerminal, state != .removed else { return nil }
        self.init(rawValue: state.rawValue)
    }
}

/// The fields of events, by the words that are stored, sent to hooks and shown. Their values are text.
package enum EventField: String, Sendable, CaseIterable {
    case after, attempt, by, bytes, code, count, counts, destination, direction, error, failed, files, folder, folders,
        from, hold,
        hook, kind, level, limit, list, lists, medium, message, name, note, ongoing, path, percent, place,
        quota, reason, result, scope, state, threshold, to, unverified, until, url, used, verified
    case remoteID = "remote_id"
}

extension [String: String] {
    /// A field of an event.
    package subscript(_ field: EventField) -> String? { self[field.rawValue] }
}
