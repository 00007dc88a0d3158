internal import API
internal import Config
internal import Core
internal import Linux
internal import Store
internal import Transport

/// Maps the records of uploads to their views for people and programs, as of one moment. It makes no query: all that it
/// needs are its properties and the facts of each upload.
struct UploadViewBuilder {
    /// The decisions of policy at that moment.
    let now: PolicySnapshot
    /// How long the daemon has run by then: ``Store/currentRunTime``.
    let ran: Int64
    /// The uploads with exemptions of their own.
    private let exempt: Set<String>
    /// The holds on all uploads of a class, for each class that was asked for.
    private var classHolds: [UploadClass: [Hold]] = [:]

    init(_ now: PolicySnapshot, ran: Int64) {
        (self.now, self.ran) = (now, ran)
        exempt = Set(now.exemptUploads.map(\.id))
    }

    private var wall: WallTime { now.inputs.now }

    /// Facts about an upload that its records do not contain.
    struct Facts {
        /// The attempt under way.
        var run: LiveUploads.Run?
        /// Whether the attempt is to pause after the parts in flight.
        var shouldPause = false
        /// The copy in progress.
        var copy: LiveStaging.Run?
        /// Why it can never be sent under the present quotas.
        var never: Hold?
        /// The holds on all uploads from its folder to its destination.
        var ofClass: [Hold] = []
        /// The holds on it alone.
        var own: [Hold] = []
        /// Why its copy cannot be made now, or cannot be used.
        var ofCopy: Hold?
        /// Whether `ofCopy` is the hold of all files of its disk.
        var waitsWithDisk = false
        /// The hold on the staging folder.
        var ofStaging: Hold?
        /// The hold on everything while the state cannot be written.
        var ofState: Hold?
        /// How long it waits between attempts.
        var retry = Backoff()
    }

    /// The decisions of policy about an upload.
    mutating func facts(of row: UploadRow) -> Facts {
        let upload = row.upload
        var facts = Facts()
        facts.ofClass = holds(onClassOf: upload)
        guard upload.state == .queued else { return facts }
        facts.never = now.permanentHold(of: upload, size: row.asset.stagedSize)
        facts.own = [capacityHold(row)].compactMap(\.self)
        return facts
    }

    /// The holds on all uploads from its folder to its destination, without those that it is exempt from.
    private mutating func holds(onClassOf upload: UploadRecord) -> [Hold] {
        if exempt.contains(upload.id) {
            return now.holds(on: upload.uploadClass, upload: upload.id)
        }
        if let known = classHolds[upload.uploadClass] { return known }
        let holds = now.holds(on: upload.uploadClass)
        classHolds[upload.uploadClass] = holds
        return holds
    }

    /// The hold of an upload that its destination has no space for. An upload that has begun there is not held for it.
    private func capacityHold(_ row: UploadRow) -> Hold? {
        let upload = row.upload
        if upload.isBegun { return nil }
        return now.destinations.capacity(of: upload.destination)?.hold(
            at: upload.destination, missing: upload.missing, name: row.asset.path.name.display)
    }

    /// The hold of an upload while another one with the same content is being sent.
    static func hold(while other: UploadRecord, sends asset: AssetRecord) -> Hold {
        Hold(
            .busy, since: other.startedAt ?? other.createdAt,
            text:
                "\(asset.identity.relative.display) of folder \(other.folder) has the same content and is being uploaded to "
                + "\(other.destination) as \(other.id): this one is skipped when that upload is complete")
    }

    /// The hold of an upload that waits for alternatives before it.
    ///
    /// - Parameter awaited: The destinations of these.
    func hold(awaiting awaited: [String], _ upload: UploadRecord) -> Hold? {
        guard let standby = upload.standby else { return nil }
        let until = wall.advanced(by: .milliseconds(max(0, standby - ran)))
        return Hold(
            .alternative, since: upload.createdAt, until: until,
            text: "goes to \(upload.destination) only if the file is not verified in time at "
                + (awaited.isEmpty ? "another destination" : awaited.joined(separator: ", ")))
    }

    func view(_ row: UploadRow, _ facts: Facts) -> UploadView {
        // An upload that can never be sent has no next attempt.
        let next = nextAttempt(row.upload, facts)
        return view(row, facts, holds: holds(row, facts, next: next), next: next)
    }

    /// For past events: the present holds did not exist then.
    func viewWithoutHolds(_ row: UploadRow, _ facts: Facts) -> UploadView {
        view(row, facts, holds: [], next: nextAttempt(row.upload, facts))
    }

    private func view(_ row: UploadRow, _ facts: Facts, holds: [Hold], next: WallTime?) -> UploadView {
        let (upload, asset) = (row.upload, row.asset)
        let live = facts.run
        // A failure that was overcome is history, shown by the attempts.
        let showsFailure =
            upload.ending == .failed || (!upload.state.isTerminal && upload.state != .uploading)
            || row.isSuperseded || row.isSuperfluous || row.isExpired || row.isSkipped
        return UploadView(
            id: upload.id, key: upload.key, context: upload.context, folder: upload.folder,
            destination: upload.destination, path: asset.path.display,
            relative: asset.identity.relative.display, name: asset.identity.relative.name.display,
            size: asset.stagedSize, sha256: asset.sha256.map { hexadecimal($0) },
            settledBy: asset.unknown.settledBy ?? asset.settledBy.rawValue,
            state: upload.unknown.state.map(ShownState.init) ?? state(row, live, holds), list: Shown(upload.state.list),
            holds: holds.map(HoldView.init),
            priority: upload.priority, progress: progress(row, live), attempt: upload.attempt,
            generation: upload.generation, nextAttemptAt: next?.description,
            error: showsFailure ? row.failure.map(ErrorView.init) : nil, warnings: warnings(row),
            remote: remote(upload),
            sourceAction: asset.shownAction, sourceState: row.shownSourceState, remoteDelete: upload.remoteDelete,
            createdAt: upload.createdAt.description, startedAt: upload.startedAt?.description,
            finishedAt: upload.finishedAt?.description, expiresAt: expiry(upload)?.description,
            staging: upload.state == .staging ? facts.copy.map(StagingRunView.init) : nil,
            keeping: asset.shownKeeping,
            headers: upload.headers.isEmpty ? nil : upload.headers.keys.sorted(),
            url: upload.url?.creation.map { redacted(printable($0)) },
            uploadOrigin: upload.url?.upload.map { printable(WebAddress($0).origin) })
    }

    /// For an upload that is not verified, only its remote name and address, and when the remote drops it, if known.
    private func remote(_ upload: UploadRecord) -> RemoteView? {
        let resumable = upload.expires.map { ResumableView(offset: upload.acked, expiresAt: $0.description) }
        if upload.remote == nil, upload.named == nil, resumable == nil { return nil }
        return RemoteView(
            id: upload.remoteID, url: upload.remoteURL, verifiedBy: upload.remote?.verifiedBy, resumable: resumable)
    }

    private func state(_ row: UploadRow, _ live: LiveUploads.Run?, _ holds: [Hold]) -> ShownState {
        switch row.upload.state {
        case .uploading: live.map { ShownState(rawValue: $0.phase.rawValue) } ?? .opening
        case .staging where row.asset.state == .unsettled: .settling
        case .staging, .queued: holds.isEmpty ? ShownState(rawValue: row.upload.state.rawValue) : .waiting
        case .completed, .failed, .cancelled, .removed:
            row.isExpired
                ? .expired
                : row.isSuperfluous
                    ? .superseded : ShownState(rawValue: (row.upload.ended ?? row.upload.state).rawValue)
        }
    }

    /// When it leaves its list; `nil` also when that time is over and something else keeps it there.
    private func expiry(_ upload: UploadRecord) -> WallTime? {
        let lists = now.settings.lists
        let time: Duration? =
            switch upload.state {
            case .staging, .queued, .uploading: nil
            case .completed: lists.completed.time
            case .failed: lists.failed.time
            case .cancelled: lists.cancelled.time
            case .removed: lists.history
            }
        guard let time, let since = upload.ranAt else { return nil }
        let ran = Duration.milliseconds(max(0, self.ran - since))
        guard ran < time else { return nil }
        // If the daemon has run since then and the clock was not set, the result is the same for every request.
        if let end = upload.finishedAt {
            let elapsed = Duration.milliseconds(wall.milliseconds - end.milliseconds)
            if (.seconds(-2) ... .seconds(2)).contains(elapsed - ran) { return end.advanced(by: time) }
        }
        return wall.advanced(by: time - ran)
    }

    private func holds(_ row: UploadRow, _ facts: Facts, next: WallTime?) -> [Hold] {
        let upload = row.upload
        let classHolds = [facts.never].compactMap { $0 } + facts.ofClass + facts.own
        if upload.state == .uploading, facts.shouldPause {
            // It is held already, while its parts in flight continue.
            let own = upload.pausedAt.map {
                Hold(.operator, since: $0, text: "is paused as soon as the running request ends")
            }
            return [own].compactMap(\.self) + classHolds.filter { $0.kind == .global }
        }
        guard upload.state == .staging || upload.state == .queued else { return [] }
        var holds: [Hold] = []
        if let since = upload.pausedAt { holds.append(Hold(.operator, since: since, text: "paused")) }
        if upload.state == .queued {
            for var hold in classHolds where !upload.isBegun || !hold.holdsOnlyNewUploads {
                // A window that was closed before this file arrived holds it only since then.
                hold.since = max(hold.since, upload.createdAt)
                holds.append(hold)
            }
            if let hold = facts.ofCopy { holds.append(hold) }
            let own = ownHold(row.failure)
            // While its disk is away it waits for that alone.
            let isAway = facts.ofCopy?.kind == .absent && row.failure?.cause == .absence
            if let until = next, !isAway, !facts.waitsWithDisk,
                own == .metered || !holds.contains(where: { explains($0, own, until: until) })
            {
                // An upload that was refused for its key waits by the hold of its destination.
                let rule =
                    own == .backoff && row.failure?.kind != .auth
                        && !(row.failure.map { Self.ownWaits.contains($0.code) } ?? false)
                    ? "; the next attempt follows `\(facts.retry.written)`" : ""
                holds.append(
                    Hold(
                        own,
                        since: row.failure.map { WallTime(milliseconds: $0.at) } ?? upload.createdAt,
                        until: until, text: (row.failure?.message ?? "waits for its next attempt") + rule))
            }
        } else if let hold = facts.ofCopy ?? facts.ofStaging {
            holds.append(hold)
        }
        if let hold = facts.ofState { holds.append(hold) }
        return holds
    }

    /// Whether a hold on many uploads explains the wait of one of them better than its own hold. Where that wait is
    /// longer, it has another reason: bytes that were sent in vain, or refusals of this file. An upload that has probed
    /// its destination waits a second longer than that.
    private func explains(_ hold: Hold, _ own: Hold.Kind, until: WallTime) -> Bool {
        guard hold.kind == own || hold.kind.isOfDestination else { return false }
        return hold.until.map { until.milliseconds - $0.milliseconds <= 2000 } ?? true
    }

    /// Failures that set the time of the next attempt, regardless of `retry`.
    private static let ownWaits: Set<Failure.Code> = [
        .uploadLost, .uploadMissing, .uploadChanged, .namesTaken, .nameInUse, .remoteWorks, .verifyTimeout,
        .companionFirst, .sourceAbsent, .sourceUnreadable,
    ]

    /// The kind of the hold while an upload waits for its next attempt.
    private func ownHold(_ failure: Failure?) -> Hold.Kind {
        if failure?.code == .beforeUpload { return .busy }
        if failure?.code == .wastedOnMetered { return .metered }
        return failure?.kind == .quota ? .quota : .backoff
    }

    /// By the clock alone: a quota may block it for good.
    private func nextAttempt(_ upload: UploadRecord, _ facts: Facts) -> WallTime? {
        guard facts.never == nil, upload.state == .queued else { return nil }
        // The time that is set for it is for the case that nothing tells when the disk is back.
        if facts.waitsWithDisk { return facts.ofCopy?.until }
        guard let until = upload.backoffUntil, until > now.inputs.monotonic
        else { return nil }
        return wall.advanced(by: until.since(now.inputs.monotonic))
    }

    private func progress(_ row: UploadRow, _ live: LiveUploads.Run?) -> ProgressView {
        let total = row.asset.stagedSize
        let acked = max(row.upload.acked, live?.acked ?? 0)
        // Bytes of a failed attempt may have arrived or not: only the next attempt shows it.
        let isDoubted = row.upload.failingSince != nil || row.failure?.code == .wastedOnMetered
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
        if stuck, let note = row.asset.sourceNote { warnings.append("source not released yet: \(note)") }
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
