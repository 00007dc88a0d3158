internal import Core
internal import Store

/// A request for a destination's unfinished uploads, with the action to take.
package struct OrphansRequest: Codable, Sendable, Hashable {
    /// Whether to remove them there.
    package var abort: Bool?
    package init(abort: Bool? = nil) { self.abort = abort }
}

/// Unfinished uploads at a destination that this installation began and no longer knows, oldest first.
package struct OrphansReply: Codable, Sendable, Hashable {
    package struct Item: Codable, Sendable, Hashable {
        /// The destination's own name for it.
        package var id: String
        /// Its intended name.
        package var name: String
        package var begunAt: String?
        /// Whether it was removed; absent when no removal was requested.
        package var removed: Bool?

        package init(id: String, name: String, begunAt: String?, removed: Bool? = nil) {
            self.id = id
            self.name = name
            self.begunAt = begunAt
            self.removed = removed
        }
    }

    package var destination: String
    package var items: [Item]
    /// The number of other unfinished uploads there: those that continue, and those that other programs began.
    package var others: Int
    /// Bytes that were sent and received for the questions.
    package var sent: Int64
    package var received: Int64

    package init(destination: String, items: [Item], others: Int, sent: Int64, received: Int64) {
        self.destination = destination
        self.items = items
        self.others = others
        self.sent = sent
        self.received = received
    }
}

extension Daemon {
    /// Asks a destination for unfinished uploads, and removes those of ours that no upload continues.
    ///
    /// - Throws: `Refusal`: no such destination, one that cannot be asked, policy, or its answer.
    package func orphans(_ name: String, _ request: OrphansRequest) async throws -> OrphansReply {
        try requireReady()
        try requireKnown(folder: nil, destination: name)
        guard let destination = house.destinations[name] else {
            throw Refusal(.notFound, "no destination is called `\(printable(name))`")
        }
        let found = try await ask(name) { () throws(UploadError) in try await destination.unfinished() }
        guard let unfinished = found.answer else {
            throw Refusal(
                .conflict, "`\(name)` cannot be asked for unfinished uploads: its protocol has no list of them")
        }
        let owners = try await house.store.ownership(of: unfinished.map { ($0.id, $0.name, $0.begunAt) }, at: name)
        let orphans = zip(unfinished, owners).filter { $0.1 == .ours }.map(\.0)
        var reply = OrphansReply(
            destination: name,
            items: orphans.map { OrphansReply.Item(id: $0.id, name: $0.name, begunAt: $0.begunAt?.description) },
            others: unfinished.count - orphans.count, sent: found.cost.bytes, received: found.cost.received)
        guard request.abort == true else { return reply }
        for (index, orphan) in orphans.enumerated() {
            let removal = try await ask(name) { () throws(UploadError) in
                try await destination.discard(orphan.checkpoint)
            }
            reply.items[index].removed = removal.answer
            reply.sent += removal.cost.bytes
            reply.received += removal.cost.received
        }
        return reply
    }

    /// Sends one question to a destination, through the gate and the ledger of its uploads.
    ///
    /// - Throws: `Refusal`: policy, or the destination's answer.
    func ask<Answer: Sendable>(
        _ name: String, _ question: @escaping @Sendable () async throws(UploadError) -> Answer
    ) async throws -> (answer: Answer, cost: Spending) {
        let gate = DaemonGate(house: house, scheduler: scheduler)
        let asked = await gate.ask(name, .policy) { () -> Result<Answer, UploadError> in
            do throws(UploadError) { return .success(try await question()) } catch { return .failure(error) }
        }
        switch asked {
        case .failure(let held):
            let until = held.hold.until.map { ", until \($0)" } ?? ""
            throw Refusal(.unavailable, "it was not asked: \(held.hold.kind.rawValue): \(held.hold.text)\(until)")
        case .success(let asked):
            do throws(UploadError) { return (try asked.answer.get(), asked.cost) } catch {
                house.refused(error.remedy, by: name)
                throw Refusal(.destination, error.failure.message)
            }
        }
    }
}
