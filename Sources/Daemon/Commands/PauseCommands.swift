internal import API
internal import Core
internal import Linux
internal import Store

/// Pauses and resumes uploads: single ones, those of a folder or of a destination, or all.
struct PauseCommands: Sendable {
    let context: Context
    let lifecycle: DaemonPhase
    let finder: UploadFinder
    let views: UploadViews
    let scheduler: Scheduler

    func pause(_ selection: Selection) async throws -> UploadsReply {
        try lifecycle.requireReady()
        if let duration = selection.duration, duration <= 0 {
            throw Refusal(.badRequest, "`duration` takes seconds above 0")
        }
        let scopes = try scopes(selection)
        if !scopes.isEmpty {
            let now = context.clocks.wall()
            let until = selection.duration.map { now.advanced(by: .seconds($0)) }
            // Before the pause is set: no transfer may be cut in between.
            if selection.afterPart { await scheduler.drain(scopes) }
            for place in scopes {
                try await context.store.write {
                    try $0.pauses.set(
                        PauseRecord(scope: place.scope, name: place.name, since: now, until: until))
                }
            }
            if !selection.afterPart { await scheduler.stopDraining(scopes) }
            try await scheduler.reloadPauses()
            await stop(afterPart: selection.afterPart) { _, destination, folder in
                scopes.contains { $0.scope == .all || $0.name == ($0.scope == .folder ? folder : destination) }
            }
            return UploadsReply()
        }
        if selection.duration != nil {
            throw Refusal(.badRequest, "`duration` needs a pause of all, a folder or a destination")
        }
        let rows = try await finder.rows(selection)
        for row in rows where row.upload.state.isTerminal {
            throw Refusal(
                .conflict, "\(row.upload.id) is \(row.upload.state.rawValue): only ongoing uploads can be paused",
                id: row.upload.id)
        }
        try await context.store.write { try $0.transitions.pause(rows.map(\.upload.id), true) }
        let ids = Set(rows.map(\.upload.id))
        await stop(afterPart: selection.afterPart) { id, _, _ in ids.contains(id) }
        return try await views.reply(rows.map(\.upload.id))
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

    func resume(_ selection: Selection) async throws -> UploadsReply {
        try lifecycle.requireReady()
        let scopes = try scopes(selection)
        if !scopes.isEmpty {
            // First: the cycle that the end of a pause starts must know of the command already. Otherwise it could try
            // another upload than the requested one, or ask twice for free space.
            var failure: (any Error)?
            do {
                try await scheduler.reconsider(selection.destination.map { [$0] }, isWanted: true)
            } catch { failure = error }
            for place in scopes { try await context.store.write { try $0.pauses.clear(place.scope, place.name) } }
            if scopes.contains(where: { $0.scope == .all }) {
                // A pause of an unknown scope holds everything as well.
                for pause in try await context.store.read({ try $0.pauses.all() }) where !pause.scope.isKnown {
                    try await context.store.write { try $0.pauses.clear(pause.scope, pause.name) }
                }
            }
            // The pauses are removed before the drains: a pause that is no longer gentle for a moment would cut the
            // transfers that it has spared.
            try await scheduler.reloadPauses()
            await scheduler.stopDraining(scopes)
            try await scheduler.continueUnpaused()
            if let failure { throw failure }
            return UploadsReply()
        }
        let rows = try await finder.rows(selection)
        for row in rows where row.upload.state.isTerminal {
            let verb = row.upload.state == .completed ? "it is complete" : "use `retry`"
            throw Refusal(.conflict, "\(row.upload.id) is \(row.upload.state.rawValue): \(verb)", id: row.upload.id)
        }
        try await context.store.write { try $0.transitions.pause(rows.map(\.upload.id), false) }
        try await scheduler.continueUnpaused()
        try await scheduler.reconsider(rows.map(\.upload))
        return try await views.reply(rows.map(\.upload.id))
    }

    /// The pauses that a selection without ids refers to.
    private func scopes(_ selection: Selection) throws -> [PauseScope] {
        if !selection.ids.isEmpty {
            guard selection.folder == nil, selection.destination == nil, !selection.all else {
                throw Refusal(.badRequest, "give one of: ids, a folder, a destination, all")
            }
            return []
        }
        try context.configuration.names.require(folder: selection.folder, destination: selection.destination)
        switch (selection.folder, selection.destination) {
        case (let folder?, nil) where !selection.all: return [PauseScope(scope: .folder, name: folder)]
        case (nil, let destination?) where !selection.all: return [PauseScope(scope: .destination, name: destination)]
        case (nil, nil): break
        default: throw Refusal(.badRequest, "give one of: a folder, a destination, all")
        }
        return [PauseScope(scope: .all, name: "")]
    }
}
