internal import API
internal import Config
internal import Core
internal import Linux
internal import Notices
internal import Store
internal import Synchronization

// `before_upload`: the one hook that an upload waits for.

extension UploadAttempt {
    /// Runs the configured programs before the first byte of this generation, and records the answer.
    ///
    /// - Returns: `nil` when the upload may be sent; ``claim`` then has the approved values.
    /// - Throws: `StoreError` when the answer cannot be written.
    mutating func requestApproval() async throws -> Verdict? {
        let upload = claim.upload
        if upload.isApproved { return nil }
        let rules = context.configuration.beforeUpload(folder: upload.folder, destination: upload.destination)
        if rules.isEmpty { return nil }
        guard await shared.hookSlots.acquire() else { return Verdict(outcome: .yielded, wasAnswered: false) }
        defer { shared.hookSlots.release() }
        shared.pendingApprovals.begin(upload.id)
        defer { shared.pendingApprovals.end(upload.id) }
        var changes = BeforeUpload.Changes()
        for (place, rule) in rules {
            let answer: BeforeUpload.Answer
            do {
                answer = try await ApprovalProgram.run(rule, about: try approvalInput(changes))
            } catch is CancellationError {
                return Verdict(outcome: .yielded, wasAnswered: false)
            } catch {
                return waitVerdict(
                    place, "gave no answer, which counts as wait: \(error)", shared.pendingApprovals.failed(place))
            }
            shared.pendingApprovals.answered(place)
            switch answer {
            case .skip(let reason):
                CrashPoint.reached("asked")
                let text = "`before_upload` of \(place) skips it: \(reason)"
                let failure = Failure(
                    .local, code: .skipped, message: covered(text), at: context.clocks.wall(),
                    retryable: false)
                return Verdict(outcome: .skipped(failure), wasAnswered: false)
            case .wait(let duration, let reason):
                context.log.info(
                    "`before_upload` delays an upload", ["id": upload.id, "place": place, "reason": covered(reason)])
                return waitVerdict(place, "delays it" + (reason.isEmpty ? "" : ": \(reason)"), duration)
            case .go(let more):
                changes.name = more.name ?? changes.name
                changes.metadata.merge(more.metadata) { $1 }
                changes.context.merge(more.context) { $1 }
            }
        }
        CrashPoint.reached("asked")
        if claim.checkpoint != nil, changes.name != nil || !changes.metadata.isEmpty {
            // The object at the destination already has its name and metadata.
            context.log.notice(
                "upload already started; it keeps its name and metadata",
                ["id": upload.id, "path": claim.asset.path.display])
            (changes.name, changes.metadata) = (nil, [:])
        }
        do {
            claim.upload = try await context.store.write { [changes] tx in try tx.uploads.approve(upload.id, changes) }
        } catch is LeaseLostError {
            return Verdict(outcome: .yielded, wasAnswered: false)
        }
        CrashPoint.reached("approved")
        return nil
    }

    /// The input of the program.
    ///
    /// - Parameter changes: Changes that earlier programs requested.
    private func approvalInput(_ changes: BeforeUpload.Changes) throws -> [UInt8] {
        let (upload, asset) = (claim.upload, claim.asset)
        let input = BeforeUploadInput(
            id: upload.id, key: upload.key, folder: upload.folder, destination: upload.destination,
            path: asset.path.display, name: (changes.name ?? upload.name).display, size: asset.stagedSize,
            sha256: asset.sha256.map { hexadecimal($0) }, mediaType: upload.mediaType,
            metadata: upload.metadata.merging(changes.metadata) { $1 },
            context: upload.context.merging(changes.context) { $1 }, generation: upload.generation,
            createdAt: upload.createdAt.description)
        return try JSON.line(input)
    }

    /// A program may repeat a secret.
    private func covered(_ text: String) -> String { redacted(context.secrets.cover(text)) }

    private func waitVerdict(_ place: String, _ words: String, _ duration: Duration?) -> Verdict {
        let retry = context.configuration.retry(folder: claim.upload.folder, destination: claim.upload.destination)
        let wait = duration ?? retry.wait(afterFailures: 1, jitter: Random.jitter())
        let failure = Failure(
            .local, code: .beforeUpload, message: covered("`before_upload` of \(place) \(words)"),
            at: context.clocks.wall(), retryable: true)
        // Neither the destination's fault nor an attempt.
        return Verdict(
            outcome: .held(failure, until: context.clocks.monotonic().advanced(by: wait), isFault: false),
            wasAnswered: false)
    }

    private func waitVerdict(_ place: String, _ words: String, _ failures: Int) -> Verdict {
        let retry = context.configuration.retry(folder: claim.upload.folder, destination: claim.upload.destination)
        if failures == 1 {
            context.log.warning(
                "uploads wait for the answer of a program", ["place": place, "reason": covered(words)])
        }
        return waitVerdict(place, words, retry.wait(afterFailures: failures, jitter: Random.jitter()))
    }
}

extension CurrentConfiguration {
    /// The programs to ask before an upload, with their places: the folder's own first, the general one last.
    func beforeUpload(folder: String, destination: String) -> [(place: String, rule: BeforeUpload)] {
        let places = [
            ("folder \(folder)", self.folder(folder)?.policy.beforeUpload),
            ("destinations.\(destination)", settings(ofDestination: destination)?.policy.beforeUpload),
            ("policy", settings.policy.beforeUpload),
        ]
        return places.compactMap { place, rule in rule.map { (place, $0) } }
    }
}

/// The uploads with a running `before_upload` program, and how often in a row each one gave no answer.
final class PendingApprovals: Sendable {
    private let counts = Mutex<[String: Int]>([:])
    private let open = Mutex<Set<String>>([])

    /// Uploads that a program has not answered for yet.
    var waiting: Set<String> { open.withLock { $0 } }

    func begin(_ upload: String) { open.withLock { _ = $0.insert(upload) } }
    func end(_ upload: String) { open.withLock { _ = $0.remove(upload) } }

    /// - Returns: The failures in a row, including this one.
    func failed(_ place: String) -> Int {
        counts.withLock { counts in
            counts[place, default: 0] += 1
            return counts[place, default: 1]
        }
    }

    func answered(_ place: String) { counts.withLock { $0[place] = nil } }
    func forget() { counts.withLock { $0 = [:] } }
}
