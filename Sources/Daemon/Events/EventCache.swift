internal import API
internal import Core
internal import Linux
internal import Store

/// An event that is made once and shared by all readers: a thousand of them may wait with many events each, and a view
/// is large.
final class SharedEvent: Sendable {
    let view: EventView
    init(_ view: EventView) { self.view = view }
}

/// Recent events, read and made into views once for all readers: two hundred readers cost the store as much as one,
/// and so cannot slow the uploads down.
actor EventCache {
    private nonisolated let context: Context
    private nonisolated let views: UploadViews
    private let live: LiveUploads
    private let making: LiveStaging
    /// Contiguous, oldest first: every event with a number above `floor`.
    private var recent: [SharedEvent] = []
    private var floor: Int64 = 0
    private var filling: Task<Void, any Error>?
    private var progress: (made: MonotonicTime, views: [EventView])?
    /// Signalled for each commit with events.
    private nonisolated let commits: AsyncBroadcast
    /// The count of ``commits`` when the cache last read all events; `nil` if there may be more.
    private var readCommits: Int?

    /// A reader that is further behind queries the store itself.
    private static let capacity = 1024
    /// Events that are read at once: for all readers, and for a reader that is behind and keeps their views for itself.
    /// Hundreds of such readers must not need hundreds of megabytes.
    private static let (batch, batchOfOne) = (200, 20)
    /// The shortest interval between updates of progress, for all readers together.
    private static let progressFreshness: Duration = .milliseconds(250)

    init(context: Context, commits: AsyncBroadcast, views: UploadViews, live: LiveUploads, making: LiveStaging) {
        (self.context, self.commits) = (context, commits)
        self.views = views
        self.live = live
        self.making = making
    }

    /// Sets the reader's signal for each commit with events, until ``forget(_:)``.
    nonisolated func listen(_ reader: AsyncSignal) { commits.add(reader) }

    nonisolated func forget(_ reader: AsyncSignal) { commits.remove(reader) }

    /// Some events after `seq`, oldest first; empty when there is none yet.
    func events(after seq: Int64) async throws -> [SharedEvent] {
        if seq < floor { return try await load(after: seq, limit: Self.batchOfOne) }
        if seq >= last {
            while let filling { try await filling.value }
            // Other readers may have filled it meanwhile, or moved on far beyond this reader.
            let count = commits.eventCount
            if seq >= last, readCommits != count {
                // Set before the read: a commit during it counts as later.
                readCommits = count
                try await fill(from: seq)
            }
            if seq < floor { return try await load(after: seq, limit: Self.batchOfOne) }
        }
        let start = recent.firstIndex { $0.view.seq > seq } ?? recent.endIndex
        return Array(recent[start...].prefix(Self.batch))
    }

    private var last: Int64 { recent.last?.view.seq ?? floor }

    private func fill(from seq: Int64) async throws {
        // No reader has followed for a while: this reader does not need the events between.
        if seq > last {
            recent = []
            floor = seq
        }
        let start = last
        let task = Task {
            // Here, and not in a waiting caller: of several, the caller that began it may be the last to continue.
            defer { filling = nil }
            let events = try await load(after: start, limit: Self.batch)
            recent += events
            // The batch is full: there may be more.
            if events.count == Self.batch { readCommits = nil }
            if recent.count > Self.capacity {
                let surplus = recent.count - Self.capacity / 2
                floor = recent[surplus - 1].view.seq
                recent.removeFirst(surplus)
            }
        }
        filling = task
        do { try await task.value } catch {
            readCommits = nil
            throw error
        }
    }

    private nonisolated func load(after seq: Int64, limit: Int) async throws -> [SharedEvent] {
        let records = try await context.store.read { try $0.events.list(after: seq, limit: limit) }
        var events: [SharedEvent] = []
        var builder = await views.builder()
        for event in records { events.append(SharedEvent(await view(of: event, &builder))) }
        return events
    }

    /// For the views of events that are read together.
    nonisolated func builder() async -> UploadViewBuilder { await views.builder() }

    /// An event counts as new for this long: the present holds of its upload held it at that time too.
    private static let freshness: Duration = .seconds(10)

    nonisolated func view(of event: EventRecord, _ builder: inout UploadViewBuilder) async -> EventView {
        var op: UploadView?
        let age = Duration.milliseconds(context.clocks.wall().milliseconds - event.at.milliseconds)
        let isNew = (.zero - Self.freshness...Self.freshness).contains(age)
        // Without its upload, the event is still useful.
        if let id = event.upload, let row = try? await context.store.read({ try $0.uploads.row(id) }) {
            op = isNew ? await views.view(row, &builder) : views.viewWithoutHolds(row, &builder)
        }
        return EventView(seq: event.seq, ts: event.at.description, type: event.type, op: op, detail: event.detail)
    }

    /// The progress of each running upload. The reader sets the sequence numbers.
    func progress() async throws -> [EventView] {
        let now = context.clocks.monotonic()
        if let progress, now.since(progress.made) < Self.progressFreshness { return progress.views }
        // Set before the wait: other callers use the earlier views.
        progress = (now, progress?.views ?? [])
        var rows: [UploadRow] = []
        for id in live.ids {
            guard let run = live[id], run.phase != .opening,
                let row = try await context.store.read({ try $0.uploads.row(id) })
            else { continue }
            rows.append(row)
        }
        for asset in making.assets {
            for upload in try await context.store.read({ try $0.uploads.of(asset) }) where upload.state == .staging {
                guard let row = try await context.store.read({ try $0.uploads.row(upload.id) }) else { continue }
                rows.append(row)
            }
        }
        let time = context.clocks.wall().description
        let events = await views.views(rows[...]).map { EventView(seq: 0, ts: time, type: .progress, op: $0) }
        progress = (now, events)
        return events
    }
}
