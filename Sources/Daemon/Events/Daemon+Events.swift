internal import Core
internal import Linux
internal import Store

// The stream of events.

extension Daemon {
    /// Readers pull events: a reader that stops reading costs nothing, and finds the stored events when it continues.
    package func events(since: Int64?) async throws -> AsyncStream<EventView> {
        let signal = AsyncSignal()
        let board = board
        let listener = await board.listen(signal)
        let start: Int64 = if let since { since } else { await house.store.seq }
        let feed = EventFeed(daemon: self, signal: signal, after: start, mayReset: since != nil)
        return AsyncStream(
            unfolding: {
                let event = await feed.next()
                if event == nil { board.forget(listener) }
                return event
            },
            onCancel: {
                board.forget(listener)
                signal.signal()
            })
    }
}

/// One reader's position in the stream.
private actor EventFeed {
    private let daemon: Daemon
    private let signal: AsyncSignal
    private var after: Int64
    private var mayReset: Bool
    private var ready: ArraySlice<SharedEvent> = []
    private var throttle = ProgressThrottle()

    init(daemon: Daemon, signal: AsyncSignal, after: Int64, mayReset: Bool) {
        self.daemon = daemon
        self.signal = signal
        self.after = after
        self.mayReset = mayReset
    }

    /// The next event; `nil` when the reader has gone.
    func next() async -> EventView? {
        while ready.isEmpty {
            if Task.isCancelled { return nil }
            do { try await refill() } catch {
                daemon.house.log.warning("events cannot be read", ["reason": "\(error)"])
                return nil
            }
            if ready.isEmpty {
                await signal.wait(
                    atMost: daemon.house.live.isEmpty && daemon.house.making.isEmpty ? nil : ProgressThrottle.tick)
            }
        }
        return ready.popFirst()?.view
    }

    private func refill() async throws {
        let store = daemon.house.store
        if mayReset {
            mayReset = false
            let oldest = try await store.oldestEvent()
            let newest = await store.seq
            // The event is no longer stored, or belongs to another database: the reader has to list again and follow
            // from here.
            if after + 1 < oldest || after > newest {
                after = newest
                ready = [SharedEvent(EventView(seq: newest, ts: daemon.house.clocks.wall().description, type: "reset"))]
                return
            }
        }
        ready = try await daemon.board.events(after: after, daemon)[...]
        after = ready.last?.view.seq ?? after
        if ready.isEmpty { try await addProgress() }
    }

    private func addProgress() async throws {
        if daemon.house.live.isEmpty && daemon.house.making.isEmpty { return }
        let news = try await daemon.board.progress(daemon).filter {
            $0.op.map { daemon.house.live[$0.id] != nil } ?? false
        }
        let running = news.compactMap { event in
            event.op.map { ProgressThrottle.Progress(id: $0.id, sent: $0.progress.sent, total: $0.size) }
        }
        for id in throttle.due(running, now: daemon.house.clocks.monotonic()) {
            guard var event = news.first(where: { $0.op?.id == id }) else { continue }
            event.seq = after
            ready.append(SharedEvent(event))
        }
    }
}
