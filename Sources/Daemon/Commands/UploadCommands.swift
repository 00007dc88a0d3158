internal import API
internal import Core
internal import Credentials
internal import Linux
internal import Staging
internal import Store

/// Commands that end uploads, start them again, and change their priority: some by their ids, or all that match a filter, however many.
struct UploadCommands: Sendable {
    let context: Context
    let lifecycle: DaemonPhase
    let finder: UploadFinder
    let views: UploadViews
    let scheduler: Scheduler
    let stager: Stager
    let locator: SourceLocator
    let secrets: SecretReader

    /// The most views in an answer about more uploads than a person named.
    private static let shown = 100
    /// Uploads in one transaction: a long one would delay all other work.
    private static let piece = 200

    func cancel(_ selection: Selection) async throws -> UploadsReply {
        try lifecycle.requireReady()
        let reply: UploadsReply
        if selection.ids.isEmpty {
            reply = try await forAll(selection, [.ongoing]) { ids in
                let states = try await context.store.write { try $0.transitions.cancel(ids) }
                await releaseCancelled(ids)
                return Done(ids: zip(ids, states).filter { $0.1 == .cancelled }.map(\.0))
            }
        } else {
            let rows = try await finder.rows(selection)
            for row in rows where row.upload.state == .completed || row.upload.state == .removed {
                throw Refusal(
                    .conflict,
                    "\(row.upload.id) is \(Self.endingText(row)): only an upload that has not ended can be cancelled",
                    id: row.upload.id)
            }
            let ids = rows.map(\.upload.id)
            for some in ids.pieces(of: Self.piece) {
                _ = try await context.store.write { try $0.transitions.cancel(Array(some)) }
            }
            CrashPoint.reached("cancelled")
            await releaseCancelled(ids)
            return try await views.reply(ids)
        }
        CrashPoint.reached("cancelled")
        return reply
    }

    /// The shown state of an upload that has ended.
    private static func endingText(_ row: UploadRow) -> String {
        row.upload.state == .removed
            ? "\((row.upload.ended ?? .removed).rawValue) and in the history" : row.upload.state.rawValue
    }

    func remove(_ selection: Selection) async throws -> UploadsReply {
        try lifecycle.requireReady()
        guard !selection.ids.isEmpty else { throw Refusal(.badRequest, "give ids; `flush` clears whole lists") }
        let rows = try await finder.rows(selection)
        for row in rows where !row.upload.state.isTerminal {
            throw Refusal(
                .conflict,
                "\(row.upload.id) is \(row.upload.state.rawValue): only an upload that has ended can be removed; `cancel` ends it",
                id: row.upload.id)
        }
        let ids = rows.map(\.upload.id)
        for some in ids.pieces(of: Self.piece) {
            _ = try await context.store.write { try $0.transitions.dismiss(Array(some), .dismissed) }
        }
        CrashPoint.reached("dismissed")
        return try await views.reply(ids)
    }

    func prioritize(_ selection: Selection) async throws -> UploadsReply {
        try lifecycle.requireReady()
        guard let priority = selection.priority, Selection.priorities.contains(priority) else {
            throw Refusal(.badRequest, "`priority` takes a number from -1000 to 1000; higher goes first")
        }
        if selection.ids.isEmpty {
            return try await forAll(selection, [.ongoing]) { ids in
                Done(ids: try await context.store.write { try $0.transitions.prioritize(ids, to: priority) })
            }
        }
        let rows = try await finder.rows(selection)
        for row in rows where row.upload.state.isTerminal {
            throw Refusal(
                .conflict, "\(row.upload.id) is \(Self.endingText(row)): only ongoing uploads have a priority",
                id: row.upload.id)
        }
        let ids = rows.map(\.upload.id)
        for some in ids.pieces(of: Self.piece) {
            _ = try await context.store.write { try $0.transitions.prioritize(Array(some), to: priority) }
        }
        return try await views.reply(ids)
    }

    private func clearable(_ list: String) throws(Refusal) -> UploadList {
        let known = UploadList.clearable
        if let list = UploadList(rawValue: list), known.contains(list) { return list }
        throw Refusal(
            .badRequest,
            "flush clears \(known.map(\.rawValue).joined(separator: ", ")), not `\(printable(list))`: ongoing uploads "
                + "continue")
    }

    func flush(_ request: FlushRequest) async throws -> UploadsReply {
        try lifecycle.requireReady()
        let lists = try request.list.map { [try clearable($0)] } ?? UploadList.clearable
        let selection = Selection(
            all: request.folder == nil && request.destination == nil, folder: request.folder,
            destination: request.destination)
        let reply = try await forAll(selection, Set(lists)) { ids in
            let states = try await context.store.write { try $0.transitions.dismiss(ids, .flushed) }
            return Done(ids: zip(ids, states).filter { $0.1 == .removed }.map(\.0))
        }
        try await context.store.write {
            try $0.events.append(.flushed(lists: lists.map(\.rawValue), count: reply.count))
        }
        return reply
    }

    private func releaseCancelled(_ ids: [String]) async {
        await scheduler.cancel(Set(ids))
        await stager.reconsider()
    }

    func retry(_ selection: Selection) async throws -> UploadsReply {
        try lifecycle.requireReady()
        if selection.ids.isEmpty {
            return try await forAll(selection, [.failed]) { ids in try await retryAll(ids) }
        }
        let rows = try await finder.rows(selection)
        for row in rows where !row.upload.state.isTerminal && row.upload.pausedAt != nil {
            throw Refusal(.conflict, "\(row.upload.id) is paused: use `resume`", id: row.upload.id)
        }
        for row in rows {
            switch row.upload.ending {
            case .completed:
                throw Refusal(
                    .conflict, "\(row.upload.id) is completed: `add --again` uploads the file once more",
                    id: row.upload.id)
            case nil: continue
            default: try await retry(row)
            }
        }
        // Waiting uploads are tried at once, as by `resume`. Uploads that were started again a moment ago need no more
        // than that.
        let waiting = rows.map(\.upload).filter { $0.ending == nil }
        if !waiting.isEmpty { try await scheduler.reconsider(waiting) }
        return try await views.reply(rows.map(\.upload.id))
    }

    private func retry(_ row: UploadRow) async throws {
        try await refuseSuperfluous(row)
        await scheduler.end(row.upload.id)
        secrets.renew(of: row.upload.destination)
        let (staging, asset) = (context.staging, row.asset)
        let copy = try await blocking { try staging.size(of: asset.stagedName) }
        if asset.state == .staged, copy == asset.stagedSize {
            _ = try await context.store.write { try $0.transitions.retry(row.upload.id, fromCopy: true) }
            return try await refuseSuperfluous(row)
        }
        let source = locator.source(of: asset)
        let status: FileStatus?
        let isAway: Bool
        do {
            (status, isAway) = try await blocking { [locator] in
                (try source.statusIfPresent(), try locator.isAway(asset))
            }
        } catch let error as SystemError {
            throw Refusal(
                .conflict, "cannot read the status of the source \(asset.path.display): \(error.reason)",
                id: row.upload.id)
        }
        if isAway {
            guard asset.sourceState == .untouched else {
                throw Refusal(
                    .conflict,
                    "the disk of \(asset.path.display) is away, and the file may not be on it any more"
                        + (asset.sourceNote.map { " (\($0))" } ?? "") + ": retry when the disk is there",
                    id: row.upload.id)
            }
            // It waits for its disk, as if it had been there until now.
            _ = try await context.store.write { try $0.transitions.retry(row.upload.id, fromCopy: false) }
            return try await refuseSuperfluous(row)
        }
        guard let status, status.isRegular else {
            let rescued = asset.sourceNote.map { "; \($0)" } ?? ""
            throw Refusal(
                .sourceMissing,
                "both the staged copy and the source \(asset.path.display) are gone\(rescued)",
                id: row.upload.id)
        }
        guard status.size == asset.size, status.modified == asset.identity.modified else {
            throw Refusal(
                .conflict, "\(asset.path.display) has changed since: Sluice uploads it as a new file without a command",
                id: row.upload.id)
        }
        _ = try await context.store.write { try $0.transitions.retry(row.upload.id, fromCopy: false) }
        try await refuseSuperfluous(row)
    }

    /// - Throws: ``Refusal`` when another destination, which is enough, has the file.
    private func refuseSuperfluous(_ row: UploadRow) async throws {
        guard let winner = try await context.store.read({ try $0.alternatives.winner(over: row.upload) }) else {
            return
        }
        throw Refusal(
            .conflict,
            "\(row.upload.id) was superseded: the file is verified at \(winner.destination), which is enough; `sluice add "
                + "--again --to \(row.upload.destination) FILE` sends it to \(row.upload.destination) as well",
            id: row.upload.id)
    }

    /// In parallel, so that they share transactions. An upload that cannot be retried does not affect the others.
    private func retryAll(_ ids: [String]) async throws -> Done {
        try await withThrowingTaskGroup(of: (String, Refusal?).self) { group in
            for id in ids {
                group.addTask {
                    guard let row = try await context.store.read({ try $0.uploads.row(id) }) else {
                        return (id, Refusal(.notFound, "\(id) is gone", id: id))
                    }
                    do { try await retry(row) } catch let refusal as Refusal { return (id, refusal) }
                    return (id, nil)
                }
            }
            var done = Done(ids: [])
            for try await (id, refusal) in group {
                if refusal == nil { done.ids.append(id) } else { done.refused += 1 }
                done.refusal = done.refusal ?? refusal
            }
            return done
        }
    }

    /// The result for a piece of the uploads.
    private struct Done {
        var ids: [String]
        var refused = 0
        /// The reason for the first refusal.
        var refusal: Refusal?
    }

    /// Applies a command to all uploads of a folder, of a destination or of the daemon, the newest first, a piece at a
    /// time.
    ///
    /// - Throws: The first refusal when every upload was refused.
    private func forAll(
        _ selection: Selection, _ lists: Set<UploadList>, _ body: ([String]) async throws -> Done
    ) async throws -> UploadsReply {
        guard selection.all || selection.folder != nil || selection.destination != nil else {
            throw Refusal(.badRequest, "give ids, a folder, a destination, or all")
        }
        var filter = UploadFilter()
        filter.folder = selection.folder
        filter.destination = selection.destination
        filter.states = UploadState.allCases.filter { lists.contains($0.list) }
        filter.limit = Self.piece
        var (first, count, refused): ([String], Int, Int) = ([], 0, 0)
        var refusal: Refusal?
        while true {
            let ids = try await context.store.read { [filter] tx in try tx.lists.ids(filter) }
            guard let last = ids.last else { break }
            let done = try await body(ids)
            first += done.ids.sorted(by: >).prefix(Self.shown - first.count)
            count += done.ids.count
            refused += done.refused
            refusal = refusal ?? done.refusal
            // Uploads that arrive from now on are newer, so the loop ends.
            filter.after = last
        }
        if count == 0, let refusal { throw refusal }
        if count == 0 {
            try context.configuration.names.require(folder: selection.folder, destination: selection.destination)
        }
        return UploadsReply(
            uploads: try await views.reply(first).uploads, count: count, refused: refused == 0 ? nil : refused,
            refusal: refusal?.message)
    }
}
