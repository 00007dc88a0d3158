/// The operations of the daemon for the control API. Every verb throws ``Refusal`` where it cannot be done.
package protocol Operations: Sendable {
    func list(_ query: ListQuery) async throws -> UploadPage
    /// - Parameter reference: Id, unique prefix of at least 6 characters, key, or path.
    func show(_ reference: String) async throws -> UploadDetail
    /// A small picture of an upload's video or photo.
    ///
    /// - Parameters:
    ///   - reference: As for `show`.
    ///   - hasLeft: Whether the client has left, so that the picture is not worth making.
    func thumbnail(of reference: String, hasLeft: @escaping @Sendable () -> Bool) async throws -> ThumbnailView
    /// - Parameter reference: As for `show`, or any path.
    func why(_ reference: String) async throws -> WhyView
    /// The ways to all destinations. Sends nothing.
    func routes() async throws -> RoutesView
    func usage(_ query: UsageQuery) async throws -> UsageView
    /// Sets the usage of a quota with a condition in its present period.
    ///
    /// - Parameter who: The user who sets it.
    func setUsage(_ request: UsageChangeRequest, by who: String) async throws -> UsageChangeView
    /// The space and quotas that are left for a destination, or for each.
    func allowances(of destination: String?) async throws -> [AllowanceView]
    /// The times of future uploads.
    func plan(_ query: PlanQuery) async throws -> PlanView
    /// Adds one upload for each destination, of a file, or of every file in a folder that the configuration selects.
    func add(_ request: AddRequest) async throws -> UploadsReply
    /// Uploads the bytes that `next` returns until it returns `nil`, as one file. They are accepted when this returns,
    /// and not before: complete, on the disk and recorded.
    ///
    /// - Parameter next: Throws when no more bytes will arrive and the file is incomplete.
    func receive(
        _ request: ReceiveRequest, _ next: @escaping @Sendable () async throws -> [UInt8]?
    ) async throws -> UploadsReply
    /// With neither ids, folder nor destination: everything (`global`).
    func pause(_ selection: Selection) async throws -> UploadsReply
    func resume(_ selection: Selection) async throws -> UploadsReply
    func cancel(_ selection: Selection) async throws -> UploadsReply
    /// `all` means every failed upload.
    func retry(_ selection: Selection) async throws -> UploadsReply
    /// Gives ongoing uploads another priority; `all` means every ongoing upload.
    func prioritize(_ selection: Selection) async throws -> UploadsReply
    /// Removes ended uploads from their lists.
    func remove(_ selection: Selection) async throws -> UploadsReply
    /// Removes all ended uploads of a list, or of all lists. Ongoing uploads continue.
    func flush(_ request: FlushRequest) async throws -> UploadsReply
    /// Makes exceptions from windows, metered networks or quotas for uploads or a folder, for a while.
    ///
    /// - Parameter who: The user who makes the exception.
    func allow(_ request: AllowRequest, by who: String) async throws -> OverridesReply
    /// Limits all transfers together for a while.
    func limit(_ request: LimitRequest, by who: String) async throws -> OverridesReply
    func status() async throws -> StatusView
    /// The metrics of the daemon.
    func metrics() async throws -> MetricsView
    /// Scans folders now; waits for the end of the scan if the request asks for that.
    func rescan(_ request: RescanRequest) async throws -> RescanReply
    /// Accepts the present directory at a folder's path as the right one, and scans it.
    func accept(folder name: String) async throws -> RescanReply
    /// Checks everything that the running configuration names, and contacts the destinations that policy permits.
    func check(_ request: CheckRequest) async throws -> CheckReport
    /// Sends a made-up event to a hook.
    func tryHook(_ name: String) async throws -> HookTestResult
    /// Asks a destination for one page of its content.
    func remote(_ name: String, _ request: RemoteRequest) async throws -> RemoteReply
    /// Lists unfinished uploads at a destination that no upload continues, and removes them if requested.
    func orphans(_ name: String, _ request: OrphansRequest) async throws -> OrphansReply
    /// Begins to record the requests of a destination, or returns those that were recorded since.
    func trace(_ name: String, _ request: TraceRequest) async throws -> TraceReply
    /// The last requests to destinations that failed.
    func failures() async throws -> FailuresView
    /// Puts the configuration files, as they are now, in force, or reports their errors and changes nothing.
    func reload() async throws -> ReloadView
    /// Events after `since` (exclusive; `nil`: from now on), stored ones first, then as they happen, until cancelled. A
    /// first event of type `reset` means that older ones are gone.
    func events(since: Int64?) async throws -> AsyncStream<EventView>
}
