internal import API
internal import Control
internal import Core

/// What the daemon says at one moment, as far as `top` shows it.
struct TopFacts: Sendable {
    var status: StatusView
    /// Running transfers first, then the others of the list, the newest first.
    var uploads: [UploadView]
    var routes: RoutesView
    var quotas: [QuotaView]
    var at: WallTime

    /// The most uploads that are shown of a list, besides running ones.
    static let mostUploads = 100

    /// Asks a daemon.
    ///
    /// - Parameter list: The list whose uploads are shown.
    init(_ client: ControlClient, list: UploadList, at now: WallTime) async throws {
        status = try await client.status()
        var query = ListQuery()
        query.list = list.rawValue
        query.limit = Self.mostUploads
        var uploads = try await client.list(query).uploads
        if list == .ongoing {
            // Running ones may be older than the newest of the list.
            query.state = ShownState.uploading.rawValue
            let running = try await client.list(query).uploads
            let known = Set(running.map(\.id))
            uploads = running + uploads.filter { !known.contains($0.id) }
        }
        self.uploads = uploads
        routes = try await client.routes()
        var usage = UsageQuery()
        (usage.days, usage.months) = (0, 0)
        quotas = try await client.usage(usage).quotas
        at = now
    }

    init(status: StatusView, uploads: [UploadView], routes: RoutesView, quotas: [QuotaView], at: WallTime) {
        self.status = status
        self.uploads = uploads
        self.routes = routes
        self.quotas = quotas
        self.at = at
    }
}
