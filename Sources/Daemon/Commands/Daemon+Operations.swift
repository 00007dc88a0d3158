internal import Config
internal import Core
internal import Linux
internal import Staging
internal import Store
internal import Watch

// Commands and queries of an operator.

extension Daemon: Operations {
    package func list(_ query: ListQuery) async throws -> UploadPage {
        guard (1...1000).contains(query.limit) else { throw Refusal(.badRequest, "limit takes 1 to 1000") }
        if let after = query.after, UploadID(after) == nil {
            throw Refusal(.badRequest, "`after` takes what `next` of the page before said")
        }
        var filter = Store.Filter()
        filter.limit = query.limit + 1
        filter.destination = query.destination
        filter.folder = query.folder
        filter.text = query.text.map { FilePath($0) }
        filter.context = query.context
        filter.since = query.since
        filter.until = query.until
        filter.after = query.after
        filter.states = try states(query)
        // Read before the rows: events repeat a change in between, and none is missed.
        let seq = await house.store.seq
        if let state = query.state, Self.shownStates[state] != nil {
            let (uploads, next) = try await uploads(shownAs: state, filter, limit: query.limit)
            if uploads.isEmpty { try requireKnown(folder: query.folder, destination: query.destination) }
            return UploadPage(uploads: uploads, counts: try await counts(), seq: seq, next: next)
        }
        let rows = try await house.store.rows(filter)
        // Rows of names that are no longer configured may still exist; where there are none, the name is a mistake.
        if rows.isEmpty { try requireKnown(folder: query.folder, destination: query.destination) }
        let shown = rows.prefix(query.limit)
        return UploadPage(
            uploads: await views(shown), counts: try await counts(), seq: seq,
            next: rows.count > query.limit ? shown.last?.upload.id : nil)
    }

    private func states(_ query: ListQuery) throws -> [UploadState] {
        // Uploads that have left the lists are shown only in the history.
        var states = UploadState.allCases.filter { $0 != .removed }
        if let list = query.list {
            guard ListQuery.lists.contains(list) else {
                throw Refusal(.badRequest, "no list is called `\(list)`: \(ListQuery.lists.joined(separator: ", "))")
            }
            states = UploadState.allCases.filter { $0.list == list }
        }
        if query.list == UploadState.removed.list {
            guard query.state == nil else {
                throw Refusal(.badRequest, "the history has no states: `state` goes with the other lists")
            }
            return states
        }
        if let state = query.state {
            guard let wanted = Self.shownStates[state] ?? UploadState(rawValue: state).map({ [$0] }) else {
                let known = ListQuery.states
                throw Refusal(
                    .badRequest,
                    "no state is called `\(state)`: "
                        + (closest(to: state, among: known).map { "did you mean `\($0)`?" }
                            ?? known.joined(separator: ", ")))
            }
            states = states.filter { wanted.contains($0) }
            // A list and a state that exclude each other: no rows, not all of them.
            if states.isEmpty {
                throw Refusal(.badRequest, "no upload of the list `\(query.list ?? "")` is \(state)")
            }
        }
        return states
    }

    package func show(_ reference: String) async throws -> UploadDetail {
        let row = try await find(reference)
        let attempts = try await house.store.failures(row.upload.id).map {
            AttemptView(generation: $0.generation, attempt: $0.attempt, error: ErrorView($0.failure))
        }
        let media = MediaView(try await mediaFacts(of: row.asset))
        let waste = try await house.store.waste(of: row.upload.id)
        let isOver = row.upload.state.isTerminal
        // The destination may still have bytes of the last attempt.
        let wasted = waste.total + (isOver || !waste.beginsAnew ? 0 : waste.unsettled)
        return UploadDetail(
            upload: await view(row), attempts: attempts, media: media, wasted: wasted > 0 ? wasted : nil)
    }

    // MARK: Pause and resume

    package func pause(_ selection: Selection) async throws -> UploadsReply {
        try requireReady()
        if let duration = selection.duration, duration <= 0 {
            throw Refusal(.badRequest, "`duration` takes seconds above 0")
        }
        let scopes = try scopes(selection)
        if !scopes.isEmpty {
            let now = house.clocks.wall()
            let until = selection.duration.map { now.advanced(by: .seconds($0)) }
            // Before the pause is set: no transfer may be cut in between.
            if selection.afterPart { await scheduler.spare(scopes) }
            for place in scopes {
                try await house.store.setPause(
                    PauseRecord(scope: place.scope, name: place.name, since: now, until: until))
            }
            if !selection.afterPart { await scheduler.spareNoMore(scopes) }
            try await scheduler.reloadPauses()
            await stop(afterPart: selection.afterPart) { _, destination, folder in
                scopes.contains { $0.scope == .all || $0.name == ($0.scope == .folder ? folder : destination) }
            }
            return UploadsReply()
        }
        if selection.duration != nil {
            throw Refusal(.badRequest, "`duration` goes with everything, a folder or a destination")
        }
        let rows = try await rows(selection)
        for row in rows where row.upload.state.isTerminal {
            throw Refusal(
                .conflict, "\(row.upload.id) is \(row.upload.state.rawValue): only ongoing uploads are paused",
                id: row.upload.id)
        }
        try await house.store.pause(rows.map(\.upload.id), true)
        let ids = Set(rows.map(\.upload.id))
        await stop(afterPart: selection.afterPart) { id, _, _ in ids.contains(id) }
        return try await reply(rows.map(\.upload.id))
    }

    private func stop(
        afterPart: Bool, where isMeant: @Sendable (_ id: String, _ destination: String, _ folder: String) -> Bool
    ) async {
        if afterPart {
            await scheduler.stopAfterPart(where: isMeant)
        } else {
            await scheduler.stop(where: isMeant)
        }
    }

    package func resume(_ selection: Selection) async throws -> UploadsReply {
        try requireReady()
        let scopes = try scopes(selection)
        if !scopes.isEmpty {
            for place in scopes { try await house.store.clearPause(place.scope, place.name) }
            if scopes.contains(where: { $0.scope == .all }) {
                // A pause of an unknown scope holds everything as well.
                for pause in try await house.store.pauses() where !pause.scope.isKnown {
                    try await house.store.clearPause(pause.scope, pause.name)
                }
            }
            // The pauses are removed first: a pause that is no longer gentle for a moment would cut the transfers that
            // it has spared.
            try await scheduler.reloadPauses()
            await scheduler.spareNoMore(scopes)
            try await scheduler.takeBackWishes()
            try await scheduler.reconsider(selection.destination.map { [$0] }, isWanted: true)
            return UploadsReply()
        }
        let rows = try await rows(selection)
        for row in rows where row.upload.state.isTerminal {
            let verb = row.upload.state == .completed ? "it needs nothing more" : "use `retry`"
            throw Refusal(.conflict, "\(row.upload.id) is \(row.upload.state.rawValue): \(verb)", id: row.upload.id)
        }
        try await house.store.pause(rows.map(\.upload.id), false)
        try await scheduler.takeBackWishes()
        try await scheduler.reconsider(Set(rows.map(\.upload.destination)), isWanted: true)
        return try await reply(rows.map(\.upload.id))
    }

    /// The pauses that a selection without ids refers to.
    private func scopes(_ selection: Selection) throws -> [PausedPlace] {
        if !selection.ids.isEmpty {
            guard selection.folder == nil, selection.destination == nil, !selection.all else {
                throw Refusal(.badRequest, "give ids, or a folder, or a destination, or all: not several")
            }
            return []
        }
        try requireKnown(folder: selection.folder, destination: selection.destination)
        switch (selection.folder, selection.destination) {
        case (let folder?, nil) where !selection.all: return [PausedPlace(scope: .folder, name: folder)]
        case (nil, let destination?) where !selection.all: return [PausedPlace(scope: .destination, name: destination)]
        case (nil, nil): break
        default: throw Refusal(.badRequest, "give a folder, or a destination, or all: not several")
        }
        return [PausedPlace(scope: .all, name: "")]
    }

    /// A misspelt name must not look as if there were nothing to do.
    func requireKnown(folder: String?, destination: String?) throws {
        func require(_ what: String, _ name: String?, _ known: [String]) throws {
            guard let name, !known.contains(name) else { return }
            let near = closest(to: name, among: known).map { "did you mean `\($0)`?" }
            throw Refusal(.notFound, "no \(what) is called `\(name)`: " + (near ?? known.joined(separator: ", ")))
        }
        try require("folder", folder, house.folderNames)
        try require("destination", destination, house.settings.destinations.map(\.name))
    }

    func requireReady() throws {
        if isStarting { throw Refusal(.unavailable, "the daemon is starting: try again in a moment") }
    }

    // MARK: Finding uploads

    func rows(_ selection: Selection) async throws -> [UploadRow] {
        guard selection.folder == nil, selection.destination == nil, !selection.all else {
            throw Refusal(.badRequest, "give ids, or a folder, or a destination, or all: not several")
        }
        return try await selection.ids.asyncCompactMap { try await self.find($0).ofKnownState() }
    }

    /// Finds an upload by id, unique prefix of at least 6 characters, key, path, the remote's own name or address, or
    /// the end of a path that only one file has. A path or key of several uploads refers to the newest one, as long as
    /// it is for one destination.
    private func find(_ reference: String) async throws -> UploadRow {
        let found = try await candidates(reference)
        if !found.isEmpty || reference.hasPrefix("/") { return try one(found, reference) }
        throw Refusal(
            .notFound,
            "no upload is called `\(reference)`"
                + (reference.utf8.count < 6 ? ": an id's beginning needs at least 6 characters" : ""))
    }

    /// All uploads that ``find(_:)`` may refer to.
    func candidates(_ reference: String) async throws -> [UploadRow] {
        let store = house.store
        if reference.hasPrefix("/") {
            for path in paths(reference) {
                let found = try await store.rows(path: path)
                if !found.isEmpty { return found }
            }
            return []
        }
        if let id = UploadID(reference), let row = try await store.row(id.text) { return [row] }
        let letters = reference.uppercased()
        if (6..<26).contains(letters.utf8.count), letters.utf8.allSatisfy({ $0 < 0x80 }) {
            let found = try await store.rows(idPrefix: letters, limit: 6)
            if !found.isEmpty { return found }
        }
        let named = try await store.rows(key: reference)
        let found = named.isEmpty ? try await store.rows(remote: reference) : named
        if let newest = found.first { return found.filter { $0.asset.id == newest.asset.id } }
        return try await rows(endingIn: reference)
    }

    /// The paths that a person's text may refer to: as displayed, else literally, since a name may contain text that
    /// looks like an escape.
    func paths(_ reference: String) -> [FilePath] {
        [FilePath(display: reference), FilePath(reference)].compactMap { $0 }
    }

    /// Uploads of the files whose paths end in the whole names of `reference`: of each file the newest ones.
    private func rows(endingIn reference: String) async throws -> [UploadRow] {
        // As displayed, else literally, like a whole path.
        let shown = FilePath(display: reference)
        let asItStands = FilePath(reference)
        for end in [shown, shown == asItStands ? nil : asItStands].compactMap({ $0 }) {
            let names = end.components
            guard let last = names.last else { continue }
            var newest: [SourcePath: Int64] = [:]
            let found = try await house.store.rows(named: last, limit: 1000).filter { row in
                let path = row.asset.path
                guard path.shown.components.suffix(names.count) == names[...] else { return false }
                if newest[path] == nil { newest[path] = row.asset.id }
                return newest[path] == row.asset.id
            }
            if !found.isEmpty { return found }
        }
        return []
    }

    private func one(_ found: [UploadRow], _ reference: String) throws -> UploadRow {
        guard let first = found.first else { throw Refusal(.notFound, "no upload of `\(reference)` is known") }
        if found.count == 1 { return first }
        // The names that distinguish them: the file, else the destination.
        let areOneFile = found.allSatisfy { $0.asset.path == first.asset.path }
        let names = found.prefix(5).map {
            "\($0.upload.id) (\(areOneFile ? $0.upload.destination : $0.asset.path.display))"
        }
        throw Refusal(.ambiguous, "`\(reference)` may mean " + names.joined(separator: ", "))
    }
}

extension Array {
    /// Like `compactMap`, one element after another.
    func asyncCompactMap<R>(_ make: (Element) async throws -> R?) async rethrows -> [R] {
        var out: [R] = []
        for element in self { if let made = try await make(element) { out.append(made) } }
        return out
    }
}

extension UploadRow {
    /// Refuses an upload whose state only a newer program knows: what may be done with it is not known.
    fileprivate func ofKnownState() throws(Refusal) -> UploadRow {
        guard let state = upload.unknown.state else { return self }
        throw Refusal(
            .conflict, "\(upload.id) is \(printable(state)), which only a newer version of sluice knows", id: upload.id)
    }
}
