internal import Core

/// The recorded progress of one upload to a remote that counts bytes. Owned by one ``OffsetUpload``.
///
/// Its fields of the checkpoint, in addition to the dialect's `url` and `server` and those of ``SentBounds``,
/// ``FinalAnswer``, ``Contradiction`` and ``ChunkSize``:
///
/// | field | means |
/// |---|---|
/// | `offset` | the last offset that the remote named |
/// | `taken` | the largest offset that a success named, regardless of later answers |
/// | `creating` | a creation was begun, and no answer to it is known |
/// | `orphans` | creations without an answer so far: the remote may hold as many unfinished uploads |
/// | `answered` | the request with the last byte was answered with success, or the remote had the file before |
/// | `concluding` | how it is known that the remote has every byte; only the dialect's ``OffsetDialect/conclude(_:_:_:)`` is left |
/// | `reuploaded` | sent once more after the outcome of the first time remained unknown |
/// | `ended_in` | the generation in which it was given up on |
/// | `refused_url` | address of the upload that the remote refused at its end, before a person had it tried again |
/// | `refused_before` | the status of that refusal |
/// | `whole_lost` | times it was started again although every byte had left, because the remote said several times that it lacks some |
/// | `restarts` | times it was started again from its first byte because the remote had lost it |
/// | `rejections` | times the remote accepted every byte and kept none |
/// | `regressions` | times the remote went back behind what it had acknowledged |
/// | `assumed` | taken for complete without confirmation from the remote, as configured |
/// | `of_another` | ``Checkpoint/isOfAnother`` |
/// | `left_to_others` | the remote's names of uploads that were given up because of another writer |
/// | `missing_in` | the generation in which the remote did not find bytes that it had accepted |
/// | `perhaps_twice` | the remote's name of the earlier upload, for a file that was sent again after that |
/// | `gone_seen`, `foreign_seen`, `doubts`, `damaged`, `damaged_at` | repeats of an answer that counts only the third time |
final class OffsetProgress {
    private let order: UploadOrder
    private let reporter: any UploadReporter
    var checkpoint: Checkpoint
    var bounds: SentBounds

    init(_ order: UploadOrder, _ reporter: any UploadReporter) {
        self.order = order
        self.reporter = reporter
        checkpoint = order.checkpoint ?? Checkpoint()
        bounds = SentBounds(checkpoint, size: order.file.size)
    }

    var acknowledged: Int64 { checkpoint.number("offset") }

    /// Durable when it returns.
    func record() async throws {
        bounds.store(in: &checkpoint)
        try await reporter.record(checkpoint)
    }

    /// Records that the remote stands at `offset`. Durable when it returns.
    func accepted(_ offset: Int64) async throws {
        checkpoint["offset"] = "\(offset)"
        bounds.store(in: &checkpoint)
        try await reporter.accepted(offset, checkpoint)
    }

    /// Whether a success has named the end of the file.
    var wasTakenWhole: Bool { order.file.size > 0 && checkpoint.number("taken") == order.file.size }

    /// Records that the remote says that bytes are missing. Its answer to the last bytes stays, since the new answer
    /// may be an old one, until the remote accepts bytes again.
    func lacks() {
        bounds.lacks()
        checkpoint["answered"] = nil
    }

    /// Records the remote's answer to the last byte.
    ///
    /// - Returns: Whether there is something to record before any other request.
    func note(end error: UploadError, isOfState: Bool) -> Bool {
        FinalAnswer.note(error, isOfState: isOfState, order, in: &checkpoint)
    }

    /// Fields that stay when the upload starts again.
    private static let lasting = [
        "orphans", "reuploaded", "rejections", "restarts", "refused_before", "whole_lost", FinalAnswer.leftToOthers,
        Checkpoint.perhapsTwice,
    ]
    static let missingIn = "missing_in"

    /// Forgets the upload. Durable when it returns.
    ///
    /// - Parameters:
    ///   - remains: What has to be removed at the remote.
    ///   - name: The remote's name for the forgotten upload, if that is no secret.
    func renew(leaving remains: Checkpoint?, name: String?) async throws {
        var fresh = Checkpoint()
        for field in Self.lasting { fresh[field] = checkpoint[field] }
        if checkpoint[Checkpoint.isOfAnother] != nil { FinalAnswer.leave(name, in: &fresh) }
        // Another generation means that a person wants it sent again.
        if checkpoint[Self.missingIn] != nil {
            fresh[Checkpoint.perhapsTwice] = name
        } else if FinalAnswer.isOfBefore(checkpoint, order) {
            // The remote may have the upload although it was given up.
            fresh["reuploaded"] = checkpoint["ended_in"].map { _ in "1" }
            if let status = checkpoint["refused_status"] {
                fresh["refused_url"] = checkpoint["url"]
                fresh["refused_before"] = status
            }
        } else {
            fresh.count("restarts")
        }
        checkpoint = fresh
        bounds = SentBounds(fresh, size: order.file.size)
        try await reporter.renewed(checkpoint, leaving: remains)
    }
}
