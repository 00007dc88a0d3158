import Core
import Digests
import Linux
import Synchronization
import TestKit

@testable import Destinations

/// A staged file, with the stored state of its upload.
final class StagedUpload: Sendable {
    let content: [UInt8]
    let order: UploadOrder
    private let temporary = TemporaryFolder()
    private let isCounted: Bool

    /// - Parameter isCounted: The digests that the remote will need of its parts are known, as after staging for that
    ///   remote.
    init(
        _ size: Int, id: String = "01JQ", name: FilePath = "front/clip.mp4", mediaType: String = "video/mp4",
        seed: UInt64 = 1, isCounted: Bool = true, removesSource: Bool = false
    ) throws {
        self.isCounted = isCounted
        content = noise(size, seed: seed)
        let path = try temporary.write("staged", content)
        order = UploadOrder(
            id: id, generation: 1,
            file: StagedFile(path: path, size: Int64(size), sha256: Hasher.digest(.sha256, of: content)), name: name,
            mediaType: mediaType, modified: 1_700_000_000_123_456_700, metadata: [:], checkpoint: nil,
            removesSource: removesSource)
    }

    /// Replaces the staged copy.
    func restage(_ content: [UInt8]?) throws {
        try Files.removeIfPresent(order.file.path)
        if let content { try temporary.write("staged", content) }
    }

    /// One attempt, continuing from the state in `recorder`.
    func send(to end: any RemoteFixture, _ recorder: RecordingReporter) async throws -> RemoteObject {
        var order = order
        order.checkpoint = recorder.last
        if isCounted {
            order.file.parts = PartDigests(of: content, end.destination.requestedDigests(forSize: order.file.size))
        }
        recorder.beginAttempt()
        return try await end.destination.upload(order, reporter: recorder)
    }

    /// One attempt whose task is cancelled while it takes the matching note.
    ///
    /// - Returns: Whether it was stopped, and not finished before.
    func sendStopped(
        to end: any RemoteFixture, _ recorder: RecordingReporter,
        when isMeant: @escaping @Sendable (RecordingReporter.Pages) -> Bool
    ) async throws -> Bool {
        recorder.stop(when: isMeant)
        defer { recorder.stop { _ in false } }
        // A separate task, because a cancelled one stays cancelled.
        do {
            _ = try await Task { try await self.send(to: end, recorder) }.value
            return false
        } catch is CancellationError { return true }
    }

    /// One attempt that is stopped when the remote has durably accepted this many bytes.
    func sendStopped(to end: any RemoteFixture, _ recorder: RecordingReporter, accepting bytes: Int) async throws {
        guard try await sendStopped(to: end, recorder, when: { $0.accepted >= bytes }) else {
            throw Unexpected(what: "it was done before it was stopped")
        }
    }

    /// The error of one attempt that must fail.
    func failure(to end: any RemoteFixture, _ recorder: RecordingReporter = RecordingReporter()) async throws
        -> UploadError
    {
        do {
            let object = try await send(to: end, recorder)
            throw Unexpected(what: "it worked: \(object)")
        } catch let error as UploadError { return error }
    }

    struct Unexpected: Error { let what: String }
}

extension PartDigests {
    init(of content: [UInt8], _ requestedDigests: [RequestedDigest]) {
        self.init()
        for requested in requestedDigests {
            let digester = PartDigester(requested)
            content.withUnsafeBytes { digester.update($0) }
            set(requested, digester.finish())
        }
    }
}

/// Records reports like the daemon, and checks that they come in time.
final class RecordingReporter: UploadReporter {
    struct Pages {
        var checkpoints: [Checkpoint] = []
        var accepted: Int64 = 0
        var parts: [Int: AcknowledgedPart] = [:]
        /// The offsets that were reported as sent in this attempt.
        var sent: [Int64] = []
        /// Number of notes in this attempt.
        var taken = 0
        var isToStop: @Sendable (Pages) -> Bool = { _ in false }
        var isToPause: @Sendable (Pages) -> Bool = { _ in false }
        /// Whether bytes of the file were reported as sent before anything was recorded.
        var early = false
        var refusals = 0
        /// Checkpoints to be removed at the remote.
        var left: [Checkpoint] = []
        var companions: [Companion] = []
        var names: [String] = []
        var addresses: [String?] = []
        var credentials: [CredentialRenewal] = []
    }

    private let pages = Mutex(Pages())
    private let refusingCredentials: Bool
    let allowsCleanupRequest: Bool

    struct Dead: Error {}

    /// - Parameters:
    ///   - refusing: The number of notes that are refused, from the first on, as by a daemon that dies.
    ///   - refusingCredentials: No renewal is recorded.
    ///   - allowsCleanupRequest: The attempt is stopped because the daemon ends.
    init(refusing: Int = 0, refusingCredentials: Bool = false, allowsCleanupRequest: Bool = false) {
        self.allowsCleanupRequest = allowsCleanupRequest
        self.refusingCredentials = refusingCredentials
        pages.withLock { $0.refusals = refusing }
    }

    func wasted(_ bytes: Int64) async throws { sentInVain.withLock { $0 += bytes } }
    /// Bytes that were sent again in the same attempt.
    let sentInVain = Mutex<Int64>(0)
    func received(_ bytes: Int64) { readBack.withLock { $0 += bytes } }
    /// Bytes that were read back.
    let readBack = Mutex<Int64>(0)
    var last: Checkpoint? { pages.withLock { $0.checkpoints.last } }
    var accepted: Int64 { pages.withLock { $0.accepted } }
    var sent: [Int64] { pages.withLock { $0.sent } }
    var wasEarly: Bool { pages.withLock { $0.early } }
    /// Numbers of characters in the values of each recorded checkpoint.
    var checkpointSizes: [Int] {
        pages.withLock { $0.checkpoints.map { $0.fields.values.reduce(0) { $0 + $1.utf8.count } } }
    }
    var left: [Checkpoint] { pages.withLock { $0.left } }
    /// The reported names of the remote's object, and the renewed credentials.
    var names: [String] { pages.withLock { $0.names } }
    var addresses: [String?] { pages.withLock { $0.addresses } }
    var credentials: [CredentialRenewal] { pages.withLock { $0.credentials } }
    var everything: String { pages.withLock { "\($0.checkpoints)" } }

    func beginAttempt() {
        pages.withLock {
            $0.sent = []
            $0.taken = 0
        }
    }

    /// Cancels the task that takes a matching note.
    func stop(when isToStop: @escaping @Sendable (Pages) -> Bool) { pages.withLock { $0.isToStop = isToStop } }

    /// Requests a pause after the requests in flight, while the state matches.
    func pause(when isToPause: @escaping @Sendable (Pages) -> Bool) { pages.withLock { $0.isToPause = isToPause } }
    var shouldPause: Bool { pages.withLock { $0.isToPause($0) } }

    func record(_ checkpoint: Checkpoint) async throws {
        try take {
            if $0.refusals > 0 {
                $0.refusals -= 1
                throw Dead()
            }
            $0.checkpoints.append(checkpoint)
        }
        try Task.checkCancellation()
    }

    func accepted(_ offset: Int64, _ checkpoint: Checkpoint) async throws {
        try take {
            $0.checkpoints.append(checkpoint)
            $0.accepted = offset
        }
        try Task.checkCancellation()
    }

    func companions() async throws -> [Companion] { pages.withLock { $0.companions } }

    /// Sets the files that belong to it from now on.
    func accompany(_ companions: [Companion]) { pages.withLock { $0.companions = companions } }

    func parts() async throws -> [AcknowledgedPart] {
        pages.withLock { $0.parts.values.sorted { $0.index < $1.index } }
    }

    func recordParts(_ parts: [AcknowledgedPart], lost: [Int], acked: Int64) async throws {
        try take {
            for index in lost { $0.parts[index] = nil }
            for part in parts { $0.parts[part.index] = part }
            $0.accepted = acked
        }
        try Task.checkCancellation()
    }

    func renewed(_ checkpoint: Checkpoint, leaving old: Checkpoint?) async throws {
        try take {
            $0.checkpoints.append(checkpoint)
            $0.accepted = 0
            $0.parts = [:]
            if let old { $0.left.append(old) }
        }
        try Task.checkCancellation()
    }

    /// The staged copy was damaged: as the store, which gives up the bytes that were sent of it.
    func giveUp(by destination: any Destination) {
        pages.withLock { pages in
            guard let old = pages.checkpoints.last else { return }
            pages.checkpoints.append(destination.lasting(of: old))
            pages.accepted = 0
            pages.parts = [:]
            pages.left.append(old)
        }
    }

    func recordName(_ id: String, at url: String?) async throws {
        try take {
            $0.names.append(id)
            $0.addresses.append(url)
        }
        try Task.checkCancellation()
    }

    /// The remote's names of other uploads.
    let owned = Mutex<Set<String>>([])
    func belongsToAnotherUpload(_ id: String) async throws -> Bool { owned.withLock { $0.contains(id) } }

    func credential(_ renewal: CredentialRenewal) async throws {
        if refusingCredentials { throw Dead() }
        try take { $0.credentials.append(renewal) }
        try Task.checkCancellation()
    }

    func sending(_ offset: Int64) {
        pages.withLock {
            $0.sent.append(offset)
            if $0.checkpoints.isEmpty { $0.early = true }
        }
    }
    func spent(_ bytes: Int64) {}
    // The note itself throws nothing.
    func entered(_ phase: UploadPhase) { try? take { _ in } }

    private func take(_ note: (inout Pages) throws -> Void) throws {
        let isToStop = try pages.withLock { pages in
            try note(&pages)
            pages.taken += 1
            return pages.isToStop(pages)
        }
        if isToStop { withUnsafeCurrentTask { $0?.cancel() } }
    }
}
