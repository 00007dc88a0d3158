internal import Core

/// The policy for an upload whose last request was refused, although the remote has every byte.
enum FinalErrorPolicy: String, Sendable, CaseIterable {
    case fail, accept

    static func key<Owner: DeclaredSettings>(_ path: DestinationKey<Owner>.Property<Self>) -> DestinationKey<Owner> {
        DestinationKey(
            "final_error", path,
            "What to do when the server has every byte and answers the last request with an error: `fail` (default) or "
                + "`accept`.")
    }

    /// Warnings of `check` where a folder removes its sources.
    var releaseDoubts: [String] {
        guard self == .accept else { return [] }
        return [
            "`final_error: accept` regards files as complete that the server refused at their end; set `final_error: fail`"
        ]
    }
}

/// The unsuccessful answer to the request with the last byte of a file. Where a remote can only say how many bytes it
/// has, that answer decides: a server that checks the whole file at its end keeps the bytes of a file that it refuses.
enum FinalAnswer {
    private static let fields = [
        EngineFields.all.refusedStatus.name, EngineFields.all.refusedMessage.name, EngineFields.all.refusedIn.name,
        EngineFields.all.unclearEnd.name, EngineFields.all.isFinalAnswer.name,
    ]

    /// Statuses of a proxy, a gateway, a busy server or a timeout. They say nothing about the file.
    private static let withoutVerdict: Set<Int> = [407, 408, 425, 429, 502, 503, 504]

    /// Whether the remote may answer a query right after it, or after its intermediary, has answered with this status.
    static func allowsQuery(_ status: Int) -> Bool {
        (400...599).contains(status) && !withoutVerdict.contains(status)
    }

    /// Whether it may be the remote's verdict on the file. An answer that may be an intermediary's is none, even if the
    /// remote has every byte: a gateway may have waited in vain for an answer to a request that it had forwarded.
    static func isRefusal(_ error: UploadError) -> Bool {
        guard let status = error.failure.http, allowsQuery(status) else { return false }
        return error.remedy == .failUpload || !error.isOfPath
    }

    /// Where the remote cannot be asked, 507 says nothing about the file either: the server has no space for it now
    /// (RFC 4918, section 11.5).
    static func isOfPathOrSpace(_ error: UploadError) -> Bool {
        error.remedy != .failUpload && (error.isOfPath || error.failure.http == 507)
    }

    /// Statuses with which servers answer bytes that they have already. As an answer to such last bytes they say
    /// nothing about the file.
    static func mayAnswerRepeatedBytes(_ status: Int) -> Bool {
        [400, 401, 403, 404, 409, 410, 412, 416, 423].contains(status)
    }

    /// Records what `error` says about the file.
    ///
    /// - Parameters:
    ///   - isOfState: The answer is about where the upload stands (another offset, a lock), and not about the file.
    ///   - saysNo: Its body refuses the file, regardless of its status.
    /// - Returns: Whether there was an answer. The caller then makes it durable before any other request.
    static func note(
        _ error: UploadError, isOfState: Bool, refusesInBody: Bool = false, _ order: UploadOrder,
        in checkpoint: inout some EngineCheckpoint
    ) -> Bool {
        guard let status = error.failure.http else { return false }
        // A refusal stands until bytes are accepted again: answers meanwhile are about where the upload stands.
        if checkpoint.has(\.refusedStatus) { return true }
        guard refusesInBody || !isOfState && isRefusal(error) else {
            checkpoint.unclearEnd = error.failure.message
            return true
        }
        checkpoint.unclearEnd = nil
        checkpoint.refusedStatus = status
        checkpoint.refusedMessage = error.failure.message
        checkpoint.refusedIn = order.generation
        return true
    }

    /// Records a refusal that the remote itself marks as its final answer to the whole upload. It stands regardless of
    /// its status, and of every other answer.
    static func noteFinal(_ error: UploadError, _ order: UploadOrder, in checkpoint: inout some EngineCheckpoint) {
        clear(&checkpoint)
        checkpoint.refusedStatus = error.failure.http ?? 0
        checkpoint.refusedMessage = error.failure.message
        checkpoint.refusedIn = order.generation
        checkpoint.isFinalAnswer = true
    }

    /// Whether an answer to the last request ends the upload if the remote's content cannot be queried.
    ///
    /// - Parameter isKnownPlace: The same address has accepted bytes of this file. Otherwise the address may be wrong,
    ///   and a wrong address refuses no file.
    static func isFinal(_ error: UploadError, isKnownPlace: Bool) -> Bool {
        guard let status = error.failure.http, isRefusal(error) || error.remedy == .failUpload, !isOfPathOrSpace(error)
        else {
            return false
        }
        return switch error.remedy {
        case .failUpload, .refused, .holdDestination, .outOfSpace: true
        // 421: the request reached the wrong server.
        case .retry: status != 421
        case .misconfigured: isKnownPlace
        case .rateLimit, .authenticate, .pending, .lackQuota, .restage: false
        }
    }

    /// Whether an answer to the request that completes a file shows that the remote has not completed it.
    static func provesIncomplete(_ error: UploadError) -> Bool {
        error.leavesNothingBehind && !(error.failure.http.map(IntermediaryStatus.mayBeForwarded.contains) ?? false)
    }

    static func clear(_ checkpoint: inout some EngineCheckpoint) { checkpoint.stored.remove(fields) }

    /// The recorded refusal.
    ///
    /// - Parameter failure: Makes a failure of the destination, with time and class.
    static func refusal(in checkpoint: some EngineCheckpoint, _ failure: StagedFile.MakeFailure) -> UploadError? {
        guard let status = checkpoint.refusedStatus else { return nil }
        var failure = failure(.permanent, .refusedAtEnd, "", false)
        failure.message =
            (checkpoint.refusedMessage ?? "\(status)")
            + (checkpoint.isFinalAnswer
                ? "; this is the server's final answer: it refused the file"
                : "; this answered the last bytes: the server refused the file")
            + doubts(checkpoint).map { "; " + $0 }.joined()
        failure.http = status
        return UploadError(failure, remedy: .failUpload)
    }

    /// The remote counts every byte, but its answer to the last byte was not received.
    static let unanswered = "offset_unanswered"

    /// The warning for such a file.
    static let unansweredWarning = "no answer to the last bytes arrived; asked again, the server has every byte"

    /// The warning for a file that was taken for complete without confirmation from the remote.
    static let assumption = "regarded as complete: the upload was gone after its last byte was acknowledged"

    /// Warnings for a file that is complete nevertheless.
    ///
    /// - Parameter method: As in ``RemoteObject/verifiedBy``, where the remote only counts.
    static func warnings(_ checkpoint: some EngineCheckpoint, verifiedBy method: String? = nil) -> [String] {
        var words: [String] = []
        if checkpoint.isAssumedComplete {
            words.append(assumption)
        }
        if method == unanswered, checkpoint.unclearEnd == nil, !checkpoint.has(\.refusedStatus) {
            words.append(unansweredWarning)
        }
        if let unclear = checkpoint.unclearEnd {
            let status = checkpoint.isAssumedComplete ? "" : "; asked again, the server has every byte"
            words.append("the last request was not accepted (\(unclear))" + status)
        }
        if checkpoint.has(\.refusedStatus), let refused = checkpoint.refusedMessage {
            words.append("the server refused the file at its end (\(refused)), which `final_error: accept` accepts")
        }
        return words
    }

    /// Records an upload that is given up and not removed, since another writer sends to it.
    static func recordLeft(_ name: String?, in checkpoint: inout some EngineCheckpoint) {
        let words = name.map { FilePath($0).display } ?? "an upload"
        checkpoint.leftToOthers = [checkpoint.leftToOthers, words].compactMap { $0 }.joined(separator: ", ")
    }

    /// Objects that may be at the remote in addition, made by requests whose end was never seen.
    static func doubts(_ checkpoint: some EngineCheckpoint) -> [String] {
        var words: [String] = []
        let orphans = checkpoint.orphans ?? 0
        if orphans > 0 {
            words.append("\(orphans) creation(s) got no answer: the remote may hold as many unfinished uploads")
        }
        if checkpoint.wasReuploaded {
            words.append("sent twice: it is not known whether the first time worked")
        }
        let lost = checkpoint.wholeLosses ?? 0
        if lost > 0 {
            words.append(
                "started again \(lost) time(s) after every byte was sent, because the server reported each time "
                    + "that it lacks some: it may hold the file more than once")
        }
        if let status = checkpoint.refusedBefore {
            words.append(
                "sent again after the server had refused it at its end (\(status)): it may hold the file already")
        }
        if checkpoint.wasHeldBefore {
            words.append(
                "the remote had the last part before it was sent, perhaps by another upload of the same file: it may hold the file twice"
            )
        }
        if checkpoint.mayBeDoubled {
            words.append(
                "the request to complete it was sent again after it may have arrived: the remote may hold the file twice"
            )
        }
        if let left = checkpoint.leftToOthers {
            words.append(
                "another writer had sent bytes to the unfinished upload of this file: it was left there (\(left))")
        }
        if let old = checkpoint.nameNotFound {
            words.append(
                "it was sent again because \(FilePath(old).display) was not found there: it may be there twice")
        }
        return words
    }

    /// Whether a person has the upload tried again after it was refused, or given up on. It then starts again.
    static func isFromEarlierGeneration(_ checkpoint: some EngineCheckpoint, _ order: UploadOrder) -> Bool {
        let generation = checkpoint.has(\.refusedIn) ? checkpoint.refusedIn : checkpoint.givenUpIn
        return generation.map { $0 < order.generation } ?? false
    }
}
