internal import Core
internal import Digests
internal import Transport

/// The steps from the last part to the object.
struct S3Completion: Sendable {
    let api: S3API
    /// The whole file is sent in one request.
    let isSingle: Bool

    private var settings: S3Settings { api.settings }
    private var wire: BucketProtocolNames { settings.preset.wire }
    private var digests: S3PartDigests { S3PartDigests(api: api, isSingle: isSingle) }
    private var comparison: S3ObjectComparison { S3ObjectComparison(api: api, isSingle: isSingle) }
    private var naming: S3Naming { S3Naming(api: api, isSingle: isSingle) }

    func complete(_ parts: [AcknowledgedPart], _ piece: PartsContext) async -> PartsCompletion {
        if isSingle {
            guard piece.checkpoint.has(\.finishedPart) else {
                return .unconfirmed(api.unusable("the answer says nothing about the file"))
            }
            return .done(object(piece, piece.checkpoint.finishedVerifiedBy ?? "etag"))
        }
        do {
            let response: Response
            let whole = try await digests.wholeChecksum(parts, piece)
            do { response = try await api.send(completion(parts, piece, whole)) } catch let error
                as AuthorizedClient.NoAnswerError
            {
                return .failed(error.error)
            }
            let error = api.refusal(response, "the request to complete the upload")
            let body = XMLValue.read(response.body)
            let verdict = api.verdict(response)
            if (200..<300).contains(response.status), verdict.isStored || body?.name != "Error" {
                return try await confirmed(response, body, parts, piece, whole)
            }
            switch verdict.code {
            case "InvalidPart", "FilePartNotExist", "FilePartStale", "FilePartInterity":
                return try await missingParts(parts, body, piece, error)
            case "NoSuchUpload", "NoSuchKey": return try await unknownUpload(piece, error)
            case "EntityTooSmall", "ConditionalRequestConflict": return .startOver(error)
            case _ where verdict.isNameConflict: return try await unseenTaken(piece, error)
            // Also a 404 without the service's code: it may be a proxy's, and says nothing about the upload.
            default: return .failed(error)
            }
        } catch { return .failed(error) }
    }

    /// Finds the parts that prevent the service from assembling the object: those that its list lacks or has in another
    /// form. Where the list agrees with ours or there is none, the result is a guess: the part that the answer names,
    /// or all of them.
    private func missingParts(
        _ parts: [AcknowledgedPart], _ body: XMLValue?, _ piece: PartsContext, _ error: UploadError
    ) async throws -> PartsCompletion {
        let all = parts.map(\.index)
        let held: RemoteParts
        do { held = try await S3PartList(api: api).held(piece) } catch let refusal as UploadError
            where refusal.failure.code == .signerRefused || refusal.remedy == .authenticate
        {
            return .missing(all, isListed: false, error)
        }
        let list: [AcknowledgedPart]
        switch held {
        case .gone(let gone): return .gone(gone)
        case .unknown: return .missing(all, isListed: false, error)
        case .parts(let parts): list = parts
        }
        let theirs = Dictionary(list.map { ($0.index, $0) }) { $1 }
        let lost = parts.filter { mine in
            guard let there = theirs[mine.index] else { return true }
            return there.size != mine.size || !there.tag.isEmpty && !S3PartList.isSame(mine.tag, there.tag)
        }.map(\.index)
        if !lost.isEmpty { return .missing(lost, isListed: true, error) }
        let named = (body?["Error"] ?? body)?["PartNumber"]?.whole.map { Int($0) - 1 }
        return .missing(named.map { all.contains($0) ? [$0] : all } ?? all, isListed: false, error)
    }

    private func completion(_ parts: [AcknowledgedPart], _ piece: PartsContext, _ whole: String?) -> S3Request {
        let checksum = digests.checksum(of: piece)
        var body = "<CompleteMultipartUpload\(wire.namespace.map { " xmlns=\"\($0)\"" } ?? "")>"
        for part in parts {
            let tag = S3Tag(part.tag)
            body += "<Part><PartNumber>\(part.index + 1)</PartNumber><ETag>\(XMLValue.escaped(tag.etag))</ETag>"
            if let name = checksum.element, let value = tag.checksum { body += "<\(name)>\(value)</\(name)>" }
            body += "</Part>"
        }
        body += "</CompleteMultipartUpload>"
        let bytes = Array(body.utf8)
        var headers: [(name: String, value: String)] = [("Content-Type", "application/xml")]
        if settings.preset.conditions == .all, settings.taken != .replace { headers.append(wire.unlessThere) }
        headers += settings.assignedObject?.ending ?? []
        if let whole, let name = checksum.header {
            headers.append((name, whole))
            headers.append(("x-amz-checksum-type", "FULL_OBJECT"))
        }
        // The service may need minutes to assemble the parts, and sends blanks meanwhile.
        return S3Request(
            method: "POST", key: piece.checkpoint.s3.objectKey, query: [("uploadId", piece.checkpoint.s3.upload ?? "")],
            headers: headers, body: .bytes(bytes), payload: hexadecimal(Hasher.digest(.sha256, of: bytes)),
            limits: settings.limits.ending, what: "the request to complete the upload")
    }

    /// The service reports that it has the object. The object is queried, unless the answer already describes the
    /// content that we know.
    private func confirmed(
        _ response: Response, _ body: XMLValue?, _ parts: [AcknowledgedPart], _ piece: PartsContext, _ whole: String?
    ) async throws -> PartsCompletion {
        let sort = digests.checksum(of: piece)
        let reported =
            sort == wire.checksum
            ? sort.answered.flatMap { response.headers[$0] }
            : body?["ChecksumType"]?.text == "COMPOSITE" ? nil : sort.element.flatMap { body?[$0]?.text }
        if let whole, let theirs = reported {
            if theirs == whole { return .done(object(piece, sort.rawValue)) }
            // A checksum that was computed from the parts' checksums ends with `-` and a number.
            if !theirs.contains("-") {
                let words = "it has \(sort.rawValue) \(FilePath(theirs).display), and the file \(whole)"
                return .failed(comparison.damaged(piece.checkpoint.s3.objectKey, words))
            }
        }
        let key = piece.checkpoint.s3.objectKey
        let tags = parts.map { S3Tag($0.tag).etag.filter { $0 != "\"" } }
        let joined = hexadecimal(Hasher.digest(.md5, of: tags.flatMap { bytes(hexadecimal: $0) ?? [] }))
        let there: S3API.Object
        switch try await api.lookUp(key, isMade: true) {
        case .there(let object): there = object
        // It was assembled from parts that were each accepted with their digest, and this key may not see more.
        case .hidden, .ended:
            if settings.assignedObject == nil {
                guard body?.name == "CompleteMultipartUploadResult" else {
                    return .failed(
                        api.unusable("an answer to the request to complete the upload that does not confirm it"))
                }
                if api.tags(ofWhole: false) == .md5, api.joinsTags, !S3API.hidesTags(response),
                    let reported = S3ObjectComparison.joinedTag(body?["ETag"]?.text, parts.count), reported != joined
                {
                    return .failed(comparison.damaged(key, "its ETag is not that of its parts"))
                }
            }
            if response.isWebPageForXML {
                return .failed(api.client.answeredByPage("the request to complete the upload", response))
            }
            return .done(object(piece, "parts"))
        case .nothing:
            // Another program may have removed it already. Then the answer has proved that it was complete, and its
            // parts no longer exist.
            if api.tags(ofWhole: false) == .md5,
                S3ObjectComparison.joinedTag(body?["ETag"]?.text, parts.count) == joined,
                case .gone = try await api.parts(of: piece.checkpoint.s3.upload ?? "", key)
            {
                return .done(object(piece, "parts"))
            }
            return .failed(api.unusable("the object was created, and does not exist"))
        }
        guard there.size == piece.order.file.size else {
            return .failed(
                comparison.damaged(key, "it has \(there.size) bytes, and the file has \(piece.order.file.size)"))
        }
        // Where the parts' tags are MD5s, the tag of the object is computed from them.
        if api.tags(ofWhole: false) == .md5, !there.hidesTag,
            let reported = S3ObjectComparison.joinedTag(there.etag, parts.count)
        {
            if reported == joined {
                api.joinsTags = true
            } else if api.joinsTags {
                return .failed(comparison.damaged(key, "its ETag is not that of its parts"))
            }
        }
        return .done(object(piece, "parts"))
    }

    // MARK: Keys without permission to read the object

    /// The request to complete the object was answered: an object with the key exists.
    private func unseenTaken(_ piece: PartsContext, _ error: UploadError) async throws -> PartsCompletion {
        let (key, upload) = (piece.checkpoint.s3.objectKey, piece.checkpoint.s3.upload ?? "")
        guard settings.assignedObject == nil, case .hidden = try await api.lookUp(key, isMade: true) else {
            return .startOver(error, cause: .nameTaken)
        }
        let before: String? =
            if api.isThere(key, with: piece.order.file.sha256) {
                "held"
            } else {
                try key == naming.contentKey(piece.order) ? S3VerifiedObject.byName : nil
            }
        if let before {
            // The object was made before: the parts are of no use.
            _ = try await api.abort(upload, key)
            return .done(object(piece, before))
        }
        // An upload that has become an object no longer exists, and one whose end was refused still does.
        if wasCompletionSent(piece), try await !api.hasUpload(upload, key) { return .startOver(error.ofDoubt) }
        return .startOver(error, cause: .nameTaken, changes: try naming.noteTaken(piece))
    }

    /// Handles a service that does not know the upload. If its completion was requested before, and the object cannot
    /// be queried, the upload has become the object or was removed, by a rule of the bucket or by a person. Only an
    /// answer to another upload can prove that the service has the file.
    private func unknownUpload(_ piece: PartsContext, _ error: UploadError) async throws -> PartsCompletion {
        guard settings.assignedObject == nil, wasCompletionSent(piece),
            case .hidden = try await api.lookUp(piece.checkpoint.s3.objectKey)
        else { return .gone(error) }
        return .startOver(error.ofDoubt)
    }

    private func wasCompletionSent(_ piece: PartsContext) -> Bool {
        let before = piece.order.partsCheckpoint
        return before.isCompleting && before.s3.upload == piece.checkpoint.s3.upload
    }

    private func object(_ piece: PartsContext, _ verifiedBy: String) -> RemoteObject {
        S3VerifiedObject.make(piece, at: api, verifiedBy: verifiedBy)
    }
}
