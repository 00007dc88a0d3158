internal import Core
internal import Digests
internal import Transport

/// Sends one part, or a whole file in one request, and reads the answer.
struct S3PartSender: Sendable {
    let api: S3API
    /// The whole file is sent in one request.
    let isSingle: Bool

    private var settings: S3Settings { api.settings }
    private var wire: BucketProtocolNames { settings.preset.wire }
    private var naming: S3Naming { S3Naming(api: api, isSingle: isSingle) }
    private var digests: S3PartDigests { S3PartDigests(api: api, isSingle: isSingle) }
    private var comparison: S3ObjectComparison { S3ObjectComparison(api: api, isSingle: isSingle) }

    func send(
        _ part: PartPlan.Part, _ piece: PartsContext, _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> PartSendResult {
        do {
            let checksum = digests.checksum(of: piece)
            let proof = try await digests.proof(of: part, piece, checksum)
            if isSingle, proof.sha256 != piece.order.file.sha256 {
                throw piece.order.file.changed("no longer has the content that was staged", api.failure)
            }
            // For a part the digest is computed when all bytes are known.
            let digest = isSingle ? SentDigest(of: piece.order.file) : nil
            var request = S3Request(
                method: "PUT", key: piece.checkpoint.s3.objectKey, headers: proof.headers,
                body: .file(piece.order.file.place, offset: part.offset, count: part.length, check: digest),
                payload: proof.payload,
                limits: settings.limits.sending, what: "part \(part.index + 1) of \(piece.plan.count)")
            if settings.tellsLimit, let limit = OSS.trafficLimit(api.context.permit.rate) {
                request.headers.append(limit)
            }
            if isSingle {
                request.what = "the file"
                request.headers += S3ObjectHeaders.make(piece.order, settings)
                if settings.taken != .replace, settings.preset.conditions != .none {
                    request.headers.append(wire.unlessThere)
                }
            } else {
                request.query = [("partNumber", "\(part.index + 1)"), ("uploadId", piece.checkpoint.s3.upload ?? "")]
                request.further = S3Presigner.behind(part, of: piece.plan)
            }
            let carried = await api.sendBody(request, sent)
            guard case .success(let answer) = carried.result else {
                var unanswered = PartSendResult(unanswered: carried, part)
                if let damage = digest?.damage(api.failure) { unanswered.answer = .failed(damage) }
                return unanswered
            }
            let response = answer.response
            // The part has left and may be there, even if a further question fails.
            do { return try await judge(response, request, part, piece, proof) } catch {
                return PartSendResult(.failed(error), bytesSent: part.length)
            }
        } catch {
            return PartSendResult(.failed(error), bytesSent: 0, isRefused: true)
        }
    }

    private func judge(
        _ response: Response, _ request: S3Request, _ part: PartPlan.Part, _ piece: PartsContext, _ proof: S3PartProof
    ) async throws -> PartSendResult {
        func ends(_ answer: PartSendResult.Answer) -> PartSendResult {
            // After a success an object may exist, even with other content.
            let isThere = isSingle && (200..<300).contains(response.status)
            return PartSendResult(answer, bytesSent: part.length, isRefused: response.status < 500 && !isThere)
        }
        let error = api.refusal(response, request.what)
        let verdict = api.verdict(response)
        switch response.status {
        case 200..<300:
            guard verdict.isStored || XMLValue.read(response.body)?.name != "Error" else {
                return ends(.failed(error))
            }
            if response.isWebPageForXML {
                return ends(.failed(api.client.answeredByPage(request.what, response)))
            }
            let etag = response.headers["ETag"] ?? ""
            // Without an ETag the part cannot be named when the upload is completed.
            guard !etag.isEmpty || isSingle && settings.tags != .md5 else {
                return ends(
                    .failed(api.unusable("\(api.client.host(response.url)) took \(request.what) without an ETag")))
            }
            let theirs = proof.kind.answered.flatMap { response.headers[$0] }
            if let mine = proof.checksum, let theirs, theirs != mine {
                let shown = FilePath(theirs).display
                let words = "the service has \(proof.kind.rawValue) \(shown) of bytes with \(mine)"
                return ends(.damaged(api.unusable("\(request.what): \(words)")))
            }
            // If the service does not repeat a checksum, it may not have compared it: then the tag has to prove the
            // content.
            let isNamed = proof.checksum != nil && theirs != nil
            let isCompared = proof.isCompared(by: settings.preset) && (isNamed || proof.checksum == nil)
            let isHidden = S3API.hidesTags(response)
            var md5 = proof.md5
            if md5 == nil, !isNamed, comparison.digits(of: etag, isHidden: isHidden) != nil {
                md5 = try await comparison.md5(of: part, piece)
            }
            let evidence = comparison.evidence(of: etag, isHidden: isHidden, against: md5)
            var isConfirmed = false
            switch evidence {
            case .same: isConfirmed = true
            case .absent: break
            case .other(let words): return ends(.damaged(api.unusable("\(request.what): \(words)")))
            case .unclear(let words):
                return ends(
                    .failed(comparison.unclear("\(request.what) at \(api.client.host(response.url)): \(words)")))
            }
            var verifiedBy = isNamed ? proof.kind.rawValue : "etag"
            if isSingle, !isConfirmed, !isNamed, !isCompared {
                // The content at the service was not compared with the sent bytes. Only its size is known.
                verifiedBy = "size"
                var size: Int64?
                switch try await api.lookUp(piece.checkpoint.s3.objectKey, isMade: true) {
                case .there(let object): size = object.size
                case .nothing: break
                case .hidden, .ended: (size, verifiedBy) = (part.length, S3VerifiedObject.byAnswer)
                }
                guard size == part.length else {
                    let found = size.map { "has \($0) bytes" } ?? "is not there"
                    return ends(.damaged(api.unusable("the object \(found), and \(part.length) were sent")))
                }
            }
            let tag = S3Tag(etag: etag, checksum: proof.checksum)
            let finished = isSingle ? object(piece, verifiedBy) : nil
            var end = ends(
                .accepted(
                    AcknowledgedPart(index: part.index, size: part.length, tag: tag.text), finished: finished)
            )
            end.isProven = proof.isOfStaging && (isCompared || proof.isConfirmed(by: etag))
            return end
        case 404 where !isSingle:
            return PartSendResult(verdict.isFromOtherServer ? .failed(error) : .gone(error), bytesSent: part.length)
        case 409, 412:
            guard isSingle else { return ends(.failed(error)) }
            let lookup = try await api.lookUp(piece.checkpoint.s3.objectKey, isMade: verdict.isNameConflict)
            if case .hidden = lookup, settings.assignedObject == nil, verdict.isNameConflict {
                return ends(try unseenTaken(piece, error))
            }
            // A request of ours whose answer was lost may have made it.
            if let object = try await S3ObjectFinder(api: api, isSingle: isSingle).found(piece, lookup) {
                return ends(.accepted(AcknowledgedPart(index: 0, size: part.length), finished: object))
            }
            if case .hidden = lookup, settings.assignedObject != nil, verdict.isNameConflict {
                return ends(.failed(api.outcomeUnknown(piece.checkpoint.s3.objectKey)))
            }
            return ends(verdict.isNameConflict ? .startOver(error, cause: .nameTaken) : .failed(error))
        default: return ends(verdict.isDamage ? .damaged(error) : .failed(error))
        }
    }

    /// An object with the key exists that may not be queried, and this single request has not created it.
    private func unseenTaken(_ piece: PartsContext, _ error: UploadError) throws -> PartSendResult.Answer {
        let key = piece.checkpoint.s3.objectKey
        if try key == naming.contentKey(piece.order) {
            return .accepted(
                AcknowledgedPart(index: 0, size: piece.plan.size), finished: object(piece, S3VerifiedObject.byName))
        }
        // The object was ours, or another file's, before this request.
        if api.isThere(key, with: piece.order.file.sha256) {
            return .accepted(
                AcknowledgedPart(index: 0, size: piece.plan.size), finished: object(piece, "held"))
        }
        // An earlier request may have made it whose answer was lost.
        let before = piece.order.partsCheckpoint
        let wasSent = before.mayBeWhole && before.s3.text(of: \.key) == piece.checkpoint.s3.text(of: \.key)
        if wasSent, !api.isTaken(key, from: piece.order.file.sha256) { return .startOver(error.ofDoubt) }
        return .startOver(error, cause: .nameTaken, changes: try naming.noteTaken(piece))
    }

    private func object(_ piece: PartsContext, _ verifiedBy: String) -> RemoteObject {
        S3VerifiedObject.make(piece, at: api, verifiedBy: verifiedBy)
    }
}
