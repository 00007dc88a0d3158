internal import Core

// What is left when the storage has every byte: whether VOD can use them.

extension Apsara {
    /// Its fields of the checkpoint, beside those of the medium:
    ///
    /// | field | means |
    /// |---|---|
    /// | `transferred` | the storage has the file, as known by this |
    /// | `warnings` | what went wrong on the way, a line each |
    /// | `polls`, `waits_since` | how often VOD was asked since then, and when that began (ms since 1970) |
    private static let transferred = "transferred"

    /// The medium of an upload of which only VOD's word is missing.
    static func transferred(_ checkpoint: Checkpoint) -> ApsaraMedium? {
        checkpoint[transferred] == nil ? nil : ApsaraMedium(checkpoint)
    }

    /// The storage has the file.
    ///
    /// - Parameter made: What the upload is when that is enough.
    func ended(
        _ medium: ApsaraMedium, _ order: UploadOrder, _ old: Checkpoint, _ made: RemoteObject, _ notes: any UploadNotes
    ) async throws -> RemoteObject {
        let wanted = settings.verify ?? (order.removesSource ? .playable : .transfer)
        guard wanted == .playable, authority.tellsWhole else { return made }
        var checkpoint = Checkpoint()
        for field in Self.counted { checkpoint[field] = old[field] }
        medium.note(in: &checkpoint)
        checkpoint[Self.transferred] = made.verifiedBy
        if !made.warnings.isEmpty { checkpoint["warnings"] = made.warnings.joined(separator: "\n") }
        // Durable before the question: from now on nothing but the answer is missing.
        try await notes.accepted(order.file.size, checkpoint)
        return try await verified(medium, checkpoint, notes)
    }

    /// Asks what VOD makes of a medium: one request.
    func verified(
        _ medium: ApsaraMedium, _ old: Checkpoint, _ notes: any UploadNotes
    ) async throws -> RemoteObject {
        notes.entered(.finishing)
        var checkpoint = old
        if let id = medium.id { try await notes.named(id) }
        let state: ApsaraState?
        var noWord: String?
        do { state = try await authority.state(of: medium) } catch let error as UploadError where error.isNoWord {
            (state, noWord) = (nil, error.failure.message)
        }
        let now = asking.clocks.wall().milliseconds
        let since = checkpoint["waits_since"].flatMap { Int64($0) } ?? now
        let waited = max(Duration.zero, .milliseconds(now.subtractingReportingOverflow(since).partialValue))
        switch state {
        case .ready:
            var warnings = checkpoint["warnings"]?.split(separator: "\n").map(String.init) ?? []
            if waited > settings.verifyTimeout {
                warnings.append("VOD worked on it for \(waited.inWords), longer than `verify_timeout`")
            }
            return object(medium, "playable", warnings)
        case .failed(let words):
            try await begunAnew(checkpoint, notes)
            throw refusal(
                "transcoding_failed",
                "VOD has every byte, and can make no medium of them: it says \(FilePath(words).display)")
        case .gone:
            try await begunAnew(checkpoint, notes)
            throw refusal("medium_deleted", "the medium was deleted there after its bytes had come")
        case .working, .untold, nil:
            let status =
                switch state {
                case .working(let word)?: word
                case .untold(let right)?: "the key lacks the right `\(right)`, so that it cannot be asked"
                default: noWord ?? "it does not say how the medium stands"
                }
            let polls = checkpoint.count("polls")
            checkpoint["waits_since"] = "\(since)"
            try await notes.record(checkpoint)
            let poll = min(settings.firstPoll * (1 << min(polls - 1, 10)), max(.seconds(300), settings.firstPoll))
            throw asking.unverified(
                "the medium", status, waited: waited, timeout: settings.verifyTimeout, poll: poll)
        }
    }

    func check() async -> CheckResult {
        var result = await authority.check()
        guard result.verdict == .ok, authority.tellsWhole, settings.verify != .transfer else { return result }
        let nobody = ApsaraMedium(sort: .video, id: "sluice-check", endpoint: "", bucket: "", key: "")
        // What else may be wrong with the question was told already.
        if case .untold(let right)? = try? await authority.state(of: nobody) {
            result.verdict = .warning
            result.detail +=
                "; it lacks the right `\(right)`, without which it is not known whether VOD can use a file: "
                + "where sources are to go, uploads wait for that"
        }
        return result
    }

    /// A `retry` is to upload it once more, as another medium.
    private func begunAnew(_ old: Checkpoint, _ notes: any UploadNotes) async throws {
        var anew = Checkpoint()
        for field in Self.counted { anew[field] = old[field] }
        try await notes.renewed(anew, leaving: nil)
    }
}
