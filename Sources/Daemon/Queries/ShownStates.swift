internal import API
internal import Core
internal import Store

// `list --state`: the shown states, which are finer than the stored ones.

extension ListQuery {
    /// The stored states that the query asks for.
    ///
    /// - Throws: ``Refusal`` for a list or a state that does not exist, and for two that exclude each other.
    var storedStates: [UploadState] {
        get throws(Refusal) {
            // Uploads that have left the lists are shown only in the history.
            var states = UploadState.allCases.filter { $0 != .removed }
            if let list {
                guard let list = UploadList(rawValue: list) else {
                    throw Refusal(.badRequest, "no list is called `\(list)`: \(Self.lists.joined(separator: ", "))")
                }
                states = UploadState.allCases.filter { $0.list == list }
            }
            if list == UploadList.history.rawValue {
                guard state == nil else {
                    throw Refusal(.badRequest, "the history has no states: `state` goes with the other lists")
                }
                return states
            }
            if let state {
                guard let wanted = ShownState(rawValue: state).stored else {
                    let known = Self.states
                    throw Refusal(
                        .badRequest,
                        "no state is called `\(state)`: "
                            + (closest(to: state, among: known).map { "did you mean `\($0)`?" }
                                ?? known.joined(separator: ", ")))
                }
                states = states.filter { wanted.contains($0) }
                // A list and a state that exclude each other: no rows, not all of them.
                if states.isEmpty {
                    throw Refusal(.badRequest, "the list `\(list ?? "")` never contains uploads that are \(state)")
                }
            }
            return states
        }
    }
}

extension ShownState {
    /// The stored states behind it; `nil` for a word that is no state of an upload.
    var stored: [UploadState]? {
        switch self {
        case .settling, .staging: [.staging]
        case .queued: [.queued]
        case .waiting, .paused: [.staging, .queued]
        case .opening, .uploading, .finishing: [.uploading]
        case .completed: [.completed]
        case .failed: [.failed]
        case .cancelled, .expired, .superseded: [.cancelled]
        default: nil
        }
    }

    /// Whether it depends on more than the stored state.
    var isDerived: Bool { stored != nil && ![.completed, .failed, .cancelled].contains(self) }
}

/// The database queries for uploads with a shown state.
///
/// A hold on a class holds each of its uploads: all of them are waiting and none is queued, which needs no row to be
/// read. In other classes, only uploads with a hold of their own wait, and these have an index.
struct ShownStateSearch {
    var state: ShownState
    /// The filter of the request.
    var filter: UploadFilter
    /// The holds on each class that has queued uploads.
    var classHolds: [(upload: UploadClass, holds: [Hold])] = []
    /// Whether nothing is sent, since the state cannot be written.
    var everythingWaits = false
    /// Whether some copies wait for the staging folder or for their source.
    var copiesWait = false

    /// Whether the holds on classes matter for the state.
    var dependsOnHolds: Bool { [.queued, .waiting, .paused].contains(state) }

    /// One filter for each part of the search.
    var parts: [UploadFilter] {
        if state == .settling {
            var part = filter
            part.isUnsettled = true
            return [part]
        }
        guard dependsOnHolds else { return [filter] }
        var held: Set<UploadClass> = []
        var free: Set<UploadClass> = []
        for (upload, holds) in classHolds {
            let counts = state != .paused || holds.contains { $0.kind == .operator || $0.kind == .global }
            if !holds.isEmpty && counts { held.insert(upload) }
            if holds.isEmpty { free.insert(upload) }
        }
        switch state {
        case .queued: return everythingWaits ? [] : [part([.queued]) { $0.classes = free }]
        case .waiting where everythingWaits: return [filter]
        default:
            var parts = [part([.queued]) { $0.classes = held }, part([.staging, .queued]) { $0.isHeld = true }]
            if state == .waiting, copiesWait { parts.append(part([.staging]) { _ in }) }
            return parts.filter { !$0.states.isEmpty }
        }
    }

    private func part(_ states: [UploadState], _ change: (inout UploadFilter) -> Void) -> UploadFilter {
        var part = filter
        part.states = filter.states.filter { states.contains($0) }
        change(&part)
        return part
    }
}

extension Counts {
    init(_ tallies: [Tally]) {
        self.init()
        for tally in tallies {
            switch tally.state {
            case .staging, .queued, .uploading: ongoing += tally.uploads
            case .completed: completed += tally.uploads
            case .failed: failed += tally.uploads
            case .cancelled: cancelled += tally.uploads
            case .removed: break
            }
        }
    }
}
