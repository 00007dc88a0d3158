package import Core

// What `status` shows.

package struct StatusView: Codable, Sendable, Hashable {
    package var version: String
    package var pid: Int32
    package var startedAt: String
    /// The start-up sweep is still going on.
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
    /// Bytes a second that all transfers together may take now; absent for no limit.
    package var limit: Int64?
    /// What persons have said to be otherwise for a while.
    package var exceptions: [ExceptionView]?
    /// What is held of what waits: one for each folder and destination.
    package var classes: [ClassView]?
    /// In the order of the configuration; absent without any.
    package var hooks: [HookView]?
}

/// Who is told of events, and how that goes.
package struct HookView: Codable, Sendable, Hashable {
    package var name: String
    /// The program; or scheme, host and port.
    package var target: String
    /// Notices that wait.
    package var waiting: Int
    /// When the oldest of them happened.
    package var oldest: String?
    /// Why the last try failed, or what keeps notices from being sent.
    package var hold: HoldView?
    /// Since the start of the daemon.
    package var told: Int
    package var givenUp: Int
    package var dropped: Int
    package var lastTold: String?

    init(_ line: HookLine, _ hold: Hold?) {
        name = line.hook.name
        target = line.hook.target.shown
        waiting = line.waiting.count
        oldest = line.oldest?.description
        self.hold = hold.map(HoldView.init)
        (told, givenUp, dropped) = (line.toldCount, line.givenUp, line.dropped)
        lastTold = line.lastTold?.description
    }
}

/// Uploads from one folder to one destination that something holds.
package struct ClassView: Codable, Sendable, Hashable {
    package var folder: String
    package var destination: String
    package var waiting: Int
    /// The one that ends last, as far as that is known.
    package var hold: HoldView
}

/// A file that has not settled yet.
package struct SettlingView: Codable, Sendable, Hashable {
    package var folder: String
    package var path: String
    package var size: Int64
    /// Since when it is known.
    package var since: String
    /// Why it waits, in words.
    package var reason: String
    /// Bytes a second, as far as two looks tell.
    package var rate: Int64?
    /// It waits for longer than `settle.report_after`.
    package var overdue: Bool
}

package struct PauseView: Codable, Sendable, Hashable {
    /// `all`, `folder`, `destination`.
    package var scope: String
    package var name: String?
    package var since: String
    package var until: String?
}

package struct FolderView: Codable, Sendable, Hashable {
    package var name: String
    package var path: String
    /// `watching`, `scanning`, `absent`, `failed: …`.
    package var state: String
    /// Files seen that have not settled yet.
    package var settling: Int
    /// Directories that are looked through from time to time, since events do not tell everything of them.
    package var polled = 0
    /// Those among them that would have a watch, if the limit on watches let them.
    package var unwatched = 0
    /// Files that have settled and wait for others that travel with them, at most 20; absent when there are none.
    package var gathering: [GatheringView]?
    /// How verified sources are kept; absent when they stay for ever or go at once.
    package var retention: RetentionView?
    /// Whether its disk may be pulled out; absent where that is none that anybody pulls out.
    package var card: CardView?
    /// What holds all that comes from it; absent when nothing does.
    package var hold: HoldView?
    /// Bytes a second that all its files together may take now; absent for no limit.
    package var limit: Int64?
}

package struct GatheringView: Codable, Sendable, Hashable {
    package var path: String
    /// What it waits for.
    package var reason: String
}

/// What the loss of a removable disk would cost. Counts stop at 1,000.
package struct CardView: Codable, Sendable, Hashable {
    /// `busy`: files; `staged`: nothing, all have copies; `verified`: nothing, and all have arrived.
    package var level: String
    /// Something on it is being scanned, settles or waits for its group.
    package var settling: Bool
    /// Files without a copy.
    package var unstaged: Int
    /// Uploads that are not verified, failed ones among them.
    package var unverified: Int
    package var failed: Int
    /// Sources that are about to be deleted or moved.
    package var unreleased: Int
}

/// What `after_upload: {source: keep, for: …, until_free: …}` does in a folder.
package struct RetentionView: Codable, Sendable, Hashable {
    /// Bytes free on the folder's disk; absent when it is not there.
    package var free: Int64?
    /// Bytes that are to be free.
    package var untilFree: Int64?
    /// For how long a verified source stays.
    package var seconds: Int64?
    /// Verified sources that go now, and their bytes: on their way, or chosen next.
    package var goingFiles: Int
    package var goingBytes: Int64
    /// When the oldest source that may go was verified.
    package var oldest: String?
}

package struct DestinationView: Codable, Sendable, Hashable {
    package var name: String
    package var type: String
    /// `up`, or why it is held.
    package var state: String
    package var hold: HoldView?
    package var running: Int
    package var waiting: Int
    /// Bytes sent today (local day), retransmissions included.
    package var sentToday: Int64
    /// Bytes that came in from there today, acknowledgements included.
    package var receivedToday: Int64
    /// Bytes a second that all transfers to it together may take now; absent for no limit.
    package var limit: Int64?
    /// What it said of its room; absent when it has not been asked, or said nothing.
    package var space: SpaceView?
}

/// What a destination says of its room. What it does not say is absent.
package struct SpaceView: Codable, Sendable, Hashable {
    /// What the numbers count: `bytes`, `files`.
    package var unit: String
    package var free: Int64?
    package var used: Int64?
    package var limit: Int64?
    /// When it is all free again.
    package var resetsAt: String?
    package var askedAt: String?
    /// The same for a person.
    package var text: String

    package init(_ space: RemoteSpace, askedAt: WallTime?) {
        unit = space.unit.rawValue
        free = space.left
        used = space.used
        limit = space.limit
        resetsAt = space.resetsAt?.description
        self.askedAt = askedAt?.description
        text = space.words
    }
}

package struct StagingView: Codable, Sendable, Hashable {
    package var path: String
    package var used: Int64
    package var free: Int64
    package var cap: Int64?
    package var hold: HoldView?
    /// Copies and exports under way; small files come and go unseen.
    package var running: [StagingRunView]?
}

/// A copy that is being made.
package struct StagingRunView: Codable, Sendable, Hashable {
    /// The source's.
    package var path: String
    /// `copying`, `digesting` (uploaded in place), `exporting`, `receiving` (handed over as bytes).
    package var work: String
    /// 0...1; absent when it is not known.
    package var fraction: Double?
    /// Bytes of the source; for an export 0 until it is over.
    package var done: Int64
    package var total: Int64
    /// Bytes a second.
    package var rate: Int64?
    /// Seconds.
    package var eta: Int64?
}
