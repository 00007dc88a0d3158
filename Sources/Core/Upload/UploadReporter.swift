/// The step of an upload within one attempt. Live, never stored.
package enum UploadPhase: String, Hashable, Sendable, Codable {
    case opening, uploading, finishing
}

/// Callbacks by which a destination reports its progress. The daemon makes it durable.
package protocol UploadReporter: AnyObject, Sendable {
    /// Stores the checkpoint. **Durable when it returns**: call it before the step that depends on it.
    func record(_ checkpoint: Checkpoint) async throws
    /// The server confirmed the bytes below `offset`; stored with the checkpoint. May be lower than before.
    func accepted(_ offset: Int64, _ checkpoint: Checkpoint) async throws
    /// The parts that the server has acknowledged since the upload was begun, in their order.
    func parts() async throws -> [AcknowledgedPart]
    /// The server confirmed these parts, and no longer has the parts with the indices in `lost`. **Durable when it
    /// returns.**
    ///
    /// - Parameter acked: Bytes of all parts that it has now.
    func recordParts(_ parts: [AcknowledgedPart], lost: [Int], acked: Int64) async throws
    /// The files that belong to this one at this destination, those of its own round first. When one of them is over, a
    /// waiting upload is tried again.
    func companions() async throws -> [Companion]
    /// The upload starts again at the remote, and no part of it was accepted. The object that `old` names is removed
    /// later; `nil` when there is nothing to remove. **Durable when it returns**, both at once.
    func renewed(_ checkpoint: Checkpoint, leaving old: Checkpoint?) async throws
    /// Records the remote's name for this upload, where the remote gives one before the upload is complete and it is no
    /// secret. It is shown like ``RemoteObject/id``. Repeating the same name writes nothing. ``renewed(_:leaving:)``
    /// with a checkpoint that does not contain it, and a checkpoint without fields, forget it, so call this after them.
    ///
    /// - Parameter url: The address where a person finds it, like ``RemoteObject/url``, if it is known by now.
    func recordName(_ id: String, at url: String?) async throws
    /// Whether this is the remote's name for another upload to this destination: a found object with that name must not
    /// be taken for this upload's.
    func belongsToAnotherUpload(_ id: String) async throws -> Bool
    /// The right to send this upload was renewed at the remote. Reported to people and hooks; everything that depends
    /// on it is in a checkpoint.
    func credential(_ renewal: CredentialRenewal) async throws
    /// Bytes of the file that were passed to the socket in this attempt's running request, as an offset in the file.
    /// Called often, from any thread; must be cheap.
    func sending(_ offset: Int64)
    /// Bytes of the file that were passed to the socket in this attempt and that the remote does not have; they are sent
    /// again in this attempt. ``sending(_:)`` no longer counts them.
    func wasted(_ bytes: Int64) async throws
    /// Bytes that left for a destination without a socket of ours, for the ledger, which counts the others at their
    /// sockets.
    func spent(_ bytes: Int64)
    /// Bytes that came from such a destination, or will come: its files are read back.
    func received(_ bytes: Int64)
    func entered(_ phase: UploadPhase)
    /// Whether the attempt has to end after the requests in flight. Evaluated before each further part or request with
    /// bytes of the file. Requests in flight are awaited and recorded, and then the attempt ends as a cancelled one
    /// does. When no byte is left to be sent it continues to its end. May become `false` again. Cheap.
    var shouldPause: Bool { get }
    /// The attempt is being stopped, and not because sending is forbidden: a last request may clean up at the remote.
    var allowsCleanupRequest: Bool { get }
}

extension UploadReporter {
    /// Like ``recordName(_:at:)``, for an object without an address.
    package func recordName(_ id: String) async throws { try await recordName(id, at: nil) }
    package var allowsCleanupRequest: Bool { false }
    package func wasted(_ bytes: Int64) async throws {}
    package func received(_ bytes: Int64) {}
    package func belongsToAnotherUpload(_ id: String) async throws -> Bool { false }
}

/// ``UploadReporter`` for files that are sent together; each is named by the id of its order.
package protocol BundleReporter: AnyObject, Sendable {
    /// Stores the checkpoints. **Durable when it returns.**
    ///
    /// - Returns: The ids that may continue; the others were cancelled meanwhile.
    func record(_ checkpoints: [String: Checkpoint]) async throws -> Set<String>
    /// Like ``UploadReporter/sending(_:)``.
    func sending(_ id: String, _ offset: Int64)
    /// Like ``UploadReporter/spent(_:)``.
    func spent(_ id: String, _ bytes: Int64)
    /// Like ``UploadReporter/received(_:)``.
    func received(_ id: String, _ bytes: Int64)
    func entered(_ phase: UploadPhase)
    /// Like ``UploadReporter/shouldPause``: a file that is not being sent yet is left out.
    func shouldPause(_ id: String) -> Bool
}

extension BundleReporter {
    package func received(_ id: String, _ bytes: Int64) {}
}
