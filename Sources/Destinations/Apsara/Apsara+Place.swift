internal import Core
internal import Digests

// Where a file goes: the medium that VOD has for it, and the right to send its bytes there.

extension Apsara {
    struct Place: Sendable {
        var medium: ApsaraMedium
        var grant: ApsaraGrant
        /// How long the right is still valid.
        var left: Duration
    }

    enum Standing {
        case place(Place)
        /// VOD has all bytes of the medium.
        case whole(ApsaraMedium)
    }

    /// Fields of the checkpoint that are used here, in addition to those of ``ApsaraGift``, ``S3Dialect`` and
    /// ``PartsRun``:
    ///
    /// | field | means |
    /// |---|---|
    /// | `reference` | our name for the medium; finds a medium again when the answer to its creation was lost |
    /// | `asking` | a request for a medium was begun |
    /// | `media_count` | number of media that VOD gave for this upload |
    /// | `lost_media` | requests whose answer is unknown and cannot be found out |
    /// | `left_media` | media that were given up because the right to them ended; they stay empty |
    /// | `file` | the file name that VOD was told |
    /// | `former` | the last medium that was given up although VOD had its bytes; it is shown until there is another |
    /// | `failed_media`, `twice_media` | media that VOD could not process, and media that it could not find any more |
    static let counted = [
        "reference", "media_count", "lost_media", "left_media", "former", "failed_media", "twice_media",
    ]
    static let file = "file"

    /// The reference depends on the file alone. So a medium that was asked for before a crash, or before the database
    /// was lost, is found again: the same file gets no second medium, also when another machine sends it.
    private func reference(_ order: UploadOrder, _ number: Int64) -> String {
        let words = [asking.name, order.name.display, hexadecimal(order.file.sha256), "\(number)"]
        let digest = Hasher.digest(.sha256, of: Array(words.joined(separator: "\n").utf8))
        return "sluice-\(hexadecimal(Array(digest.prefix(20))))"
    }

    /// - Parameter wish: The request; its reference is set here.
    func place(
        for order: UploadOrder, _ checkpoint: inout Checkpoint, _ wish: inout ApsaraWish, _ notes: any UploadNotes
    ) async throws -> Standing {
        wish.reference = checkpoint["reference"] ?? ""
        let newest = grants.take(order.id)
        guard let medium = ApsaraMedium(checkpoint) else {
            return try await begin(order, &checkpoint, &wish, notes)
        }
        try reserve(wish.reference, order)
        let moved = ApsaraGift.moved(checkpoint, now: asking.clocks.wall())
        if moved == nil, ApsaraGift.dropMoved(&checkpoint) { checkpoint.count("left_media") }
        // A video whose storage is refused is asked for again in place, since VOD may have been misunderstood. A
        // picture is not: asking again would make another picture.
        let isInPlace = medium.sort == .image || objection(to: medium) == nil
        if moved == nil, isInPlace, let (grant, left) = newest.good(checkpoint, now: asking.clocks.wall()) {
            asking.conceal(grant)
            return .place(Place(medium: medium, grant: grant, left: left))
        }
        let isPerhapsWhole =
            checkpoint["completing"] != nil || checkpoint["upload"] == nil && checkpoint["final_sent"] != nil
        if isPerhapsWhole, try await authority.isWhole(medium, size: order.file.size) == true { return .whole(medium) }
        if let (gift, left) = moved {
            asking.conceal(gift.grant)
            if medium.id != gift.medium.id { checkpoint.count("left_media") }
            try await take(gift, left, &checkpoint, notes, mayBeThere: isPerhapsWhole)
            return .place(Place(medium: gift.medium, grant: gift.grant, left: left))
        }
        guard authority.renews(medium) else {
            let left = checkpoint.count("left_media")
            if isPerhapsWhole { checkpoint["reuploaded"] = "1" }
            if CreationPatience.wait(after: left) > .zero {
                try await leave(&checkpoint, notes)
                throw creations.failed(asking.moved(), asking, atLeast: left)
            }
            return try await begin(order, &checkpoint, &wish, notes)
        }
        let gift: ApsaraGift
        do { gift = try await authority.renew(medium, wish) } catch let error as UploadError
            where ApsaraVerdict.isGone(error)
        {
            return try await begin(order, &checkpoint, &wish, notes)
        } catch let error as UploadError where medium.sort == .image && error.isUnanswered {
            // The request may have made another picture.
            throw creations.failed(error, asking)
        }
        asking.conceal(gift.grant)
        let left = life(of: gift)
        if gift.medium.isAt(medium) {
            gift.note(in: &checkpoint, until: asking.clocks.wall().advanced(by: left))
            try await notes.record(checkpoint)
            try await notes.credential(CredentialNews(reason: .ending, until: asking.clocks.wall().advanced(by: left)))
        } else {
            try await take(gift, left, &checkpoint, notes, mayBeThere: isPerhapsWhole)
        }
        return .place(Place(medium: gift.medium, grant: gift.grant, left: left))
    }

    /// Gets a medium for the file: a new one, or one that was asked for before.
    private func begin(
        _ order: UploadOrder, _ checkpoint: inout Checkpoint, _ wish: inout ApsaraWish, _ notes: any UploadNotes
    ) async throws -> Standing {
        for _ in 0..<Self.mostReferences {
            try creations.check(asking)
            let wasAsked = checkpoint["asking"] != nil
            if !wasAsked {
                wish.reference = reference(order, checkpoint.number("media_count"))
                try reserve(wish.reference, order)
                checkpoint["reference"] = wish.reference
                checkpoint["asking"] = "1"
                // Recorded before the request: a medium without a record stays empty for ever.
                try await notes.record(checkpoint)
            } else {
                try reserve(wish.reference, order)
                if wish.sort == .image {
                    checkpoint.count("lost_media")
                    try await notes.record(checkpoint)
                }
            }
            let (authority, wish) = (authority, wish)
            // Each request may have made a medium, regardless of its answer.
            let answer = try await creations.make(
                asking, after: checkpoint.number("lost_media") + (wasAsked ? 1 : 0),
                countsLost: authority.tellsWhole && wish.sort != .image ? .never : .unanswered
            ) {
                try await outlasting(.milliseconds(800)) { try await authority.begin(wish, again: wasAsked) }
            }
            checkpoint["asking"] = nil
            // The next medium has another reference.
            checkpoint.count("media_count")
            switch answer {
            case .useless: continue
            case .whole(let medium): return .whole(medium)
            case .given(let gift, let isNew):
                asking.conceal(gift.grant)
                guard grants.claim(gift.medium, under: wish.reference) else {
                    throw UploadError(
                        asking.failure(
                            .config, "media_shared",
                            "the medium \(gift.medium.id ?? "") was given for this file, and for another one before: look at who gives it",
                            retryable: true), remedy: .misconfigured)
                }
                let left = life(of: gift)
                try await take(gift, left, &checkpoint, notes, mayBeThere: false)
                // Makes the engine look for bytes that an earlier attempt may have sent there.
                if !isNew, checkpoint["restarts"] == nil { checkpoint["restarts"] = "1" }
                return .place(Place(medium: gift.medium, grant: gift.grant, left: left))
            }
        }
        throw UploadError(
            asking.failure(
                .protocol, "references_taken", "VOD has \(Self.mostReferences) media of this file, and none is of use",
                retryable: true), remedy: .refused(after: nil))
    }

    private func reserve(_ reference: String, _ order: UploadOrder) throws(UploadError) {
        guard !grants.reserve(reference, for: order.id) else { return }
        throw UploadError(
            asking.failure(
                .transient, "name_in_use",
                "the same file under the same name is on its way in another upload; this one waits for its end",
                retryable: true), remedy: .pending(after: .seconds(30)))
    }

    private static let mostReferences = 10

    /// An upload that was begun at another address starts again at this one.
    private func take(
        _ gift: ApsaraGift, _ left: Duration, _ checkpoint: inout Checkpoint, _ notes: any UploadNotes,
        mayBeThere: Bool
    ) async throws {
        let old = checkpoint
        checkpoint = Checkpoint()
        for field in Self.counted + PartsRun.counted { checkpoint[field] = old[field] }
        if mayBeThere { checkpoint["reuploaded"] = "1" }
        gift.note(in: &checkpoint, until: asking.clocks.wall().advanced(by: left))
        if old[PartsRun.begun] == nil {
            try await notes.record(checkpoint)
        } else {
            try await notes.renewed(checkpoint, leaving: old["upload"] == nil ? nil : old)
        }
    }

    /// Gives up a medium when VOD gives no right to it any more; the next attempt asks for another.
    private func leave(_ checkpoint: inout Checkpoint, _ notes: any UploadNotes) async throws {
        let old = checkpoint
        checkpoint = Checkpoint()
        for field in Self.counted + PartsRun.counted { checkpoint[field] = old[field] }
        try await notes.renewed(checkpoint, leaving: old["upload"] == nil ? nil : old)
    }

    private func life(of gift: ApsaraGift) -> Duration {
        ApsaraKeys.life(of: gift.grant, now: asking.clocks.wall(), ahead: clock.ahead)
    }
}

extension Asking {
    func conceal(_ grant: ApsaraGrant) {
        [grant.key.id, grant.key.secret, grant.key.token ?? ""].filter { !$0.isEmpty }.forEach(rememberForNow)
    }
}
