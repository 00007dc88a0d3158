internal import Core
internal import Linux
internal import Transport

// Support for a key that may write but not look: it gets 403 to `HEAD` and to lists, for example with a policy of only
// `s3:PutObject` and `s3:AbortMultipartUpload`. Conditional writes then protect existing names. After a lost answer,
// the service's answer about the upload decides.

extension S3Dialect {
    /// A request that would overwrite an object is refused.
    var isGuarded: Bool { isSingle ? settings.preset.conditions != .none : settings.preset.conditions == .all }

    /// Each further name could cost sending the file again. So this name contains the digest of the content.
    private static let namedByContent = 3

    /// The key of an order with the digest of its content: if it is taken, this content is there.
    func contentKey(_ order: UploadOrder) throws(UploadError) -> FilePath {
        let digest = String(hexadecimal(order.file.sha256).prefix(16))
        let name = order.name.name
        let stem = FilePath(bytes: name.stem.bytes + Array(" (\(digest))".utf8))
        let ending = name.fileExtension.map { [UInt8(ascii: ".")] + $0.bytes } ?? []
        var renamed = order
        renamed.name = order.name.parent.appending(FilePath(bytes: stem.bytes + ending))
        return try key(renamed, 1)
    }

    /// Chooses a name without knowing if it is free: the first that no request of ours has found taken.
    func unseenName(_ order: UploadOrder, from first: Int) async throws -> Name {
        if settings.taken != .replace, !isGuarded { throw try await unguarded() }
        for number in first...max(first, Self.namedByContent) {
            let isLast = number >= Self.namedByContent
            let key = isLast ? try contentKey(order) : try key(order, number)
            try reserve(key, order)
            if isLast || settings.taken == .replace || !api.isTaken(key, from: order.file.sha256) {
                return .free(key)
            }
            if settings.taken == .fail { throw nameTaken(key) }
        }
        return .free(try contentKey(order))
    }

    func nameTaken(_ key: FilePath) -> UploadError {
        refusal(
            "name_taken", "\(api.address(of: key)) exists already with other content, and `taken: fail` is set")
    }

    /// The error when neither a look nor a condition protects existing objects from being overwritten.
    func unguarded() async throws -> UploadError {
        // A key without any right gets its own error.
        _ = try await api.hasUpload("sluice-check", "sluice-check")
        let preset = settings.preset.name
        return UploadError(
            failure(
                .config, "names_unseen",
                "it cannot be known whether a name is free: the key may not read objects (\(api.lookRights)), and "
                    + "for `preset: \(preset)` no conditional write \(isSingle ? "" : "of an upload in parts ")is "
                    + "known; give the key these rights, set the service's own `preset`, or `taken: replace`, "
                    + "which overwrites existing objects",
                retryable: true), remedy: .misconfigured)
    }

    // MARK: After an answer

    /// An object with the key exists that may not be looked at, and this single request has not made it.
    func unseenTaken(_ piece: PartsPiece, _ error: UploadError) throws -> PartSending.Answer {
        let key = key(piece.checkpoint)
        if try key == contentKey(piece.order) {
            return .taken(
                AcknowledgedPart(index: 0, size: piece.plan.size), finished: object(piece, Self.byName), changes: [:])
        }
        // The object was ours, or another file's, before this request.
        if api.isThere(key, with: piece.order.file.sha256) {
            return .taken(
                AcknowledgedPart(index: 0, size: piece.plan.size), finished: object(piece, "held"), changes: [:])
        }
        if api.isTaken(key, from: piece.order.file.sha256) { return .startOver(error) }
        // An earlier request may have made it whose answer was lost.
        guard let before = piece.order.checkpoint, before["final_sent"] != nil, before["key"] == piece.checkpoint["key"]
        else {
            api.note(key, with: [])
            return .startOver(error)
        }
        api.setNextName(Self.namedByContent, for: piece.order.id)
        var doubtful = error
        doubtful.failure.code = Failure.perhapsThere
        return .startOver(doubtful)
    }

    /// The request to complete the object was answered: an object with the key exists.
    func unseenTaken(_ piece: PartsPiece, _ error: UploadError) async throws -> PartsCompletion {
        let (key, upload) = (key(piece.checkpoint), piece.checkpoint["upload"] ?? "")
        guard settings.assignedObject == nil, case .hidden = try await sight(of: key, isMade: true) else {
            return .startOver(error)
        }
        let before: String? =
            if api.isThere(key, with: piece.order.file.sha256) {
                "held"
            } else if try key == contentKey(piece.order) {
                Self.byName
            } else {
                piece.checkpoint["reuploaded"].map { _ in Self.unseen }
            }
        if let before {
            // The object was made before: the parts are of no use.
            _ = try await api.abort(upload, key)
            return .done(object(piece, before))
        }
        // An upload that has become an object no longer exists, and one whose end was refused still does.
        if wasAskedFor(piece), try await !api.hasUpload(upload, key) { return .done(object(piece, Self.unseen)) }
        api.note(key, with: [])
        return .startOver(error)
    }

    /// Handles a service that does not know the upload. Its completion was requested before, and that answer was lost.
    ///
    /// - Returns: `nil` where the object can be looked at, or where a rule of the bucket may have removed the upload,
    ///   which takes a day at least.
    func unseenEnd(_ piece: PartsPiece) async throws -> PartsCompletion? {
        guard settings.assignedObject == nil, wasAskedFor(piece),
            case .hidden = try await sight(of: key(piece.checkpoint))
        else { return nil }
        let age = api.client.clocks.wall().milliseconds - piece.checkpoint.number("asked_at")
        guard age < Self.shortestRule else { return nil }
        // Where the source is removed it has to be certain that the key may not look: otherwise a missing object gets
        // the same answer.
        guard api.mayNotLook || !piece.order.removesSource else { return nil }
        return .done(object(piece, Self.unseen))
    }

    /// Bucket rules that remove unfinished uploads count in days. (ms)
    private static let shortestRule: Int64 = 23 * 3_600_000

    private func wasAskedFor(_ piece: PartsPiece) -> Bool {
        guard let before = piece.order.checkpoint else { return false }
        return before["completing"] != nil && before["upload"] == piece.checkpoint["upload"]
    }

    // MARK: Results and messages

    /// Values of ``RemoteObject/verifiedBy``.
    static let (unseen, byName, byAnswer) = ("unseen", "name", "answer")

    func warnings(_ verifiedBy: String) -> [String] {
        switch verifiedBy {
        case Self.unseen:
            [
                "the answer to its completion was lost, and the key may not read objects: the service no longer "
                    + "knows the upload, or has an object of this name, as after a completion"
            ]
        case Self.byName:
            [
                "an object exists whose name contains the digest of this content, and the key may not read it: it "
                    + "is regarded as an earlier upload of the same content"
            ]
        case Self.byAnswer:
            ["no answer of the service confirms the bytes, and the key may not read the object"]
        default: []
        }
    }
}

extension S3API {
    /// The rights that are needed to look at an object, by name.
    var lookRights: String { settings.preset.wire.signing == .s3 ? "s3:GetObject, s3:ListBucket" : "oss:GetObject" }

    var listRight: String { settings.preset.wire.signing == .s3 ? "s3:ListBucket" : "oss:ListObjects" }

    /// Whether the service has an unfinished upload with this name. Asks by sending an empty part as the first part,
    /// which a key that may only write is allowed to do.
    func hasUpload(_ upload: String, _ key: FilePath) async throws -> Bool {
        let request = S3Request(
            method: "PUT", key: key, query: [("partNumber", "1"), ("uploadId", upload)], body: .bytes([]),
            what: "the lookup of an unfinished upload")
        let response: Response
        do { response = try await send(request) } catch let error as AuthorizedClient.Unanswered { throw error.error }
        if (200..<300).contains(response.status), !response.isWebPageForXML { return true }
        if isOfNoUpload(response) { return false }
        let error = refusal(response, request.what)
        guard response.status >= 500 else { throw error }
        // A server that fails for a part of an unknown upload may still answer a removal correctly.
        let removal = S3Request(method: "DELETE", key: key, query: [("uploadId", upload)], what: request.what)
        let answer: Response
        do { answer = try await send(removal) } catch is AuthorizedClient.Unanswered { throw error }
        if isOfNoUpload(answer) { return false }
        guard (200..<300).contains(answer.status) else { throw error }
        return true
    }

    private func isOfNoUpload(_ response: Response) -> Bool {
        [404, 410].contains(response.status) || verdict(response).code == "NoSuchUpload"
    }

    /// A question that the key has no right to ask. An invalid key gets other codes, or may not write either.
    static func isOfNoRight(_ error: UploadError) -> Bool {
        ["AccessDenied", "http_403"].contains(error.failure.code)
    }
}
