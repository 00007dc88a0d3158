internal import API
internal import Control
internal import Core

/// What the daemon says at one moment, as far as `top` shows it.
struct TopFacts: Sendable {
    var status: StatusView
    /// The list whose uploads these are.
    var list: UploadList
    /// Running transfers first, then the others of the list, the newest first.
    var uploads: [UploadView]
    var routes: RoutesView
    var quotas: [QuotaView]
    var at: WallTime

    /// The states of an upload that a transfer carries.
    private static let running: [ShownState] = [.uploading, .finishing, .opening]

    /// The most uploads that are shown of a list, besides running ones.
    static let mostUploads = 100

    /// Asks a daemon.
    ///
    /// - Parameter list: The list whose uploads are shown.
    init(_ client: ControlClient, list: UploadList, at now: WallTime) async throws {
        status = try await client.status()
        self.list = list
        var query = ListQuery()
        query.list = list.rawValue
        query.limit = Self.mostUploads
        var uploads = try await client.list(query).uploads
        if list == .ongoing {
            // Running ones may be older than the newest of the list.
            var running: [UploadView] = []
            for state in Self.running {
                query.state = state.rawValue
                running += try await client.list(query).uploads
            }
            // One may have gone from a state to the next in the meantime.
            var known: Set<String> = []
            uploads = (running + uploads).filter { known.insert($0.id).inserted }
        }
        self.uploads = uploads
        routes = try await client.routes()
        var usage = UsageQuery()
        (usage.days, usage.months) = (0, 0)
        quotas = try await client.usage(usage).quotas
        at = now
    }

    init(
        status: StatusView, uploads: [UploadView], routes: RoutesView, quotas: [QuotaView], at: WallTime,
        list: UploadList = .ongoing
    ) {
        self.status = status
        self.list = list
        self.uploads = uploads
        self.routes = routes
        self.quotas = quotas
        self.at = at
    }
}
