internal import Core
internal import Transport

// The last step when the storage has every byte: queries whether VOD can use them.

extension Apsara {
    /// The medium of an upload that only waits for VOD's verdict.
    static func transferred(_ checkpoint: PartsCheckpoint) -> ApsaraMedium? {
        checkpoint.apsara.transferredBy == nil ? nil : ApsaraMedium(checkpoint.apsara)
    }

    /// Ends an upload whose bytes the storage has.
    ///
    /// - Parameter made: The result of the upload if no further query is needed.
    func ended(
        _ medium: ApsaraMedium, _ order: UploadOrder, _ old: PartsCheckpoint, _ made: RemoteObject,
        _ reporter: any UploadReporter, _ context: RequestContext
    ) async throws -> RemoteObject {
        let wanted = settings.verify ?? (order.removesSource ? .transcoded : .transfer)
        guard wanted == .transcoded, authority.reportsCompletion else { return made }
        var checkpoint = PartsCheckpoint(old.stored.keeping(ApsaraCheckpoint.lasting))
        medium.note(in: &checkpoint.apsara)
        checkpoint.apsara.transferredBy = made.verifiedBy
        checkpoint.apsara.warnings = made.warnings
        // Recorded before the request: from now on only the answer is missing.
        try await reporter.accepted(order.file.size, checkpoint.stored)
        switch try await verified(medium, order, checkpoint, reporter, context) {
        case .done(let object): return object
        // Only a person can have the upload started again, before anything is sent.
        case .again: throw client.moved()
        }
    }

    enum Verification {
        case done(RemoteObject)
        /// A person has the file sent again, as another medium. The checkpoint is recorded already.
        case again(PartsCheckpoint)
    }

    /// A medium counts as deleted after this many requests in a row do not find it: it may not be visible everywhere
    /// yet.
    private static let maxMissingAnswers: Int64 = 5

    /// Queries VOD's state of a medium, with one request.
    func verified(
        _ medium: ApsaraMedium, _ order: UploadOrder, _ old: PartsCheckpoint, _ reporter: any UploadReporter,
        _ context: RequestContext
    ) async throws -> Verification {
        reporter.entered(.finishing)
        var checkpoint = old
        if let id = medium.id { try await reporter.recordName(id) }
        let state: ApsaraState?
        var noWord: String?
        do { state = try await authority.state(of: medium, size: order.file.size, context) } catch let error
            as UploadError
            where error.lacksAnswer
        {
            (state, noWord) = (nil, error.failure.message)
        }
        let now = client.clocks.wall().milliseconds
        let since = checkpoint.apsara.waitsSince ?? now
        let waited = max(Duration.zero, .milliseconds(now.subtractingReportingOverflow(since).partialValue))
        let status: String
        switch state {
        case .ready:
            var warnings = checkpoint.apsara.warnings
            if waited > settings.verifyTimeout {
                warnings.append("VOD processed it for \(waited.inWords), longer than `verify_timeout`")
            }
            return .done(object(medium, "transcoded", warnings))
        case .failed(let words):
            _ = try await begunAgain(medium, checkpoint, \.failedMedia, reporter)
            throw refusal(
                .transcodingFailed,
                "VOD has every byte, but cannot make a medium of them: it says \(FilePath(words).display)")
        case .gone where checkpoint.apsara.increment(\.missingAnswers) < Self.maxMissingAnswers:
            status = "it is not found; asking again"
        case .gone:
            if let seen = checkpoint.apsara.missingIn, seen < order.generation {
                return .again(try await begunAgain(medium, checkpoint, \.sentTwiceMedia, reporter))
            }
            checkpoint.apsara.missingIn = order.generation
            try await reporter.record(checkpoint.stored)
            throw refusal(
                .mediumDeleted,
                "the medium \(name(of: medium)) was not found there \(Self.maxMissingAnswers) times after its bytes had arrived: it was deleted"
            )
        case .working(let word): status = word
        case .notAllowed(let right): status = "the key lacks the right `\(right)`, so that it cannot be asked"
        case nil: status = noWord ?? "it does not report the state of the medium"
        }
        switch state {
        case .working:
            checkpoint.apsara.missingAnswers = nil
            checkpoint.apsara.missingIn = nil
        default: break
        }
        let polls = checkpoint.apsara.increment(\.polls)
        checkpoint.apsara.waitsSince = since
        try await reporter.record(checkpoint.stored)
        let poll = min(settings.firstPoll * (1 << min(polls - 1, 10)), max(.seconds(300), settings.firstPoll))
        throw client.unverified("the medium", status, waited: waited, timeout: settings.verifyTimeout, poll: poll)
    }

    func check(context: RequestContext) async -> CheckResult {
        var result = await authority.check(context)
        guard result.verdict == .ok, authority.reportsCompletion, settings.verify != .transfer else { return result }
        let unknownMedium = ApsaraMedium(sort: .video, id: "sluice-check", endpoint: "", bucket: "", key: "")
        // Other reasons why the request may fail were reported already.
        if case .notAllowed(let right)? = try? await authority.state(of: unknownMedium, size: 0, context) {
            let words =
                "it lacks the right `\(right)`, without which it is not known whether VOD can use a file: "
                + "where sources are deleted or moved, uploads wait for that"
            result.verdict = .warning
            result.detail += "; " + words
            result.parts.append(.init(.flow, .warning, words))
        }
        return result
    }

    private func name(of medium: ApsaraMedium) -> String { medium.id ?? medium.key.display }

    /// A person's `retry` uploads the file once more, as another medium. Until then this medium is shown.
    ///
    /// - Parameter field: The field that keeps this medium for a warning.
    private func begunAgain(
        _ medium: ApsaraMedium, _ old: PartsCheckpoint,
        _ field: KeyPath<ApsaraCheckpoint.Fields, CheckpointField<String?>>, _ reporter: any UploadReporter
    ) async throws -> PartsCheckpoint {
        var fresh = PartsCheckpoint(old.stored.keeping(ApsaraCheckpoint.lasting))
        fresh.apsara.former = name(of: medium)
        fresh.apsara[dynamicMember: field] = [fresh.apsara[dynamicMember: field], name(of: medium)].compactMap { $0 }
            .joined(separator: ", ")
        try await reporter.renewed(fresh.stored, leaving: nil)
        return fresh
    }
}
