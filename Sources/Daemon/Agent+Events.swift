internal import Core
internal import Linux
internal import Store

// The stream of what happens.

extension Agent {
    /// Pulled, not pushed: a reader that stops reading costs nothing, and finds the stored events when it goes on.
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

/// One reader's place in the stream.
private actor EventFeed {
    private let agent: Agent
    private let bell: Nudge
    private var after: Int64
    private var mayReset: Bool
    private var ready: [EventView] = []
    /// What was last told of each running upload's progress.
    private var told: [String: Int64] = [:]

    /// Progress at most this often.
    private static let tick: Duration = .milliseconds(500)

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
                await bell.wait(atMost: agent.house.live.isEmpty && agent.house.making.isEmpty ? nil : Self.tick)
            }
        }
        return ready.removeFirst()
    }

    private func refill() async throws {
        let store = agent.house.store
        if mayReset {
            mayReset = false
            let oldest = try await store.oldestEvent()
            let newest = await store.seq
            // Gone from the ring, or of another database: the reader lists again and follows from here.
            if after + 1 < oldest || after > newest {
                after = newest
                ready = [EventView(seq: newest, ts: agent.house.clocks.wall().description, type: "reset")]
                return
            }
        }
        for event in try await agent.board.events(after: after, agent) {
            after = event.seq
            if event.type == "completed" || event.type == "failed" || event.type == "cancelled" {
                // The last progress comes before the end, however short the upload was.
                if let id = event.op?.id { told[id] = nil }
            }
            ready.append(event)
        }
        if ready.isEmpty { try await addProgress() }
    }

    private func addProgress() async throws {
        if agent.house.live.isEmpty && agent.house.making.isEmpty { return }
        for var event in try await agent.board.progress(agent) {
            guard let op = event.op, op.progress.sent != told[op.id], agent.house.live[op.id] != nil else { continue }
            told[op.id] = op.progress.sent
            event.seq = after
            ready.append(event)
        }
    }
}
