package import Core

// The views of `status`.

package struct StatusView: Codable, Sendable, Hashable {
    package var version: String
    package var pid: Int32
    package var startedAt: String
    /// Whether the start-up sweep is still under way.
    package var starting: Bool
    package var counts: Counts
    /// The current batch: from the first ongoing upload on an idle daemon until none is ongoing.
    package var filesTotal: Int
    package var filesDone: Int
    package var bytesTotal: Int64
    package var bytesDone: Int64
    package var rate: Int64
    package var eta: Int64?
    package var paused: [PauseView]
    package var folders: [FolderView]
    package var destinations: [DestinationView]
    package var staging: StagingView
    package var warnings: [String]
    package var seq: Int64
    /// The files that have been settling for longest, at most 20.
    package var settling: [SettlingView]
    /// How many times the kernel lost events since the start.
    package var overflows: Int
    /// Present limit in bytes a second for all transfers together; absent for no limit.
    package var limit: Int64?
    /// The exceptions that persons made for a while.
    package var exceptions: [OverrideView]?
    /// The uploads that wait, held or not, in the order of their folders and destinations.
    package var queue: [QueuedView]?
    /// The holds on waiting uploads: several for a folder and destination where conditions tell the files apart.
    package var classes: [ClassView]?
    /// In the order of the configuration; absent without any.
    package var hooks: [HookView]?

    package init(
        version: String, pid: Int32, startedAt: String, starting: Bool, counts: Counts, filesTotal: Int, filesDone: Int,
        bytesTotal: Int64, bytesDone: Int64, rate: Int64, eta: Int64? = nil, paused: [PauseView], folders: [FolderView],
        destinations: [DestinationView], staging: StagingView, warnings: [String], seq: Int64, settling: [SettlingView],
        overflows: Int, limit: Int64? = nil, exceptions: [OverrideView]? = nil, queue: [QueuedView]? = nil,
        classes: [ClassView]? = nil, hooks: [HookView]? = nil
    ) {
        self.version = version
        self.pid = pid
        self.startedAt = startedAt
        self.starting = starting
        self.counts = counts
        self.filesTotal = filesTotal
        self.filesDone = filesDone
        self.bytesTotal = bytesTotal
        self.bytesDone = bytesDone
        self.rate = rate
        self.eta = eta
        self.paused = paused
        self.folders = folders
        self.destinations = destinations
        self.staging = staging
        self.warnings = warnings
        self.seq = seq
        self.settling = settling
        self.overflows = overflows
        self.limit = limit
        self.exceptions = exceptions
        self.queue = queue
        self.classes = classes
        self.hooks = hooks
    }
}

/// Uploads from one folder to one destination that wait, held or not. Those with an attempt are not among them.
package struct QueuedView: Codable, Sendable, Hashable {
    package var folder: String
    package var destination: String
    package var waiting: Int
    /// The sizes of their files together.
    package var bytes: Int64

    package init(folder: String, destination: String, waiting: Int, bytes: Int64) {
        self.folder = folder
        self.destination = destination
        self.waiting = waiting
        self.bytes = bytes
    }
}

/// Uploads from one folder to one destination that are held.
package struct ClassView: Codable, Sendable, Hashable {
    package var folder: String
    package var destination: String
    package var waiting: Int
    /// The hold that ends last, as far as that is known.
    package var hold: HoldView

    package init(folder: String, destination: String, waiting: Int, hold: HoldView) {
        self.folder = folder
        self.destination = destination
        self.waiting = waiting
        self.hold = hold
    }
}

/// A file that has not settled yet.
package struct SettlingView: Codable, Sendable, Hashable {
    package var folder: String
    package var path: String
    package var size: Int64
    /// When it was first seen.
    package var since: String
    /// The reason why it waits, in words.
    package var reason: String
    /// Growth in bytes a second, as far as two inspections show.
    package var rate: Int64?
    /// Whether it has waited longer than `settle.report_after`.
    package var overdue: Bool

    package init(
        folder: String, path: String, size: Int64, since: String, reason: String, rate: Int64? = nil, overdue: Bool
    ) {
        self.folder = folder
        self.path = path
        self.size = size
        self.since = since
        self.reason = reason
        self.rate = rate
        self.overdue = overdue
    }
}

package struct PauseView: Codable, Sendable, Hashable {
    /// `all`, `folder`, `destination`.
    package var scope: String
    package var name: String?
    package var since: String
    package var until: String?

    package init(scope: String, name: String? = nil, since: String, until: String? = nil) {
        self.scope = scope
        self.name = name
        self.since = since
        self.until = until
    }
}

package struct FolderView: Codable, Sendable, Hashable {
    package var name: String
    package var path: String
    package var state: ShownFolderState
    /// Files seen that have not settled yet.
    package var settling: Int
    /// Directories that are scanned from time to time, since their events are incomplete.
    package var polled = 0
    /// Polled directories that would have a watch if the limit on watches allowed it.
    package var unwatched = 0
    /// Files that have settled and wait for others that travel with them, at most 20; absent when there are none.
    package var gathering: [GatheringView]?
    /// The rules for kept sources; absent when they stay for ever or are released at once.
    package var retention: RetentionView?
    /// Whether its disk may be pulled out; absent where the disk is not removable.
    package var card: CardView?
    /// The hold on all uploads from it; absent when there is none.
    package var hold: HoldView?
    /// Present limit in bytes a second for all its files together; absent for no limit.
    package var limit: Int64?

    package init(
        name: String, path: String, state: ShownFolderState, settling: Int, polled: Int = 0, unwatched: Int = 0,
        gathering: [GatheringView]? = nil,
        retention: RetentionView? = nil, card: CardView? = nil, hold: HoldView? = nil, limit: Int64? = nil
    ) {
        self.name = name
        self.path = path
        self.state = state
        self.settling = settling
        self.polled = polled
        self.unwatched = unwatched
        self.gathering = gathering
        self.retention = retention
        self.card = card
        self.hold = hold
        self.limit = limit
    }
}

package struct GatheringView: Codable, Sendable, Hashable {
    package var path: String
    /// The reason why it waits.
    package var reason: String

    package init(path: String, reason: String) {
        self.path = path
        self.reason = reason
    }
}

/// The loss if a removable disk were gone. Counts stop at 1,000.
package struct CardView: Codable, Sendable, Hashable {
    /// `busy`: files would be lost; `staged`: nothing, all have copies; `verified`: nothing, and all have arrived.
    package var level: String
    /// Whether files on it are being scanned, settle or wait for their group.
    package var settling: Bool
    /// Files without a copy.
    package var unstaged: Int
    /// Uploads that are not verified, including failed ones.
    package var unverified: Int
    package var failed: Int
    /// Sources that will be deleted or moved.
    package var unreleased: Int

    package init(level: String, settling: Bool, unstaged: Int, unverified: Int, failed: Int, unreleased: Int) {
        self.level = level
        self.settling = settling
        self.unstaged = unstaged
        self.unverified = unverified
        self.failed = failed
        self.unreleased = unreleased
    }
}

/// The effect of `after_upload: {source: keep, for: …, until_free: …}` in a folder.
package struct RetentionView: Codable, Sendable, Hashable {
    /// Bytes free on the folder's disk; absent when the disk is.
    package var free: Int64?
    /// The minimum of free bytes.
    package var untilFree: Int64?
    /// How long a verified source stays.
    package var seconds: Int64?
    /// Verified sources that are removed now, and their bytes: in progress, or chosen next.
    package var goingFiles: Int
    package var goingBytes: Int64
    /// When the oldest removable source was verified.
    package var oldest: String?

    package init(
        free: Int64? = nil, untilFree: Int64? = nil, seconds: Int64? = nil, goingFiles: Int, goingBytes: Int64,
        oldest: String? = nil
    ) {
        self.free = free
        self.untilFree = untilFree
        self.seconds = seconds
        self.goingFiles = goingFiles
        self.goingBytes = goingBytes
        self.oldest = oldest
    }
}

package struct DestinationView: Codable, Sendable, Hashable {
    package var name: String
    package var type: String
    package var state: ShownDestinationState
    package var hold: HoldView?
    package var running: Int
    package var waiting: Int
    /// Bytes sent today (local day), retransmissions included.
    package var sentToday: Int64
    /// Bytes received from there today, acknowledgements included.
    package var receivedToday: Int64
    /// Present limit in bytes a second for all transfers to it together; absent for no limit.
    package var limit: Int64?
    /// Its report of its free space; absent if it has not been queried, or reported none.
    package var space: SpaceView?

    package init(
        name: String, type: String, state: ShownDestinationState, hold: HoldView? = nil, running: Int, waiting: Int,
        sentToday: Int64,
        receivedToday: Int64, limit: Int64? = nil, space: SpaceView? = nil
    ) {
        self.name = name
        self.type = type
        self.state = state
        self.hold = hold
        self.running = running
        self.waiting = waiting
        self.sentToday = sentToday
        self.receivedToday = receivedToday
        self.limit = limit
        self.space = space
    }
}

/// A destination's report of its free space. Values that it does not report are absent.
package struct SpaceView: Codable, Sendable, Hashable {
    /// The unit of the numbers: `bytes`, `files`.
    package var unit: String
    package var free: Int64?
    package var used: Int64?
    package var limit: Int64?
    /// When all of it will be free again.
    package var resetsAt: String?
    package var askedAt: String?
    /// The same in words, for a person.
    package var text: String

    package init(_ space: RemoteSpace, askedAt: WallTime?) {
        unit = space.unit.rawValue
        free = space.left
        used = space.used
        limit = space.limit
        resetsAt = space.resetsAt?.description
        self.askedAt = askedAt?.description
        text = space.text
    }
}

package struct StagingView: Codable, Sendable, Hashable {
    package var path: String
    package var used: Int64
    package var free: Int64
    package var cap: Int64?
    package var hold: HoldView?
    /// Copies and exports in progress; small files end too soon to be seen.
    package var running: [StagingRunView]?

    package init(
        path: String, used: Int64, free: Int64, cap: Int64? = nil, hold: HoldView? = nil,
        running: [StagingRunView]? = nil
    ) {
        self.path = path
        self.used = used
        self.free = free
        self.cap = cap
        self.hold = hold
        self.running = running
    }
}

/// A copy in progress.
package struct StagingRunView: Codable, Sendable, Hashable {
    /// The path of the source.
    package var path: String
    /// `copying`, `digesting` (uploaded in place), `exporting`, `receiving` (handed over as bytes).
    package var work: String
    /// 0...1; absent when unknown.
    package var fraction: Double?
    /// Bytes of the source; for an export 0 until it is over.
    package var done: Int64
    package var total: Int64
    /// In bytes a second.
    package var rate: Int64?
    /// In seconds.
    package var eta: Int64?

    package init(
        path: String, work: String, fraction: Double? = nil, done: Int64, total: Int64, rate: Int64? = nil,
        eta: Int64? = nil
    ) {
        self.path = path
        self.work = work
        self.fraction = fraction
        self.done = done
        self.total = total
        self.rate = rate
        self.eta = eta
    }
}
