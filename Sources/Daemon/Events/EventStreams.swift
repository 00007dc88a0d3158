internal import API
internal import Core
internal import Linux
internal import Store

/// Opens streams of events for readers.
struct EventStreams: Sendable {
    let context: Context
    let cache: EventCache
    let live: LiveUploads
    let making: LiveStaging

    /// Readers pull events: a reader that stops reading costs nothing, and finds the stored events when it continues.
    func events(since: Int64?) async throws -> AsyncStream<EventView> {
        let signal = AsyncSignal()
        let cache = cache
        cache.listen(signal)
        let start: Int64 = if let since { since } else { await context.store.seq }
        let feed = EventCursor(streams: self, signal: signal, after: start, mayReset: since != nil)
        return AsyncStream(
            unfolding: {
                let event = await feed.next()
                if event == nil { cache.forget(signal) }
                return event
            },
            onCancel: { cache.forget(signal) })
    }

    /// Whether nothing is copied or sent, so that there is no progress to report.
    fileprivate var isIdle: Bool { live.isEmpty && making.isEmpty }
}

/// One reader's position in the stream.
private actor EventCursor {
    private let streams: EventStreams
    private let signal: AsyncSignal
    private var after: Int64
    private var mayReset: Bool
    private var ready: ArraySlice<SharedEvent> = []
    private var throttle = ProgressThrottle()

    init(streams: EventStreams, signal: AsyncSignal, after: Int64, mayReset: Bool) {
        self.streams = streams
        self.signal = signal
        self.after = after
        self.mayReset = mayReset
    }

    /// The next event; `nil` when the reader has gone.
    func next() async -> EventView? {
        while ready.isEmpty {
            if Task.isCancelled { return nil }
            do { try await refill() } catch {
                streams.context.log.warning("cannot read events", ["reason": "\(error)"])
                return nil
            }
            if ready.isEmpty {
                await signal.wait(
                    atMost: streams.isIdle ? nil : ProgressThrottle.tick)
            }
        }
        return ready.popFirst()?.view
    }

    private func refill() async throws {
        if mayReset {
            mayReset = false
            if let newest = try await newestIfLost() { return reset(to: newest) }
        }
        let events = try await streams.cache.events(after: after)
        // A slow reader may have stayed behind for so long that the next events were removed.
        if let first = events.first?.view.seq, first > after + 1, let newest = try await newestIfLost() {
            return reset(to: newest)
        }
        ready = events[...]
        after = ready.last?.view.seq ?? after
        if ready.isEmpty { try await addProgress() }
    }

    /// The number of the newest event if the next one is no longer stored, or if `after` belongs to another database.
    private func newestIfLost() async throws -> Int64? {
        let store = streams.context.store
        let oldest = try await store.read { try $0.events.oldest() }
        let newest = await store.seq
        return after + 1 < oldest || after > newest ? newest : nil
    }

    /// The reader has to list again and follow from here.
    private func reset(to newest: Int64) {
        after = newest
        ready = [SharedEvent(EventView(seq: newest, ts: streams.context.clocks.wall().description, type: .reset))]
    }

    private func addProgress() async throws {
        if streams.isIdle { return }
        let events = try await streams.cache.progress().filter {
            $0.op.map { streams.live[$0.id] != nil } ?? false
        }
        let running = events.compactMap { event in
            event.op.map { ProgressThrottle.Progress(id: $0.id, sent: $0.progress.sent, total: $0.size) }
        }
        for id in throttle.due(running, now: streams.context.clocks.monotonic()) {
            guard var event = events.first(where: { $0.op?.id == id }) else { continue }
            event.seq = after
            ready.append(SharedEvent(event))
        }
    }
}
