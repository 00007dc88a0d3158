internal import Core
internal import Destinations
internal import Linux
internal import Store
internal import Synchronization

/// Stores the notes of a working destination durably, and updates the live figures.
final class AttemptReporter: UploadReporter {
    private let context: Context
    private let live: LiveUploads
    private let stops: StopRequests
    private let id: String
    private let size: Int64
    private let state: Mutex<State>
    /// The latest write of the sent position, queued after those before it.
    private let marking = Mutex<Task<Void, Never>?>(nil)
    /// The account that its bytes are charged to.
    private let account: QuotaAccount?
    /// Set for a source that is uploaded in place.
    private let source: SourceVerifier?

    private struct State {
        var acked: Int64
        /// The most bytes that the remote had acknowledged before this attempt, in this generation.
        let highestAcknowledged: Int64
        var hasAdvanced = false
        var wasAnswered = false
        var known: [Companion]?
        /// The sent position that was recorded last.
        var markedSent: Int64
    }

    /// - Parameters:
    ///   - upload: As it was before this attempt.
    ///   - size: Bytes of the file.
    init(
        context: Context, live: LiveUploads, stops: StopRequests, _ upload: UploadRecord, size: Int64,
        account: QuotaAccount?, _ source: SourceVerifier? = nil
    ) {
        self.source = source
        (self.context, self.live, self.stops) = (context, live, stops)
        id = upload.id
        self.size = size
        state = Mutex(State(acked: upload.acked, highestAcknowledged: upload.furthest, markedSent: upload.acked))
        self.account = account
    }

    var wasAnswered: Bool { state.withLock { $0.wasAnswered } }
    /// Whether the remote has acknowledged more bytes than ever before: attempts count from the first again.
    var hasAdvanced: Bool { state.withLock { $0.hasAdvanced } }
    /// The files that travel with it, as of its latest question.
    var known: [Companion]? { state.withLock { $0.known } }

    func record(_ checkpoint: Checkpoint) async throws {
        CrashPoint.reached("opening")
        try await source?.requireUnchanged()
        try await context.store.writeHeld { try $0.checkpoints.record(checkpoint, for: id) }
        account?.note(isBegun: !checkpoint.fields.isEmpty)
        CrashPoint.reached("opened")
    }

    func accepted(_ offset: Int64, _ checkpoint: Checkpoint) async throws {
        note(acked: offset)
        try await requireStored(acked: offset)
        try await context.store.writeHeld { try $0.checkpoints.record(checkpoint, for: id, acked: offset) }
        CrashPoint.reached("accepted")
    }

    /// When the remote has all bytes, the verdict on the source follows the verification: the upload of a removed
    /// source is not given up then, since the object at the remote may be all there is.
    private func requireStored(acked: Int64) async throws {
        guard let source, acked < source.size else { return }
        try await source.requireUnchanged()
    }

    func parts() async throws -> [AcknowledgedPart] { try await context.store.read { try $0.parts.of(id) } }
    func companions() async throws -> [Companion] {
        let found = try await context.store.read { try $0.uploads.companions(of: id) }
        state.withLock { $0.known = found }
        return found
    }

    func recordParts(_ parts: [AcknowledgedPart], lost: [Int], acked: Int64) async throws {
        note(acked: acked)
        try await requireStored(acked: acked)
        try await context.store.writeHeld { try $0.parts.record(parts, lost: lost, of: id, acked: acked) }
        CrashPoint.reached("accepted")
    }

    func renewed(_ checkpoint: Checkpoint, leaving old: Checkpoint?) async throws {
        let sent = live[id]?.sent ?? 0
        note(acked: 0)
        try await source?.requireUnchanged()
        // A mark that is written later would count for the new beginning.
        await finishMarking()
        // The bytes sent for the abandoned object were sent in vain.
        try await context.store.write { try $0.progress.recordSent(sent, of: id) }
        try await context.store.writeHeld { try $0.checkpoints.renew(checkpoint, for: id, leaving: old) }
        live.beginAgain(id)
    }

    func recordName(_ remoteID: String, at url: String?) async throws {
        try await source?.requireUnchanged()
        try await context.store.recordRemoteName(remoteID, at: url, for: id)
    }

    func belongsToAnotherUpload(_ remoteID: String) async throws -> Bool {
        try await context.store.read { try $0.remoteObjects.belongsToAnotherUpload(remoteID, than: id) }
    }

    func credential(_ renewal: CredentialRenewal) async throws {
        try await source?.requireUnchanged()
        try await context.store.writeHeld { try $0.attempts.record(renewal, of: id) }
    }

    private func note(acked: Int64) {
        // Only for more than before: a server that reports an upload's position, but accepts no byte, is not up.
        state.withLock { state in
            if acked > state.acked { state.wasAnswered = true }
            if acked > state.highestAcknowledged { state.hasAdvanced = true }
            state.acked = acked
            state.markedSent = acked
        }
        live.acked(id, acked)
    }

    var allowsCleanupRequest: Bool { stops.endsAll }
    func sending(_ offset: Int64) {
        live.sent(id, offset)
        let isDue = state.withLock { state in
            guard offset - state.markedSent >= markingStep || offset == size && offset > state.markedSent else {
                return false
            }
            state.markedSent = offset
            return true
        }
        // Recorded, so that a crash does not lose the count of bytes that were sent without an acknowledgement.
        if isDue, size >= Self.minMarkedSize {
            marking.withLock { last in
                last = Task { [last] in
                    await last?.value
                    await self.mark(sent: offset)
                }
            }
        }
    }

    /// Smaller files are not marked: a crash may lose the count.
    private static let minMarkedSize: Int64 = 1_000_000
    private var markingStep: Int64 { max(size / 8, Self.minMarkedSize) }

    /// Returns when the latest position is on disk, or cannot be written.
    func finishMarking() async { await marking.withLock { $0 }?.value }

    private func mark(sent offset: Int64) async {
        do { try await context.store.write { try $0.progress.recordSent(offset, of: id) } } catch {
            context.log.debug("cannot record the bytes that were sent", ["id": id, "reason": "\(error)"])
        }
    }

    func wasted(_ bytes: Int64) async throws {
        guard bytes > 0 else { return }
        live.withdraw(id, bytes)
        state.withLock { $0.markedSent = max($0.acked, $0.markedSent - bytes) }
        await finishMarking()
        try await context.store.write { try $0.progress.recordWaste(bytes, of: id) }
    }

    func spent(_ bytes: Int64) { if let account, account.countsNotes { account.spend(bytes) } }
    func received(_ bytes: Int64) { if let account, account.countsNotes { account.receive(bytes) } }
    func entered(_ phase: UploadPhase) { live.enter(id, phase) }
    var shouldPause: Bool { stops.shouldPause(id) }
}
