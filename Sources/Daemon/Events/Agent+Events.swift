internal import Core
internal import Linux
internal import Store

// The stream of events.

extension Agent {
    /// Readers pull events: a reader that stops reading costs nothing, and finds the stored events when it continues.
    package func events(since: Int64?) async throws -> AsyncStream<EventView> {
        let bell = Nudge()
        let board = board
        let listener = await board.listen(bell)
        let start: Int64 = if let since { since } else { await house.store.seq }
        let feed = EventFeed(agent: self, bell: bell, after: start, mayReset: since != nil)
        return AsyncStream(
            unfolding: {
                let event = await feed.next()
                if event == nil { board.forget(listener) }
                return event
            },
            onCancel: {
                board.forget(listener)
                bell.ring()
            })
    }
}

/// One reader's position in the stream.
private actor EventFeed {
    private let agent: Agent
    private let bell: Nudge
    private var after: Int64
    private var mayReset: Bool
    private var ready: ArraySlice<SharedEvent> = []
    private var throttle = ProgressThrottle()

    init(agent: Agent, bell: Nudge, after: Int64, mayReset: Bool) {
        self.agent = agent
        self.bell = bell
        self.after = after
        self.mayReset = mayReset
    }

    /// The next event; `nil` when the reader has gone.
    func next() async -> EventView? {
        while ready.isEmpty {
            if Task.isCancelled { return nil }
            do { try await refill() } catch {
                agent.house.log.warning("events cannot be read", ["reason": "\(error)"])
                return nil
            }
            if ready.isEmpty {
                await bell.wait(
                    atMost: agent.house.live.isEmpty && agent.house.making.isEmpty ? nil : ProgressThrottle.tick)
            }
        }
        return ready.popFirst()?.view
    }

    private func refill() async throws {
        let store = agent.house.store
        if mayReset {
            mayReset = false
            let oldest = try await store.oldestEvent()
            let newest = await store.seq
            // The event is no longer stored, or belongs to another database: the reader has to list again and follow
            // from here.
            if after + 1 < oldest || after > newest {
                after = newest
                ready = [SharedEvent(EventView(seq: newest, ts: agent.house.clocks.wall().description, type: "reset"))]
                return
            }
        }
        ready = try await agent.board.events(after: after, agent)[...]
        after = ready.last?.view.seq ?? after
        if ready.isEmpty { try await addProgress() }
    }

    private func addProgress() async throws {
        if agent.house.live.isEmpty && agent.house.making.isEmpty { return }
        let news = try await agent.board.progress(agent).filter {
            $0.op.map { agent.house.live[$0.id] != nil } ?? false
        }
        let running = news.compactMap { event in
            event.op.map { ProgressThrottle.Progress(id: $0.id, sent: $0.progress.sent, total: $0.size) }
        }
        for id in throttle.due(running, now: agent.house.clocks.monotonic()) {
            guard var event = news.first(where: { $0.op?.id == id }) else { continue }
            event.seq = after
            ready.append(SharedEvent(event))
        }
    }
}
