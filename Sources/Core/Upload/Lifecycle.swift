/// Where an upload is between "written down" and "over". Stored. `waiting` is no state: it is `queued` with holds.
package enum UploadState: String, Hashable, Sendable, Codable, CaseIterable {
    /// Its asset is recorded and is yet to be copied into staging.
    case staging
    /// Ready; waits for a slot or for its holds to go.
    case queued
    /// One worker holds its lease.
    case uploading
    /// Verified at the remote, and that fact is on disk.
    case completed
    /// Refused for its own sake. A person decides what is next.
    case failed
    /// Ended by a person, or for its age.
    case cancelled
    /// Over, and in no list any more but the history: how it ended is stored beside.
    case removed

    package var isTerminal: Bool {
        switch self {
        case .staging, .queued, .uploading: false
        case .completed, .failed, .cancelled, .removed: true
        }
    }

    /// The list it is shown in.
    package var list: String {
        switch self {
        case .staging, .queued, .uploading: "ongoing"
        case .completed, .failed, .cancelled: rawValue
        case .removed: "history"
        }
    }
}

/// What happens to an upload.
package enum UploadEvent: Hashable, Sendable, CaseIterable {
    /// The asset's staged copy is whole and durable.
    case staged
    /// One worker took the lease.
    case claimed
    /// The worker gave it back without a verdict: a hold appeared, the daemon stops, or the process had died.
    case yielded
    /// An attempt did not work; another may.
    case attemptFailed
    /// This file is refused for its own sake, or its attempts are used up.
    case refused
    /// Every byte is at the remote and was compared.
    case verified
    /// The staged copy is missing or not what was recorded.
    case copyLost
    case cancelled
    /// A person asks for another generation, and the staged copy is there.
    case retriedFromCopy
    /// A person asks for another generation, and only the source is there.
    case retriedFromSource
    /// A person is done with it, or its time in the list is over.
    case dismissed
}

extension UploadState {
    /// The state that `event` leads to; `nil` where the event means nothing (late, repeated, or not allowed).
    ///
    /// Total and without `default`: a new state or event does not compile until somebody has said what it means
    /// everywhere. That late events change nothing is what makes a repeat after a crash safe.
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
            // Whatever comes late, the remote holds the file: trying again would send it twice.
            switch event {
            case .dismissed: .removed
            case .staged, .claimed, .yielded, .attemptFailed, .refused, .verified, .copyLost, .cancelled,
                .retriedFromCopy, .retriedFromSource:
                nil
            }
        case .removed:
            // Whoever begins it again has looked that it did not end as completed.
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
    /// Recorded; the copy is yet to be made.
    case arrived
    /// The source changed before it was copied: it settles again and comes back as the same asset.
    case unsettled
    /// The copy is whole and durable.
    case staged
    /// The copy is gone: released, cancelled, or never made.
    case dropped
}

/// How far the release of a source has got. Stored.
package enum SourceState: String, Hashable, Sendable, Codable, CaseIterable {
    /// Nothing was done to the source.
    case untouched
    /// The intention is recorded; the source may stand under its own name or under `.sluice-release-ID`.
    case releasing
    /// Deleted or moved.
    case released
    /// Left where it is: configured so, changed since, or no upload of it completed.
    case kept
}

/// What is to be done with an asset, given how its uploads stand.
package enum ReleaseVerdict: Hashable, Sendable {
    /// An upload is still to come or has failed: both the source and the staged copy stay.
    case keepBoth
    /// Verified: the source's action may run, and the staged copy may go.
    case release
    /// Every upload was cancelled: the copy goes, the source stays.
    case dropCopy
    /// One has expired, or failed and was dismissed: the copy goes, and the source stays for good, whatever the others
    /// have verified.
    case keepSource

    /// Source and staged copy go when every upload is completed or cancelled and at least one is completed; a failed
    /// one keeps both.
    ///
    /// - Parameters:
    ///   - uploads: Where each stands, or how it ended for those that have left the lists.
    ///   - keepsSource: One of them was not sent for its age, which nobody has asked for by name, or had failed when it left
    ///     the lists.
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
