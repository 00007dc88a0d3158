internal import API
internal import Config
internal import Core
internal import Linux
internal import Store
internal import Watch

/// Explains why uploads and files are sent or not.
struct WhyExplainer: Sendable {
    let context: Context
    let finder: UploadFinder
    let views: UploadViews
    let scheduler: Scheduler
    let watcher: Watcher
    let held: HeldFiles
    let sources: SourceFolders

    /// Answers for every upload that the reference may mean; if there is none, for the file at that path.
    func why(_ reference: String) async throws -> WhyView {
        let rows = try await finder.candidates(reference)
        if !rows.isEmpty {
            var builder = await views.builder()
            let shown = await views.views(rows[...], &builder)
            let answers = WhyAnswers(now: builder.now)
            return WhyView(
                answers: zip(shown, rows).map { view, row in
                    // Its file settles again.
                    let file =
                        view.state == .settling
                        ? watcher.settlingFiles().first { $0.path.display == view.path } : nil
                    return answers.answer(view, of: row.upload, settling: file.map(hold))
                })
        }
        guard let path = finder.paths(reference).first, path.isAbsolute else {
            throw Refusal(.notFound, "no upload has the id `\(reference)`; for a file, give its path")
        }
        let folders = await folderAnswers { $0.path.normalised == path.normalised }
        return WhyView(answers: folders.isEmpty ? try await answers(path) : folders)
    }

    private func folderAnswers(_ isMeant: (WatchState) -> Bool) async -> [WhyAnswer] {
        let folders = watcher.states().filter(isMeant)
        if folders.isEmpty { return [] }
        let answers = WhyAnswers(now: await scheduler.shown())
        return folders.compactMap { state in
            context.configuration.folder(state.folder).map { answers.answer(state, uploadTo: $0.uploadTo) }
        }
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
        let held = await self.held.waiting(naming: .max).values.flatMap(\.first)
        if let one = held.first(where: { $0.file.path.shown == path }) {
            if let absence = watcher.states().absence(of: one.file.folder) {
                return fileAnswer(.gathering, one.file.folder, absence)
            }
            return fileAnswer(
                .gathering, one.file.folder, one.reason, hold(.gathering, one.reason, one.since, one.until))
        }
        let rules = context.settings.presentFolders.map(\.watch)
        let (now, sources) = (context.clocks.wall(), sources)
        let (evaluation, found): (PathEvaluation, Found?)
        do {
            // A folder on an unreachable server may never respond, so it is accessed on its own thread.
            (evaluation, found) = try await SlowDisk(timeout: .seconds(3)).run { _ in
                let evaluation = PathEvaluation.of(path, rules: rules, in: sources, now: now)
                guard case .accepted(let folder) = evaluation, let rule = rules.first(where: { $0.name == folder }),
                    let relative = PathEvaluation.relative(of: path, in: rule),
                    let status = try sources[rule.path].open().statusIfPresent(at: relative)
                else { return (evaluation, nil) }
                return (evaluation, Found(relative: relative, status: status))
            }
        } catch is SlowDisk.TimeoutError { return fileAnswer(.unknown, nil, "its disk does not respond") }
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
                try await state(folder, found.relative), folder,
                try await explanation(folder, found.relative, found.status))
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

    private func explanation(_ folder: String, _ relative: FilePath, _ status: FileStatus) async throws -> String {
        let version = (status.size, status.modified)
        guard
            let known = try await context.store.read({
                try $0.tombstones.knownFile(folder, relative, preferring: version)
            })
        else {
            return "folder \(folder) accepts it: an event or the next scan finds it within an hour at most"
        }
        guard known.size == status.size, known.modified == status.modified else {
            return
                "folder \(folder) accepts it: it has changed since it was last seen, and an event or the next scan finds it"
        }
        return known.wasRecorded
            ? "this version of it was uploaded before, and its uploads are no longer listed"
            : isTakenNowhere(folder, relative, status)
                ? "no item of `upload_to` of folder \(folder) takes it; `sluice add --to DESTINATION` uploads it"
                : "it existed before folder \(folder) was first watched, and such files are skipped (existing: skip); "
                    + "`sluice add` uploads it"
    }
}

extension WhyExplainer {
    /// Whether no destination takes a file, as far as its name and its size tell.
    private func isTakenNowhere(_ name: String, _ relative: FilePath, _ status: FileStatus) -> Bool {
        guard let folder = context.configuration.folder(name) else { return false }
        let kind = FileKind(mediaType: MediaType.of(relative))
        return folder.routes(for: FileFacts(size: status.size, kind: kind, duration: nil)).isEmpty
    }
}

extension [WatchState] {
    /// The reason why no file in a folder is inspected; `nil` when the folder is present.
    func absence(of folder: String) -> String? {
        guard case .absent(let reason)? = first(where: { $0.folder == folder })?.condition else { return nil }
        return "its folder \(folder) is absent: \(reason)"
    }
}
