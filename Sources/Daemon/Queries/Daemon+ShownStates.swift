internal import Core
internal import Store

// `list --state`: the shown states, which are finer than the stored ones.

extension ListQuery {
    /// The values of `list`.
    package static let lists: [String] = ["ongoing", "completed", "failed", "cancelled", "history"]
    /// The values of `state`.
    package static let states: [String] =
        Set(Daemon.shownStates.keys).union(UploadState.allCases.filter { $0 != .removed }.map(\.rawValue)).sorted()
}

extension Daemon {
    /// The stored states behind each shown state.
    static let shownStates: [String: [UploadState]] = [
        "settling": [.staging], "staging": [.staging], "queued": [.queued], "waiting": [.staging, .queued],
        "opening": [.uploading], "uploading": [.uploading], "finishing": [.uploading],
        "paused": [.staging, .queued], "expired": [.cancelled],
    ]

    /// Views in one turn: a thousand of them would use ten MiB.
    private static let turn = 200

    /// Uploads whose view has this state: searched a piece at a time, and only where there can be any.
    func uploads(shownAs state: String, _ filter: Store.Filter, limit: Int) async throws -> (
        [UploadView], next: String?
    ) {
        var filter = filter
        filter.limit = Self.turn
        let parts = try await parts(of: state, filter)
        var after = filter.after
        var found: [UploadView] = []
        while true {
            var rows: [String: UploadRow] = [:]
            for var part in parts {
                part.after = after
                for row in try await house.store.rows(part) { rows[row.upload.id] = row }
            }
            // Each part returned up to the limit: uploads older than the last of these are left for the next turn.
            let newest = rows.values.sorted { $0.upload.id > $1.upload.id }.prefix(filter.limit)
            for view in await views(newest) where state == "paused" ? view.isPaused : view.state == state {
                if found.count == limit { return (found, found.last?.id) }
                found.append(view)
            }
            guard newest.count == filter.limit, let last = newest.last else { return (found, nil) }
            after = last.upload.id
        }
    }

    /// A hold on a class holds each of its uploads: all of them are waiting and none is queued, which needs no row to
    /// be read. In other classes, only uploads with a hold of their own wait, and these have an index.
    private func parts(of state: String, _ filter: Store.Filter) async throws -> [Store.Filter] {
        if state == "settling" {
            var part = filter
            part.isUnsettled = true
            return [part]
        }
        guard ["queued", "waiting", "paused"].contains(state) else { return [filter] }
        var held: Set<UploadClass> = []
        var free: Set<UploadClass> = []
        for (upload, stored) in try await house.store.classes() where stored == .queued {
            let holds = await scheduler.holds(folder: upload.folder, destination: upload.destination)
            let counts = state != "paused" || holds.contains { $0.kind == .operator || $0.kind == .global }
            if !holds.isEmpty && counts { held.insert(upload) }
            if holds.isEmpty { free.insert(upload) }
        }
        let everythingWaits = house.troubles["state"] != nil
        func part(_ states: [UploadState], _ change: (inout Store.Filter) -> Void) -> Store.Filter {
            var part = filter
            part.states = filter.states.filter { states.contains($0) }
            change(&part)
            return part
        }
        switch state {
        case "queued": return everythingWaits ? [] : [part([.queued]) { $0.classes = free }]
        case "waiting" where everythingWaits: return [filter]
        default:
            var parts = [part([.queued]) { $0.classes = held }, part([.staging, .queued]) { $0.isHeld = true }]
            // Copies wait for the staging folder, or for their own source.
            if state == "waiting", house.troubles["staging"] != nil || !house.stagingHolds.all.isEmpty {
                parts.append(part([.staging]) { _ in })
            }
            return parts.filter { !$0.states.isEmpty }
        }
    }
}
