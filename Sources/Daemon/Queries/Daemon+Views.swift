internal import Config
internal import Core
internal import Glibc
internal import Linux
internal import Staging
internal import Store
internal import Watch

// Conversion of records into the views for people and programs.

extension Daemon {
    func views(_ rows: ArraySlice<UploadRow>) async -> [UploadView] {
        var views: [UploadView] = []
        var known: [String: [Hold]] = [:]
        let exempt = Set(await scheduler.excusedUploads.map(\.id))
        for row in rows {
            if exempt.contains(row.upload.id) {
                views.append(await view(row))
                continue
            }
            let group = row.upload.folder + "/" + row.upload.destination
            if known[group] == nil {
                known[group] = await scheduler.holds(folder: row.upload.folder, destination: row.upload.destination)
            }
            views.append(await view(row, classHolds: known[group] ?? []))
        }
        return views
    }

    func view(_ row: UploadRow) async -> UploadView {
        let holds = await scheduler.holds(
            folder: row.upload.folder, destination: row.upload.destination, upload: row.upload.id)
        return await view(row, classHolds: holds)
    }

    /// For past events: the present holds did not exist then.
    func viewWithoutHolds(_ row: UploadRow) async -> UploadView {
        view(row, holds: [], next: await neverHold(row) == nil ? nextAttempt(row.upload) : nil)
    }

    private func view(_ row: UploadRow, classHolds: [Hold]) async -> UploadView {
        let never = await neverHold(row)
        // An upload that can never be sent has no next attempt.
        let next = never == nil ? nextAttempt(row.upload) : nil
        let holds = [never].compactMap { $0 } + classHolds + (await ownHolds(row))
        return view(row, holds: self.holds(row, holds, next: next), next: next)
    }

    private func ownHolds(_ row: UploadRow) async -> [Hold] {
        await roomHold(row) + (await twinHold(row))
    }

    /// The hold of an upload that can never be sent under its present quotas: other holds may end.
    private func neverHold(_ row: UploadRow) async -> Hold? {
        guard row.upload.state == .queued else { return nil }
        return await scheduler.neverHold(of: row.upload, size: row.asset.stagedSize)
    }

    /// The hold of an upload that its destination has no space for.
    private func roomHold(_ row: UploadRow) async -> [Hold] {
        let upload = row.upload
        guard upload.state == .queued,
            let hold = await scheduler.roomHold(
                of: upload.destination, missing: upload.missing,
                name: row.asset.path.name.display),
            // An upload that has begun there is not held for it.
            !upload.isBegun
        else { return [] }
        return [hold]
    }

    /// The hold of an upload that waits for another with the same content, where the folder skips duplicates.
    private func twinHold(_ row: UploadRow) async -> [Hold] {
        let upload = row.upload
        guard upload.state == .queued, house.folder(upload.folder)?.duplicates == .skip, let sha256 = row.asset.sha256,
            // This is only an explanation, which the next request may have.
            let twin = try? await house.store.twin(of: upload, sha256: sha256),
            let other = try? await house.store.asset(twin.asset)
        else { return [] }
        return [
            Hold(
                .busy, since: twin.startedAt ?? twin.createdAt,
                text:
                    "\(other.identity.relative.display) of folder \(twin.folder) has the same content and is on its way to "
                    + "\(twin.destination) as \(twin.id): this one is skipped when that is there")
        ]
    }

    private func view(_ row: UploadRow, holds: [Hold], next: WallTime?) -> UploadView {
        let (upload, asset) = (row.upload, row.asset)
        let live = house.live[upload.id]
        // A failure that was overcome is history, shown by the attempts.
        let showsFailure =
            upload.ending == .failed || (!upload.state.isTerminal && upload.state != .uploading)
            || upload.ending == .cancelled && row.failure?.code == Failure.sourceChanged || row.isExpired
            || row.isSkipped
        return UploadView(
            id: upload.id, key: upload.key, context: upload.context, folder: upload.folder,
            destination: upload.destination, path: asset.path.display,
            relative: asset.identity.relative.display, name: asset.identity.relative.name.display,
            size: asset.stagedSize, sha256: asset.sha256.map { hexadecimal($0) },
            settledBy: asset.unknown.settledBy ?? asset.settledBy.rawValue,
            state: upload.unknown.state ?? state(row, live, holds), list: upload.state.list,
            holds: holds.map(HoldView.init),
            priority: upload.priority, progress: progress(row, live), attempt: upload.attempt,
            generation: upload.generation, nextAttemptAt: next?.description,
            error: showsFailure ? row.failure.map(ErrorView.init) : nil, warnings: warnings(row),
            remote: remote(upload),
            sourceAction: asset.shownAction, sourceState: row.shownSourceState, remoteDelete: upload.remoteDelete,
            createdAt: upload.createdAt.description, startedAt: upload.startedAt?.description,
            finishedAt: upload.finishedAt?.description, expiresAt: expiry(upload)?.description,
            staging: upload.state == .staging ? house.making[asset.id].map(StagingRunView.init) : nil,
            keeping: asset.shownKeeping,
            headers: upload.headers.isEmpty ? nil : upload.headers.keys.sorted(),
            url: upload.url.map { redacted(printable($0)) })
    }

    /// For an upload that is not verified, only its remote name and address, if known.
    private func remote(_ upload: UploadRecord) -> RemoteView? {
        if upload.remote == nil, upload.named == nil { return nil }
        return RemoteView(id: upload.remoteID, url: upload.remoteURL, verifiedBy: upload.remote?.verifiedBy)
    }

    private func state(_ row: UploadRow, _ live: LiveUploads.Run?, _ holds: [Hold]) -> String {
        switch row.upload.state {
        case .uploading: live?.phase.rawValue ?? "opening"
        case .staging where row.asset.state == .unsettled: "settling"
        case .staging, .queued: holds.isEmpty ? row.upload.state.rawValue : "waiting"
        case .completed, .failed, .cancelled, .removed:
            row.isExpired ? Expiry.code : (row.upload.ended ?? row.upload.state).rawValue
        }
    }

    /// When it leaves its list; `nil` also when that time is over and something else keeps it there.
    private func expiry(_ upload: UploadRecord) -> WallTime? {
        let lists = house.settings.lists
        let time: Duration? =
            switch upload.state {
            case .staging, .queued, .uploading: nil
            case .completed: lists.completed.time
            case .failed: lists.failed.time
            case .cancelled: lists.cancelled.time
            case .removed: lists.history
            }
        guard let time, let since = upload.ranAt else { return nil }
        let (now, ran) = (house.clocks.wall(), Duration.milliseconds(max(0, house.store.ran - since)))
        guard ran < time else { return nil }
        // If the daemon has run since then and the clock was not set, the result is the same for every request.
        if let end = upload.finishedAt {
            let elapsed = Duration.milliseconds(now.milliseconds - end.milliseconds)
            if (.seconds(-2) ... .seconds(2)).contains(elapsed - ran) { return end.advanced(by: time) }
        }
        return now.advanced(by: time - ran)
    }

    private func holds(_ row: UploadRow, _ classHolds: [Hold], next: WallTime?) -> [Hold] {
        let upload = row.upload
        if upload.state == .uploading, house.live.isToPause(upload.id) {
            // It is held already, while its parts in flight continue.
            let own = upload.pausedAt.map { Hold(.operator, since: $0, text: "pauses behind what is on its way") }
            return [own].compactMap(\.self) + classHolds.filter { $0.kind == .global }
        }
        guard upload.state == .staging || upload.state == .queued else { return [] }
        var holds: [Hold] = []
        if let since = upload.pausedAt { holds.append(Hold(.operator, since: since, text: "paused")) }
        if upload.state == .queued {
            for var hold in classHolds where !upload.isBegun || !hold.sparesBegun {
                // A window that was closed before this file arrived holds it only since then.
                hold.since = max(hold.since, upload.createdAt)
                holds.append(hold)
            }
            if let hold = house.stagingHolds["\(upload.asset)"] { holds.append(hold) }
            // The hold of a destination explains more than the wait of one of its uploads.
            let own = ownHold(row.failure)
            if let until = next,
                own == .metered || !holds.contains(where: { $0.kind == own || $0.kind.isOfDestination })
            {
                let retry = house.retry(folder: upload.folder, destination: upload.destination)
                // An upload that was refused for its key waits by the hold of its destination.
                let rule =
                    own == .backoff && row.failure?.kind != .auth
                    ? "; the next attempt waits by `\(retry.written)`" : ""
                holds.append(
                    Hold(
                        own,
                        since: row.failure.map { WallTime(milliseconds: $0.at) } ?? upload.createdAt,
                        until: until, text: (row.failure?.message ?? "waits for its next attempt") + rule))
            }
        } else if let hold = house.stagingHolds["\(upload.asset)"] ?? house.troubles["staging"] {
            holds.append(hold)
        }
        if let hold = house.troubles["state"] { holds.append(hold) }
        return holds
    }

    /// The kind of the hold while an upload waits for its next attempt.
    private func ownHold(_ failure: Failure?) -> Hold.Kind {
        if failure?.code == BeforeUpload.waits { return .busy }
        if failure?.code == Failure.wastedOnMetered { return .metered }
        return failure?.kind == .quota ? .quota : .backoff
    }

    /// By the clock alone: a quota may block it for good.
    private func nextAttempt(_ upload: UploadRecord) -> WallTime? {
        let now = house.clocks.monotonic()
        guard upload.state == .queued, let until = upload.backoffUntil, until > now else { return nil }
        return house.clocks.wall().advanced(by: until.since(now))
    }

    private func progress(_ row: UploadRow, _ live: LiveUploads.Run?) -> ProgressView {
        let total = row.asset.stagedSize
        let acked = max(row.upload.acked, live?.acked ?? 0)
        // Bytes of a failed attempt may have arrived or not: only the next attempt shows it.
        let isDoubted = row.upload.failingSince != nil || row.failure?.code == Failure.wastedOnMetered
        let sent = max(acked, live?.sent ?? (isDoubted ? 0 : row.upload.sent))
        let isDone = row.upload.ending == .completed
        // 1 only when every byte is confirmed; an empty file counts as 1 when it is done.
        let fraction = isDone ? 1 : total == 0 ? 0 : min(0.999, Double(sent) / Double(total))
        let rate = live.map(\.rate).flatMap { $0 > 0 ? $0 : nil }
        return ProgressView(
            fraction: fraction, acked: isDone ? total : acked, sent: isDone ? total : sent, total: total, rate: rate,
            eta: rate.map { max(0, total - sent) / $0 })
    }

    private func warnings(_ row: UploadRow) -> [String] {
        var warnings = row.upload.remote?.warnings ?? []
        let stuck = row.asset.sourceState == .untouched || row.asset.sourceState == .releasing
        if stuck, let note = row.asset.sourceNote { warnings.append("the source is not released yet: \(note)") }
        return warnings
    }
}

extension AssetRecord {
    fileprivate var shownAction: String {
        if let word = unknown.action { return word }
        return switch action {
        case .keep, .leave: "keep"
        case .delete: "delete"
        case .move: "move"
        }
    }

    fileprivate var shownKeeping: String? { unknown.stagingMode ?? (stagingMode == .copy ? nil : stagingMode.rawValue) }
}

extension UploadRow {
    fileprivate var shownSourceState: String {
        let note = asset.sourceNote.map { ": \($0)" } ?? ""
        if let word = asset.unknown.sourceState { return word + note }
        return switch asset.sourceState {
        // The copy was released while the source still existed: no further release follows.
        case .untouched where asset.state == .dropped && upload.ending == .cancelled: "kept" + note
        case .untouched, .releasing: "pending" + note
        case .released: "done" + note
        case .kept: "kept" + note
        }
    }
}

extension HoldView {
    init(_ hold: Hold) {
        self.init(
            kind: hold.kind.rawValue, since: hold.since.description, until: hold.until?.description, text: hold.text)
    }
}

extension ErrorView {
    init(_ failure: Failure) {
        self.init(
            kind: failure.kind.rawValue, code: failure.code, http: failure.http, message: failure.message,
            retryable: failure.retryable, at: WallTime(milliseconds: failure.at).description)
    }
}
