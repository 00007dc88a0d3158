package import Core

// The views for operators and programs: one JSON shape everywhere (lists, show, events), written by the daemon's API
// and read by the command line. Times are RFC 3339 in UTC with milliseconds; sizes and offsets bytes; rates bytes a
// second; durations seconds. Secrets and upload URLs never appear in them.

/// One upload: an asset and one destination.
package struct UploadView: Codable, Sendable, Hashable {
    package var id: String
    package var key: String?
    package var context: [String: String]
    package var folder: String
    package var destination: String
    /// The source's absolute path for display (`FilePath.display`).
    package var path: String
    /// The path below its folder, for display.
    package var relative: String?
    package var name: String
    package var size: Int64
    /// SHA-256 of the content in hexadecimal, once staged.
    package var sha256: String?
    /// The rung of the settling ladder that accepted the file.
    package var settledBy: String
    /// `staging`, `queued`, `opening`, `uploading`, `finishing`, `waiting`, `completed`, `failed`, `cancelled`,
    /// `expired`.
    package var state: String
    /// `ongoing`, `completed`, `failed`, `cancelled`, or `history` for uploads that have left these.
    package var list: String
    package var holds: [HoldView]
    package var priority: Int
    package var progress: ProgressView
    package var attempt: Int
    package var generation: Int
    package var nextAttemptAt: String?
    package var error: ErrorView?
    package var warnings: [String]
    package var remote: RemoteView?
    /// The action for the source: `keep`, `delete`, `move`; and its state: `pending`, `done`, `kept`, `failed: …`.
    package var sourceAction: String
    package var sourceState: String
    /// After a cancel: `none`, `pending`, `done`, `unsupported`, `gave_up`, `unknown`.
    package var remoteDelete: String?
    package var createdAt: String
    package var startedAt: String?
    package var finishedAt: String?
    /// When it leaves its list, if the daemon runs until then.
    package var expiresAt: String?
    /// The progress of its copy, while that is being made.
    package var staging: StagingRunView?
    /// `in-place` or `export`, where the uploaded file is not a copy of the source.
    package var keeping: String?
    /// Names of the further request headers that a person gave for it, until it is complete.
    package var headers: [String]?
    /// The address to create it at, in place of its destination's own; without parts that look like secrets.
    package var url: String?

    /// Whether a person paused it: not a state of its own, but shown by tables and found by `list --state paused`.
    package var isPaused: Bool {
        state == "waiting" && holds.contains { $0.kind == "operator" || $0.kind == "global" }
    }
}

package struct HoldView: Codable, Sendable, Hashable {
    package var kind: String
    package var since: String
    package var until: String?
    package var text: String
}

package struct ProgressView: Codable, Sendable, Hashable {
    /// 0...1; 1 only when every byte is acknowledged.
    package var fraction: Double
    package var acked: Int64
    package var sent: Int64
    package var total: Int64
    /// Bytes a second over the last seconds; absent when not running.
    package var rate: Int64?
    /// Seconds to the end at this rate.
    package var eta: Int64?
}

package struct ErrorView: Codable, Sendable, Hashable {
    package var kind: String
    package var code: String
    package var http: Int?
    package var message: String
    package var retryable: Bool
    package var at: String

    enum CodingKeys: String, CodingKey {
        case kind = "class"
        case code, http, message, retryable, at
    }
}

package struct RemoteView: Codable, Sendable, Hashable {
    package var id: String?
    package var url: String?
    package var verifiedBy: String?
}

/// An attempt of an upload that ended without success, for `show`.
package struct AttemptView: Codable, Sendable, Hashable {
    package var generation: Int
    package var attempt: Int
    package var error: ErrorView
}

/// The metadata of a recording.
package struct MediaView: Codable, Sendable, Hashable {
    package var recordedAt: String?
    /// In seconds.
    package var duration: Double?
    /// In pixels, as displayed.
    package var width: Int?
    package var height: Int?
    package var make: String?
    package var model: String?
    /// Make and model in one text.
    package var camera: String?

    init?(_ facts: MediaFacts) {
        guard !facts.isEmpty else { return nil }
        recordedAt = facts.recorded?.description
        duration = facts.duration.map { Double($0) / 1000 }
        (width, height) = (facts.width, facts.height)
        (make, model, camera) = (facts.make, facts.model, facts.camera)
    }
}

package struct UploadDetail: Codable, Sendable, Hashable {
    package var upload: UploadView
    package var attempts: [AttemptView]
    /// Once staged, where the recording has metadata.
    package var media: MediaView?
    /// Wasted bytes of it: they were sent, and the destination has none of them. Absent if there are none.
    package var wasted: Int64?
}

package struct Counts: Codable, Sendable, Hashable {
    package var ongoing = 0
    package var completed = 0
    package var failed = 0
    package var cancelled = 0
}

package struct UploadPage: Codable, Sendable, Hashable {
    package var uploads: [UploadView]
    package var counts: Counts
    /// The last event that this page includes: follow from here without a gap.
    package var seq: Int64
    /// Pass as `after` for the next page; absent on the last.
    package var next: String?
}

package struct ListQuery: Sendable, Hashable {
    package var list: String?
    package var state: String?
    package var destination: String?
    package var folder: String?
    /// A part of the source's path.
    package var text: String?
    /// Pairs that their context has to contain.
    package var context: [String: String] = [:]
    /// Only uploads that were added since then, and before.
    package var since: WallTime?
    package var until: WallTime?
    package var after: String?
    /// 1...1000.
    package var limit: Int = 100

    package init() {}
}

package struct EventView: Codable, Sendable, Hashable {
    /// All types: those that hooks can receive, and those that only a reader of the stream gets.
    package static let types = Hook.types + ["allowed", "progress", "reset", "overflow"]

    package var seq: Int64
    package var ts: String
    /// As in the manual: `added`, `state`, `progress`, `attempt`, `completed`, `failed`, `cancelled`, `paused` …
    package var type: String
    package var op: UploadView?
    /// Further details of the event, as text values: `from`, `to`, `reason`, `counts` …
    package var detail: [String: String]

    package init(seq: Int64, ts: String, type: String, op: UploadView? = nil, detail: [String: String] = [:]) {
        self.seq = seq
        self.ts = ts
        self.type = type
        self.op = op
        self.detail = detail
    }
}

package struct AddRequest: Codable, Sendable, Hashable {
    /// Absolute path of a file or a folder as text, or as its bytes in hexadecimal: names are not always text.
    package var path: String
    /// Destinations; empty for those of the folder that contains the path.
    package var to: [String]
    package var key: String?
    package var context: [String: String]
    /// Further request headers of these uploads, sent only to the destination's own address. Their values are never
    /// shown.
    package var headers: [String: String]
    /// The address to create these uploads at, in place of the destination's own: of the same origin.
    package var url: String?
    /// Whether to upload even if the history contains the file.
    package var again: Bool

    package init(
        path: String, to: [String] = [], key: String? = nil, context: [String: String] = [:],
        headers: [String: String] = [:], url: String? = nil, again: Bool = false
    ) {
        self.headers = headers
        self.url = url
        self.path = path
        self.to = to
        self.key = key
        self.context = context
        self.again = again
    }
}

/// A request to upload bytes that are handed over without a file.
package struct ReceiveRequest: Sendable, Hashable {
    /// The name of the file that they form.
    package var name: String
    /// Destinations; empty for the only one that is configured.
    package var to: [String]
    package var key: String?
    package var context: [String: String]
    /// As in ``AddRequest``.
    package var headers: [String: String]
    package var url: String?
    /// The number of bytes, where it is known.
    package var size: Int64?

    package init(
        name: String, to: [String] = [], key: String? = nil, context: [String: String] = [:],
        headers: [String: String] = [:], url: String? = nil, size: Int64? = nil
    ) {
        self.name = name
        self.to = to
        self.key = key
        self.context = context
        self.headers = headers
        self.url = url
        self.size = size
    }
}

/// The lists to clear.
package struct FlushRequest: Codable, Sendable, Hashable {
    /// `completed`, `failed` or `cancelled`; absent for all three.
    package var list: String?
    package var folder: String?
    package var destination: String?

    package init(list: String? = nil, folder: String? = nil, destination: String? = nil) {
        self.list = list
        self.folder = folder
        self.destination = destination
    }
}

/// The answer of `add` and of verbs that change uploads.
package struct UploadsReply: Codable, Sendable, Hashable {
    /// The present uploads; of more than a person named, the newest hundred.
    package var uploads: [UploadView]
    /// The number of uploads.
    package var count: Int
    /// How many uploads of a whole folder, of a destination or of all could not be retried, or files of a folder not
    /// added, and the reason for the first of them.
    package var refused: Int?
    package var refusal: String?

    package init(uploads: [UploadView] = [], count: Int? = nil, refused: Int? = nil, refusal: String? = nil) {
        self.uploads = uploads
        self.count = count ?? uploads.count
        self.refused = refused
        self.refusal = refusal
    }
}

/// A request that the daemon cannot fulfil, with the HTTP status and the code that the command line turns into its exit
/// status.
package struct Refusal: Error, Codable, Sendable, Hashable, CustomStringConvertible {
    package enum Code: String, Codable, Sendable, Hashable {
        /// 404: no such id. Exit 66.
        case notFound = "not_found"
        /// 409 with the candidates in the message. Exit 66.
        case ambiguous
        /// 409: the state does not allow it. Exit 65.
        case conflict
        /// 409: the history contains it as uploaded. Exit 65.
        case duplicate
        /// 409: neither source nor staged copy is left. Exit 65.
        case sourceMissing = "source_missing"
        /// 400. Exit 64.
        case badRequest = "bad_request"
        /// 403: this user may read but not change anything. Exit 75.
        case forbidden
        /// 502: the destination refused the request, or could not be reached. Exit 76.
        case destination
        /// 507: no space for the bytes that are handed over. Exit 75.
        case noRoom = "no_room"
        /// 503: not while starting, or the state cannot be written. Exit 75.
        case unavailable
    }

    package var code: Code
    package var message: String
    /// The id of the upload that it concerns, if any.
    package var id: String?

    package init(_ code: Code, _ message: String, id: String? = nil) {
        self.code = code
        self.message = message
        self.id = id
    }

    package var description: String { message }
}

/// The operations of the daemon for the control API. Every verb throws ``Refusal`` where it cannot be done.
package protocol Operations: Sendable {
    func list(_ query: ListQuery) async throws -> UploadPage
    /// - Parameter reference: Id, unique prefix of at least 6 characters, key, or path.
    func show(_ reference: String) async throws -> UploadDetail
    /// - Parameter reference: As for `show`, or any path.
    func why(_ reference: String) async throws -> WhyView
    func usage(_ query: UsageQuery) async throws -> UsageView
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
    /// Removes ended uploads from their lists.
    func remove(_ selection: Selection) async throws -> UploadsReply
    /// Removes all ended uploads of a list, or of all lists. Ongoing uploads continue.
    func flush(_ request: FlushRequest) async throws -> UploadsReply
    /// Waives a window, a metered network or a quota for uploads or a folder, for a while.
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
    func tryHook(_ name: String) async throws -> HookTrial
    /// Asks a destination for one page of its content.
    func remote(_ name: String, _ request: RemoteRequest) async throws -> RemoteReply
    /// Lists unfinished uploads at a destination that no upload continues, and removes them if requested.
    func orphans(_ name: String, _ request: OrphansRequest) async throws -> OrphansReply
    /// Puts the configuration files, as they are now, in force, or reports their errors and changes nothing.
    func reload() async throws -> ReloadView
    /// Events after `since` (exclusive; `nil`: from now on), stored ones first, then as they happen, until cancelled. A
    /// first event of type `reset` means that older ones are gone.
    func events(since: Int64?) async throws -> AsyncStream<EventView>
}
