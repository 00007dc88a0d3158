internal import Config
internal import Core
internal import Linux
internal import Staging
internal import Store
internal import Watch

// What an operator asks of the daemon.

extension Agent: Operations {
    package func list(_ query: ListQuery) async throws -> UploadPage {
        guard (1...1000).contains(query.limit) else { throw Refusal(.badRequest, "limit takes 1 to 1000") }
        var filter = Store.Filter()
        filter.limit = query.limit + 1
        filter.destination = query.destination
        filter.folder = query.folder
        filter.text = query.text.map { FilePath($0) }
        filter.after = query.after
        filter.states = try states(query)
        // Before the rows: what happens in between is told again by the events, never missed.
        let seq = await house.store.seq
        let rows = try await house.store.rows(filter)
        let shown = rows.prefix(query.limit)
        return UploadPage(
            uploads: await views(shown), counts: try await counts(), seq: seq,
            next: rows.count > query.limit ? shown.last?.upload.id : nil)
    }

    private func states(_ query: ListQuery) throws -> [UploadState] {
        var states = UploadState.allCases
        if let list = query.list {
            guard ["ongoing", "completed", "failed", "cancelled"].contains(list) else {
                throw Refusal(.badRequest, "no list is called `\(list)`: ongoing, completed, failed, cancelled")
            }
            states = states.filter { $0.list == list }
        }
        if let state = query.state {
            guard let wanted = UploadState(rawValue: state) else {
                throw Refusal(
                    .badRequest,
                    "no state is called `\(state)`: " + UploadState.allCases.map(\.rawValue).joined(separator: ", "))
            }
            states = states.filter { $0 == wanted }
        }
        // All of them: no condition is cheaper than a long one.
        return states.count == UploadState.allCases.count ? [] : states
    }

    package func show(_ reference: String) async throws -> UploadDetail {
        let row = try await find(reference)
        let attempts = try await house.store.failures(row.upload.id).map {
            AttemptView(generation: $0.generation, attempt: $0.attempt, error: ErrorView($0.failure))
        }
        return UploadDetail(upload: await view(row), attempts: attempts)
    }

    package func add(_ request: AddRequest) async throws -> [UploadView] {
        try requireReady()
        // No hexadecimal digit is a slash.
        let isText = request.path.hasPrefix("/")
        guard let raw = isText ? Array(request.path.utf8) : bytes(hexadecimal: request.path) else {
            throw Refusal(.badRequest, "`path` takes an absolute path, or its bytes in hexadecimal")
        }
        let path = FilePath(bytes: raw)
        guard path.isAbsolute, path == path.normalised else {
            throw Refusal(.badRequest, "`path` takes an absolute path without `.` and `..`")
        }
        let file = try await settledFile(at: path)
        guard let folder = house.folder(file.folder) else {
            throw Refusal(.badRequest, "\(path.display) is in no configured folder")
        }
        for name in request.to where house.destinations[name] == nil {
            let known = house.settings.destinations.map(\.name)
            throw Refusal(
                .badRequest,
                "no destination is called `\(name)`: "
                    + (closest(to: name, among: known).map { "did you mean `\($0)`?" } ?? known.joined(separator: ", "))
            )
        }
        let arrival = intake.arrival(
            of: file, folder, to: request.to.isEmpty ? folder.uploadTo : request.to, key: request.key,
            context: request.context, again: request.again)
        guard let outcome = try await house.store.record([arrival]).first else { return [] }
        house.stagerBell.ring()
        switch outcome {
        case .recorded(_, let ids):
            return await views(try await ids.asyncCompactMap { try await self.house.store.row($0) }[...])
        case .renewed(let asset):
            let ids = try await house.store.uploads(of: asset).map(\.id)
            return await views(try await ids.asyncCompactMap { try await self.house.store.row($0) }[...])
        case .known:
            throw Refusal(
                .duplicate, "\(path.display) was taken up before in this version: `--again` uploads it once more")
        case .keyTaken(let holder):
            throw Refusal(.conflict, "upload \(holder) is under way with the same key", id: holder)
        }
    }

    /// A file that a person hands in: whole because they say so, and in the folder whose path it lies below.
    private func settledFile(at path: FilePath) async throws -> SettledFile {
        let rules = house.settings.folders.map(\.watch)
        guard let rule = rules.first(where: { path.relative(to: $0.path) != nil }),
            let relative = path.relative(to: rule.path)
        else {
            throw Refusal(
                .badRequest,
                "\(path.display) is below none of the configured folders: "
                    + rules.map { "\($0.name) (\($0.path.display))" }.joined(separator: ", "))
        }
        let look: FileLook
        do { look = try await blocking { try FileLook(at: path) } } catch let error as SystemError {
            throw Refusal(error.isMissing ? .notFound : .badRequest, error.description)
        }
        guard look.isRegular else { throw Refusal(.badRequest, "\(path.display) is no regular file") }
        let system = fileSystems.identity(at: rule.path, device: look.device)
        let identity = StoredIdentity(
            folder: rule.name, relative: relative, size: look.size, modified: look.modified,
            inode: system?.keepsInodes == true ? look.inode : nil, born: look.born, fileSystem: system?.name)
        return SettledFile(
            folder: rule.name, root: rule.path, relative: relative, look: look, identity: identity, settledBy: .added)
    }

    // MARK: Hold and let go

    package func pause(_ selection: Selection) async throws -> [UploadView] {
        try requireReady()
        if let duration = selection.duration, duration <= 0 {
            throw Refusal(.badRequest, "`duration` takes seconds above 0")
        }
        let scopes = try scopes(selection)
        if !scopes.isEmpty {
            let now = house.clocks.wall()
            let until = selection.duration.map { now.advanced(by: .seconds($0)) }
            for (scope, name) in scopes {
                try await house.store.setPause(PauseRecord(scope: scope, name: name, since: now, until: until))
            }
            try await dispatcher.reloadPauses()
            await dispatcher.stop { _, destination, folder in
                scopes.contains { $0.0 == .all || $0.1 == ($0.0 == .folder ? folder : destination) }
            }
            return []
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
        for row in rows { try await house.store.pause(row.upload.id, true) }
        let ids = Set(rows.map(\.upload.id))
        await dispatcher.stop { id, _, _ in ids.contains(id) }
        return try await renewed(rows)
    }

    package func resume(_ selection: Selection) async throws -> [UploadView] {
        try requireReady()
        let scopes = try scopes(selection)
        if !scopes.isEmpty {
            for (scope, name) in scopes { try await house.store.clearPause(scope, name) }
            try await dispatcher.reloadPauses()
            try await dispatcher.reconsider(selection.destination.map { [$0] })
            return []
        }
        let rows = try await rows(selection)
        for row in rows where row.upload.state.isTerminal {
            let verb = row.upload.state == .completed ? "it needs nothing more" : "use `retry`"
            throw Refusal(.conflict, "\(row.upload.id) is \(row.upload.state.rawValue): \(verb)", id: row.upload.id)
        }
        for row in rows { try await house.store.pause(row.upload.id, false) }
        try await dispatcher.reconsider(Set(rows.map(\.upload.destination)))
        return try await renewed(rows)
    }

    /// The pauses that a selection without ids means.
    private func scopes(_ selection: Selection) throws -> [(PauseRecord.Scope, String)] {
        if !selection.ids.isEmpty {
            guard selection.folder == nil, selection.destination == nil, !selection.all else {
                throw Refusal(.badRequest, "give ids, or a folder, or a destination, or all: not several")
            }
            return []
        }
        if let folder = selection.folder {
            let known = house.settings.folders.map(\.watch.name)
            guard known.contains(folder) else {
                throw Refusal(.notFound, "no folder is called `\(folder)`: \(known.joined(separator: ", "))")
            }
            return [(.folder, folder)]
        }
        if let destination = selection.destination {
            let known = house.settings.destinations.map(\.name)
            guard known.contains(destination) else {
                throw Refusal(.notFound, "no destination is called `\(destination)`: \(known.joined(separator: ", "))")
            }
            return [(.destination, destination)]
        }
        return [(.all, "")]
    }

    // MARK: End and begin again

    package func cancel(_ selection: Selection) async throws -> [UploadView] {
        try requireReady()
        let rows = try await selection.ids.isEmpty ? bulk(selection, ["ongoing"]) : rows(selection)
        for row in rows where row.upload.state == .completed {
            throw Refusal(
                .conflict, "\(row.upload.id) is completed: cancel ends only what is not over", id: row.upload.id)
        }
        _ = try await house.store.cancel(rows.map(\.upload.id))
        CrashPoint.reached("cancelled")
        await dispatcher.cancel(Set(rows.map(\.upload.id)))
        await stager.reconsider()
        for bell in [house.removalBell, house.releaseBell, house.stagerBell] { bell.ring() }
        return try await renewed(rows)
    }

    package func retry(_ selection: Selection) async throws -> [UploadView] {
        try requireReady()
        let rows = try await selection.ids.isEmpty ? bulk(selection, ["failed"]) : rows(selection)
        for row in rows where !row.upload.state.isTerminal && selection.ids.count == 1 && row.upload.generation == 1 {
            throw Refusal(
                .conflict,
                "\(row.upload.id) is \(row.upload.state.rawValue): retry is for failed and cancelled uploads; a paused one is resumed",
                id: row.upload.id)
        }
        for row in rows {
            switch row.upload.state {
            case .completed: throw Refusal(.conflict, "\(row.upload.id) is completed", id: row.upload.id)
            case .staging, .queued, .uploading: continue  // a second retry of the same: it is under way
            case .failed, .cancelled: try await retry(row)
            }
        }
        for bell in [house.stagerBell, house.dispatchBell] { bell.ring() }
        return try await renewed(rows)
    }

    private func retry(_ row: UploadRow) async throws {
        await dispatcher.end(row.upload.id)
        let (staging, asset) = (house.staging, row.asset)
        let copy = try await blocking { try staging.size(of: asset.stagedName) }
        if asset.state == .staged, copy == asset.size {
            _ = try await house.store.retry(row.upload.id, fromCopy: true)
            return
        }
        let look = try await blocking { try FileLook.ifPresent(at: asset.path) }
        guard let look, look.isRegular else {
            throw Refusal(
                .sourceMissing, "neither the staged copy nor the source \(asset.path.display) is there any more",
                id: row.upload.id)
        }
        guard look.size == asset.size, look.modified == asset.identity.modified else {
            throw Refusal(
                .conflict, "\(asset.path.display) has changed since: it is picked up as a new file by itself",
                id: row.upload.id)
        }
        _ = try await house.store.retry(row.upload.id, fromCopy: false)
    }

    private func requireReady() throws {
        if isStarting { throw Refusal(.unavailable, "the daemon is starting: try again in a moment") }
    }

    // MARK: Finding uploads

    /// Rows of a selection that names none by id: everything, a folder's or a destination's.
    private func bulk(_ selection: Selection, _ lists: Set<String>) async throws -> [UploadRow] {
        guard selection.all || selection.folder != nil || selection.destination != nil else {
            throw Refusal(.badRequest, "give ids, a folder, a destination, or all")
        }
        var filter = Store.Filter()
        filter.folder = selection.folder
        filter.destination = selection.destination
        filter.states = UploadState.allCases.filter { lists.contains($0.list) }
        filter.limit = 1_000_000
        return try await house.store.rows(filter)
    }

    private func rows(_ selection: Selection) async throws -> [UploadRow] {
        try await selection.ids.asyncCompactMap { try await self.find($0) }
    }

    /// By id, unique prefix of at least 6 characters, key, or path; a path or key that several uploads have means the
    /// newest one, as long as it is for one destination.
    private func find(_ reference: String) async throws -> UploadRow {
        let store = house.store
        if reference.hasPrefix("/") {
            return try one(try await store.rows(path: FilePath(reference)), reference)
        }
        if let id = UploadID(reference), let row = try await store.row(id.text) { return row }
        let letters = reference.uppercased()
        if (6..<26).contains(letters.utf8.count), letters.utf8.allSatisfy({ $0 < 0x80 }) {
            let found = try await store.rows(idPrefix: letters, limit: 6)
            if !found.isEmpty { return try one(found, reference) }
        }
        let keyed = try await store.rows(key: reference)
        if let newest = keyed.first {
            return try one(keyed.filter { $0.asset.id == newest.asset.id }, reference)
        }
        throw Refusal(
            .notFound,
            "no upload is called `\(reference)`"
                + (reference.utf8.count < 6 ? ": an id's beginning needs at least 6 characters" : ""))
    }

    private func one(_ found: [UploadRow], _ reference: String) throws -> UploadRow {
        guard let first = found.first else { throw Refusal(.notFound, "no upload of `\(reference)` is known") }
        if found.count == 1 { return first }
        let names = found.prefix(5).map { "\($0.upload.id) (\($0.upload.destination))" }
        throw Refusal(.ambiguous, "`\(reference)` may mean " + names.joined(separator: ", "))
    }

    private func renewed(_ rows: [UploadRow]) async throws -> [UploadView] {
        await views(try await rows.asyncCompactMap { try await self.house.store.row($0.upload.id) }[...])
    }
}

extension Array {
    /// As `compactMap`, one after the other.
    func asyncCompactMap<R>(_ make: (Element) async throws -> R?) async rethrows -> [R] {
        var out: [R] = []
        for element in self { if let made = try await make(element) { out.append(made) } }
        return out
    }
}
