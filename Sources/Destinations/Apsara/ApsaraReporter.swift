internal import Core
internal import Synchronization

/// Passes on the engine's notes of one attempt. To every checkpoint it adds the ticket that has replaced its medium
/// meanwhile, so that a restart uses that ticket and requests no other.
final class ApsaraReporter: UploadReporter {
    private struct State {
        var last: Checkpoint
        /// The fields of the ticket that has replaced the medium.
        var moved = Checkpoint()
    }

    private let reporter: any UploadReporter
    private let state: Mutex<State>

    init(_ reporter: any UploadReporter, _ checkpoint: Checkpoint) {
        self.reporter = reporter
        state = Mutex(State(last: checkpoint))
    }

    /// Durable when it returns.
    func moved(to ticket: ApsaraUploadTicket, until: WallTime) async throws {
        let checkpoint = state.withLock { state in
            state.moved = ticket.fieldsOfReplacement(until: until)
            return Self.with(state.moved, &state.last)
        }
        try await reporter.record(checkpoint)
    }

    /// Waits for a note that was being written when the ticket came.
    func flush() async throws {
        let checkpoint = state.withLock { $0.moved.fields.isEmpty ? nil : $0.last }
        if let checkpoint { try await reporter.record(checkpoint) }
    }

    private static func with(_ moved: Checkpoint, _ checkpoint: inout Checkpoint) -> Checkpoint {
        checkpoint.merge(moved)
        return checkpoint
    }

    private func kept(_ checkpoint: Checkpoint) -> Checkpoint {
        state.withLock { state in
            state.last = checkpoint
            return Self.with(state.moved, &state.last)
        }
    }

    func record(_ checkpoint: Checkpoint) async throws { try await reporter.record(kept(checkpoint)) }
    func accepted(_ offset: Int64, _ checkpoint: Checkpoint) async throws {
        try await reporter.accepted(offset, kept(checkpoint))
    }
    func renewed(_ checkpoint: Checkpoint, leaving old: Checkpoint?) async throws {
        try await reporter.renewed(kept(checkpoint), leaving: old)
    }
    func parts() async throws -> [AcknowledgedPart] { try await reporter.parts() }
    func recordParts(_ parts: [AcknowledgedPart], lost: [Int], acked: Int64) async throws {
        try await reporter.recordParts(parts, lost: lost, acked: acked)
    }
    func wasted(_ bytes: Int64) async throws { try await reporter.wasted(bytes) }
    func companions() async throws -> [Companion] { try await reporter.companions() }
    func recordName(_ id: String, at url: String?) async throws { try await reporter.recordName(id, at: url) }
    func belongsToAnotherUpload(_ id: String) async throws -> Bool { try await reporter.belongsToAnotherUpload(id) }
    func credential(_ renewal: CredentialRenewal) async throws { try await reporter.credential(renewal) }
    func sending(_ offset: Int64) { reporter.sending(offset) }
    func spent(_ bytes: Int64) { reporter.spent(bytes) }
    func entered(_ phase: UploadPhase) { reporter.entered(phase) }
    var shouldPause: Bool { reporter.shouldPause }
    var allowsCleanupRequest: Bool { reporter.allowsCleanupRequest }
}

// A ticket that was given in place of the medium that a checkpoint names. The next attempt uses it.
extension ApsaraUploadTicket {
    private static let movedTo = "moved_"

    /// The fields that keep it beside those of the medium that it replaces.
    func fieldsOfReplacement(until: WallTime) -> Checkpoint {
        var own = ApsaraCheckpoint()
        note(in: &own, until: until)
        return own.stored.adding(prefix: Self.movedTo)
    }

    /// Returns the ticket with the time that is left of it; `nil` where none was given, or its right has ended.
    static func moved(_ checkpoint: ApsaraCheckpoint, now: WallTime) -> (ticket: ApsaraUploadTicket, left: Duration)? {
        let own = ApsaraCheckpoint(checkpoint.stored.removing(prefix: movedTo))
        guard let medium = ApsaraMedium(own), let (grant, left) = ApsaraGrant.read(own, now: now) else { return nil }
        return (ApsaraUploadTicket(medium: medium, grant: grant), left)
    }

    /// Forgets the ticket whose right ended before it was used.
    ///
    /// - Returns: Whether there was one: its medium stays empty.
    static func dropMoved(_ checkpoint: inout ApsaraCheckpoint) -> Bool {
        let moved = checkpoint.stored.removing(prefix: movedTo).adding(prefix: movedTo)
        checkpoint.stored.remove(Array(moved.fields.keys))
        return !moved.fields.isEmpty
    }
}
