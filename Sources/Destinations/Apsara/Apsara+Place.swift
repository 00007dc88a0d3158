internal import Core
internal import Digests
internal import Linux
internal import Transport

// Where a file goes: the medium that VOD has for it, and the right to send its bytes there.

extension Apsara {
    struct Place: Sendable {
        var medium: ApsaraMedium
        var grant: ApsaraGrant
        /// How long the right is still valid.
        var left: Duration
    }

    enum MediumState {
        case place(Place)
        /// VOD has all bytes of the medium.
        case whole(ApsaraMedium)
    }

    /// The reference depends only on the file. So a medium that was requested before a crash, or before the database
    /// was lost, is found again: the same file gets no second medium, also when another machine sends it.
    private func reference(_ order: UploadOrder, _ number: Int64) -> String {
        let words = [client.name, order.name.display, hexadecimal(order.file.sha256), "\(number)"]
        let digest = Hasher.digest(.sha256, of: Array(words.joined(separator: "\n").utf8))
        return "sluice-\(hexadecimal(Array(digest.prefix(20))))"
    }

    /// - Parameter request: The request; its reference is set here.
    func place(
        for order: UploadOrder, _ checkpoint: inout PartsCheckpoint, _ request: inout ApsaraUploadRequest,
        _ reporter: any UploadReporter, _ context: RequestContext
    ) async throws -> MediumState {
        request.reference = checkpoint.apsara.reference ?? ""
        let newest = grants.consume(order.id)
        guard let medium = ApsaraMedium(checkpoint.apsara) else {
            return try await begin(order, &checkpoint, &request, reporter, context)
        }
        try reserve(request.reference, order)
        let moved = ApsaraUploadTicket.moved(checkpoint.apsara, now: client.clocks.wall())
        if moved == nil, ApsaraUploadTicket.dropMoved(&checkpoint.apsara) { checkpoint.apsara.increment(\.leftMedia) }
        // A video whose storage is refused is requested again in place, since VOD may have been misunderstood. A
        // picture is not: asking again would make another picture.
        let isInPlace = medium.sort == .image || objection(to: medium) == nil
        if moved == nil, isInPlace, let (grant, left) = newest.valid(checkpoint.apsara, now: client.clocks.wall()) {
            client.conceal(grant)
            return .place(Place(medium: medium, grant: grant, left: left))
        }
        let isPerhapsWhole =
            checkpoint.isCompleting || checkpoint.s3.upload == nil && checkpoint.mayBeWhole
        if isPerhapsWhole, try await authority.isWhole(medium, size: order.file.size, context) == true {
            return .whole(medium)
        }
        if let (ticket, left) = moved {
            client.conceal(ticket.grant)
            if medium.id != ticket.medium.id { checkpoint.apsara.increment(\.leftMedia) }
            try await adopt(ticket, left, &checkpoint, reporter, mayBeThere: isPerhapsWhole)
            return .place(Place(medium: ticket.medium, grant: ticket.grant, left: left))
        }
        guard authority.renews(medium) else {
            let left = checkpoint.apsara.increment(\.leftMedia)
            if isPerhapsWhole { checkpoint.wasReuploaded = true }
            if CreationBackoff.wait(after: left) > .zero {
                try await leave(&checkpoint, reporter)
                throw creations.failed(client.moved(), client, atLeast: left)
            }
            return try await begin(order, &checkpoint, &request, reporter, context)
        }
        let ticket: ApsaraUploadTicket
        do { ticket = try await authority.renew(medium, request, context) } catch let error as UploadError
            where ApsaraVerdict.isGone(error)
        {
            return try await begin(order, &checkpoint, &request, reporter, context)
        } catch let error as UploadError where medium.sort == .image && error.isUnanswered {
            // The request may have made another picture.
            throw creations.failed(error, client)
        }
        client.conceal(ticket.grant)
        let left = life(of: ticket)
        if ticket.medium.isAt(medium) {
            ticket.note(in: &checkpoint.apsara, until: client.clocks.wall().advanced(by: left))
            try await reporter.record(checkpoint.stored)
            try await reporter.credential(
                CredentialRenewal(reason: .ending, until: client.clocks.wall().advanced(by: left)))
        } else {
            try await adopt(ticket, left, &checkpoint, reporter, mayBeThere: isPerhapsWhole)
        }
        return .place(Place(medium: ticket.medium, grant: ticket.grant, left: left))
    }

    /// Gets a medium for the file: a new one, or one that was requested before.
    private func begin(
        _ order: UploadOrder, _ checkpoint: inout PartsCheckpoint, _ request: inout ApsaraUploadRequest,
        _ reporter: any UploadReporter, _ context: RequestContext
    ) async throws -> MediumState {
        for _ in 0..<Self.maxReferences {
            try creations.check(client)
            let wasAsked = checkpoint.apsara.isAsking
            if !wasAsked {
                request.reference = reference(order, checkpoint.apsara.mediaCount ?? 0)
                try reserve(request.reference, order)
                checkpoint.apsara.reference = request.reference
                checkpoint.apsara.isAsking = true
                // Recorded before the request: a medium without a record stays empty for ever.
                try await reporter.record(checkpoint.stored)
            } else {
                try reserve(request.reference, order)
                if request.sort == .image {
                    checkpoint.apsara.increment(\.lostMedia)
                    try await reporter.record(checkpoint.stored)
                }
            }
            let (authority, request) = (authority, request)
            // Each request may have made a medium, regardless of its answer.
            let answer = try await creations.make(
                client, after: (checkpoint.apsara.lostMedia ?? 0) + (wasAsked ? 1 : 0),
                countsLost: authority.reportsCompletion && request.sort != .image ? .never : .unanswered
            ) {
                try await withCancellationGrace(.milliseconds(800)) {
                    try await authority.begin(request, again: wasAsked, context)
                }
            }
            checkpoint.apsara.isAsking = false
            // The next medium has another reference.
            checkpoint.apsara.increment(\.mediaCount)
            switch answer {
            case .useless: continue
            case .whole(let medium): return .whole(medium)
            case .given(let ticket, let isNew):
                client.conceal(ticket.grant)
                guard grants.claim(ticket.medium, under: request.reference) else {
                    throw UploadError(
                        client.failure(
                            .config, .mediaShared,
                            "the medium \(ticket.medium.id ?? "") was given for this file, and for another one before: check the service that gives it",
                            retryable: true), remedy: .misconfigured)
                }
                let left = life(of: ticket)
                try await adopt(ticket, left, &checkpoint, reporter, mayBeThere: false)
                // Makes the engine look for bytes that an earlier attempt may have sent there.
                if !isNew, !checkpoint.has(\.restarts) { checkpoint.restarts = 1 }
                return .place(Place(medium: ticket.medium, grant: ticket.grant, left: left))
            }
        }
        throw UploadError(
            client.failure(
                .protocol, .referencesTaken, "VOD has \(Self.maxReferences) media of this file, and none is usable",
                retryable: true), remedy: .refused(after: nil))
    }

    private func reserve(_ reference: String, _ order: UploadOrder) throws(UploadError) {
        guard !grants.reserve(reference, for: order.id) else { return }
        throw UploadError(
            client.failure(
                .transient, .nameInUse,
                "another upload of the same file under the same name is running; this one waits for its end",
                retryable: true), remedy: .pending(after: .seconds(30)))
    }

    private static let maxReferences = 10

    /// An upload that was begun at another address starts again at this one.
    private func adopt(
        _ ticket: ApsaraUploadTicket, _ left: Duration, _ checkpoint: inout PartsCheckpoint,
        _ reporter: any UploadReporter,
        mayBeThere: Bool
    ) async throws {
        let old = checkpoint
        checkpoint = PartsCheckpoint(old.stored.keeping(ApsaraCheckpoint.lasting + PartsCheckpoint.lasting))
        if mayBeThere { checkpoint.wasReuploaded = true }
        ticket.note(in: &checkpoint.apsara, until: client.clocks.wall().advanced(by: left))
        if !old.isBegun {
            try await reporter.record(checkpoint.stored)
        } else {
            try await reporter.renewed(checkpoint.stored, leaving: old.s3.upload == nil ? nil : old.stored)
        }
    }

    /// Gives up a medium when VOD no longer grants access to it; the next attempt requests another.
    private func leave(_ checkpoint: inout PartsCheckpoint, _ reporter: any UploadReporter) async throws {
        let old = checkpoint
        checkpoint = PartsCheckpoint(old.stored.keeping(ApsaraCheckpoint.lasting + PartsCheckpoint.lasting))
        try await reporter.renewed(checkpoint.stored, leaving: old.s3.upload == nil ? nil : old.stored)
    }

    private func life(of ticket: ApsaraUploadTicket) -> Duration {
        ApsaraKeys.life(of: ticket.grant, now: client.clocks.wall(), ahead: clock.ahead)
    }
}

extension AuthorizedClient {
    func conceal(_ grant: ApsaraGrant) {
        [grant.key.id, grant.key.secret, grant.key.token ?? ""].filter { !$0.isEmpty }.forEach(rememberForNow)
    }
}
