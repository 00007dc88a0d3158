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
    let stops: StopRequests
    let making: LiveStaging
    let troubles: Alerts
    let stagingHolds: StagingHolds

    /// For all views of one answer, which so describe the same moment.
    func builder() async -> UploadViewBuilder {
        let now = await scheduler.shown()
        return UploadViewBuilder(now, ran: context.store.currentRunTime)
    }

    func views(_ rows: ArraySlice<UploadRow>) async -> [UploadView] {
        var builder = await builder()
        return await views(rows, &builder)
    }

    func views(_ rows: ArraySlice<UploadRow>, _ builder: inout UploadViewBuilder) async -> [UploadView] {
        var views: [UploadView] = []
        for row in rows { views.append(await view(row, &builder)) }
        return views
    }

    func view(_ row: UploadRow, _ builder: inout UploadViewBuilder) async -> UploadView {
        var facts = facts(row, &builder)
        if let hold = await duplicateHold(row) { facts.own.append(hold) }
        if let hold = await alternativeHold(row.upload, builder) { facts.own.append(hold) }
        return builder.view(row, facts)
    }

    /// The hold of an upload that waits for another destination to have the file.
    private func alternativeHold(_ upload: UploadRecord, _ builder: UploadViewBuilder) async -> Hold? {
        guard upload.state == .queued, upload.standby != nil,
            // This is only an explanation, which the next request may have.
            let awaited = try? await context.store.read({ try $0.alternatives.awaited(by: upload) })
        else { return nil }
        return builder.hold(awaiting: awaited.map(\.destination), upload)
    }

    /// For past events: the present holds did not exist then.
    func viewWithoutHolds(_ row: UploadRow, _ builder: inout UploadViewBuilder) -> UploadView {
        let facts = facts(row, &builder)
        return builder.viewWithoutHolds(row, facts)
    }

    /// The present views of the uploads.
    func reply(_ ids: [String]) async throws -> UploadsReply {
        UploadsReply(
            uploads: await views(
                try await ids.asyncCompactMap { id in try await context.store.read { try $0.uploads.row(id) } }[...]))
    }

    /// The facts that no wait is needed for.
    private func facts(_ row: UploadRow, _ builder: inout UploadViewBuilder) -> UploadViewBuilder.Facts {
        let upload = row.upload
        var facts = builder.facts(of: row)
        facts.run = live[upload.id]
        facts.shouldPause = stops.shouldPause(upload.id)
        facts.copy = making[upload.asset]
        facts.ofCopy = stagingHolds[upload.asset]
        facts.waitsWithDisk = stagingHolds.waitsWithDisk(upload.asset)
        facts.ofStaging = troubles["staging"]
        facts.ofState = troubles[Alerts.state]
        if upload.state == .queued {
            facts.retry = context.configuration.retry(folder: upload.folder, destination: upload.destination)
        }
        return facts
    }

    /// The hold of an upload that waits for another with the same content, where the folder skips duplicates.
    private func duplicateHold(_ row: UploadRow) async -> Hold? {
        let upload = row.upload
        guard upload.state == .queued, context.configuration.folder(upload.folder)?.duplicates == .skip,
            let sha256 = row.asset.sha256,
            // This is only an explanation, which the next request may have.
            let other = try? await context.store.read({ try $0.uploads.duplicate(upload, sha256: sha256) }),
            let asset = try? await context.store.read({ try $0.assets.find(other.asset) })
        else { return nil }
        return UploadViewBuilder.hold(while: other, sends: asset)
    }
}
