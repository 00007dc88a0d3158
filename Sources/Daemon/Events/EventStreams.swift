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
        let store = streams.context.store
        if mayReset {
            mayReset = false
            let oldest = try await store.read { try $0.events.oldest() }
            let newest = await store.seq
            // The event is no longer stored, or belongs to another database: the reader has to list again and follow
            // from here.
            if after + 1 < oldest || after > newest {
                after = newest
                ready = [
                    SharedEvent(EventView(seq: newest, ts: streams.context.clocks.wall().description, type: .reset))
                ]
                return
            }
        }
        ready = try await streams.cache.events(after: after)[...]
        after = ready.last?.view.seq ?? after
        if ready.isEmpty { try await addProgress() }
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
