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
    package var state: ShownState
    /// `ongoing`, `completed`, `failed`, `cancelled`, or `history` for uploads that have left these.
    package var list: Shown<UploadList>
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
    /// The origin of the upload that was given beforehand. The rest of its address is a secret.
    package var uploadOrigin: String?

    package init(
        id: String, key: String? = nil, context: [String: String], folder: String, destination: String, path: String,
        relative: String? = nil, name: String, size: Int64, sha256: String? = nil, settledBy: String, state: ShownState,
        list: Shown<UploadList>, holds: [HoldView], priority: Int, progress: ProgressView, attempt: Int,
        generation: Int,
        nextAttemptAt: String? = nil, error: ErrorView? = nil, warnings: [String], remote: RemoteView? = nil,
        sourceAction: String, sourceState: String, remoteDelete: String? = nil, createdAt: String,
        startedAt: String? = nil, finishedAt: String? = nil, expiresAt: String? = nil, staging: StagingRunView? = nil,
        keeping: String? = nil, headers: [String]? = nil, url: String? = nil, uploadOrigin: String? = nil
    ) {
        self.id = id
        self.key = key
        self.context = context
        self.folder = folder
        self.destination = destination
        self.path = path
        self.relative = relative
        self.name = name
        self.size = size
        self.sha256 = sha256
        self.settledBy = settledBy
        self.state = state
        self.list = list
        self.holds = holds
        self.priority = priority
        self.progress = progress
        self.attempt = attempt
        self.generation = generation
        self.nextAttemptAt = nextAttemptAt
        self.error = error
        self.warnings = warnings
        self.remote = remote
        self.sourceAction = sourceAction
        self.sourceState = sourceState
        self.remoteDelete = remoteDelete
        self.createdAt = createdAt
        self.startedAt = startedAt
        self.finishedAt = finishedAt
        self.expiresAt = expiresAt
        self.staging = staging
        self.keeping = keeping
        self.headers = headers
        self.url = url
        self.uploadOrigin = uploadOrigin
    }

    /// Whether a person paused it: not a state of its own, but shown by tables and found by `list --state paused`.
    package var isPaused: Bool {
        state == .waiting && holds.contains { $0.kind.known == .operator || $0.kind.known == .global }
    }
}

package struct HoldView: Codable, Sendable, Hashable {
    package var kind: Shown<Hold.Kind>
    package var since: String
    package var until: String?
    /// The name of the rule, its file and its line; only for the kind `rule`.
    package var rule: String?
    package var file: String?
    package var line: Int?
    /// The facts of the rule's condition of which one has to change for the hold to end, besides the time: keys of
    /// conditions. Empty where there is none; only for the kind `rule`.
    package var facts: [String]?
    package var text: String

    package init(kind: Hold.Kind, since: String, until: String? = nil, rule: HoldingRule? = nil, text: String) {
        self.rule = rule?.name
        file = rule.flatMap { $0.file.isEmpty ? nil : $0.file }
        line = rule.flatMap { $0.line > 0 ? $0.line : nil }
        facts = rule?.facts
        self.kind = Shown(kind)
        self.since = since
        self.until = until
        self.text = text
    }
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

    package init(fraction: Double, acked: Int64, sent: Int64, total: Int64, rate: Int64? = nil, eta: Int64? = nil) {
        self.fraction = fraction
        self.acked = acked
        self.sent = sent
        self.total = total
        self.rate = rate
        self.eta = eta
    }
}

package struct ErrorView: Codable, Sendable, Hashable {
    package var kind: String
    package var code: String
    package var http: Int?
    package var message: String
    package var retryable: Bool
    package var at: String

    package init(kind: String, code: String, http: Int? = nil, message: String, retryable: Bool, at: String) {
        self.kind = kind
        self.code = code
        self.http = http
        self.message = message
        self.retryable = retryable
        self.at = at
    }

    enum CodingKeys: String, CodingKey {
        case kind = "class"
        case code, http, message, retryable, at
    }
}

package struct RemoteView: Codable, Sendable, Hashable {
    package var id: String?
    package var url: String?
    package var verifiedBy: String?
    package var resumable: ResumableView?

    package init(
        id: String? = nil, url: String? = nil, verifiedBy: String? = nil, resumable: ResumableView? = nil
    ) {
        self.id = id
        self.url = url
        self.verifiedBy = verifiedBy
        self.resumable = resumable
    }
}

/// An unfinished upload at a destination that drops it one day.
package struct ResumableView: Codable, Sendable, Hashable {
    /// Bytes that the destination has confirmed.
    package var offset: Int64
    package var expiresAt: String

    package init(offset: Int64, expiresAt: String) {
        self.offset = offset
        self.expiresAt = expiresAt
    }
}

/// An attempt of an upload that ended without success, for `show`.
package struct AttemptView: Codable, Sendable, Hashable {
    package var generation: Int
    package var attempt: Int
    package var error: ErrorView

    package init(generation: Int, attempt: Int, error: ErrorView) {
        self.generation = generation
        self.attempt = attempt
        self.error = error
    }
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

    package init(
        recordedAt: String? = nil, duration: Double? = nil, width: Int? = nil, height: Int? = nil, make: String? = nil,
        model: String? = nil, camera: String? = nil
    ) {
        self.recordedAt = recordedAt
        self.duration = duration
        self.width = width
        self.height = height
        self.make = make
        self.model = model
        self.camera = camera
    }

    package init?(_ facts: MediaFacts) {
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
    /// The group that its file is reported with.
    package var group: GroupView?

    package init(
        upload: UploadView, attempts: [AttemptView], media: MediaView? = nil, wasted: Int64? = nil,
        group: GroupView? = nil
    ) {
        self.upload = upload
        self.attempts = attempts
        self.media = media
        self.wasted = wasted
        self.group = group
    }
}

/// A directory, or the files of a manifest, that go and are reported as one.
package struct GroupView: Codable, Sendable, Hashable {
    /// Below the folder: the path of the directory or of the manifest.
    package var name: String
    package var files: Int
    /// Bytes of the sources.
    package var bytes: Int64
    /// Files that have arrived at each of their destinations.
    package var verified: Int

    package init(name: String, files: Int, bytes: Int64, verified: Int) {
        (self.name, self.files, self.bytes, self.verified) = (name, files, bytes, verified)
    }
}

package struct Counts: Codable, Sendable, Hashable {
    package var ongoing = 0
    package var completed = 0
    package var failed = 0
    package var cancelled = 0

    package init(ongoing: Int = 0, completed: Int = 0, failed: Int = 0, cancelled: Int = 0) {
        (self.ongoing, self.completed, self.failed, self.cancelled) = (ongoing, completed, failed, cancelled)
    }
}

package struct UploadPage: Codable, Sendable, Hashable {
    package var uploads: [UploadView]
    package var counts: Counts
    /// The counts of the folder and the destination that the query names: a command with the same ones applies to as many
    /// uploads. Absent without them.
    package var selected: Counts?
    /// The last event that this page includes: follow from here without a gap.
    package var seq: Int64
    /// Pass as `after` for the next page; absent on the last.
    package var next: String?

    package init(uploads: [UploadView], counts: Counts, seq: Int64, next: String? = nil) {
        self.uploads = uploads
        self.counts = counts
        self.seq = seq
        self.next = next
    }
}

package struct EventView: Codable, Sendable, Hashable {
    package var seq: Int64
    package var ts: String
    /// As in the manual: `added`, `state`, `progress`, `attempt`, `completed`, `failed`, `cancelled`, `paused` …
    package var type: EventType
    package var op: UploadView?
    /// Further details of the event, by ``EventField``; a newer daemon may send others.
    package var detail: [String: String]

    package init(seq: Int64, ts: String, type: EventType, op: UploadView? = nil, detail: [String: String] = [:]) {
        self.seq = seq
        self.ts = ts
        self.type = type
        self.op = op
        self.detail = detail
    }
}

package struct ListQuery: Sendable, Hashable {
    /// The values of `list`.
    package static let lists: [String] = UploadList.allCases.map(\.rawValue)
    /// The values of `state`.
    package static let states: [String] = ShownState.all.map(\.rawValue)

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

extension HoldView {
    package init(_ hold: Hold) {
        self.init(
            kind: hold.kind, since: hold.since.description, until: hold.until?.description, rule: hold.rule,
            text: hold.text)
    }
}

extension ErrorView {
    package init(_ failure: Failure) {
        self.init(
            kind: failure.kind.rawValue, code: failure.code.rawValue, http: failure.http, message: failure.message,
            retryable: failure.retryable, at: WallTime(milliseconds: failure.at).description)
    }

    /// `nil` for a failure of another cause than decisions depend on.
    package var cause: Failure.Cause? { Failure.Cause(Failure.Code(rawValue: code)) }
}
