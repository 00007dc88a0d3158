internal import Core
internal import Linux
internal import Store

/// Logs how attempts ended, and which classes of uploads are held.
struct AttemptLog {
    let log: Log

    /// Logs which holds begin, and when uploads continue.
    ///
    /// - Parameter changes: Without the repetitions of one hold for several kinds of files.
    func report(_ changes: [UploadClass: HoldLog<UploadClass>.Change]) {
        for (one, what) in changes.sorted(by: {
            ($0.key.folder, $0.key.destination) < ($1.key.folder, $1.key.destination)
        }
        ) {
            switch what {
            case .held(let hold, let times):
                log.notice(
                    "uploads wait",
                    [
                        "folder": one.folder, "destination": one.destination, "hold": hold.kind.rawValue,
                        "reason": hold.text, "until": hold.until?.description, "times": times > 1 ? "\(times)" : nil,
                    ])
            case .free(let kind):
                log.notice(
                    "uploads continue",
                    ["folder": one.folder, "destination": one.destination, "hold": kind.rawValue])
            }
        }
    }

    func reportHeld(_ destination: String, _ kind: Hold.Kind, _ failure: Failure, wait: Duration) {
        log.warning(
            "destination held",
            [
                "destination": destination, "hold": kind.rawValue, "reason": failure.message,
                "next_try_in": "\(Int(wait.inSeconds.rounded(.up)))s",
            ])
    }

    /// Logs that one upload waits alone, and others may continue.
    func reportAlone(_ text: String, _ id: String, at destination: String, _ failure: Failure, wait: Duration) {
        log.warning(
            text,
            [
                "id": id, "destination": destination, "reason": failure.message,
                "next_try_in": "\(Int(wait.inSeconds.rounded(.up)))s",
            ])
    }

    /// Logs the first upload that does not fit into the space at its destination.
    func reportCapacityWait(_ next: RemoteCapacity.Waiting, at destination: String, _ hold: Hold) {
        log.notice(
            "upload waits for free space at its destination",
            [
                "id": next.id, "destination": destination, "hold": hold.kind.rawValue, "reason": hold.text,
                "until": hold.until?.description,
            ])
    }

    func reportEnded(_ exceptions: [OverrideRecord]) {
        for exception in exceptions {
            log.notice(
                "exception ended",
                ["scope": exception.scope.rawValue, "name": exception.name, "by": exception.author])
        }
    }

    /// - Parameter hold: Why the transfer was stopped; `nil` where its quotas are used up, or another route is better.
    func reportStopped(_ transfer: RunningTransfers.Transfer, _ hold: Hold?, isOutOfQuota: Bool) {
        guard let hold else {
            if isOutOfQuota { return reportOutOfQuota(transfer.destination) }
            return log.notice("transfer continues over another route", ["destination": transfer.destination])
        }
        log.notice(
            "transfer stopped; it will resume",
            [
                "destination": transfer.destination, "hold": hold.kind.rawValue, "reason": hold.text,
                "until": hold.until?.description,
            ])
    }

    /// Logs that the quotas of a transfer are used up.
    func reportOutOfQuota(_ destination: String) {
        log.notice(
            "transfer stopped; it will resume",
            ["destination": destination, "hold": "quota", "reason": "its quotas are used up"])
    }

    /// - Parameter isLive: Whether its attempt has begun. Before that, nothing was sent that a newer version replaces.
    func report(_ stop: SupersededUploads.Stop, isLive: Bool) {
        switch stop.reason {
        case .stagedAgain: log.info("upload stopped: its staged copy is made again", ["id": stop.id])
        case .newerVersion where isLive:
            log.info("upload given up: a newer version of its source was found", ["id": stop.id])
        case .verifiedElsewhere:
            log.info("upload stopped: another destination of `first_of` has the file", ["id": stop.id])
        case .newerVersion, .cancelled: break
        }
    }

    func reportStopped(_ request: BackgroundRequests.BackgroundRequest) {
        log.notice(
            "transfer stopped before its end",
            [
                "to": request.account, "hold": request.hold?.kind.rawValue, "reason": request.hold?.text,
                "until": request.hold?.until?.description,
            ])
    }

    /// - Parameter wait: The wait of an upload that many bytes were wasted for.
    func reportWait(forUnmetered upload: UploadRecord, _ wait: AttemptOutcome?) {
        guard case .held(let failure, _, _, _)? = wait else { return }
        log.notice(
            "upload waits for an unmetered network",
            [
                "id": upload.id, "destination": upload.destination, "hold": "metered", "reason": failure.message,
            ])
    }

    func reportStart(_ claim: Claim) {
        log.info(
            "uploading",
            [
                "id": claim.upload.id, "destination": claim.upload.destination, "path": claim.asset.path.display,
                "size": "\(claim.asset.stagedSize)", "from": "\(claim.upload.acked)",
            ])
    }

    func reportDuplicate(_ asset: AssetRecord) {
        log.info(
            "not uploaded again: the same content was uploaded before (see `sluice show`); the source is kept",
            ["path": asset.path.display])
    }

    /// Logs how an attempt ended.
    ///
    /// - Parameters:
    ///   - state: The state of the upload now; `nil` for one that was cancelled meanwhile.
    ///   - sent: The bytes that were sent and received for it.
    ///   - isFirstShortOfQuota: No other upload to its destination waits for more of a quota: one report does for many.
    func report(
        _ verdict: UploadAttempt.Verdict, of claim: Claim, _ state: UploadState?, sent: Int64,
        isFirstShortOfQuota: Bool
    ) {
        let upload = claim.upload
        switch verdict.outcome {
        case .verified(let remote) where state == nil:
            log.info(
                "cancelled after it had been uploaded",
                [
                    "id": upload.id, "destination": upload.destination, "path": claim.asset.path.display,
                    "at": remote.url,
                ])
        case .verified(let remote):
            log.info(
                "uploaded and verified",
                [
                    "id": upload.id, "destination": upload.destination, "path": claim.asset.path.display,
                    "size": "\(claim.asset.stagedSize)", "verified_by": remote.verifiedBy,
                    "sent": "\(sent)",
                ])
        case .retry(let failure, _):
            reportRetry(failure, upload)
        case .refused(let failure, _): reportFailed(upload, claim.asset, failure)
        case .copyLost(let failure, let defect, _):
            let isMissing = defect == .missing
            let what =
                claim.asset.stagingMode == .inPlace
                ? "source \(isMissing ? "missing" : "changed"); will look for it again"
                : "staged copy \(isMissing ? "missing" : "damaged"); will stage it again"
            log.warning(what, ["id": upload.id, "reason": failure.message])
        case .sourceChanged(let failure, _):
            log.warning("upload given up", ["id": upload.id, "reason": failure.message])
        case .skipped(let failure):
            log.notice(
                "upload skipped, not sent",
                [
                    "id": upload.id, "destination": upload.destination, "path": claim.asset.path.display,
                    "reason": failure.message,
                ])
        case .held(let failure, _, _, _) where verdict.lacksQuota:
            if !isFirstShortOfQuota { break }
            log.notice(
                "upload waits for quota",
                ["id": upload.id, "destination": upload.destination, "hold": "quota", "reason": failure.message])
        case .held(let failure, _, _, _):
            if case .retry? = verdict.remedy { return reportRetry(failure, upload) }
            log.debug("upload waits", ["id": upload.id, "reason": failure.message])
        case .yielded:
            log.debug("attempt stopped without a result", ["id": upload.id])
        }
    }

    /// Logs that an upload has ended because of a failure.
    func reportFailed(_ upload: UploadRecord, _ asset: AssetRecord, _ failure: Failure) {
        log.error(
            "upload failed",
            [
                "id": upload.id, "destination": upload.destination, "path": asset.path.display,
                "reason": failure.message,
            ])
    }

    private func reportRetry(_ failure: Failure, _ upload: UploadRecord) {
        log.warning(
            "attempt failed; will retry",
            ["id": upload.id, "destination": upload.destination, "reason": failure.message])
    }
}

/// A hold on uploads of one folder to one destination.
private struct FolderHold: Hashable {
    let one: UploadClass
    let kind: Hold.Kind?
    let rule: String?
}

extension [UploadClass: Hold?] {
    /// Each hold of a folder's uploads to a destination once, however many kinds of files conditions tell apart there.
    var withoutRepeats: Self {
        var first: [FolderHold: UploadClass] = [:]
        for (one, hold) in self {
            let key = FolderHold(one: one.ofAnyFile, kind: hold?.kind, rule: hold?.rule?.name)
            first[key] = first[key].map { $0.files < one.files ? $0 : one } ?? one
        }
        let kept = Set(first.values)
        return filter { kept.contains($0.key) }
    }
}
