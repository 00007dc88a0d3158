internal import Core

// The last step when the storage has every byte: asks whether VOD can use them.

extension Apsara {
    /// Fields of the checkpoint that are used here, in addition to those of the medium:
    ///
    /// | field | means |
    /// |---|---|
    /// | `transferred` | how it is known that the storage has the file |
    /// | `warnings` | problems on the way, one line each |
    /// | `missing`, `missing_in` | how often in a row the medium was not found, and the generation in which that was counted |
    /// | `polls`, `waits_since` | how often VOD was asked since then, and when that began (ms since 1970) |
    private static let transferred = "transferred"

    /// The medium of an upload that only waits for VOD's verdict.
    static func transferred(_ checkpoint: Checkpoint) -> ApsaraMedium? {
        checkpoint[transferred] == nil ? nil : ApsaraMedium(checkpoint)
    }

    /// Ends an upload whose bytes the storage has.
    ///
    /// - Parameter made: The result of the upload when nothing else has to be asked.
    func ended(
        _ medium: ApsaraMedium, _ order: UploadOrder, _ old: Checkpoint, _ made: RemoteObject,
        _ reporter: any UploadReporter
    ) async throws -> RemoteObject {
        let wanted = settings.verify ?? (order.removesSource ? .playable : .transfer)
        guard wanted == .playable, authority.tellsWhole else { return made }
        var checkpoint = Checkpoint()
        for field in Self.counted { checkpoint[field] = old[field] }
        medium.note(in: &checkpoint)
        checkpoint[Self.transferred] = made.verifiedBy
        if !made.warnings.isEmpty { checkpoint["warnings"] = made.warnings.joined(separator: "\n") }
        // Recorded before the request: from now on only the answer is missing.
        try await reporter.accepted(order.file.size, checkpoint)
        switch try await verified(medium, order, checkpoint, reporter) {
        case .done(let object): return object
        // Only a person can have the upload started again, before anything is sent.
        case .anew: throw client.moved()
        }
    }

    enum Verification {
        case done(RemoteObject)
        /// A person has the file sent again, as another medium. The checkpoint is recorded already.
        case anew(Checkpoint)
    }

    /// A medium counts as deleted after this many requests in a row do not find it: it may not be visible everywhere
    /// yet.
    private static let mostMissing: Int64 = 5
    private static let missingIn = OffsetProgress.missingIn

    /// Asks for VOD's state of a medium, with one request.
    func verified(
        _ medium: ApsaraMedium, _ order: UploadOrder, _ old: Checkpoint, _ reporter: any UploadReporter
    ) async throws -> Verification {
        reporter.entered(.finishing)
        var checkpoint = old
        if let id = medium.id { try await reporter.named(id) }
        let state: ApsaraState?
        var noWord: String?
        do { state = try await authority.state(of: medium, size: order.file.size) } catch let error as UploadError
            where error.isNoWord
        {
            (state, noWord) = (nil, error.failure.message)
        }
        let now = client.clocks.wall().milliseconds
        let since = checkpoint["waits_since"].flatMap { Int64($0) } ?? now
        let waited = max(Duration.zero, .milliseconds(now.subtractingReportingOverflow(since).partialValue))
        let status: String
        switch state {
        case .ready:
            var warnings = checkpoint["warnings"]?.split(separator: "\n").map(String.init) ?? []
            if waited > settings.verifyTimeout {
                warnings.append("VOD processed it for \(waited.inWords), longer than `verify_timeout`")
            }
            return .done(object(medium, "playable", warnings))
        case .failed(let words):
            _ = try await begunAnew(medium, checkpoint, "failed_media", reporter)
            throw refusal(
                "transcoding_failed",
                "VOD has every byte, but cannot make a medium of them: it says \(FilePath(words).display)")
        case .gone where checkpoint.count("missing") < Self.mostMissing: status = "it is not found; asking again"
        case .gone:
            if let seen = checkpoint[Self.missingIn].flatMap({ Int($0) }), seen < order.generation {
                return .anew(try await begunAnew(medium, checkpoint, "twice_media", reporter))
            }
            checkpoint[Self.missingIn] = "\(order.generation)"
            try await reporter.record(checkpoint)
            throw refusal(
                "medium_deleted",
                "the medium \(name(of: medium)) was not found there \(Self.mostMissing) times after its bytes had arrived: it was deleted"
            )
        case .working(let word): status = word
        case .untold(let right): status = "the key lacks the right `\(right)`, so that it cannot be asked"
        case nil: status = noWord ?? "it does not report the state of the medium"
        }
        switch state {
        case .working: for field in ["missing", Self.missingIn] { checkpoint[field] = nil }
        default: break
        }
        let polls = checkpoint.count("polls")
        checkpoint["waits_since"] = "\(since)"
        try await reporter.record(checkpoint)
        let poll = min(settings.firstPoll * (1 << min(polls - 1, 10)), max(.seconds(300), settings.firstPoll))
        throw client.unverified("the medium", status, waited: waited, timeout: settings.verifyTimeout, poll: poll)
    }

    func check() async -> CheckResult {
        var result = await authority.check()
        guard result.verdict == .ok, authority.tellsWhole, settings.verify != .transfer else { return result }
        let nobody = ApsaraMedium(sort: .video, id: "sluice-check", endpoint: "", bucket: "", key: "")
        // Other reasons why the request may fail were reported already.
        if case .untold(let right)? = try? await authority.state(of: nobody, size: 0) {
            result.verdict = .warning
            result.detail +=
                "; it lacks the right `\(right)`, without which it is not known whether VOD can use a file: "
                + "where sources are deleted or moved, uploads wait for that"
        }
        return result
    }

    private func name(of medium: ApsaraMedium) -> String { medium.id ?? medium.key.display }

    /// A person's `retry` uploads the file once more, as another medium. Until then this medium is shown.
    ///
    /// - Parameter field: The field that keeps this medium for a warning.
    private func begunAnew(
        _ medium: ApsaraMedium, _ old: Checkpoint, _ field: String, _ reporter: any UploadReporter
    ) async throws -> Checkpoint {
        var anew = Checkpoint()
        for field in Self.counted { anew[field] = old[field] }
        anew["former"] = name(of: medium)
        anew[field] = [anew[field], name(of: medium)].compactMap { $0 }.joined(separator: ", ")
        try await reporter.renewed(anew, leaving: nil)
        return anew
    }
}
