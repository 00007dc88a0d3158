internal import Core
internal import Linux

/// Takes a file to a remote that counts bytes: asks where it stands, sends what is missing, and believes only the remote.
///
/// Knows no vendor. Does not wait: what needs time or a person is thrown with its remedy, and the next attempt begins
/// by asking. One request at a time for an upload.
struct OffsetEngine: Sendable {
    let dialect: any OffsetDialect
    let chunks: ChunkSize
    let gone: GonePolicy

    func upload(_ order: UploadOrder, _ notes: any UploadNotes) async throws -> RemoteObject {
        try order.file.checkLook(dialect.failure)
        let run = OffsetRun(self, order, notes)
        notes.entered(.opening)
        var offset = run.isConcluding ? order.file.size : try await run.open()
        while true {
            if !run.isConcluding { notes.entered(.uploading) }
            while offset < order.file.size {
                try Task.checkCancellation()
                if notes.isToPause { throw CancellationError() }
                offset = try await run.send(from: offset)
            }
            notes.entered(.finishing)
            if let verified = try await run.confirm() {
                let outcome = try await run.conclude(verified)
                return RemoteObject(
                    id: outcome.id, url: outcome.url, verifiedBy: outcome.verifiedBy ?? verified,
                    warnings: run.warnings + outcome.warnings)
            }
            // The remote took back what it had acknowledged.
            offset = run.acknowledged
        }
    }
}

/// One attempt. Owned by one task from beginning to end.
///
/// Its fields of the checkpoint, besides the dialect's `url` and `server`:
///
/// | field | means |
/// |---|---|
/// | `offset` | the last offset that the remote named |
/// | `creating` | a creation was begun, and no answer to it is known |
/// | `orphans` | creations without an answer so far: the remote may hold as many unfinished uploads |
/// | `concluding` | the remote has every byte, as known by this; what is left is the dialect's ``OffsetDialect/conclude(_:_:_:)`` |
/// | `final_bytes_sent` | the last byte of the file may have left |
/// | `reuploaded` | sent once more after the outcome of the first time stayed unknown |
/// | `rejections` | times the remote took every byte and kept none |
/// | `regressions` | times the remote went back behind what it had acknowledged |
/// | `sent_from`, `sent_to`, `losses` | the last request that was cut, and how many in a row left nothing behind |
/// | `assumed` | taken for complete without a word of the remote, as configured |
/// | `gone_seen`, `doubts`, `damaged`, `damaged_at` | repeats of an answer that counts only the third time |
final class OffsetRun {
    private let engine: OffsetEngine
    private let order: UploadOrder
    private let notes: any UploadNotes
    private var checkpoint: Checkpoint
    private(set) var warnings: [String] = []

    /// Where the remote stood when it was asked last; `nil` once bytes were sent after that.
    private var located: Int64?
    /// Nothing grew, at this offset, so many times in this attempt.
    private var standstills = 0
    private var strangeAnswers = 0
    private var renewals = 0

    private var dialect: any OffsetDialect { engine.dialect }
    private var size: Int64 { order.file.size }
    var acknowledged: Int64 { checkpoint.number("offset") }

    /// More acknowledged bytes than that are not thrown away for one 404: a proxy may have lost its backend.
    private static let muchProgress: Int64 = 64 << 20
    private static let mostRejections: Int64 = 3
    /// A cut request that carried less says nothing about whether the path keeps partial bodies.
    private static let tellingLoss: Int64 = 1 << 20

    init(_ engine: OffsetEngine, _ order: UploadOrder, _ notes: any UploadNotes) {
        self.engine = engine
        self.order = order
        self.notes = notes
        checkpoint = order.checkpoint ?? Checkpoint()
    }

    /// - Returns: The first byte that the remote does not have.
    func open() async throws -> Int64 {
        guard checkpoint["url"] != nil else { return try await create() }
        // What another server has is of no use here, and what is sent here must not go there.
        guard dialect.isOurs(checkpoint) else { return try await renew("the destination is another server now") }
        return try await locate()
    }

    private func create() async throws -> Int64 {
        if checkpoint["creating"] != nil { checkpoint.count("orphans") }
        checkpoint["creating"] = "1"
        try await notes.record(checkpoint)
        let isKnown: Bool
        do { isKnown = try await dialect.create(order, &checkpoint) } catch let error as UploadError {
            if dialect.remains(of: checkpoint) != nil {
                // It has made something that is of no use.
                try await forget()
            } else if error.leavesNothingBehind {
                checkpoint["creating"] = nil
                try await notes.record(checkpoint)
            }
            throw error
        }
        checkpoint["creating"] = nil
        checkpoint["offset"] = "0"
        // Durable before the first byte: an address that nobody remembers is an upload that is paid for and lost.
        try await notes.record(checkpoint)
        if let name = dialect.name(of: checkpoint) { try await notes.named(name.id, at: name.url) }
        return isKnown ? try await locate() : 0
    }

    /// Asks the remote, and takes its word.
    @discardableResult
    private func locate() async throws -> Int64 {
        switch try await dialect.locate(order, &checkpoint) {
        case .at(let offset):
            let before = acknowledged
            checkpoint["gone_seen"] = nil
            checkpoint["doubts"] = nil
            if offset < before, checkpoint.count("regressions") >= 3 {
                return try await renew("it went back to \(offset) from \(before), for the third time")
            }
            learn(from: offset)
            if offset < size { checkpoint["final_bytes_sent"] = nil }
            checkpoint["offset"] = "\(offset)"
            located = offset
            try await notes.accepted(offset, checkpoint)
            return offset
        case .gone(let isCertain): return try await afterGone(isCertain)
        case .foreign(let reason): return try await renew(reason)
        case .doubtful(let error):
            if checkpoint.count("doubts") > 2 { return try await afterGone(true) }
            try await notes.record(checkpoint)
            throw error
        }
    }

    /// Sends the next piece.
    ///
    /// - Returns: The offset from there on.
    func send(from offset: Int64) async throws -> Int64 {
        let end = end(of: dialect.allowance(for: min(size - offset, engine.chunks.cap)), from: offset)
        if end == size, checkpoint["final_bytes_sent"] == nil {
            // Durable before the bytes leave: whoever finds the upload gone later has to know that it may be whole.
            checkpoint["final_bytes_sent"] = "1"
            try await notes.record(checkpoint)
        }
        located = nil
        let notes = notes
        let sending = await dialect.send(
            offset..<end, order, &checkpoint, { notes.sending(offset + min($0, end - offset)) })
        if end == size, sending.bytesSent < end - offset { checkpoint["final_bytes_sent"] = nil }
        switch sending.answer {
        case .accepted(let new?) where new > offset && new <= end:
            return try await advance(to: new, of: end - offset, isWhole: new == end)
        case .accepted(let new):
            return try await afterStrange(new, offset, end)
        case .look(let error, let again):
            return try await look(from: offset, sentTo: offset + sending.bytesSent, error, again)
        case .tooMuch(let error):
            if !engine.chunks.refused(end - offset) { throw error }
            return try await locate()
        case .damaged(let error): return try await afterDamage(offset, error)
        case .failed(let error):
            if error is CancellationError { throw error }
            checkpoint["sent_from"] = "\(offset)"
            checkpoint["sent_to"] = "\(offset + sending.bytesSent)"
            try await notes.record(checkpoint)
            throw error
        }
    }

    /// Where a request ends that may carry `count` bytes: at the file's end, or where the remote wants pieces to end.
    private func end(of count: Int64, from offset: Int64) -> Int64 {
        let (end, unit) = (offset + count, dialect.alignment)
        if end == size || unit <= 1 { return end }
        let aligned = end / unit * unit
        return aligned > offset ? aligned : min(size, (offset / unit + 1) * unit)
    }

    private func advance(to offset: Int64, of asked: Int64, isWhole: Bool) async throws -> Int64 {
        if isWhole { engine.chunks.accepted(asked) }
        standstills = 0
        strangeAnswers = 0
        for field in ["losses", "sent_from", "sent_to", "damaged", "damaged_at"] { checkpoint[field] = nil }
        checkpoint["offset"] = "\(offset)"
        try await notes.accepted(offset, checkpoint)
        return offset
    }

    /// A success without growth, or with an offset that cannot be: the remote's word is asked again, three times.
    private func afterStrange(_ new: Int64?, _ offset: Int64, _ end: Int64) async throws -> Int64 {
        strangeAnswers += 1
        let now = try await locate()
        if now > offset, new == nil {
            strangeAnswers = 0  // it does not name offsets, but it grows
        } else if strangeAnswers >= 3 {
            let said = new.map { "\($0)" } ?? "none"
            throw UploadError(
                dialect.failure(
                    .protocol, "no_progress",
                    "bytes \(offset) to \(end) were acknowledged with the offset \(said), three times in a row",
                    retryable: true), remedy: .again(after: nil))
        }
        return now
    }

    /// An answer that only the remote's own offset explains.
    private func look(from offset: Int64, sentTo: Int64, _ error: UploadError, _ again: Int) async throws -> Int64 {
        let earlier = renewals
        let now = try await locate()
        if renewals != earlier { return now }
        if now > sentTo {
            // More than ever left here: somebody else writes to this upload.
            return try await renew("it holds \(now) bytes and only \(sentTo) were sent: there is a second writer")
        }
        if now != offset {
            standstills = 0
            return now
        }
        standstills += 1
        if standstills > again { throw error }
        return now
    }

    private func afterDamage(_ offset: Int64, _ error: UploadError) async throws -> Int64 {
        if checkpoint["damaged_at"] != "\(offset)" { checkpoint["damaged"] = nil }
        checkpoint["damaged_at"] = "\(offset)"
        if checkpoint.count("damaged") >= 3 { throw error }
        try await notes.record(checkpoint)
        return try await locate()
    }

    /// An earlier attempt got so far.
    var isConcluding: Bool { checkpoint["concluding"] != nil && dialect.isOurs(checkpoint) }

    /// - Parameter verified: How it is known that the remote has every byte.
    func conclude(_ verified: String) async throws -> Outcome {
        guard dialect.concludes else { return Outcome() }
        if checkpoint["concluding"] == nil {
            checkpoint["concluding"] = verified
            try await notes.record(checkpoint)
        }
        switch try await dialect.conclude(order, &checkpoint, notes) {
        case .done(let outcome): return outcome
        case .rejected(var error):
            // Each time costs the whole file once more.
            if checkpoint.count("rejections") >= Self.mostRejections, case .again = error.remedy {
                error.remedy = .giveUp
                error.failure.retryable = false
                error.failure.message += ", for the third time"
            }
            try await forget()
            throw error
        }
    }

    /// Whether the remote holds everything.
    ///
    /// - Returns: How that is known; `nil` when bytes are missing after all.
    func confirm() async throws -> String? {
        if isConcluding, let verified = checkpoint["concluding"] { return completed(verified) }
        if located == size { return completed("offset") }
        switch try await dialect.locate(order, &checkpoint) {
        case .at(size): return completed("offset")
        case .at(let offset):
            if checkpoint.count("regressions") >= 3 {
                try await renew("it went back to \(offset) from \(size), for the third time")
                return nil
            }
            checkpoint["final_bytes_sent"] = nil
            checkpoint["offset"] = "\(offset)"
            try await notes.accepted(offset, checkpoint)
            return nil
        // Some remotes clear an upload away once it is whole; the acknowledgement of the last byte was theirs.
        case .gone, .doubtful: return completed(checkpoint["assumed"] == nil ? "acknowledgement" : "assumption")
        case .foreign(let reason):
            try await renew(reason)
            return nil
        }
    }

    private func completed(_ how: String) -> String {
        let orphans = checkpoint.number("orphans")
        if orphans > 0 {
            warnings.append("\(orphans) creation(s) got no answer: the remote may hold as many unfinished uploads")
        }
        if checkpoint["reuploaded"] != nil {
            warnings.append("sent twice: whether the first time had worked could not be found out")
        }
        return how
    }

    private func afterGone(_ isCertain: Bool) async throws -> Int64 {
        // Every byte was acknowledged, and only the confirmation is missing.
        if acknowledged == size, size > 0 { return size }
        if checkpoint["final_bytes_sent"] != nil {
            let unknown = dialect.failure(
                .protocol, "outcome_unknown",
                "the upload is gone after its last byte was sent: it may be finished or lost", retryable: true)
            switch engine.gone {
            case .assumeComplete:
                warnings.append("taken for complete: the upload was gone after its last byte was sent")
                checkpoint["assumed"] = "1"
                checkpoint["offset"] = "\(size)"
                try await notes.accepted(size, checkpoint)
                return size
            case .hold: throw UploadError(unknown, remedy: .giveUp)
            case .reupload:
                if checkpoint["reuploaded"] != nil { throw UploadError(unknown, remedy: .giveUp) }
                checkpoint["reuploaded"] = "1"
                return try await renew("it is gone after its last byte was sent")
            }
        }
        if acknowledged > Self.muchProgress, checkpoint.count("gone_seen") < 3 {
            try await notes.record(checkpoint)
            throw UploadError(
                dialect.failure(
                    .transient, "upload_missing", "the upload with \(acknowledged) bytes is not found; asking again",
                    retryable: true), remedy: .again(after: .seconds(15)))
        }
        if !isCertain, try await !dialect.isThere() {
            throw UploadError(
                dialect.failure(
                    .transient, "not_the_remote", "a 404 that does not come from the upload server itself",
                    retryable: true), remedy: .holdDestination(after: nil))
        }
        return try await renew("it is gone")
    }

    /// Forgets the upload and begins a new one at 0.
    @discardableResult
    private func renew(_ reason: String) async throws -> Int64 {
        try await forget()
        renewals += 1
        if renewals > 1 {
            throw UploadError(
                dialect.failure(
                    .protocol, "upload_lost", "the upload was lost twice in a row: \(reason)", retryable: true),
                remedy: .again(after: .seconds(60)))
        }
        return try await create()
    }

    private func forget() async throws {
        var fresh = Checkpoint()
        for field in ["orphans", "reuploaded", "rejections"] { fresh[field] = checkpoint[field] }
        let remains = dialect.isOurs(checkpoint) ? dialect.remains(of: checkpoint) : nil
        checkpoint = fresh
        located = nil
        try await notes.renewed(checkpoint, leaving: remains)
    }

    /// Two cut requests in a row that left nothing behind: shorter ones from now on.
    private func learn(from offset: Int64) {
        guard let from = checkpoint["sent_from"].flatMap({ Int64($0) }) else { return }
        let lost = checkpoint.number("sent_to").subtractingReportingOverflow(from).partialValue
        checkpoint["sent_from"] = nil
        checkpoint["sent_to"] = nil
        if offset > from {
            checkpoint["losses"] = nil
        } else if lost >= Self.tellingLoss, checkpoint.count("losses") >= 2 {
            checkpoint["losses"] = nil
            engine.chunks.keptNothing()
        }
    }
}

extension UploadError {
    /// A creation that failed like this has made nothing at the remote: it was refused, or nobody heard it.
    var leavesNothingBehind: Bool {
        // 507 (RFC 4918, section 11.5) says that it could not be stored, not that something went wrong on the way.
        if let status = failure.http { return status < 500 || status == 507 }
        return ["unreachable", "tls", "secret_unreadable", "request_impossible"].contains(failure.code)
    }
}
