internal import Core
internal import Digests
internal import Linux
internal import Transport

/// A bucket as ``PartsEngine`` needs it: a multipart upload, or for a small file one request that is its only part and
/// completes it.
struct S3Dialect: PartsDialect {
    let api: S3API
    /// The whole file is sent in one request.
    let isSingle: Bool

    var settings: S3Settings { api.settings }
    private var wire: BucketProtocolNames { settings.preset.wire }
    var naming: S3Naming { S3Naming(api: api, isSingle: isSingle) }
    private var partition: S3PartLayout { api.bucket.partition(isSingle: isSingle) }
    var digests: S3PartDigests { S3PartDigests(api: api, isSingle: isSingle) }
    private var finder: S3ObjectFinder { S3ObjectFinder(api: api, isSingle: isSingle) }
    private var comparison: S3ObjectComparison { S3ObjectComparison(api: api, isSingle: isSingle) }

    /// OSS's code when another file has the key.
    static let isThere = Failure.Code.service("FileAlreadyExists")

    var opensByRequest: Bool { !isSingle }
    var completesByRequest: Bool { !isSingle }
    var repeatsSafely: Bool { true }
    var lastGoesAlone: Bool { false }
    var mayRename: Bool { false }
    /// The digest of the file is checked before a single request leaves.
    var comparesContent: Bool { isSingle }
    var inquiry: PartsInquiry { isSingle ? .none : .list }
    var canAbort: Bool { true }
    var lasting: [String] { S3Checkpoint.lasting + (settings.assignedObject?.lasting ?? []) }

    func sizeKey(ofPart length: Int64) -> String? {
        isSingle ? "single_up_to" : length > settings.preset.smallestPart ? "part_size" : nil
    }
    func accepted(_ length: Int64) { api.bucket.requestSize.accepted(length) }
    func cut(_ length: Int64) {
        if length > settings.preset.smallestPart { api.bucket.requestSize.recordNothingKept(length) }
    }

    /// An object that a service has assigned belongs to the upload at any address.
    func isOurs(_ checkpoint: PartsCheckpoint) -> Bool {
        checkpoint.s3.server == api.server || settings.assignedObject != nil
    }

    func failure(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, retryable: Bool) -> Failure {
        api.client.failure(kind, code, message, retryable: retryable)
    }

    func charging(upload id: String) -> S3Dialect {
        S3Dialect(api: S3API(bucket: api.bucket, context: api.context.charging(upload: id)), isSingle: isSingle)
    }

    func reserve(for count: Int64) async -> Shortage? { await api.context.permit.reserve(for: count) }
    func returnReservation(for count: Int64, sent: Int64) {
        api.context.permit.returnReservation(for: count, sent: sent)
    }

    func plan(_ order: UploadOrder) throws -> PartPlan {
        guard let plan = partition.plan(forSize: order.file.size) else {
            throw api.fileRefusal(.tooLarge, "a file of \(order.file.size) bytes is more than the service takes")
        }
        return plan
    }

    // MARK: Creation

    /// When the upload is stopped, a creation in flight is awaited for this long: an upload without a record can only
    /// be found in a list.
    private static let cancellationGrace: Duration = .milliseconds(800)

    func begin(_ order: UploadOrder, _ plan: PartPlan, _ checkpoint: inout PartsCheckpoint) async throws {
        if isSingle { return }
        let key = checkpoint.s3.objectKey
        let orphans = checkpoint.orphans ?? 0
        var isListed = true
        if orphans > 0 {
            switch try await findUnansweredCreation(key, since: checkpoint.s3.askedAt ?? 0) {
            case .one(let left):
                checkpoint.s3.upload = left
                checkpoint.creationsFound = (checkpoint.creationsFound ?? 0) + orphans
                checkpoint.orphans = nil
                return
            case .unclear: break
            case .notAllowed: isListed = false
            }
        }
        checkpoint.s3.upload = try await api.creations.make(
            api.client, after: orphans, countsLost: isListed ? .never : .repeated
        ) {
            try await withCancellationGrace(Self.cancellationGrace) { try await create(key, order) }
        }
    }

    /// For an object in the person's own bucket: its key is no secret.
    func name(of checkpoint: PartsCheckpoint) -> (id: String, url: String?)? {
        guard settings.assignedObject == nil, checkpoint.s3.has(\.key) else { return nil }
        let key = checkpoint.s3.objectKey
        return (key.display, api.address(of: key))
    }

    private func create(_ key: FilePath, _ order: UploadOrder) async throws -> String {
        var headers = S3ObjectHeaders.make(order, settings)
        // No byte may overwrite an existing object.
        if settings.assignedObject != nil { headers.append(wire.unlessThere) }
        if let algorithm = settings.checksum.algorithm {
            headers.append(("x-amz-checksum-algorithm", algorithm))
            headers.append(("x-amz-checksum-type", settings.checksum.kind == nil ? "COMPOSITE" : "FULL_OBJECT"))
        }
        let request = S3Request(
            method: "POST", key: key, query: [("uploads", "")], headers: headers,
            what: "the request to start a multipart upload")
        let response = try await api.answer(request)
        guard let id = XMLValue.read(response.body)?["UploadId"]?.text, id.utf8.count <= 4096 else {
            throw api.unusable("an answer to the request to start a multipart upload that does not name it")
        }
        return id
    }

    /// The result of looking for a creation that got no answer.
    private enum CreationSearch {
        /// The name of the upload that was created.
        case one(String)
        /// There is none, or there are several. Other writers may have created some of them.
        case unclear
        /// The key may not ask for it.
        case notAllowed
    }

    /// Looks for an upload of this key that was created since our request, and has no part: the creation that got
    /// no answer.
    ///
    /// - Parameter asked: ms since 1970. The service's clock may differ a little, and its times may be whole seconds.
    private func findUnansweredCreation(_ key: FilePath, since asked: Int64) async throws -> CreationSearch {
        do {
            let uploads = try await api.uploads(beginningWith: key).filter { $0.key == key }
            let since = uploads.filter { $0.begunAt.map { $0.milliseconds >= asked - 60_000 } ?? false }
            guard since.count == 1, let only = since.first else { return .unclear }
            switch try await api.parts(of: only.id, key) {
            case .list(let parts): return parts.isEmpty ? .one(only.id) : .unclear
            case .refused: return .notAllowed
            case .gone, .none: return .unclear
            }
        } catch let error as UploadError {
            // A key that only allows uploads may not list, and an external signer may refuse to sign lists.
            if error.failure.code == .signerRefused || S3API.isAccessDenied(error) { return .notAllowed }
            throw error
        }
    }

    // MARK: Parts

    func held(among indices: [Int], _ piece: PartsContext) async throws -> RemoteParts {
        try await S3PartList(api: api).held(piece)
    }

    func isSame(_ mine: String, _ theirs: String) -> Bool { S3PartList.isSame(mine, theirs) }

    func confirmsContent(for part: AcknowledgedPart, _ place: PartPlan.Part, _ piece: PartsContext) async throws -> Bool
    {
        try await comparison.confirmsContent(for: part, place, piece)
    }

    func send(
        _ part: PartPlan.Part, _ piece: PartsContext, _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> PartSendResult {
        await S3PartSender(api: api, isSingle: isSingle).send(part, piece, sent)
    }

    // MARK: The key

    func chooseName(
        _ order: UploadOrder, _ plan: PartPlan, _ checkpoint: inout PartsCheckpoint, restarts: Int64
    ) async throws -> RemoteObject? {
        if let assignedObject = settings.assignedObject {
            note(assignedObject.key, in: &checkpoint)
            return try await held(at: assignedObject, order, plan, restarts)
        }
        switch try await naming.choose(order, plan, checkpoint, restarts: restarts) {
        case .free(let key): note(key, in: &checkpoint)
        case .held(let object): return object
        }
        return nil
    }

    private func note(_ key: FilePath, in checkpoint: inout PartsCheckpoint) {
        checkpoint.s3.server = api.server
        checkpoint.s3.key = key
        checkpoint.s3.checksum = settings.checksum
        if !checkpoint.s3.has(\.askedAt) { checkpoint.s3.askedAt = api.client.clocks.wall().milliseconds }
    }

    /// An object whose key was assigned by the service that gave the right to it. No question is sent before the first
    /// start: the service has made the key for this file.
    private func held(
        at assignedObject: S3AssignedObject, _ order: UploadOrder, _ plan: PartPlan, _ restarts: Int64
    ) async throws -> RemoteObject? {
        guard restarts > 0 else { return nil }
        let held = RemoteObject(
            id: assignedObject.key.display, url: api.address(of: assignedObject.key), verifiedBy: "held")
        switch try await api.lookUp(assignedObject.key) {
        case .nothing: return nil
        case .hidden, .ended: return try await assignedObject.isWhole() == true ? held : nil
        case .there(let there):
            switch try await comparison.compare(there, at: assignedObject.key, with: order.file, plan, isOurs: true) {
            case .same: return held
            case .damaged(let error): throw error
            case .other:
                throw UploadError(
                    failure(
                        .protocol, .otherThere,
                        "\(api.address(of: assignedObject.key)), which was given for this file, has other content",
                        retryable: true), remedy: .refused(after: nil))
            }
        }
    }

    /// An object that has the key now did not exist when the upload was begun: it is not overwritten.
    func resumption(_ piece: PartsContext, isPerhapsThere: Bool) async throws -> PartsResumption {
        let key = piece.checkpoint.s3.objectKey
        try naming.reserve(key, piece.order)
        guard isPerhapsThere || !naming.isGuarded && settings.taken != .replace else { return .goesOn }
        let there: S3API.Object
        switch try await api.lookUp(key) {
        case .there(let object): there = object
        case .nothing: return .goesOn
        case .hidden, .ended:
            if settings.assignedObject == nil, settings.taken != .replace, !naming.isGuarded {
                throw try await naming.unguarded()
            }
            return try await settings.assignedObject?.isWhole() == true ? .finished(object(piece, "held")) : .goesOn
        }
        switch try await comparison.compare(there, at: key, with: piece.order.file, piece.plan, isOurs: true) {
        case .damaged(let error): throw error
        case .other: break
        case .same:
            // No request to assemble the parts was sent, so they did not become this object. They are removed.
            return isSingle || isPerhapsThere
                ? .finished(object(piece, "held")) : .lost("\(api.address(of: key)) exists by now")
        }
        return settings.taken == .replace || naming.isGuarded
            ? .goesOn : .lost("\(api.address(of: key)) belongs to another file by now")
    }

    // MARK: The object

    func complete(_ parts: [AcknowledgedPart], _ piece: PartsContext) async -> PartsCompletion {
        await S3Completion(api: api, isSingle: isSingle).complete(parts, piece)
    }

    private func object(_ piece: PartsContext, _ verifiedBy: String) -> RemoteObject {
        S3VerifiedObject.make(piece, at: api, verifiedBy: verifiedBy)
    }

    func found(_ piece: PartsContext) async throws -> RemoteObject? { try await finder.found(piece) }
    func isAbsent(_ piece: PartsContext) async throws -> Bool { try await finder.isAbsent(piece) }

    func abort(_ checkpoint: PartsCheckpoint) async throws -> Bool {
        if let upload = checkpoint.s3.upload, try await !api.abort(upload, checkpoint.s3.objectKey) { return false }
        let isPerhapsWhole =
            checkpoint.isCompleting || checkpoint.s3.upload == nil && checkpoint.mayBeWhole
        return isPerhapsWhole ? try await !finder.isWhole(checkpoint) : true
    }
}
