internal import API
internal import Config
internal import Core
internal import Destinations
internal import Linux
internal import Store
internal import Transport

/// Queries destinations for their content, under the policy and the ledger of their uploads.
struct RemoteInspector: Sendable {
    let context: Context
    let lifecycle: DaemonPhase
    let requests: RequestRunner
    let traces: RequestTraces
    /// Called with the remedy when a destination refuses a question.
    let onRefusal: @Sendable (_ remedy: Remedy?, _ destination: String) -> Void

    /// Asks a destination for its content, under the policy and the ledger of its uploads, and marks the objects that
    /// are ours.
    ///
    /// - Throws: `Refusal`: no such destination, one without such a query, policy, or its answer.
    func remote(_ name: String, _ request: RemoteRequest) async throws -> RemoteReply {
        guard let destination = try destination(name) as? any ObjectListing else {
            throw Refusal(.conflict, "`\(name)` cannot list its files: its protocol has no list")
        }
        let mark = request.after
        let asked = try await ask(name) { (context) throws(UploadError) in
            try await destination.list(after: mark, context: context)
        }
        let page = asked.answer
        let ours = try await context.store.read { try $0.remoteObjects.uploads(named: page.items.map(\.id), at: name) }
        return RemoteReply(
            destination: name,
            items: page.items.map { item in
                RemoteReply.Item(
                    id: item.id, name: item.name, url: item.url, state: item.state, size: item.size,
                    createdAt: item.createdAt?.description, upload: ours[item.id])
            }, next: page.next, sent: asked.cost.bytes, received: asked.cost.received)
    }

    /// Begins to record its requests, or returns those that were recorded since.
    ///
    /// - Throws: `Refusal`: no such destination, one that sends no requests, or no trace.
    func trace(_ name: String, _ request: TraceRequest) throws(Refusal) -> TraceReply {
        guard let destination = context.destinations[name] else {
            throw Refusal(.notFound, "no destination is called `\(printable(name))`")
        }
        if destination.site.isFolder { throw Refusal(.conflict, "`\(name)` is a folder and gets no requests") }
        return try traces.follow(name, request)
    }

    /// The last requests to destinations that failed.
    func failures() -> FailuresView {
        FailuresView(destinations: traces.failures(of: context.settings.destinations.map(\.name)))
    }

    /// Asks a destination for unfinished uploads, and removes those of ours that no upload continues.
    ///
    /// - Throws: `Refusal`: no such destination, one without such a query, policy, or its answer.
    func orphans(_ name: String, _ request: OrphansRequest) async throws -> OrphansReply {
        guard let destination = try destination(name) as? any UnfinishedListing else {
            throw Refusal(
                .conflict, "`\(name)` cannot list unfinished uploads: its protocol has no list of them")
        }
        let found = try await ask(name) { (context) throws(UploadError) in
            try await destination.unfinished(context: context)
        }
        let unfinished = found.answer
        let owners = try await context.store.read { tx in
            try tx.remoteObjects.ownership(of: unfinished.map { ($0.id, $0.name, $0.begunAt) }, at: name)
        }
        let orphans = zip(unfinished, owners).filter { $0.1 == .ours }.map(\.0)
        var reply = OrphansReply(
            destination: name,
            items: orphans.map { OrphansReply.Item(id: $0.id, name: $0.name, begunAt: $0.begunAt?.description) },
            others: unfinished.count - orphans.count, sent: found.cost.bytes, received: found.cost.received)
        guard request.abort == true else { return reply }
        for (index, orphan) in orphans.enumerated() {
            let removal = try await ask(name) { (context) throws(UploadError) in
                try await destination.discard(orphan.checkpoint, context: context)
            }
            reply.items[index].removed = removal.answer
            reply.sent += removal.cost.bytes
            reply.received += removal.cost.received
        }
        return reply
    }

    private func destination(_ name: String) throws -> any Destination {
        try lifecycle.requireReady()
        try context.configuration.names.require(folder: nil, destination: name)
        guard let destination = context.destinations[name] else {
            throw Refusal(.notFound, "no destination is called `\(printable(name))`")
        }
        return destination
    }

    /// Sends one question to a destination, under the policy and the ledger of its uploads.
    ///
    /// - Throws: `Refusal`: policy, or the destination's answer.
    private func ask<Answer: Sendable>(
        _ name: String, _ question: @escaping @Sendable (RequestContext) async throws(UploadError) -> Answer
    ) async throws -> (answer: Answer, cost: Spending) {
        let asked = await requests.perform(name, .policy) { context -> Result<Answer, UploadError> in
            do throws(UploadError) { return .success(try await question(context)) } catch { return .failure(error) }
        }
        switch asked {
        case .failure(let held):
            let until = held.hold.until.map { ", until \($0)" } ?? ""
            throw Refusal(.unavailable, "no request was sent: \(held.hold.kind.rawValue): \(held.hold.text)\(until)")
        case .success(let asked):
            do throws(UploadError) { return (try asked.answer.get(), asked.cost) } catch {
                onRefusal(error.remedy, name)
                throw Refusal(.destination, error.failure.message)
            }
        }
    }
}
