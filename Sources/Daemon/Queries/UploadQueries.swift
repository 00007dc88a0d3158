internal import API
internal import Core
internal import Linux
internal import Staging
internal import Store

/// Lists uploads, and shows one of them.
struct UploadQueries: Sendable {
    let context: Context
    let finder: UploadFinder
    let views: UploadViews
    let sources: SourceFolders
    let mediaReading: MediaReading
    let troubles: Alerts
    let stagingHolds: StagingHolds

    func list(_ query: ListQuery) async throws -> UploadPage {
        guard (1...1000).contains(query.limit) else { throw Refusal(.badRequest, "limit takes 1 to 1000") }
        if let after = query.after, UploadID(after) == nil {
            throw Refusal(.badRequest, "`after` takes the value of `next` from the page before")
        }
        var filter = UploadFilter()
        filter.limit = query.limit + 1
        filter.destination = query.destination
        filter.folder = query.folder
        filter.text = query.text.map { NameSearch($0) }
        filter.context = query.context
        filter.since = query.since
        filter.until = query.until
        filter.after = query.after
        filter.states = try query.storedStates
        filter.includesUnknownStates = query.list == nil && query.state == nil
        // Read before the rows: events repeat a change in between, and none is missed.
        let seq = await context.store.seq
        if let state = query.state.map(ShownState.init), state.isDerived {
            let (uploads, next) = try await uploads(shownAs: state, filter, limit: query.limit)
            if uploads.isEmpty {
                try context.configuration.names.require(folder: query.folder, destination: query.destination)
            }
            return try await page(uploads, of: query, seq: seq, next: next)
        }
        let rows = try await context.store.rows(filter)
        // Rows of names that are no longer configured may still exist; where there are none, the name is a mistake.
        if rows.isEmpty {
            try context.configuration.names.require(folder: query.folder, destination: query.destination)
        }
        let shown = rows.prefix(query.limit)
        return try await page(
            await views.views(shown), of: query, seq: seq,
            next: rows.count > query.limit ? shown.last?.upload.id : nil)
    }

    private func page(
        _ uploads: [UploadView], of query: ListQuery, seq: Int64, next: String?
    ) async throws -> UploadPage {
        try await context.store.read { tx in
            var page = UploadPage(uploads: uploads, counts: Counts(try tx.lists.tallies()), seq: seq, next: next)
            if query.folder != nil || query.destination != nil {
                page.selected = Counts(
                    try tx.lists.tallies(folder: query.folder, destination: query.destination))
            }
            return page
        }
    }

    func show(_ reference: String) async throws -> UploadDetail {
        let row = try await finder.find(reference)
        let attempts = try await context.store.read { try $0.failures.of(row.upload.id) }.map {
            AttemptView(generation: $0.generation, attempt: $0.attempt, error: ErrorView($0.failure))
        }
        let media = MediaView(try await mediaFacts(of: row.asset))
        let waste = try await context.store.read { try $0.waste.of(row.upload.id) }
        // The destination may still have bytes of the last attempt, unless it has refused the file with them.
        let isInVain = row.upload.state.isTerminal ? row.upload.ending == .failed : waste.startsOver
        let wasted = waste.total + (isInVain ? waste.unsettled : 0)
        var builder = await views.builder()
        return UploadDetail(
            upload: await views.view(row, &builder), attempts: attempts, media: media,
            wasted: wasted > 0 ? wasted : nil,
            group: try await context.store.read { try $0.groups.summary(ofUpload: row.upload.id) }.map {
                GroupView(name: $0.name.display, files: $0.files, bytes: $0.bytes, verified: $0.verified)
            })
    }

    /// The facts of an asset's recording; read now where `ffprobe` was not asked yet and the bytes still exist.
    private func mediaFacts(of asset: AssetRecord) async throws -> MediaFacts {
        let known = try await context.store.read { try $0.media.of(asset.id) }
        guard known.isEmpty else { return known }
        let (reading, copy, source) =
            (mediaReading, context.staging.path(asset.stagedName), sources.source(asset.path))
        // The caller must not wait for a disk that does not answer: in that case there are no facts.
        return
            (try? await SlowDisk(timeout: .seconds(3)).run { _ in
                reading.facts(of: source, orOf: copy, named: asset.identity.relative.name, probes: true)
            }) ?? known
    }

    // MARK: Shown states

    /// Views in one turn: a thousand of them would use ten MiB.
    private static let turn = 200

    /// Uploads whose view has this state: searched a piece at a time, and only where there can be any.
    private func uploads(shownAs state: ShownState, _ filter: UploadFilter, limit: Int) async throws -> (
        [UploadView], next: String?
    ) {
        var filter = filter
        filter.limit = Self.turn
        var builder = await views.builder()
        let parts = try await parts(of: state, filter, builder.now)
        var after = filter.after
        var found: [UploadView] = []
        while true {
            var rows: [String: UploadRow] = [:]
            for var part in parts {
                part.after = after
                for row in try await context.store.rows(part) { rows[row.upload.id] = row }
            }
            // Each part returned up to the limit: uploads older than the last of these are left for the next turn.
            let newest = rows.values.sorted { $0.upload.id > $1.upload.id }.prefix(filter.limit)
            for view in await views.views(newest, &builder) where state == .paused ? view.isPaused : view.state == state
            {
                if found.count == limit { return (found, found.last?.id) }
                found.append(view)
            }
            guard newest.count == filter.limit, let last = newest.last else { return (found, nil) }
            after = last.upload.id
        }
    }

    private func parts(
        of state: ShownState, _ filter: UploadFilter, _ now: PolicySnapshot
    ) async throws -> [UploadFilter] {
        var search = ShownStateSearch(state: state, filter: filter)
        guard search.dependsOnHolds else { return search.parts }
        for (upload, stored) in try await context.store.read({ try $0.lists.classes() }) where stored == .queued {
            search.classHolds.append((upload, now.holds(on: upload)))
        }
        search.everythingWaits = troubles[Alerts.state] != nil
        search.copiesWait = troubles["staging"] != nil || !stagingHolds.isEmpty
        return search.parts
    }
}
