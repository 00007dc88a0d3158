import API
import Core
import Synchronization

@testable import Daemon

/// Operations that record their requests, and give the answers that a test sets.
final class FakeDaemon: Operations {
    struct State {
        var asked: [String] = []
        var uploads: [UploadView] = []
        var refusal: Refusal?
        var fault: (any Error)?
        var events: [EventView] = []
        var followers: [AsyncStream<EventView>.Continuation] = []
        var gone = 0
        var reload = ReloadView(applied: true)
        /// Bytes that were handed over, and whether they were complete; `nil` while they are arriving.
        var received: [UInt8] = []
        var isWhole: Bool?
        /// The fake daemon waits for it before it reads anything.
        var gate: AsyncStream<Void>?
        /// The overrides that `limit off` ends.
        var ended: [OverrideView] = []
    }

    let state = Mutex(State())

    var asked: [String] { state.withLock { $0.asked } }

    init(_ uploads: [UploadView] = []) { state.withLock { $0.uploads = uploads } }

    func answer(_ reload: ReloadView) { state.withLock { $0.reload = reload } }
    func refuse(_ refusal: Refusal?) { state.withLock { $0.refusal = refusal } }

    func thumbnail(of reference: String, hasLeft: @escaping @Sendable () -> Bool) throws -> ThumbnailView {
        _ = try note("thumbnail \(reference)")
        return ThumbnailView(bytes: [0xFF, 0xD8, 0xFF, 0xD9], tag: "one")
    }

    func allow(_ request: AllowRequest, by who: String) throws -> OverridesReply {
        let words = request.ids.joined(separator: ",") + (request.folder ?? "")
        _ = try note(
            "allow \(words) \((request.kinds + (request.rules ?? [])).joined(separator: ",")) \(request.duration)")
        return OverridesReply(exceptions: [])
    }
    func limit(_ request: LimitRequest, by who: String) throws -> OverridesReply {
        _ = try note("limit \(request.rate.map { "\($0)" } ?? "off") \(request.duration ?? 0)")
        return OverridesReply(exceptions: [], ended: request.rate == nil ? state.withLock { $0.ended } : nil)
    }

    func setUsage(_ request: UsageChangeRequest, by who: String) throws -> UsageChangeView {
        let amount = request.bytes.map { "\($0) bytes" } ?? request.files.map { "\($0) files" } ?? "nothing"
        _ = try note("set usage \(request.name) \(request.place ?? "") \(amount)")
        return UsageChangeView(
            place: request.place ?? "policy", name: request.name, counts: request.files == nil ? "bytes" : "files",
            before: 5, used: request.bytes ?? request.files ?? 0, from: "2026-11-01T00:00:00.000Z", by: who)
    }

    private func note(_ what: String) throws -> [UploadView] {
        try state.withLock { state in
            state.asked.append(what)
            if let refusal = state.refusal { throw refusal }
            if let fault = state.fault { throw fault }
            return state.uploads
        }
    }

    private func note(_ verb: String, _ selection: Selection) throws -> [UploadView] {
        let parts =
            [
                selection.ids.joined(separator: ","), selection.all ? "all" : "", selection.folder ?? "",
                selection.destination ?? "", selection.duration.map(String.init) ?? "",
            ] + (selection.afterPart ? ["after part"] : [])
        return try note("\(verb) \(parts.joined(separator: "|"))")
    }

    func list(_ query: ListQuery) async throws -> UploadPage {
        let parts = [query.list, query.state, query.destination, query.folder, query.text, query.after]
        let more =
            query.context.sorted { $0.key < $1.key }.map { "|\($0.key)=\($0.value)" }
            + [query.since, query.until].compactMap { $0.map { "|\($0)" } }
        let uploads = try note("list \(parts.map { $0 ?? "" }.joined(separator: "|"))|\(query.limit)\(more.joined())")
        return UploadPage(uploads: uploads, counts: Counts(ongoing: uploads.count), seq: 7, next: nil)
    }

    func show(_ reference: String) async throws -> UploadDetail {
        let uploads = try note("show \(reference)")
        guard let upload = uploads.first else { throw Refusal(.notFound, "no upload `\(reference)`", id: reference) }
        return UploadDetail(upload: upload, attempts: [])
    }

    func why(_ reference: String) async throws -> WhyView {
        let uploads = try note("why \(reference)")
        return WhyView(
            answers: uploads.map {
                WhyAnswer(id: $0.id, path: $0.path, state: $0.state, text: "because", holds: $0.holds)
            })
    }

    func usage(_ query: UsageQuery) async throws -> UsageView {
        let parts = [query.by, query.destination, query.folder].map { $0 ?? "" }
        _ = try note("usage \(query.days)|\(query.months)|\(parts.joined(separator: "|"))")
        let day = UsagePeriodView(
            name: "2026-11-20", from: "2026-11-20T00:00:00.000Z", until: "2026-11-21T00:00:00.000Z", bytes: 1_200_000,
            received: 90_000, files: 3)
        return UsageView(days: [day], months: [], by: query.by, quotas: [])
    }

    func allowances(of destination: String?) async throws -> [AllowanceView] {
        _ = try note("quota \(destination ?? "")")
        return [AllowanceView(destination: destination ?? "archive", space: nil, quotas: [])]
    }

    func failures() async throws -> FailuresView {
        _ = try note("failures")
        return FailuresView(destinations: [])
    }
    func routes() async throws -> RoutesView {
        _ = try note("routes")
        return .sample
    }
    func plan(_ query: PlanQuery) async throws -> PlanView {
        _ = try note("plan \(query.until?.description ?? "")|\(query.rate.map(String.init) ?? "")")
        return .sample
    }

    func add(_ request: AddRequest) async throws -> UploadsReply {
        let path = FilePath(bytes: bytes(hexadecimal: request.path) ?? []).display
        return UploadsReply(
            uploads: try note(
                "add \(path)|\(request.to)|\(request.key ?? "")|\(request.context)|\(request.again)"
                    + (request.uploadURL.map { "|\($0)" } ?? "")))
    }

    func receive(
        _ request: ReceiveRequest, _ next: @escaping @Sendable () async throws -> [UInt8]?
    ) async throws -> UploadsReply {
        let words = [
            request.name, request.to.joined(separator: ","),
            (request.key ?? "") + (request.isKeyOnce ? " once" : ""),
            request.context.map { "\($0)=\($1)" }.sorted().joined(separator: ","),
            request.headers.map { "\($0)=\($1)" }.sorted().joined(separator: ","),
            request.url ?? request.uploadURL ?? "",
        ]
        let uploads = try note("receive \(words.joined(separator: "|"))")
        if let gate = state.withLock({ $0.gate }) { for await _ in gate { break } }
        do {
            while let piece = try await next() { state.withLock { $0.received += piece } }
            state.withLock { $0.isWhole = true }
        } catch {
            state.withLock { $0.isWhole = false }
            throw error
        }
        return UploadsReply(uploads: uploads)
    }

    func pause(_ selection: Selection) async throws -> UploadsReply {
        UploadsReply(uploads: try note("pause", selection))
    }
    func resume(_ selection: Selection) async throws -> UploadsReply {
        UploadsReply(uploads: try note("resume", selection))
    }
    func cancel(_ selection: Selection) async throws -> UploadsReply {
        UploadsReply(uploads: try note("cancel", selection))
    }
    func retry(_ selection: Selection) async throws -> UploadsReply {
        UploadsReply(uploads: try note("retry", selection))
    }

    func prioritize(_ selection: Selection) async throws -> UploadsReply {
        UploadsReply(uploads: try note("priority \(selection.priority ?? 0)", selection))
    }
    func remove(_ selection: Selection) async throws -> UploadsReply {
        UploadsReply(uploads: try note("remove", selection))
    }
    func flush(_ request: FlushRequest) async throws -> UploadsReply {
        let parts = [request.list, request.folder, request.destination].map { $0 ?? "" }
        return UploadsReply(uploads: try note("flush \(parts.joined(separator: "|"))"))
    }

    func reload() async throws -> ReloadView {
        _ = try note("reload")
        return state.withLock { $0.reload }
    }

    func check(_ request: CheckRequest) async throws -> CheckReport {
        _ = try note("check \(request.folder ?? "")|\(request.destination ?? "")")
        return CheckReport([CheckFinding(about: "destination", name: "nas", CheckResult(.ok, "would accept uploads"))])
    }

    func tryHook(_ name: String) async throws -> HookTestResult {
        _ = try note("hook \(name)")
        return HookTestResult(
            hook: name, ok: true, detail: "https://example.org answered 200", sent: 512, received: 256, hold: nil,
            counted: true)
    }

    func remote(_ name: String, _ request: RemoteRequest) async throws -> RemoteReply {
        _ = try note("remote \(name) \(request.after ?? "")")
        return RemoteReply(
            destination: name,
            items: [
                RemoteReply.Item(
                    id: "/videos/1", name: "clip", url: "https://vimeo.example/1", state: "available", size: 10,
                    createdAt: "2026-11-20T08:00:00.000Z", upload: "01JQ")
            ], next: "2", sent: 512, received: 256)
    }

    func trace(_ name: String, _ request: TraceRequest) async throws -> TraceReply {
        TraceReply(entries: [], next: 0, ended: true, dropped: 0)
    }
    func orphans(_ name: String, _ request: OrphansRequest) async throws -> OrphansReply {
        _ = try note("orphans \(name) \(request.abort == true)")
        return OrphansReply(
            destination: name,
            items: [
                OrphansReply.Item(
                    id: "2~abc", name: "cam/clip.mp4", begunAt: "2026-11-20T08:00:00.000Z", removed: request.abort)
            ], others: 1, sent: 512, received: 256)
    }

    func rescan(_ request: RescanRequest) async throws -> RescanReply {
        _ = try note("rescan \(request.folder ?? "")|\(request.wait)")
        let counts: (Int?, Int?) = request.wait ? (120, 2) : (nil, nil)
        return RescanReply(
            done: request.wait,
            folders: [
                RescanView(
                    name: "front", path: "/srv/front", state: .watching, files: counts.0, new: counts.1, settling: 1)
            ])
    }

    func accept(folder name: String) async throws -> RescanReply {
        _ = try note("accept \(name)")
        return RescanReply(
            done: true,
            folders: [
                RescanView(name: name, path: "/srv/front", state: .watching, files: 3, new: 1, settling: 0)
            ])
    }

    func status() async throws -> StatusView {
        _ = try note("status")
        return .sample
    }

    func metrics() async throws -> MetricsView {
        _ = try note("metrics")
        return .sample
    }

    func events(since: Int64?) async throws -> AsyncStream<EventView> {
        _ = try note("events \(since.map(String.init) ?? "now")")
        let (stream, out) = AsyncStream.makeStream(of: EventView.self)
        out.onTermination = { _ in self.state.withLock { $0.gone += 1 } }
        state.withLock { state in
            if let since { for event in state.events where event.seq > since { out.yield(event) } }
            state.followers.append(out)
        }
        return stream
    }

    /// Emits an event: stores it, and sends it to all subscribers.
    func emit(_ event: EventView) {
        let followers = state.withLock { state in
            state.events.append(event)
            return state.followers
        }
        for follower in followers { follower.yield(event) }
    }

}

extension UploadView {
    static func sample(
        _ id: String = "01JD3K8QXW0000000000000001", name: String = "a.mp4", state: ShownState = .uploading,
        holds: [HoldView] = [], error: ErrorView? = nil, below: String? = nil
    ) -> UploadView {
        UploadView(
            id: id, key: "cam1/0001", context: ["Camera_Name": "door"], folder: "front", destination: "archive",
            path: "/srv/front/\(name)", relative: below.map { "\($0)/\(name)" }, name: name, size: 118_000_000,
            sha256: String(repeating: "ab", count: 32),
            settledBy: "lease", state: state, list: Shown(state == .failed ? .failed : .ongoing), holds: holds,
            priority: 0,
            progress: ProgressView(
                fraction: 0.42, acked: 49_560_000, sent: 50_000_000, total: 118_000_000, rate: 1_250_000, eta: 57),
            attempt: 1, generation: 1, nextAttemptAt: nil, error: error, warnings: [],
            remote: RemoteView(id: "/files/1", url: nil, verifiedBy: nil), sourceAction: "delete",
            sourceState: "pending", remoteDelete: nil, createdAt: "2026-11-20T08:00:00.000Z",
            startedAt: "2026-11-20T08:00:01.000Z", finishedAt: nil)
    }
}

extension PlanView {
    static let sample = PlanView(
        from: "2026-11-20T08:00:00.000Z", until: "2026-11-22T08:00:00.000Z", isCut: false,
        rates: [PlanRateView(destination: "archive", rate: 2_000_000, source: "measured")],
        steps: [
            PlanStepView(
                from: "2026-11-20T21:00:00.000Z", to: "2026-11-21T05:00:00.000Z", folder: "front",
                destination: "archive", interface: "wlan0", network: "unmetered", files: 412, bytes: 38_000_000_000,
                rate: 1_319_444, end: "held",
                holds: [
                    HoldView(
                        kind: .rule, since: "2026-11-21T05:00:00.000Z", until: "2026-11-21T21:00:00.000Z",
                        text: "outside the windows of policy")
                ])
        ],
        queues: [
            PlanQueueView(
                folder: "front", destination: "archive", files: 500, bytes: 50_000_000_000,
                ends: "2026-11-22T23:30:00.000Z", leftFiles: 88, leftBytes: 12_000_000_000, copying: 3, paused: 1,
                standby: 2, going: 28_800, turns: 0,
                waits: [
                    PlanWaitView(
                        kind: "rule", text: "outside the windows of policy", from: "2026-11-20T08:00:00.000Z",
                        until: "2026-11-20T21:00:00.000Z", seconds: 144_000)
                ], obstacles: [])
        ], notes: [])
}

extension RoutesView {
    static let sample = RoutesView(destinations: [
        DestinationRoutesView(
            destination: "archive", way: RouteView(interface: "wan0", address: "192.0.2.7", text: "it is not metered"),
            otherWays: [RouteView(interface: "wwan0", text: "metered, and policy forbids that")])
    ])
}

extension MetricsView {
    static let sample = {
        var view = MetricsView()
        view.set(.uploads, ["nas", "completed"], 3)
        return view
    }()
}

extension StatusView {
    static let sample = StatusView(
        version: "0.1.0", pid: 77, startedAt: "2026-11-20T07:00:00.000Z", starting: false,
        counts: Counts(ongoing: 3, completed: 120, failed: 1, cancelled: 0), filesTotal: 20, filesDone: 12,
        bytesTotal: 3_400_000_000, bytesDone: 1_200_000_000, rate: 11_000_000, eta: 200,
        paused: [PauseView(scope: "folder", name: "back", since: "2026-11-20T07:30:00.000Z", until: nil)],
        folders: [FolderView(name: "front", path: "/srv/front", state: .watching, settling: 2)],
        destinations: [
            DestinationView(
                name: "archive", type: "tus", state: .held("destination"),
                hold: HoldView(
                    kind: .destination, since: "2026-11-20T07:59:00.000Z", until: "2026-11-20T08:05:00.000Z",
                    text: "nas.example does not answer"), running: 0, waiting: 3, sentToday: 1_200_000_000,
                receivedToday: 34_000_000)
        ],
        staging: StagingView(
            path: "/var/lib/sluice/staging", used: 1_000_000, free: 300_000_000_000, cap: 200_000_000_000, hold: nil),
        warnings: ["staging is on a memory file system"], seq: 41,
        settling: [
            SettlingView(
                folder: "front", path: "/srv/front/long.mp4", size: 48_000_000, since: "2026-11-20T07:58:00.000Z",
                reason: "another process has it open for writing", rate: 1_250_000, overdue: false)
        ], overflows: 0,
        queue: [
            QueuedView(folder: "back", destination: "archive", waiting: 1, bytes: 31_000_000),
            QueuedView(folder: "front", destination: "archive", waiting: 2, bytes: 96_000_000),
        ],
        classes: [
            ClassView(
                folder: "front", destination: "archive", waiting: 2,
                hold: HoldView(
                    kind: .destination, since: "2026-11-20T07:59:00.000Z", until: "2026-11-20T08:05:00.000Z",
                    text: "nas.example does not answer")),
            ClassView(
                folder: "back", destination: "archive", waiting: 1,
                hold: HoldView(kind: .metered, since: "2026-11-20T07:59:00.000Z", text: "wwan0 costs")),
        ])
}
