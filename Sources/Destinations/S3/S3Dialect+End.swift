internal import Core
internal import Digests
internal import Transport

// The steps from the last part to the object, and the removal of uploads that are given up.

extension S3Dialect {
    func complete(_ parts: [AcknowledgedPart], _ piece: PartsPiece) async -> PartsCompletion {
        if isSingle {
            guard piece.checkpoint["done"] != nil else {
                return .unconfirmed(strange("the answer says nothing about the file"))
            }
            return .done(object(piece, piece.checkpoint["done_by"] ?? "etag"))
        }
        do {
            let response: Response
            let whole = try await wholeChecksum(parts, piece)
            do { response = try await api.send(completion(parts, piece, whole)) } catch let error
                as AuthorizedClient.Unanswered
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
                return try await lacking(parts, body, piece, error)
            case "NoSuchUpload", "NoSuchKey": return try await unseenEnd(piece) ?? .gone(error)
            case "EntityTooSmall", "ConditionalRequestConflict": return .startOver(error)
            case nil where response.status == 404: return try await unseenEnd(piece) ?? .gone(error)
            case _ where verdict.isOfTaken: return try await unseenTaken(piece, error)
            default: return .failed(error)
            }
        } catch { return .failed(error) }
    }

    /// Finds the parts that prevent the service from assembling the object: those that its list lacks or has in another
    /// form. Where the list agrees with ours or there is none, the result is a guess: the part that the answer names,
    /// or all of them.
    private func lacking(
        _ parts: [AcknowledgedPart], _ body: XMLValue?, _ piece: PartsPiece, _ error: UploadError
    ) async throws -> PartsCompletion {
        let all = parts.map(\.index)
        let held: HeldParts
        do { held = try await self.held(among: all, piece) } catch let refusal as UploadError
            where refusal.failure.code == S3Presigner.refusal || refusal.remedy == .authenticate
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
            return there.size != mine.size || !there.tag.isEmpty && !isSame(mine.tag, there.tag)
        }.map(\.index)
        if !lost.isEmpty { return .missing(lost, isListed: true, error) }
        let told = (body?["Error"] ?? body)?["PartNumber"]?.whole.map { Int($0) - 1 }
        return .missing(told.map { all.contains($0) ? [$0] : all } ?? all, isListed: false, error)
    }

    private func completion(_ parts: [AcknowledgedPart], _ piece: PartsPiece, _ whole: String?) -> S3Request {
        let checksum = checksum(of: piece)
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
            method: "POST", key: key(piece.checkpoint), query: [("uploadId", piece.checkpoint["upload"] ?? "")],
            headers: headers, body: .bytes(bytes), payload: hexadecimal(Hasher.digest(.sha256, of: bytes)),
            limits: settings.limits.ending, what: "the request to complete the upload")
    }

    /// The service says that it has the object. The object is looked at, unless the answer already describes the
    /// content that we know.
    private func confirmed(
        _ response: Response, _ body: XMLValue?, _ parts: [AcknowledgedPart], _ piece: PartsPiece, _ whole: String?
    ) async throws -> PartsCompletion {
        let sort = checksum(of: piece)
        let told =
            sort == wire.checksum
            ? sort.answered.flatMap { response.headers[$0] }
            : body?["ChecksumType"]?.text == "COMPOSITE" ? nil : sort.element.flatMap { body?[$0]?.text }
        if let whole, let theirs = told {
            if theirs == whole { return .done(object(piece, sort.rawValue)) }
            // A checksum that was computed from the parts' checksums ends with `-` and a number.
            if !theirs.contains("-") {
                let words = "it has \(sort.rawValue) \(FilePath(theirs).display), and the file \(whole)"
                return .failed(damaged(key(piece.checkpoint), words))
            }
        }
        let key = key(piece.checkpoint)
        let tags = parts.map { S3Tag($0.tag).etag.filter { $0 != "\"" } }
        let joined = hexadecimal(Hasher.digest(.md5, of: tags.flatMap { bytes(hexadecimal: $0) ?? [] }))
        let there: S3API.Object
        switch try await sight(of: key, isMade: true) {
        case .there(let object): there = object
        // It was assembled from parts that were each accepted with their digest, and this key may not see more.
        case .hidden, .ended:
            if settings.assignedObject == nil {
                guard body?.name == "CompleteMultipartUploadResult" else {
                    return .failed(
                        strange("an answer to the request to complete the upload that does not confirm it"))
                }
                if api.tags(ofWhole: false) == .md5, api.joinsTags, !S3API.hidesTags(response),
                    let told = Self.joinedTag(body?["ETag"]?.text, parts.count), told != joined
                {
                    return .failed(damaged(key, "its ETag is not that of its parts"))
                }
            }
            if response.isWebPageForXML {
                return .failed(api.client.answeredByPage("the request to complete the upload", response))
            }
            return .done(object(piece, "parts"))
        case .nothing:
            // Another program may have removed it already. Then the answer has proved that it was complete, and its
            // parts no longer exist.
            if api.tags(ofWhole: false) == .md5, Self.joinedTag(body?["ETag"]?.text, parts.count) == joined,
                case .gone = try await api.parts(of: piece.checkpoint["upload"] ?? "", key)
            {
                return .done(object(piece, "parts"))
            }
            return .failed(strange("the object was created, and does not exist"))
        }
        guard there.size == piece.order.file.size else {
            return .failed(damaged(key, "it has \(there.size) bytes, and the file has \(piece.order.file.size)"))
        }
        // Where the parts' tags are MD5s, the tag of the object is computed from them.
        if api.tags(ofWhole: false) == .md5, !there.hidesTag,
            let told = Self.joinedTag(there.etag, parts.count)
        {
            if told == joined {
                api.joinsTags = true
            } else if api.joinsTags {
                return .failed(damaged(key, "its ETag is not that of its parts"))
            }
        }
        return .done(object(piece, "parts"))
    }

    func found(_ piece: PartsPiece) async throws -> RemoteObject? {
        try await found(piece, try await sight(of: key(piece.checkpoint)))
    }

    func found(_ piece: PartsPiece, _ sight: KeyLookup) async throws -> RemoteObject? {
        let key = key(piece.checkpoint)
        let there: S3API.Object
        switch sight {
        case .there(let object): there = object
        case .nothing: return nil
        case .hidden, .ended: return try await settings.assignedObject?.isWhole() == true ? object(piece, "held") : nil
        }
        switch try await likeness(of: there, at: key, to: piece.order.file, piece.plan, isOurs: true) {
        case .same: return object(piece, "held")
        case .other: return nil
        case .damaged(let error): throw error
        }
    }

    func isAbsent(_ piece: PartsPiece) async throws -> Bool {
        switch try await sight(of: key(piece.checkpoint)) {
        case .there: false
        case .nothing: true
        case .hidden, .ended: try await settings.assignedObject?.isWhole() == false
        }
    }

    func object(_ piece: PartsPiece, _ verifiedBy: String) -> RemoteObject {
        let key = key(piece.checkpoint)
        api.note(key, with: piece.order.file.sha256)
        return RemoteObject(
            id: key.display, url: api.address(of: key), verifiedBy: verifiedBy, warnings: warnings(verifiedBy))
    }

    func abort(_ checkpoint: Checkpoint) async throws -> Bool {
        if let upload = checkpoint["upload"], try await !api.abort(upload, key(checkpoint)) { return false }
        let isPerhapsWhole =
            checkpoint["completing"] != nil || checkpoint["upload"] == nil && checkpoint["final_sent"] != nil
        return isPerhapsWhole ? try await !isWhole(checkpoint) : true
    }

    /// Whether the object of an upload exists whose end may have been reached. It stays, even if the upload is
    /// cancelled.
    ///
    /// - Throws: ``UploadError``, with ``Failure/removalUnknown`` when it cannot be found out; `CancellationError`.
    private func isWhole(_ checkpoint: Checkpoint) async throws -> Bool {
        let key = key(checkpoint)
        var words = "the given right does not allow reading it"
        do {
            switch try await sight(of: key) {
            case .nothing: return false
            case .there(let object):
                guard object.size == checkpoint.number("size") else { return false }
                return object.sha256.map { $0 == checkpoint["sha256"] } ?? true
            case .hidden, .ended: if let isWhole = try await settings.assignedObject?.isWhole() { return isWhole }
            }
        } catch let error as UploadError where error.remedy == .authenticate { words = error.failure.message }
        throw UploadError(
            failure(
                .protocol, Failure.removalUnknown,
                "it was cancelled at its end, and it is not known whether the object exists: \(words); check \(api.address(of: key))",
                retryable: false), remedy: .giveUp)
    }
}
