package import Core

/// Something that happened, with its details: an event that is to be stored.
package enum Event: Sendable, Hashable {
    /// The daemon has started.
    case loaded(ongoing: Int)

    // MARK: Of an upload

    case added
    /// Has another state, or has ended.
    case moved(from: UploadState, to: UploadState, reason: String?, remoteID: String? = nil, url: String? = nil)
    /// A rebuild of the database has found this end.
    case rebuilt(UploadState)
    /// Paused or resumed by a person.
    case held(Bool)
    /// A person gave it another priority.
    case prioritized(from: Int, to: Int)
    /// It may go now although another destination is enough, for this reason.
    case takesOver(String)
    /// It had ended in favour of another destination, and then its own had verified it as well.
    ///
    /// - Parameter winner: The destination that counts.
    case alsoVerified(remoteID: String?, url: String?, at: String)
    case removed(list: String, reason: String?)
    /// Tried again, after a failure with this code.
    case attempt(number: Int64, code: Failure.Code)
    case attemptFailed(code: Failure.Code, message: String)
    /// Failed attempts, and seconds since the last failure; `nil` if that is unknown.
    case recovered(attempt: Int64, seconds: Int64?)
    case credential(CredentialRenewal)
    case source(SourceState, note: String?)
    case remoteDelete(RemoteDeletion.Result)

    // MARK: Of folders, destinations, and all uploads

    case flushed(lists: [String], count: Int)
    case paused(PauseRecord.Scope, name: String)
    case resumed(PauseRecord.Scope, name: String)
    case allowed(OverrideRecord)
    /// An exception is over.
    case allowedNoMore(OverrideRecord.Scope, name: String, kind: String)
    case quotaReached(QuotaThresholds.Reached)
    /// A person has set the usage of a quota with a condition.
    ///
    /// - Parameters:
    ///   - counts: `bytes` or `files`.
    ///   - from: The usage before.
    case usageSet(RulePlace, name: String, counts: String, from: Int64, to: Int64, by: String)
    /// All uploads of the files of a group have ended.
    case groupEnded(GroupSummary)
    case safeToRemove(RemovalSafety, folders: [String], path: FilePath, medium: String?, unverified: Int, failed: Int)

    package var type: EventType {
        switch self {
        case .loaded: .loaded
        case .added: .added
        case .moved(_, let next, _, _, _): EventType(endIn: next) ?? .state
        case .rebuilt(let state): EventType(endIn: state) ?? .state
        case .held, .prioritized, .takesOver: .state
        case .alsoVerified: .alsoVerified
        case .removed: .removed
        case .attempt: .attempt
        case .attemptFailed: .attemptFailed
        case .recovered: .recovered
        case .credential: .credential
        case .source: .source
        case .remoteDelete: .remoteDelete
        case .flushed: .flushed
        case .paused: .paused
        case .resumed: .resumed
        case .allowed, .allowedNoMore: .allowed
        case .quotaReached: .quotaReached
        case .usageSet: .usageSet
        case .groupEnded: .groupEnded
        case .safeToRemove: .safeToRemove
        }
    }

    /// Its fields, as they are stored and shown.
    package var detail: [EventField: String] {
        switch self {
        case .loaded(let ongoing): return [.ongoing: "\(ongoing)"]
        case .added: return [:]
        case .moved(let before, let next, let reason, let remoteID, let url):
            var detail: [EventField: String] = [.from: before.rawValue, .to: next.rawValue]
            detail[.reason] = reason
            detail[.remoteID] = remoteID
            detail[.url] = url
            return detail
        case .rebuilt(let state): return [.from: "rebuild", .to: state.rawValue]
        case .held(let isHeld): return [.hold: isHeld ? "operator" : "", .reason: isHeld ? "paused" : "resumed"]
        case .prioritized(let before, let next): return [.reason: "priority", .note: "\(before) to \(next)"]
        case .takesOver(let reason): return [.hold: "", .reason: "alternative", .note: reason]
        case .alsoVerified(let remoteID, let url, let winner):
            var detail: [EventField: String] = [.note: "superseded by \(winner)"]
            detail[.remoteID] = remoteID
            detail[.url] = url
            return detail
        case .removed(let list, let reason): return [.list: list, .reason: reason ?? ""]
        case .attempt(let number, let code): return [.attempt: "\(number)", .code: code.rawValue]
        case .attemptFailed(let code, let message): return [.error: code.rawValue, .message: message]
        case .recovered(let attempt, let seconds):
            var detail: [EventField: String] = [.attempt: "\(attempt)"]
            detail[.after] = seconds.map { "\($0)" }
            return detail
        case .credential(let renewal):
            var detail: [EventField: String] = [.reason: renewal.reason.rawValue]
            detail[.until] = renewal.until?.description
            return detail
        case .source(let state, let note): return [.state: state.rawValue, .note: note ?? ""]
        case .remoteDelete(let result): return [.result: result.rawValue]
        case .flushed(let lists, let count): return [.lists: lists.joined(separator: " "), .count: "\(count)"]
        case .paused(let scope, let name), .resumed(let scope, let name):
            return [.scope: scope.rawValue, .name: name]
        case .allowed(let record):
            return [
                .scope: record.scope.rawValue, .name: record.name, .kind: record.word, .until: "\(record.until)",
                .by: record.author,
            ]
        case .allowedNoMore(let scope, let name, let kind):
            return [.scope: scope.rawValue, .name: name, .kind: kind, .until: "over"]
        case .quotaReached(let reached): return Self.detail(reached)
        case .usageSet(let place, let name, let counts, let before, let used, let author):
            return [
                .place: place.words, .name: name, .counts: counts, .from: "\(before)", .to: "\(used)", .by: author,
            ]
        case .groupEnded(let group):
            return [
                .folder: group.folder, .name: group.name.display, .files: "\(group.files)", .bytes: "\(group.bytes)",
                .verified: "\(group.verified)", .result: group.verified == group.files ? "verified" : "incomplete",
            ]
        case .safeToRemove(let level, let folders, let path, let medium, let unverified, let failed):
            return [
                .level: level.rawValue, .folders: folders.joined(separator: ", "), .path: path.display,
                .medium: medium ?? "", .unverified: "\(unverified)", .failed: "\(failed)",
            ]
        }
    }

    private static func detail(_ reached: QuotaThresholds.Reached) -> [EventField: String] {
        var detail: [EventField: String] = [
            .place: reached.place.words, .quota: reached.text, .counts: reached.counts,
            .threshold: "\(reached.threshold)",
            .percent: "\(reached.percent)", .used: "\(reached.used)", .limit: "\(reached.limit)",
            .from: reached.stretch.lowerBound.description, .until: reached.stretch.upperBound.description,
        ]
        if let name = reached.quota.name { detail[.name] = name }
        if reached.counts == "bytes" { detail[.direction] = reached.quota.direction.rawValue }
        switch reached.place {
        case .policy: break
        case .destination(let name): detail[.destination] = name
        case .folder(let name): detail[.folder] = name
        }
        return detail
    }
}
