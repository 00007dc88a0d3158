internal import Config
internal import Core
internal import Linux
internal import Store
internal import Watch

/// Why something goes or does not: one answer for each upload that was meant, or one for a file that is none yet.
package struct WhyView: Codable, Sendable, Hashable {
    package var answers: [WhyAnswer]
}

package struct WhyAnswer: Codable, Sendable, Hashable {
    /// Absent for a file that is no upload.
    package var id: String?
    package var destination: String?
    package var folder: String?
    package var path: String
    /// As ``UploadView/state``; for a file that is no upload `settling`, `gathering`, `expected`, `left_alone`, `known`,
    /// `outside`, `unknown`; for a folder that is watched `folder`.
    package var state: String
    /// One sentence.
    package var text: String
    /// What is in the way, the strongest first.
    package var holds: [HoldView]
    /// What persons let it off for a while.
    package var exceptions: [ExceptionView]?
    /// By which way it goes or would go; absent where nothing leaves this machine, and where no way may be taken.
    package var way: WayView?
}

/// By which way something leaves this machine.
package struct WayView: Codable, Sendable, Hashable {
    /// Absent where it is left to the kernel.
    package var interface: String?
    /// The address there that its packets come from, where it is known.
    package var address: String?
    /// Why this one.
    package var text: String
}

extension WayView {
    /// - Returns: `nil` where no way may be taken.
    init?(_ choice: Admission.WayChoice?) {
        guard let choice, choice.interface != nil || choice.reason == Admission.kernelsChoice else { return nil }
        self.init(interface: choice.interface, address: choice.source?.description, text: choice.reason)
    }
}

extension Agent {
    /// Every upload that the reference may mean; else what becomes of the file at that path.
    package func why(_ reference: String) async throws -> WhyView {
        let rows = try await candidates(reference)
        if !rows.isEmpty {
            var answers: [WhyAnswer] = []
            for view in await views(rows[...]) { answers.append(await answer(view)) }
            return WhyView(answers: answers)
        }
        guard let path = paths(reference).first, path.isAbsolute else {
            throw Refusal(.notFound, "no upload is called `\(reference)`; a file is asked for by its path")
        }
        let folders = await folderAnswers { $0.path.normalised == path.normalised }
        return WhyView(answers: folders.isEmpty ? try await answers(path) : folders)
    }

    // MARK: Uploads

    private func answer(_ view: UploadView) async -> WhyAnswer {
        var holds = view.holds
        // Its file settles once more.
        if view.state == "settling", let file = watcher.settlingFiles().first(where: { $0.path.display == view.path }) {
            holds.append(HoldView(hold(file)))
        }
        return WhyAnswer(
            id: view.id, destination: view.destination, folder: view.folder, path: view.path, state: view.state,
            text: await sentence(view), holds: holds,
            exceptions: await exceptions(id: view.id, folder: view.folder),
            way: view.list == "ongoing"
                ? WayView(await dispatcher.choice(of: view.id, to: view.destination, from: view.folder)) : nil)
    }

    private func sentence(_ view: UploadView) async -> String {
        switch view.state {
        case "completed":
            guard let remote = view.remote else { return "it was uploaded" }
            return "it was uploaded to \(remote.url ?? remote.id ?? view.destination)"
                + (remote.verifiedBy.map { ", verified by \($0)" } ?? "")
                // With a reason only: a source may just be what the folder wants kept.
                + (["kept: ", "pending: "].contains { view.sourceState.hasPrefix($0) }
                    ? "; its source is \(view.sourceState)" : "")
        case "failed":
            return "it was refused: \(view.error?.message ?? "nobody knows why"); `sluice retry \(view.id)` tries again"
        case "cancelled" where view.error?.code == BeforeUpload.skipped:
            return "\(view.error?.message ?? "it was skipped"); `sluice retry \(view.id)` asks again"
        case "cancelled" where view.error?.code == Failure.sourceChanged:
            return view.error?.message ?? "its source changed while it was uploaded in place"
        case "cancelled": return "somebody cancelled it; `sluice retry \(view.id)` takes it up again"
        case "expired":
            return "\(view.error?.message ?? "it waited for too long"); `sluice retry \(view.id)` sends it after all"
        case "settling": return "it changed after it was taken, and waits until it settles again"
        case "staging":
            return view.staging == nil ? "it waits for its turn to be copied" : "it is being copied into staging"
        case "waiting": return view.holds.first?.text ?? "it waits"
        case "queued": return await dispatcher.turn(of: view.destination, folder: view.folder)
        default:
            let done = Int(view.progress.fraction * 100)
            let limit = await dispatcher.slowest(of: view.id, to: view.destination, from: view.folder)
            return "it is being sent now: \(view.state), \(done) %"
                + (limit.map { "; \($0.what) lets \(shownBytes($0.rate))/s go" } ?? "")
        }
    }

    // MARK: Folders that are watched

    private func folderAnswers(_ isMeant: (WatchState) -> Bool) async -> [WhyAnswer] {
        var answers: [WhyAnswer] = []
        for state in watcher.states().filter(isMeant) {
            guard let folder = house.folder(state.folder) else { continue }
            let condition =
                switch state.condition {
                case .watching: "it is watched"
                case .scanning: "it is being looked through"
                case .absent(let reason): "it is absent: \(reason)"
                case .failed(let reason): "it cannot be watched: \(reason)"
                }
            let files = state.settling == 0 ? "" : "; \(state.settling) of its files settle"
            var holds: [Hold] = []
            for destination in folder.uploadTo {
                let more = await dispatcher.holds(folder: state.folder, destination: destination)
                holds += more.filter { !holds.contains($0) }
            }
            answers.append(
                WhyAnswer(
                    folder: state.folder, path: state.path.display, state: "folder",
                    text:
                        "it is the folder \(state.folder), whose files go to \(folder.uploadTo.joined(separator: ", ")): "
                        + condition + files,
                    holds: holds.map(HoldView.init), exceptions: await exceptions(id: "", folder: state.folder)))
        }
        return answers
    }

    /// Why nothing in a folder is looked at; `nil` when it is there.
    func absence(of folder: String) -> String? {
        guard case .absent(let reason)? = watcher.states().first(where: { $0.folder == folder })?.condition else {
            return nil
        }
        return "its folder \(folder) is absent: \(reason)"
    }

    // MARK: Files that are no uploads

    private func answers(_ path: FilePath) async throws -> [WhyAnswer] {
        let answer = try await answer(path)
        // By a link, or behind one.
        guard answer.state == "folder" else { return [answer] }
        return await folderAnswers { $0.folder == answer.folder }
    }

    private func answer(_ path: FilePath) async throws -> WhyAnswer {
        func told(_ state: String, _ folder: String?, _ text: String, _ hold: Hold? = nil) -> WhyAnswer {
            WhyAnswer(
                folder: folder, path: path.display, state: state, text: text,
                holds: [hold].compactMap { $0.map(HoldView.init) })
        }
        if let file = watcher.settlingFiles().first(where: { $0.path.shown == path }) {
            if let absence = absence(of: file.folder) {
                return told("settling", file.folder, "\(absence); it goes on settling when that is back")
            }
            return told("settling", file.folder, "it settles: \(file.fullExplanation)", hold(file))
        }
        let held = await gathering.waiting(naming: .max).values.flatMap(\.first)
        if let one = held.first(where: { $0.file.path.shown == path }) {
            if let absence = absence(of: one.file.folder) { return told("gathering", one.file.folder, absence) }
            return told("gathering", one.file.folder, one.reason, hold(.gathering, one.reason, one.since, one.until))
        }
        let rules = house.settings.folders.map(\.watch)
        let (now, sources) = (house.clocks.wall(), house.sources)
        let (standing, found): (Standing, Found?)
        do {
            // A folder on a server that is gone may never answer, and is asked by nobody who counts.
            (standing, found) = try await SlowDisk(patience: .seconds(3)).run { _ in
                let standing = Standing.of(path, rules: rules, in: sources, now: now)
                guard case .taken(let folder) = standing, let rule = rules.first(where: { $0.name == folder }),
                    let relative = Standing.relative(of: path, in: rule),
                    let look = try sources[rule.path].open().lookIfPresent(at: relative)
                else { return (standing, nil) }
                return (standing, Found(relative: relative, look: look))
            }
        } catch is SlowDisk.Silent { return told("unknown", nil, "its disk does not answer") }
        switch standing {
        case .itself(let folder): return told("folder", folder, "it is the folder \(folder)")
        case .outside: return told("outside", nil, "it lies in no folder that is watched")
        case .leftAlone(let folder, let reason): return told("left_alone", folder, "it \(reason)")
        case .taken(let folder):
            guard let found else { return told("expected", folder, "it is not there any more") }
            if found.look.size == 0, house.folder(folder)?.empty == .skip {
                return told(
                    "left_alone", folder, "it is empty, and folder \(folder) leaves such files alone (empty: skip)")
            }
            return told(
                try await state(folder, found.relative), folder, try await fate(folder, found.relative, found.look))
        }
    }

    private func hold(_ file: WaitingFile) -> Hold { hold(.settling, file.fullExplanation, file.since, file.until) }

    private func hold(
        _ kind: Hold.Kind, _ text: String, _ since: MonotonicTime, _ until: MonotonicTime?
    ) -> Hold {
        let (now, wall) = (house.clocks.monotonic(), house.clocks.wall())
        return Hold(
            kind, since: wall.advanced(by: since.since(now)), until: until.map { wall.advanced(by: $0.since(now)) },
            text: text)
    }

    private struct Found: Sendable {
        let relative: FilePath
        let look: FileLook
    }

    private func state(_ folder: String, _ relative: FilePath) async throws -> String {
        try await house.store.isKnown(folder, relative) == nil ? "expected" : "known"
    }

    private func fate(_ folder: String, _ relative: FilePath, _ look: FileLook) async throws -> String {
        guard let known = try await house.store.isKnown(folder, relative) else {
            return "folder \(folder) takes it: an event or the next scan brings it, at the latest within an hour"
        }
        guard known.size == look.size, known.modified == look.modified else {
            return
                "folder \(folder) takes it: it has changed since it was last seen, and comes with an event or the next scan"
        }
        return known.wasTaken
            ? "it was taken before, as it is now, and its uploads are no longer listed"
            : "it was there before folder \(folder) was first watched, and such files are left alone (existing: skip); "
                + "`sluice add` takes it"
    }
}
