internal import Core
internal import Linux
internal import Synchronization

/// The recorded progress of all sections of one file together. Their checkpoints are stored as one, so that all of them
/// are known after a crash.
final class SectionProgress: Sendable {
    private struct State {
        var checkpoint: OffsetCheckpoint
        var uploads: [OffsetCheckpoint]
        /// The acknowledged bytes of each section.
        var acknowledged: [Int64]
        var hasFailed = false
        /// Sections of which an earlier attempt may have sent bytes, and whose positions are not known yet. Until they
        /// are, the sum says nothing about the bytes that arrived: it is not reported.
        var unlocated: Set<Int>
        /// Whether the sum is recorded. Bytes that are sent before that would make those of the earlier attempt look lost.
        var isReported: Bool

        var merged: OffsetCheckpoint {
            var merged = checkpoint
            merged.concatenation.partialUploads = uploads
            // The file cannot be joined without the first one that is dropped.
            merged.expires = uploads.compactMap { $0.expires }.min()
            return merged
        }
        var total: Int64 { acknowledged.reduce(0, +) }
    }

    private let state: Mutex<State>
    let reporter: any UploadReporter
    private let flight = PartsInFlight()
    /// Records in order: one that began earlier would replace a newer one.
    private let records = TaskQueue()

    init(_ checkpoint: OffsetCheckpoint, _ reporter: any UploadReporter) {
        let uploads = checkpoint.concatenation.partialUploads
        let begun = Set(uploads.indices.filter { uploads[$0].url != nil })
        state = Mutex(
            State(
                checkpoint: checkpoint, uploads: uploads, acknowledged: uploads.map { $0.offset ?? 0 },
                unlocated: begun, isReported: begun.isEmpty))
        self.reporter = reporter
    }

    /// With the checkpoints of all sections.
    var checkpoint: OffsetCheckpoint { state.withLock { $0.merged } }
    func upload(_ index: Int) -> OffsetCheckpoint { state.withLock { $0.uploads[index] } }

    /// Whether no further request with bytes begins: a section has failed, or a person pauses the upload.
    var shouldPause: Bool { state.withLock { $0.hasFailed } || reporter.shouldPause }
    /// The server has refused to create a partial upload, so that none was made.
    func refusedCreation(of index: Int) { state.withLock { $0.uploads[index].isCreating = false } }
    func fail() { state.withLock { $0.hasFailed = true } }

    /// Durable when it returns.
    func record(_ upload: Checkpoint, of index: Int) async throws {
        state.withLock { $0.uploads[index] = OffsetCheckpoint(upload) }
        try await records.run { [self] in try await reporter.record(checkpoint.stored) }
    }

    /// Records that the server has the bytes of a section below `offset`, counted from its beginning. Durable when it
    /// returns.
    func accepted(_ offset: Int64, _ upload: Checkpoint, of index: Int) async throws {
        state.withLock { state in
            state.uploads[index] = OffsetCheckpoint(upload)
            state.acknowledged[index] = offset
            state.unlocated.remove(index)
            flight.acknowledge(state.total, ended: [index])
        }
        try await records.run { [self] in
            let (checkpoint, total, isKnown) = state.withLock { ($0.merged, $0.total, $0.unlocated.isEmpty) }
            if isKnown {
                try await reporter.accepted(total, checkpoint.stored)
                state.withLock { $0.isReported = true }
            } else {
                try await reporter.record(checkpoint.stored)
            }
        }
    }

    /// - Parameter offset: The end of the bytes of a section that the socket has accepted.
    func sending(_ offset: Int64, of index: Int) {
        let (acknowledged, isReported) = state.withLock { ($0.acknowledged[index], $0.isReported) }
        let sent = flight.set(index, max(0, offset - acknowledged))
        if isReported { reporter.sending(sent) }
    }
}

/// Reports the progress of one section as a part of the file's.
final class SectionReporter: UploadReporter {
    private let progress: SectionProgress
    private let index: Int

    init(_ progress: SectionProgress, _ index: Int) { (self.progress, self.index) = (progress, index) }

    func record(_ checkpoint: Checkpoint) async throws { try await progress.record(checkpoint, of: index) }
    func accepted(_ offset: Int64, _ checkpoint: Checkpoint) async throws {
        try await progress.accepted(offset, checkpoint, of: index)
    }
    func renewed(_ checkpoint: Checkpoint, leaving old: Checkpoint?) async throws {
        try await progress.accepted(0, checkpoint, of: index)
    }
    func sending(_ offset: Int64) { progress.sending(offset, of: index) }
    var shouldPause: Bool { progress.shouldPause }
    var allowsCleanupRequest: Bool { progress.reporter.allowsCleanupRequest }
    func spent(_ bytes: Int64) { progress.reporter.spent(bytes) }

    // A partial upload is an object without a name, and the phases are those of the whole file.
    func parts() async throws -> [AcknowledgedPart] { [] }
    func recordParts(_ parts: [AcknowledgedPart], lost: [Int], acked: Int64) async throws {}
    func companions() async throws -> [Companion] { [] }
    func recordName(_ id: String, at url: String?) async throws {}
    func credential(_ renewal: CredentialRenewal) async throws { try await progress.reporter.credential(renewal) }
    func entered(_ phase: UploadPhase) {}
}
