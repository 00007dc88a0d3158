internal import Core
internal import Linux
internal import Store

// The stream of what happens.

extension Agent {
    /// Pulled, not pushed: a reader that stops reading costs nothing, and finds the stored events when it goes on.
    package func events(since: Int64?) async throws -> AsyncStream<EventView> {
        let store = house.store
        let bell = Nudge()
        let listener = await store.listen { bell.ring() }
        let start: Int64 = if let since { since } else { await store.seq }
        let feed = EventFeed(agent: self, bell: bell, after: start, mayReset: since != nil)
        return AsyncStream(
            unfolding: {
                let event = await feed.next()
                if event == nil { await store.forget(listener) }
                return event
            },
            onCancel: {
                bell.ring()
                Task { await store.forget(listener) }
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
            if ready.isEmpty { await bell.wait(atMost: agent.house.live.isEmpty ? nil : Self.tick) }
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
        for event in try await store.events(after: after, limit: 200) {
            after = event.seq
            if event.type == "completed" || event.type == "failed" || event.type == "cancelled" {
                // The last progress comes before the end, however short the upload was.
                if let id = event.upload { told[id] = nil }
            }
            ready.append(await view(event))
        }
        if ready.isEmpty { try await addProgress() }
    }

    private func view(_ event: EventRecord) async -> EventView {
        var op: UploadView?
        // Without its object the event still says enough.
        if let id = event.upload, let row = try? await agent.house.store.row(id) {
            op = await agent.view(row)
        }
        return EventView(seq: event.seq, ts: event.at.description, type: event.type, op: op, detail: event.detail)
    }

    private func addProgress() async throws {
        for id in agent.house.live.ids {
            guard let live = agent.house.live[id], live.sent != told[id], live.phase != .opening,
                let row = try await agent.house.store.row(id)
            else { continue }
            told[id] = live.sent
            ready.append(
                EventView(
                    seq: after, ts: agent.house.clocks.wall().description, type: "progress", op: await agent.view(row)))
        }
    }
}
