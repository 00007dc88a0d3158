internal import Core
internal import Digests
internal import Linux
internal import Transport

/// A bucket as ``PartsEngine`` needs it: a multipart upload, or for a small file one request that is its only part and
/// completes it.
///
/// Its fields of the checkpoint:
///
/// | field | means |
/// |---|---|
/// | `server` | the host and bucket that have it |
/// | `key` | the object's name, as `FilePath.display` writes it |
/// | `upload` | the service's name for a multipart upload |
/// | `checksum` | the checksum with which it was begun; a later setting counts for later uploads |
/// | `asked_at` | when the service was first asked to begin it (ms since 1970) |
struct S3Dialect: PartsDialect {
    let api: S3API
    /// The whole file is sent in one request.
    let isSingle: Bool

    var settings: S3Settings { api.settings }
    var wire: BucketWire { settings.preset.wire }

    var opensByRequest: Bool { !isSingle }
    var completesByRequest: Bool { !isSingle }
    var repeatsSafely: Bool { true }
    var lastGoesAlone: Bool { false }
    var mayRename: Bool { false }
    /// The digest of the file is checked before a single request leaves.
    var comparesContent: Bool { isSingle }
    var inquiry: PartsInquiry { isSingle ? .none : .list }
    var canAbort: Bool { true }
    var lasting: [String] { settings.assignedObject?.lasting ?? [] }

    /// An object that a service has assigned belongs to the upload at any address.
    func isOurs(_ checkpoint: Checkpoint) -> Bool {
        checkpoint["server"] == api.server || settings.assignedObject != nil
    }

    func failure(_ kind: Failure.Class, _ code: String, _ message: String, retryable: Bool) -> Failure {
        api.client.failure(kind, code, message, retryable: retryable)
    }

    func reserve(for count: Int64) -> Shortage? { api.client.transport.reserve(for: count) }
    func returnPledge(for count: Int64, sent: Int64) { api.client.transport.returnPledge(for: count, sent: sent) }

    func plan(_ order: UploadOrder) throws -> PartPlan {
        guard let plan = plan(forSize: order.file.size) else {
            throw refusal("too_large", "a file of \(order.file.size) bytes is more than the service takes")
        }
        return plan
    }

    /// Parts of AWS: at most 10,000, at most 5 GiB each. The number stays somewhat below the first limit.
    func plan(forSize size: Int64) -> PartPlan? {
        let most = settings.preset.mostParts / 10 * 9
        var wanted = max(settings.partSize, settings.preset.smallestPart)
        if size / most >= wanted { wanted = (size / most / (1 << 20) + 1) * (1 << 20) }
        guard let plan = PartPlan(size: size, partSize: isSingle ? max(1, size) : min(wanted, 5 << 30)),
            plan.count <= settings.preset.mostParts
        else { return nil }
        return plan
    }

    // MARK: Creation

    /// When the upload is stopped, a creation in flight is awaited for this long: an upload without a record can only
    /// be found in a list.
    private static let lastWords: Duration = .milliseconds(800)
    static let mostNames = 10_000

    func begin(_ order: UploadOrder, _ plan: PartPlan, _ checkpoint: inout Checkpoint) async throws {
        if isSingle { return }
        let key = key(checkpoint)
        let orphans = checkpoint.number("orphans")
        var isListed = true
        if orphans > 0 {
            switch try await unanswered(key, since: checkpoint.number("asked_at")) {
            case .one(let left):
                checkpoint["upload"] = left
                checkpoint["found_again"] = "\(checkpoint.number("found_again") + orphans)"
                checkpoint["orphans"] = nil
                return
            case .unclear: break
            case .untold: isListed = false
            }
        }
        checkpoint["upload"] = try await api.creations.make(
            api.client, after: orphans, countsLost: isListed ? .never : .repeated
        ) {
            try await withCancellationGrace(Self.lastWords) { try await create(key, order) }
        }
    }

    /// For an object in the person's own bucket: its key is no secret.
    func name(of checkpoint: Checkpoint) -> (id: String, url: String?)? {
        guard settings.assignedObject == nil, checkpoint["key"] != nil else { return nil }
        let key = key(checkpoint)
        return (key.display, api.address(of: key))
    }

    private func create(_ key: FilePath, _ order: UploadOrder) async throws -> String {
        var headers = objectHeaders(order)
        // No byte may overwrite an existing object.
        if settings.assignedObject != nil { headers.append(wire.unlessThere) }
        if let algorithm = settings.checksum.algorithm {
            headers.append(("x-amz-checksum-algorithm", algorithm))
            headers.append(("x-amz-checksum-type", settings.checksum.kind == nil ? "COMPOSITE" : "FULL_OBJECT"))
        }
        let request = S3Request(
            method: "POST", key: key, query: [("uploads", "")], headers: headers,
            what: "the request to start a multipart upload")
        let response = try await answer(request)
        guard let id = XMLValue.read(response.body)?["UploadId"]?.text, id.utf8.count <= 4096 else {
            throw strange("an answer to the request to start a multipart upload that does not name it")
        }
        return id
    }

    /// The result of looking for a creation that got no answer.
    private enum Unanswered {
        /// The name of the upload that was created.
        case one(String)
        /// There is none, or there are several. Other writers may have created some of them.
        case unclear
        /// The key may not ask for it.
        case untold
    }

    /// Looks for an upload of this key that was created since we asked for one, and has no part: the creation that got
    /// no answer.
    ///
    /// - Parameter asked: ms since 1970. The service's clock may differ a little, and its times may be whole seconds.
    private func unanswered(_ key: FilePath, since asked: Int64) async throws -> Unanswered {
        do {
            let uploads = try await api.uploads(beginningWith: key).filter { $0.key == key }
            let since = uploads.filter { $0.begunAt.map { $0.milliseconds >= asked - 60_000 } ?? false }
            guard since.count == 1, let only = since.first else { return .unclear }
            switch try await api.parts(of: only.id, key) {
            case .list(let parts): return parts.isEmpty ? .one(only.id) : .unclear
            case .refused: return .untold
            case .gone, .none: return .unclear
            }
        } catch let error as UploadError {
            // A key that only allows uploads may not list, and an external signer may refuse to sign lists.
            let isRefused = [S3Presigner.refusal, "AccessDenied", "http_403"].contains(error.failure.code)
            if isRefused { return .untold }
            throw error
        }
    }

    /// Headers for the object when it is made.
    private func objectHeaders(_ order: UploadOrder) -> [(name: String, value: String)] {
        var headers = settings.objectHeaders
        headers.append(("Content-Type", order.mediaType))
        headers.append((wire.digestHeader, hexadecimal(order.file.sha256)))
        // The service that assigned the object has the rest already.
        if settings.assignedObject != nil { return headers }
        headers.append(("\(wire.prefix)meta-mtime", "\(order.modified / 1_000_000_000)"))
        // 2 KiB in all; names are tokens.
        var room = 2000 - 200
        for (name, value) in order.metadata.sorted(by: { $0.key < $1.key }) {
            let word = name.lowercased().filter { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
            guard !word.isEmpty, !value.isEmpty, word != "mtime", !wire.digestHeader.hasSuffix(word) else { continue }
            let isPlain = value.utf8.allSatisfy { (0x20...0x7E).contains($0) }
            // RFC 2047, as the service's documentation requires.
            let text = isPlain ? value : "=?UTF-8?B?\(base64(Array(value.utf8)))?="
            room -= word.utf8.count + text.utf8.count
            guard room >= 0 else { break }
            headers.append(("\(wire.prefix)meta-\(word)", text))
        }
        return headers
    }

    func key(_ checkpoint: Checkpoint) -> FilePath {
        checkpoint["key"].flatMap { FilePath(display: $0) } ?? ""
    }

    // MARK: Parts

    func held(among indices: [Int], _ piece: PartsPiece) async throws -> HeldParts {
        if api.hasNoList { return .unknown }
        switch try await api.parts(of: piece.checkpoint["upload"] ?? "", key(piece.checkpoint)) {
        case .none:
            api.hasNoList = true
            return .unknown
        case .refused(let error):
            if settings.assignedObject != nil { throw error }
            // The service's acknowledgements are trusted: an invalid key is reported with the next part.
            api.partsWereRefused()
            return .unknown
        case .gone(let error): return .gone(error)
        case .list(let parts):
            return .parts(
                parts.map { AcknowledgedPart(index: $0.number - 1, size: $0.size, tag: $0.tag) })
        }
    }

    /// Compares the ETags only: our own tag contains the checksum too.
    func isSame(_ mine: String, _ theirs: String) -> Bool { S3Tag(mine).etag == S3Tag(theirs).etag }

    func send(
        _ part: PartPlan.Part, _ piece: PartsPiece, _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> PartSending {
        do {
            let checksum = checksum(of: piece)
            let proof = try await proof(of: part, piece, checksum)
            if isSingle, proof.sha256 != piece.order.file.sha256 {
                throw piece.order.file.changed("no longer has the content that was staged", failure)
            }
            // For a part the digest is computed when all are there.
            let digest = isSingle ? SentDigest(of: piece.order.file) : nil
            var request = S3Request(
                method: "PUT", key: key(piece.checkpoint), headers: proof.headers,
                body: .file(piece.order.file.place, offset: part.offset, count: part.length, check: digest),
                payload: proof.payload,
                limits: settings.limits.sending, what: "part \(part.index + 1) of \(piece.plan.count)")
            if settings.tellsLimit, let limit = OSS.trafficLimit(api.client.transport.rate) {
                request.headers.append(limit)
            }
            if isSingle {
                request.what = "the file"
                request.headers += objectHeaders(piece.order)
                if settings.taken != .replace, settings.preset.conditions != .none {
                    request.headers.append(wire.unlessThere)
                }
            } else {
                request.query = [("partNumber", "\(part.index + 1)"), ("uploadId", piece.checkpoint["upload"] ?? "")]
                request.further = S3Presigner.behind(part, of: piece.plan)
            }
            let carried = await api.carry(request, sent)
            guard case .success(let answer) = carried.result else {
                var unanswered = PartSending(unanswered: carried, part)
                if let damage = digest?.damage(failure) { unanswered.answer = .failed(damage) }
                return unanswered
            }
            let response = answer.response
            // The part has left and may be there, even if a further question fails.
            do { return try await judge(response, request, part, piece, proof) } catch {
                return PartSending(.failed(error), bytesSent: part.length)
            }
        } catch {
            return PartSending(.failed(error), bytesSent: 0, isRefused: true)
        }
    }

    private func judge(
        _ response: Response, _ request: S3Request, _ part: PartPlan.Part, _ piece: PartsPiece, _ proof: Proof
    ) async throws -> PartSending {
        func ends(_ answer: PartSending.Answer) -> PartSending {
            // After a success an object may exist, even with other content.
            let isThere = isSingle && (200..<300).contains(response.status)
            return PartSending(answer, bytesSent: part.length, isRefused: response.status < 500 && !isThere)
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
                return ends(.failed(strange("\(api.client.host(response.url)) took \(request.what) without an ETag")))
            }
            let theirs = proof.kind.answered.flatMap { response.headers[$0] }
            if let mine = proof.checksum, let theirs, theirs != mine {
                let shown = FilePath(theirs).display
                let words = "the service has \(proof.kind.rawValue) \(shown) of bytes with \(mine)"
                return ends(.damaged(strange("\(request.what): \(words)")))
            }
            // If the service does not repeat a checksum, it may not have compared it: then the tag has to prove the
            // content.
            let isNamed = proof.checksum != nil && theirs != nil
            let isCompared = proof.isCompared(by: settings.preset) && (isNamed || proof.checksum == nil)
            let isHidden = S3API.hidesTags(response)
            var md5 = proof.md5
            if md5 == nil, !isNamed, digits(of: etag, isHidden: isHidden) != nil {
                md5 = try await self.md5(of: part, piece)
            }
            let word = word(of: etag, isHidden: isHidden, against: md5)
            var isTold = false
            switch word {
            case .same: isTold = true
            case .silent: break
            case .other(let words): return ends(.damaged(strange("\(request.what): \(words)")))
            case .unclear(let words):
                return ends(.failed(unclear("\(request.what) at \(api.client.host(response.url)): \(words)")))
            }
            var verifiedBy = isNamed ? proof.kind.rawValue : "etag"
            if isSingle, !isTold, !isNamed, !isCompared {
                // The content at the service was not compared with the sent bytes. Only its size is known.
                verifiedBy = "size"
                var size: Int64?
                switch try await sight(of: key(piece.checkpoint), isMade: true) {
                case .there(let object): size = object.size
                case .nothing: break
                case .hidden, .ended: (size, verifiedBy) = (part.length, Self.byAnswer)
                }
                guard size == part.length else {
                    let found = size.map { "has \($0) bytes" } ?? "is not there"
                    return ends(.damaged(strange("the object \(found), and \(part.length) were sent")))
                }
            }
            let tag = S3Tag(etag: etag, checksum: proof.checksum)
            let finished = isSingle ? object(piece, verifiedBy) : nil
            var end = ends(
                .taken(
                    AcknowledgedPart(index: part.index, size: part.length, tag: tag.text), finished: finished,
                    changes: [:])
            )
            end.isProven = proof.isOfStaging && (isCompared || proof.isTold(by: etag))
            return end
        case 404 where !isSingle: return PartSending(.gone(error), bytesSent: part.length)
        case 409, 412:
            guard isSingle else { return ends(.failed(error)) }
            let sight = try await sight(of: key(piece.checkpoint), isMade: verdict.isOfTaken)
            if case .hidden = sight, settings.assignedObject == nil, verdict.isOfTaken {
                return ends(try unseenTaken(piece, error))
            }
            // A request of ours whose answer was lost may have made it.
            if let object = try await found(piece, sight) {
                return ends(.taken(AcknowledgedPart(index: 0, size: part.length), finished: object, changes: [:]))
            }
            if case .hidden = sight, settings.assignedObject != nil, verdict.isOfTaken {
                return ends(.failed(unseen(key(piece.checkpoint))))
            }
            return ends(verdict.isOfTaken ? .startOver(error) : .failed(error))
        default: return ends(verdict.isDamage ? .damaged(error) : .failed(error))
        }
    }

    // MARK: Words

    private func answer(_ request: S3Request) async throws -> Response { try await api.answer(request) }

    func refusal(_ code: String, _ message: String) -> UploadError {
        UploadError(failure(.permanent, code, message, retryable: false), remedy: .giveUp)
    }

    func strange(_ message: String) -> UploadError {
        UploadError(
            failure(.protocol, AuthorizedClient.unusableAnswer, message, retryable: true), remedy: .again(after: nil))
    }
}
