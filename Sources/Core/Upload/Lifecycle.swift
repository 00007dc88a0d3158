/// The state of an upload from its record to its end. Stored. `waiting` is no state: it is `queued` with holds.
package enum UploadState: String, Hashable, Sendable, Codable, CaseIterable {
    /// Its asset is recorded, and not yet copied into staging.
    case staging
    /// Ready; waits for a slot or for the end of its holds.
    case queued
    /// One worker holds its lease.
    case uploading
    /// Verified at the remote, and that is recorded on disk.
    case completed
    /// This file was refused. It needs a person's decision.
    case failed
    /// Ended by a person, or because of its age.
    case cancelled
    /// Over, and only in the history: its outcome is stored beside this state.
    case removed

    package var isTerminal: Bool {
        switch self {
        case .staging, .queued, .uploading: false
        case .completed, .failed, .cancelled, .removed: true
        }
    }

    /// The list it is shown in.
    package var list: UploadList {
        switch self {
        case .staging, .queued, .uploading: .ongoing
        case .completed: .completed
        case .failed: .failed
        case .cancelled: .cancelled
        case .removed: .history
        }
    }
}

/// The list in which an upload is shown. Its words are those of `--list` and of the API.
package enum UploadList: String, Hashable, Sendable, CaseIterable {
    case ongoing, completed, failed, cancelled
    /// Uploads that have left the other lists.
    case history

    /// The lists that a person may clear.
    package static let clearable: [UploadList] = [.completed, .failed, .cancelled]
}

/// An event of an upload.
package enum UploadEvent: Hashable, Sendable, CaseIterable {
    /// The asset's staged copy is complete and durable.
    case staged
    /// A worker took the lease.
    case claimed
    /// The worker returned the lease without a result: a hold appeared, the daemon stops, or the process had died.
    case yielded
    /// An attempt failed; another may follow.
    case attemptFailed
    /// This file is refused, or its attempts are used up.
    case refused
    /// Every byte is at the remote and was compared.
    case verified
    /// The staged copy is missing or differs from its record.
    case copyLost
    case cancelled
    /// A person asks for another generation, and the staged copy is there.
    case retriedFromCopy
    /// A person asks for another generation, and only the source is there.
    case retriedFromSource
    /// A person dismissed it, or its time in the list is over.
    case dismissed
}

extension UploadState {
    /// The state after `event`; `nil` where the event has no effect (late, repeated, or not allowed).
    ///
    /// Total and without `default`: a new state or event does not compile until its meaning is defined in every
    /// combination. Late events change nothing, which makes a repeat after a crash safe.
    package func after(_ event: UploadEvent) -> UploadState? {
        switch self {
        case .staging:
            switch event {
            case .staged: .queued
            case .refused: .failed
            case .cancelled: .cancelled
            case .claimed, .yielded, .attemptFailed, .verified, .copyLost, .retriedFromCopy, .retriedFromSource,
                .dismissed:
                nil
            }
        case .queued:
            switch event {
            case .claimed: .uploading
            case .copyLost: .staging
            case .refused: .failed
            case .cancelled: .cancelled
            case .staged, .yielded, .attemptFailed, .verified, .retriedFromCopy, .retriedFromSource, .dismissed: nil
            }
        case .uploading:
            switch event {
            case .yielded, .attemptFailed: .queued
            case .verified: .completed
            case .refused: .failed
            case .copyLost: .staging
            case .cancelled: .cancelled
            case .staged, .claimed, .retriedFromCopy, .retriedFromSource, .dismissed: nil
            }
        case .failed:
            switch event {
            case .retriedFromCopy: .queued
            case .retriedFromSource: .staging
            case .cancelled: .cancelled
            case .dismissed: .removed
            case .staged, .claimed, .yielded, .attemptFailed, .refused, .verified, .copyLost: nil
            }
        case .cancelled:
            switch event {
            case .retriedFromCopy: .queued
            case .retriedFromSource: .staging
            case .dismissed: .removed
            case .staged, .claimed, .yielded, .attemptFailed, .refused, .verified, .copyLost, .cancelled: nil
            }
        case .completed:
            // The remote holds the file, even if another event comes late: trying again would send it twice.
            switch event {
            case .dismissed: .removed
            case .staged, .claimed, .yielded, .attemptFailed, .refused, .verified, .copyLost, .cancelled,
                .retriedFromCopy, .retriedFromSource:
                nil
            }
        case .removed:
            // The caller that starts it again has checked that it did not end as completed.
            switch event {
            case .retriedFromCopy: .queued
            case .retriedFromSource: .staging
            case .staged, .claimed, .yielded, .attemptFailed, .refused, .verified, .copyLost, .cancelled, .dismissed:
                nil
            }
        }
    }
}

/// Where an asset's staged copy is. Stored.
package enum AssetState: String, Hashable, Sendable, Codable, CaseIterable {
    /// Recorded; the copy is not made yet.
    case arrived
    /// The source changed before it was copied: it settles again. See ``Store/Arrivals``.
    case unsettled
    /// The copy is complete and durable.
    case staged
    /// The copy is gone: released, cancelled, or never made.
    case dropped
}

/// The progress of a source's release. Stored.
package enum SourceState: String, Hashable, Sendable, Codable, CaseIterable {
    /// Nothing was done to the source.
    case untouched
    /// The intention is recorded; the source may be under its own name or under
    /// `.sluice-release-ID-TOKEN`.
    case releasing
    /// Deleted or moved.
    case released
    /// Left where it is: configured so, changed since, or no upload of it completed.
    case kept
}

/// The next step for an asset, given the states of its uploads.
package enum ReleaseVerdict: Hashable, Sendable {
    /// An upload is unfinished or has failed: both the source and the staged copy stay.
    case keepBoth
    /// Verified: the source's action may run, and the staged copy may be deleted.
    case release
    /// Every upload was cancelled: the copy is deleted, the source stays.
    case dropCopy
    /// An upload has expired, or failed and was dismissed: the copy is deleted, and the source is kept, even if
    /// the others are verified.
    case keepSource

    /// Source and staged copy are removed when every upload is completed or cancelled and at least one is completed; a
    /// failed one keeps both.
    ///
    /// - Parameters:
    ///   - uploads: The state of each, or its outcome for those that have left the lists.
    ///   - keepsSource: One of them was not sent because of its age, which no person has requested by name, or had
    ///     failed when it left the lists.
    package init(uploads: some Collection<UploadState>, keepsSource: Bool = false) {
        if uploads.isEmpty || uploads.contains(where: { !$0.isTerminal || $0 == .failed }) {
            self = .keepBoth
        } else if keepsSource {
            self = .keepSource
        } else {
            self = uploads.contains(.completed) ? .release : .dropCopy
        }
    }
}
