package import API

// Each operation of the API, carried out by its component.

extension Daemon: Operations {
    package func list(_ query: ListQuery) async throws -> UploadPage { try await operations.uploads.list(query) }
    package func show(_ reference: String) async throws -> UploadDetail {
        try await operations.uploads.show(reference)
    }
    package func thumbnail(
        of reference: String, hasLeft: @escaping @Sendable () -> Bool
    ) async throws -> ThumbnailView {
        try await operations.thumbnails.thumbnail(of: reference, hasLeft: hasLeft)
    }
    package func why(_ reference: String) async throws -> WhyView { try await operations.why.why(reference) }
    package func usage(_ query: UsageQuery) async throws -> UsageView { try await operations.usage.usage(query) }
    package func allowances(of destination: String?) async throws -> [AllowanceView] {
        try await operations.usage.allowances(of: destination)
    }
    package func routes() async throws -> RoutesView { await operations.routes.routes() }
    package func plan(_ query: PlanQuery) async throws -> PlanView { try await operations.plan.plan(query) }
    package func add(_ request: AddRequest) async throws -> UploadsReply { try await operations.adder.add(request) }
    package func receive(
        _ request: ReceiveRequest, _ next: @escaping @Sendable () async throws -> [UInt8]?
    ) async throws -> UploadsReply {
        try await operations.receiver.receive(request, next)
    }
    package func pause(_ selection: Selection) async throws -> UploadsReply {
        try await operations.pauses.pause(selection)
    }
    package func resume(_ selection: Selection) async throws -> UploadsReply {
        try await operations.pauses.resume(selection)
    }
    package func cancel(_ selection: Selection) async throws -> UploadsReply {
        try await operations.commands.cancel(selection)
    }
    package func retry(_ selection: Selection) async throws -> UploadsReply {
        try await operations.commands.retry(selection)
    }
    package func prioritize(_ selection: Selection) async throws -> UploadsReply {
        try await operations.commands.prioritize(selection)
    }
    package func remove(_ selection: Selection) async throws -> UploadsReply {
        try await operations.commands.remove(selection)
    }
    package func flush(_ request: FlushRequest) async throws -> UploadsReply {
        try await operations.commands.flush(request)
    }
    package func allow(_ request: AllowRequest, by who: String) async throws -> OverridesReply {
        try await operations.overrides.allow(request, by: who)
    }
    package func limit(_ request: LimitRequest, by who: String) async throws -> OverridesReply {
        try await operations.overrides.limit(request, by: who)
    }
    package func setUsage(_ request: UsageChangeRequest, by who: String) async throws -> UsageChangeView {
        try await operations.usageCommands.set(request, by: who)
    }
    package func status() async throws -> StatusView { try await operations.status.status() }
    package func metrics() async throws -> MetricsView { try await operations.metrics.metrics() }
    package func rescan(_ request: RescanRequest) async throws -> RescanReply {
        try await operations.folders.rescan(request)
    }
    package func accept(folder name: String) async throws -> RescanReply {
        try await operations.folders.accept(folder: name)
    }
    package func check(_ request: CheckRequest) async throws -> CheckReport {
        try await operations.checks.check(request)
    }
    package func tryHook(_ name: String) async throws -> HookTestResult { try await operations.checks.tryHook(name) }
    package func remote(_ name: String, _ request: RemoteRequest) async throws -> RemoteReply {
        try await operations.remotes.remote(name, request)
    }
    package func orphans(_ name: String, _ request: OrphansRequest) async throws -> OrphansReply {
        try await operations.remotes.orphans(name, request)
    }
    package func trace(_ name: String, _ request: TraceRequest) async throws -> TraceReply {
        try operations.remotes.trace(name, request)
    }
    package func failures() async throws -> FailuresView { operations.remotes.failures() }
    package func reload() async throws -> ReloadView { try await operations.reloader.reload() }
    package func events(since: Int64?) async throws -> AsyncStream<EventView> {
        try await operations.events.events(since: since)
    }
}
