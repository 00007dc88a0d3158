internal import API
internal import Config
internal import Core
internal import Linux
internal import Store

/// Makes the views of uploads: collects the facts about each one, and lets ``UploadViewBuilder`` map them.
struct UploadViews: Sendable {
    let context: Context
    let scheduler: Scheduler
    let live: LiveUploads
    let making: LiveStaging
    let troubles: Alerts
    let stagingHolds: Alerts

    func views(_ rows: ArraySlice<UploadRow>) async -> [UploadView] {
        var views: [UploadView] = []
        var known: [String: [Hold]] = [:]
        let exempt = Set(await scheduler.snapshot.exemptUploads.map(\.id))
        for row in rows {
            if exempt.contains(row.upload.id) {
                views.append(await view(row))
                continue
            }
            let group = row.upload.folder + "/" + row.upload.destination
            if known[group] == nil {
                known[group] = await scheduler.shown().holds(
                    folder: row.upload.folder, destination: row.upload.destination)
            }
            views.append(await view(row, classHolds: known[group] ?? []))
        }
        return views
    }

    func view(_ row: UploadRow) async -> UploadView {
        let holds = await scheduler.shown().holds(
            folder: row.upload.folder, destination: row.upload.destination, upload: row.upload.id)
        return await view(row, classHolds: holds)
    }

    /// For past events: the present holds did not exist then.
    func viewWithoutHolds(_ row: UploadRow) async -> UploadView {
        let never = await neverHold(row)
        var facts = facts(row)
        facts.never = never
        return builder().viewWithoutHolds(row, facts)
    }

    /// The present views of the uploads.
    func reply(_ ids: [String]) async throws -> UploadsReply {
        UploadsReply(
            uploads: await views(
                try await ids.asyncCompactMap { id in try await context.store.read { try $0.uploads.row(id) } }[...]))
    }

    private func view(_ row: UploadRow, classHolds: [Hold]) async -> UploadView {
        let never = await neverHold(row)
        let own = await roomHold(row) + (await duplicateHold(row))
        var facts = facts(row)
        (facts.never, facts.ofClass, facts.own) = (never, classHolds, own)
        return builder().view(row, facts)
    }

    private func builder() -> UploadViewBuilder {
        UploadViewBuilder(
            lists: context.settings.lists, wall: context.clocks.wall(), monotonic: context.clocks.monotonic(),
            ran: context.store.currentRunTime)
    }

    /// The facts that no wait is needed for.
    private func facts(_ row: UploadRow) -> UploadViewBuilder.Facts {
        let upload = row.upload
        var facts = UploadViewBuilder.Facts()
        facts.run = live[upload.id]
        facts.shouldPause = live.shouldPause(upload.id)
        facts.copy = making[upload.asset]
        facts.ofCopy = stagingHolds["\(upload.asset)"]
        facts.ofStaging = troubles["staging"]
        facts.ofState = troubles["state"]
        if upload.state == .queued {
            facts.retry = context.configuration.retry(folder: upload.folder, destination: upload.destination)
        }
        return facts
    }

    /// The hold of an upload that can never be sent under its present quotas: other holds may end.
    private func neverHold(_ row: UploadRow) async -> Hold? {
        guard row.upload.state == .queued else { return nil }
        return await scheduler.snapshot.neverHold(of: row.upload, size: row.asset.stagedSize)
    }

    /// The hold of an upload that its destination has no space for.
    private func roomHold(_ row: UploadRow) async -> [Hold] {
        let upload = row.upload
        guard upload.state == .queued,
            let hold = await scheduler.facts.destinations.capacity(of: upload.destination)?.hold(
                at: upload.destination, missing: upload.missing, name: row.asset.path.name.display),
            // An upload that has begun there is not held for it.
            !upload.isBegun
        else { return [] }
        return [hold]
    }

    /// The hold of an upload that waits for another with the same content, where the folder skips duplicates.
    private func duplicateHold(_ row: UploadRow) async -> [Hold] {
        let upload = row.upload
        guard upload.state == .queued, context.configuration.folder(upload.folder)?.duplicates == .skip,
            let sha256 = row.asset.sha256,
            // This is only an explanation, which the next request may have.
            let other = try? await context.store.read({ try $0.uploads.duplicate(upload, sha256: sha256) }),
            let asset = try? await context.store.read({ try $0.assets.find(other.asset) })
        else { return [] }
        return [
            Hold(
                .busy, since: other.startedAt ?? other.createdAt,
                text:
                    "\(asset.identity.relative.display) of folder \(other.folder) has the same content and is being uploaded to "
                    + "\(other.destination) as \(other.id): this one is skipped when that upload is complete")
        ]
    }
}
