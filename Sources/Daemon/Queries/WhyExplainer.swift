internal import API
internal import Config
internal import Core
internal import Linux
internal import Store
internal import Watch

extension RouteView {
    /// - Returns: `nil` where no way may be used.
    init?(_ choice: Admission.RouteChoice?) {
        guard let choice, choice.interface != nil || choice.reason == Admission.kernelsChoice else { return nil }
        self.init(interface: choice.interface, address: choice.source?.description, text: choice.reason)
    }
}

/// Explains why uploads and files are sent or not.
struct WhyExplainer: Sendable {
    let context: Context
    let finder: UploadFinder
    let views: UploadViews
    let scheduler: Scheduler
    let watcher: Watcher
    let grouping: FileGrouper
    let sources: SourceFolders

    /// Answers for every upload that the reference may mean; if there is none, for the file at that path.
    func why(_ reference: String) async throws -> WhyView {
        let rows = try await finder.candidates(reference)
        if !rows.isEmpty {
            var answers: [WhyAnswer] = []
            for view in await views.views(rows[...]) { answers.append(await answer(view)) }
            return WhyView(answers: answers)
        }
        guard let path = finder.paths(reference).first, path.isAbsolute else {
            throw Refusal(.notFound, "no upload has the id `\(reference)`; for a file, give its path")
        }
        let folders = await folderAnswers { $0.path.normalised == path.normalised }
        return WhyView(answers: folders.isEmpty ? try await answers(path) : folders)
    }

    // MARK: Uploads

    private func answer(_ view: UploadView) async -> WhyAnswer {
        var holds = view.holds
        // Its file settles again.
        if view.state == .settling, let file = watcher.settlingFiles().first(where: { $0.path.display == view.path }) {
            holds.append(HoldView(hold(file)))
        }
        return WhyAnswer(
            id: view.id, destination: view.destination, folder: view.folder, path: view.path, state: view.state,
            text: await sentence(view), holds: holds,
            exceptions: await exceptions(id: view.id, folder: view.folder),
            way: view.list == "ongoing"
                ? RouteView(await scheduler.snapshot.routeChoice(of: view.id, to: view.destination, from: view.folder))
                : nil)
    }

    private func sentence(_ view: UploadView) async -> String {
        if view.state.stored == nil {
            return
                "only a newer version of Sluice knows the state `\(view.state.rawValue)`: the upload stays as it is until that version runs"
        }
        if let text = view.explanation { return text }
        if view.state == .queued { return await scheduler.snapshot.turn(of: view.destination, folder: view.folder) }
        let done = Int(view.progress.fraction * 100)
        let limit = await scheduler.snapshot.slowest(of: view.id, to: view.destination, from: view.folder)
        return "it is being sent now: \(view.state), \(done) %"
            + (limit.map { "; \($0.what) limits it to \(shownBytes($0.rate))/s" } ?? "")
    }

    // MARK: Watched folders

    private func folderAnswers(_ isMeant: (WatchState) -> Bool) async -> [WhyAnswer] {
        var answers: [WhyAnswer] = []
        for state in watcher.states().filter(isMeant) {
            guard let folder = context.configuration.folder(state.folder) else { continue }
            let condition =
                switch state.condition {
                case .watching: "it is watched"
                case .scanning: "it is being scanned"
                case .absent(let reason): "it is absent: \(reason)"
                case .failed(let reason): "it cannot be watched: \(reason)"
                }
            let files = state.settling == 0 ? "" : "; \(state.settling) of its files are settling"
            var holds: [Hold] = []
            for destination in folder.uploadTo {
                let more = await scheduler.shown().holds(folder: state.folder, destination: destination)
                holds += more.filter { !holds.contains($0) }
            }
            answers.append(
                WhyAnswer(
                    folder: state.folder, path: state.path.display, state: .folder,
                    text:
                        "it is the folder \(state.folder), whose files go to \(folder.uploadTo.joined(separator: ", ")): "
                        + condition + files,
                    holds: holds.map(HoldView.init), exceptions: await exceptions(id: "", folder: state.folder)))
        }
        return answers
    }

    /// The exceptions for an upload and for its folder.
    private func exceptions(id: String, folder: String?) async -> [OverrideView] {
        await scheduler.facts.overrides.records.filter { exception in
            exception.scope == .upload && exception.name == id || exception.scope == .folder && exception.name == folder
        }.map { OverrideView($0) }
    }

    // MARK: Files without uploads

    private func answers(_ path: FilePath) async throws -> [WhyAnswer] {
        let answer = try await answer(path)
        // The path is a link, or leads through one.
        guard answer.state == .folder else { return [answer] }
        return await folderAnswers { $0.folder == answer.folder }
    }

    private func answer(_ path: FilePath) async throws -> WhyAnswer {
        func fileAnswer(_ state: ShownState, _ folder: String?, _ text: String, _ hold: Hold? = nil) -> WhyAnswer {
            WhyAnswer(
                folder: folder, path: path.display, state: state, text: text,
                holds: [hold].compactMap { $0.map(HoldView.init) })
        }
        if let file = watcher.settlingFiles().first(where: { $0.path.shown == path }) {
            if let absence = watcher.states().absence(of: file.folder) {
                return fileAnswer(.settling, file.folder, "\(absence); settling continues when the folder is back")
            }
            return fileAnswer(.settling, file.folder, "it is settling: \(file.fullExplanation)", hold(file))
        }
        let held = await grouping.waiting(naming: .max).values.flatMap(\.first)
        if let one = held.first(where: { $0.file.path.shown == path }) {
            if let absence = watcher.states().absence(of: one.file.folder) {
                return fileAnswer(.gathering, one.file.folder, absence)
            }
            return fileAnswer(
                .gathering, one.file.folder, one.reason, hold(.gathering, one.reason, one.since, one.until))
        }
        let rules = context.settings.folders.map(\.watch)
        let (now, sources) = (context.clocks.wall(), sources)
        let (evaluation, found): (PathEvaluation, Found?)
        do {
            // A folder on an unreachable server may never respond, so it is accessed on its own thread.
            (evaluation, found) = try await SlowDisk(patience: .seconds(3)).run { _ in
                let evaluation = PathEvaluation.of(path, rules: rules, in: sources, now: now)
                guard case .accepted(let folder) = evaluation, let rule = rules.first(where: { $0.name == folder }),
                    let relative = PathEvaluation.relative(of: path, in: rule),
                    let status = try sources[rule.path].open().statusIfPresent(at: relative)
                else { return (evaluation, nil) }
                return (evaluation, Found(relative: relative, status: status))
            }
        } catch is SlowDisk.Silent { return fileAnswer(.unknown, nil, "its disk does not respond") }
        switch evaluation {
        case .itself(let folder): return fileAnswer(.folder, folder, "it is the folder \(folder)")
        case .outside: return fileAnswer(.outside, nil, "it is in no watched folder")
        case .excluded(let folder, let reason): return fileAnswer(.leftAlone, folder, "it \(reason)")
        case .accepted(let folder):
            guard let found else { return fileAnswer(.expected, folder, "it no longer exists") }
            if found.status.size == 0, context.configuration.folder(folder)?.empty == .skip {
                return fileAnswer(
                    .leftAlone, folder, "it is empty, and folder \(folder) skips empty files (empty: skip)")
            }
            return fileAnswer(
                try await state(folder, found.relative), folder, try await fate(folder, found.relative, found.status))
        }
    }

    private func hold(_ file: WaitingFile) -> Hold { hold(.settling, file.fullExplanation, file.since, file.until) }

    private func hold(
        _ kind: Hold.Kind, _ text: String, _ since: MonotonicTime, _ until: MonotonicTime?
    ) -> Hold {
        let (now, wall) = (context.clocks.monotonic(), context.clocks.wall())
        return Hold(
            kind, since: wall.advanced(by: since.since(now)), until: until.map { wall.advanced(by: $0.since(now)) },
            text: text)
    }

    private struct Found: Sendable {
        let relative: FilePath
        let status: FileStatus
    }

    private func state(_ folder: String, _ relative: FilePath) async throws -> ShownState {
        try await context.store.read { try $0.tombstones.knownFile(folder, relative) } == nil ? .expected : .known
    }

    private func fate(_ folder: String, _ relative: FilePath, _ status: FileStatus) async throws -> String {
        guard let known = try await context.store.read({ try $0.tombstones.knownFile(folder, relative) }) else {
            return "folder \(folder) accepts it: an event or the next scan finds it within an hour at most"
        }
        guard known.size == status.size, known.modified == status.modified else {
            return
                "folder \(folder) accepts it: it has changed since it was last seen, and an event or the next scan finds it"
        }
        return known.wasTaken
            ? "this version of it was uploaded before, and its uploads are no longer listed"
            : "it existed before folder \(folder) was first watched, and such files are skipped (existing: skip); "
                + "`sluice add` uploads it"
    }
}

extension [WatchState] {
    /// The reason why no file in a folder is inspected; `nil` when the folder is present.
    func absence(of folder: String) -> String? {
        guard case .absent(let reason)? = first(where: { $0.folder == folder })?.condition else { return nil }
        return "its folder \(folder) is absent: \(reason)"
    }
}

extension UploadView {
    /// One sentence about its state; `nil` where that takes facts that the view does not contain: its place in the
    /// queue, or its speed limit.
    var explanation: String? {
        switch state {
        case .completed:
            guard let remote else { return "it was uploaded" }
            return "it was uploaded to \(remote.url ?? remote.id ?? destination)"
                + (remote.verifiedBy.map { ", verified by \($0)" } ?? "")
                // Only with a reason: a source may simply be configured to be kept.
                + (["kept: ", "pending: "].contains { sourceState.hasPrefix($0) }
                    ? "; its source is \(sourceState)" : "")
        case .failed:
            return "it was refused: \(error?.message ?? "the reason is unknown"); `sluice retry \(id)` tries again"
        case .cancelled where error?.code == Failure.Code.skipped.rawValue:
            return "\(error?.message ?? "it was skipped"); `sluice retry \(id)` asks the program again"
        case .cancelled where error?.code == Failure.Code.sourceChanged.rawValue:
            return error?.message ?? "its source changed while it was uploaded in place"
        case .cancelled: return "it was cancelled by command; `sluice retry \(id)` queues it again"
        case .expired:
            return "\(error?.message ?? "it waited for too long"); `sluice retry \(id)` queues it again"
        case .settling: return "it changed after it was found, and waits until it settles again"
        case .staging:
            return staging == nil ? "it waits for its turn to be copied" : "it is being copied into staging"
        case .waiting: return holds.first?.text ?? "it waits"
        default: return nil
        }
    }
}
