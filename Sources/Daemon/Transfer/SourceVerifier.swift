internal import Core
internal import Linux
internal import Staging
internal import Store
internal import Synchronization

/// Watches a source while it is uploaded in place: checks that it exists, and still has the digested content.
final class SourceVerifier: Sendable {
    /// The source has changed; its new state is read separately.
    struct SourceMovedError: Error {}

    private let identity: SourceRelease.AssetIdentity
    /// The latest ctime that was found to belong to this content.
    private let trusted: Mutex<Int64>

    /// In bytes.
    var size: Int64 { identity.size }

    /// - Returns: `nil` for an asset that has a copy.
    init?(_ asset: AssetRecord, _ source: SourceFile) {
        guard asset.stagingMode == .inPlace, let sha256 = asset.sha256 else { return nil }
        identity = SourceRelease.AssetIdentity(
            id: asset.id, source: source, size: asset.size, modified: asset.identity.modified,
            inode: asset.identity.inode, changed: asset.changed, sha256: sha256)
        trusted = Mutex(asset.changed)
    }

    /// Opens the source for an attempt, which then reads this file, even if another takes its name.
    func open() async throws -> SharedSourceFile {
        let source = identity.source
        return try await blocking { SharedSourceFile(try source.open(), shown: source.path.shown) }
    }

    func currentState() async throws -> SourceRelease.AssetIdentity.InPlaceState {
        let (identity, trusted) = (identity, trusted.withLock { $0 })
        let state = try await blocking { try identity.inPlaceState(trusting: trusted) }
        if case .same(let changed) = state { self.trusted.withLock { $0 = changed } }
        return state
    }

    /// - Throws: ``SourceMovedError``.
    func requireUnchanged() async throws {
        // An obstacle to the inspection is also one to reading, and is handled there.
        guard let state = try? await currentState() else { throw SourceMovedError() }
        guard case .same = state else { throw SourceMovedError() }
    }
}

extension UploadAttempt {
    /// - Parameter error: The error that ended the attempt, if any.
    /// - Returns: `nil` when the source is unchanged, so that the attempt's own result counts.
    func verdict(on source: SourceVerifier, _ reporter: AttemptReporter, after error: UploadError? = nil) async
        -> Verdict?
    {
        do {
            switch try await source.currentState() {
            case .same(let time):
                if time != claim.asset.changed {
                    // This only saves the next inspection a digest, so a failure here has no other cost.
                    try? await context.store.write { try $0.assets.recordVerified(claim.asset.id, changed: time) }
                }
                switch error?.remedy {
                // It looks the same and has other content: a program wrote to it, or its disk failed.
                case .restage(.changed)?:
                    return changed(reporter, isFinished: false)
                case .restage?: return unreadable(error?.failure.message ?? "", reporter)
                default:
                    shared.stagingHolds.clear(claim.asset.id)
                    // An error leaves the other uploads of the disk waiting, as they are; the next one ends that.
                    try? await shared.absentDisks.recordRead(claim.asset)
                    return nil
                }
            case .changed: return try await changedOrReplaced(reporter, isFinished: false)
            case .missing: return try await missing(reporter, isFinished: false)
            }
        } catch { return await unreadable(error, reporter) }
    }

    /// The same after the destination has verified the bytes: the last inspection before that counts.
    func verdict(on source: SourceVerifier, _ reporter: AttemptReporter, sent remote: inout RemoteObject) async
        -> Verdict?
    {
        do {
            switch try await source.currentState() {
            case .same: return nil
            case .changed: return try await changedOrReplaced(reporter, isFinished: true)
            case .missing where try await whereabouts() != .gone: return try await missing(reporter, isFinished: true)
            case .missing where try await context.store.read { try $0.assets.hasNewerVersion(claim.asset) }:
                return changed(reporter, isFinished: true)
            case .missing:
                // The object at the destination is all there is now: giving it up could lose the file.
                remote.warnings.append(
                    "the source was removed before it could be compared with the bytes that were sent")
                return nil
            }
        } catch { return await unreadable(error, reporter) }
    }

    private func whereabouts() async throws -> SourceLocator.Whereabouts {
        let (asset, locator) = (claim.asset, shared.locator)
        return try await blocking { try locator.whereabouts(of: asset) }
    }

    /// The file is not the digested one. With another disk in place of its own it is none of its versions.
    private func changedOrReplaced(_ reporter: AttemptReporter, isFinished: Bool) async throws -> Verdict {
        let (asset, locator) = (claim.asset, shared.locator)
        guard try await blocking({ try locator.isOnOtherDisk(asset) }) else {
            return changed(reporter, isFinished: isFinished)
        }
        return await waitForDisk(
            "another disk is mounted at \(asset.root.display) than when the file was found, and it is uploaded in place",
            reporter)
    }

    private func changed(_ reporter: AttemptReporter, isFinished: Bool) -> Verdict {
        let failure = Failure(
            .local, code: .sourceChanged,
            message:
                "\(claim.asset.path.display) changed while it was uploaded in place: the bytes that were sent are discarded, and the "
                + "file is uploaded again when it has settled",
            at: context.clocks.wall(), retryable: false)
        return Verdict(
            outcome: .sourceChanged(failure, isFinished: isFinished), failure: failure,
            wasAnswered: reporter.wasAnswered)
    }

    private func missing(_ reporter: AttemptReporter, isFinished: Bool) async throws -> Verdict {
        switch try await whereabouts() {
        // A newer version had its name, and may have been released by now.
        case .gone where try await context.store.read { try $0.assets.hasNewerVersion(claim.asset) }:
            return changed(reporter, isFinished: isFinished)
        case .gone:
            // Staging it again reports that.
            return copyLost()
        case .there: return wait(.absent, .sourceAbsent, "the source was missing for a moment", reporter)
        case .away:
            return await waitForDisk(
                "\(claim.asset.root.display) is not mounted as it was when the file was found, and it is uploaded in place",
                reporter)
        }
    }

    private func unreadable(_ error: any Error, _ reporter: AttemptReporter) async -> Verdict {
        let asset = claim.asset
        // The closure throws nothing.
        if let error = error as? SystemError,
            let reason = try? await blocking({ [locator = shared.locator] in locator.absence(of: asset, after: error) })
        {
            return await waitForDisk("\(reason), and the file is uploaded in place", isOfAll: true, reporter)
        }
        return unreadable("\(error)", reporter)
    }

    func unreadable(_ reason: String, _ reporter: AttemptReporter) -> Verdict {
        wait(
            .backoff, .sourceUnreadable, "cannot read the source, which is uploaded in place: \(reason)", reporter
        )
    }

    /// - Parameter isOfAll: The reason applies to all files of the disk; `false`: this is to be found out.
    private func waitForDisk(_ reason: String, isOfAll: Bool = false, _ reporter: AttemptReporter) async -> Verdict {
        let (asset, locator) = (claim.asset, shared.locator)
        // The closure throws nothing.
        let isAway = isOfAll ? true : (try? await blocking { locator.isDiskAway(of: asset) }) ?? false
        // If the wait of the others cannot be stored, neither can that of this upload, which is reported.
        guard isAway, let end = try? await shared.absentDisks.wait(asset, reason) else {
            return wait(.absent, .sourceAbsent, reason, reporter)
        }
        locator.diskIsAway(asset.folder, reason)
        return held(
            Failure(.local, code: .sourceAbsent, message: reason, at: context.clocks.wall(), retryable: true),
            until: end, reporter)
    }

    private func wait(_ kind: Hold.Kind, _ code: Failure.Code, _ text: String, _ reporter: AttemptReporter) -> Verdict {
        let failure = Failure(.local, code: code, message: text, at: context.clocks.wall(), retryable: true)
        let now = context.clocks.wall()
        let failures = shared.stagingHolds.count(claim.asset.id)
        let wait = Backoff(first: .seconds(10), ceiling: .seconds(600)).wait(
            afterFailures: failures + 1, jitter: Random.jitter())
        let isNew = shared.stagingHolds.set(
            claim.asset.id, Hold(kind, since: now, until: now.advanced(by: wait), text: text))
        if kind == .absent { shared.locator.diskIsAway(claim.asset.folder, text) }
        if isNew, kind != .absent {
            context.log.warning("upload waits for its source", ["id": claim.upload.id, "reason": text])
        }
        return held(failure, until: context.clocks.monotonic().advanced(by: wait), reporter)
    }

    private func held(_ failure: Failure, until time: MonotonicTime, _ reporter: AttemptReporter) -> Verdict {
        Verdict(outcome: .held(failure, until: time), failure: failure, wasAnswered: reporter.wasAnswered)
    }
}
