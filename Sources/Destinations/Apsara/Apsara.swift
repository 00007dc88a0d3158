internal import Core
internal import Credentials
internal import Transport

/// ApsaraVideo VOD at Alibaba Cloud. Each file becomes a medium; its bytes go to the storage that VOD names for it, in
/// the protocol of ``OSS``.
struct Apsara: Destination {
    let authority: any ApsaraUploadIssuer
    var settings: ApsaraSettings
    let client: AuthorizedClient
    let clock = ServiceClock()
    private let judged: JudgedAddress
    var site: DestinationSite { judged.site }
    /// The origins that an answer may name as storage.
    let allowed: AllowedOrigins
    let grants = RenewedCredentials()
    let creations = CreationBackoff()

    /// Domains of the storage: `oss-REGION.aliyuncs.com` and its variants (OSS documentation, "Regions and endpoints").
    static let domains = ["aliyuncs.com"]

    init(_ values: [String: SettingValue], _ tools: DestinationTools) throws {
        // The loader has reported all of them, with their places.
        if let objection = Self.objections(values).first {
            throw UnusableSettingError(key: objection.key, problem: objection.problem)
        }
        settings = ApsaraSettings.keys.settings(values)
        let source = settings.authority.source
        var homes = [settings.endpoint ?? ApsaraAPI.endpoint(settings.region)]
        if case .service(let url, _, _)? = source { homes = [url] }
        if case .command? = source { homes = [] }
        allowed = AllowedOrigins(homes: homes, domains: Self.domains, remedy: .inPlace("upload_endpoint"))
        client = AuthorizedClient(
            tools, origins: Set((homes + [settings.uploadEndpoint].compactMap { $0 }).map { WebAddress($0).origin }))
        let storage = "https://\(settings.addressKind.host(in: settings.region))"
        if let source {
            authority = ApsaraService(
                service: CredentialHelper(
                    source, role: "the authorisation service", code: .authorisationUnusable, client: client,
                    reader: tools.secrets, reply: settings.bucket.limits.reply))
            judged = tools.judged(settings.uploadEndpoint ?? storage)
            return
        }
        guard let access = S3Access(settings.bucket.access),
            let keys = access.keys(client, tools, reply: settings.bucket.limits.reply)
        else {
            throw UnusableSettingError(key: "access_key", problem: "is missing")
        }
        authority = ApsaraAPI(
            client: client, keys: keys, endpoint: settings.endpoint ?? ApsaraAPI.endpoint(settings.region),
            version: settings.version, clock: clock, rights: access.shown, limits: settings.bucket.limits.small)
        judged = tools.judged(settings.uploadEndpoint ?? settings.endpoint ?? storage)
    }

    func requestedDigests(forSize size: Int64) -> [PartDigests.RequestedDigest] {
        let isSingle = size <= settings.bucket.singleUpTo && !settings.fields.needsEnd
        return partition(isSingle: isSingle).requestedDigests(forSize: size)
    }

    func uncutPiece(ofSize size: Int64?) -> IndivisibleRequest? {
        let isSingle = size.map { $0 <= settings.bucket.singleUpTo && !settings.fields.needsEnd } ?? false
        return partition(isSingle: isSingle).uncutPiece(ofSize: size)
    }

    /// A medium that stands for the file's own until VOD has said where the file goes.
    private var undecided: ApsaraMedium {
        ApsaraMedium(
            sort: .video, endpoint: settings.uploadEndpoint ?? "https://nowhere", bucket: "nowhere", key: "nowhere")
    }

    private func partition(isSingle: Bool) -> S3PartLayout {
        let bucket = bucketSettings(of: undecided)
        return S3PartLayout(
            settings: bucket, isSecure: WebAddress(bucket.endpoint).scheme == "https", isSingle: isSingle)
    }

    /// - Throws: ``UploadError`` where a quota leaves less than the first part needs.
    private func checkQuota(
        _ order: UploadOrder, isSingle: Bool, _ reporter: any UploadReporter, _ context: RequestContext
    ) async throws {
        let noKeys = ApsaraKeys(
            ApsaraGrant(key: S3Key(id: "", secret: "")), left: .zero, clocks: client.clocks, clock: clock
        ) { _, _ in throw CancellationError() }
        let dialect = dialect(of: undecided, noKeys, isSingle: isSingle, nil, context) { nil }
        try await engine(dialect).checkQuota(order, reporter)
    }

    /// Whether one request takes the whole file. An upload keeps the way in which it was begun.
    private func isSingle(_ order: UploadOrder, _ metadata: ApsaraFields.MetadataFields) -> Bool {
        let begun = order.partsCheckpoint
        return begun.isBegun
            ? begun.s3.upload == nil : order.file.size <= settings.bucket.singleUpTo && metadata.notification == nil
    }

    private func engine(_ dialect: S3Dialect) -> PartsEngine {
        PartsEngine(
            dialect: dialect, parallel: settings.bucket.parallel, gone: .reupload, resumes: settings.resumes)
    }

    func upload(
        _ order: UploadOrder, reporter: any UploadReporter, context: RequestContext
    ) async throws -> RemoteObject {
        guard let sort = ApsaraMediaKind.of(order.name) else {
            throw refusal(
                .notMedia,
                "its name has no extension of a video, audio or image file that VOD accepts; `include` can leave it out"
            )
        }
        guard order.file.size > 0 else {
            throw refusal(.emptyFile, "an empty file makes no medium; it is not sent")
        }
        let metadata: ApsaraFields.MetadataFields
        do { metadata = try settings.fields.metadata(of: order, as: sort) } catch {
            throw refusal(.metadataRefused, error.text)
        }
        var order = order
        if let medium = Self.transferred(order.partsCheckpoint) {
            switch try await verified(medium, order, order.partsCheckpoint, reporter, context) {
            case .done(let object): return object
            case .again(let fresh): order.checkpoint = fresh.stored
            }
        }
        // An upload that has to wait makes no medium.
        try await checkQuota(order, isSingle: isSingle(order, metadata), reporter, context)
        defer { grants.release(of: order.id) }
        var checkpoint = order.partsCheckpoint
        var request = ApsaraUploadRequest(
            sort: sort, name: Self.shown(order.name), size: order.file.size,
            sha256: order.file.sha256, reference: "", metadata: metadata)
        let place: Place
        switch try await self.place(for: order, &checkpoint, &request, reporter, context) {
        case .place(let found): place = found
        case .whole(let medium):
            return try await ended(
                medium, order, checkpoint, object(medium, "held", metadata.warnings), reporter, context)
        }
        if let id = place.medium.id { try await reporter.recordName(id) }
        // The checkpoint is recorded with its medium, so that the medium is used once the objection is resolved.
        if let objection = objection(to: place.medium) { throw objection }
        // A removal needs this name when the file no longer exists.
        checkpoint.apsara.file = request.name
        order.checkpoint = checkpoint.stored
        let remote = try await send(order, place, request, reporter, context)
        grants.forget(order.id)
        creations.succeeded()
        let made = object(place.medium, remote.verifiedBy, remote.warnings + metadata.warnings + lostMedia(checkpoint))
        return try await ended(place.medium, order, checkpoint, made, reporter, context)
    }

    private func send(
        _ order: UploadOrder, _ place: Place, _ request: ApsaraUploadRequest, _ reporter: any UploadReporter,
        _ context: RequestContext
    ) async throws -> RemoteObject {
        let (authority, grants, client, medium) = (authority, grants, client, place.medium)
        let reporter = ApsaraReporter(reporter, order.checkpoint ?? Checkpoint())
        let creations = creations
        let keys = ApsaraKeys(
            place.grant, left: place.left, clocks: client.clocks, clock: clock,
            renewsForQuestions: !authority.reportsCompletion,
            renewsEarly: medium.sort != .image
        ) { [clock] reason, context in
            guard authority.renews(medium) else {
                grants.invalidate(order.id)
                throw client.moved()
            }
            // VOD gives no new right to an existing picture, so each request may make another picture.
            if medium.sort == .image { try creations.check(client) }
            let ticket: ApsaraUploadTicket
            do { ticket = try await authority.renew(medium, request, context) } catch let error as UploadError {
                if ApsaraVerdict.isGone(error) { grants.invalidate(order.id) }
                // The request may have made another picture.
                if medium.sort == .image, error.isUnanswered { throw creations.failed(error, client) }
                throw error
            }
            client.conceal(ticket.grant)
            let life = ApsaraKeys.life(of: ticket.grant, now: client.clocks.wall(), ahead: clock.ahead)
            let until = client.clocks.wall().advanced(by: life)
            guard ticket.medium.isAt(medium) else {
                // The next attempt uses this medium, also after a restart: asking again might make another one.
                try await reporter.moved(to: ticket, until: until)
                grants.forget(order.id)
                throw creations.failed(client.moved(), client)
            }
            grants.keep(ticket.grant, until: until, for: order.id)
            try await reporter.credential(CredentialRenewal(reason: reason, until: until))
            return ticket.grant
        }
        let dialect = dialect(
            of: medium, keys, isSingle: isSingle(order, request.metadata), request.metadata.notification, context
        ) {
            try await authority.isWhole(medium, size: order.file.size, context)
        }
        let engine = engine(dialect)
        do { return try await engine.upload(order, reporter) } catch let error as UploadError {
            switch error.failure.code {
            case .mediaMoved: try await reporter.flush()
            case .otherThere:
                // The object at this address belongs to another file and stays. This file gets a medium of its own.
                let old = order.partsCheckpoint.stored
                try await reporter.renewed(
                    old.keeping(ApsaraCheckpoint.lasting + PartsCheckpoint.lasting), leaving: nil)
            case S3Dialect.isThere:
                // There was no record of this medium: an attempt may have sent it before the database was lost. The
                // engine checks it before it sends a byte.
                var checkpoint = order.partsCheckpoint
                if checkpoint.has(\.restarts) { throw dialect.api.outcomeUnknown(medium.key) }
                checkpoint.restarts = 1
                var again = order
                again.checkpoint = checkpoint.stored
                return try await engine.upload(again, reporter)
            default: break
            }
            throw error
        }
    }

    // MARK: The storage

    /// The dialect for a medium's object, as the engine needs it.
    func dialect(
        of medium: ApsaraMedium, _ keys: ApsaraKeys, isSingle: Bool, _ notification: JSONValue?,
        _ context: RequestContext, isWhole: @escaping @Sendable () async throws -> Bool?
    ) -> S3Dialect {
        var bucket = bucketSettings(of: medium)
        var assignedObject = S3AssignedObject(
            key: medium.key,
            lasting: ApsaraCheckpoint.ofTicket + ApsaraCheckpoint.lasting + [ApsaraCheckpoint.fields.file.name],
            isWhole: isWhole)
        if let bytes = try? notification?.bytes { assignedObject.ending = [("x-oss-notification", base64(bytes))] }
        bucket.assignedObject = assignedObject
        let signer = S3KeySigner(keys, client: client, settings: bucket, clock: clock)
        let storage = S3Bucket(client: client, settings: bucket, signer: signer, rights: "the upload credential")
        return S3Dialect(api: S3API(bucket: storage, context: context), isSingle: isSingle)
    }

    /// The settings of the bucket that a medium is in.
    private func bucketSettings(of medium: ApsaraMedium) -> S3Settings {
        var bucket = settings.bucket
        bucket.endpoint = endpoint(of: medium)
        bucket.bucket = medium.bucket
        let host = WebAddress(bucket.endpoint).host
        let region = OSS.region(ofHost: host)
        bucket.region = region ?? medium.region ?? settings.region
        // Version 1 needs no region, so it is safe where the region is only guessed.
        bucket.signing = settings.signing ?? (region == nil ? .v1 : .v4)
        // A bucket name cannot stand before an IP address.
        bucket.isVirtual = IPAddress(host.filter { $0 != "[" && $0 != "]" }) == nil
        return bucket
    }

    /// Returns an error when the storage that VOD or the person's service names for a medium is no host of the storage
    /// service.
    func objection(to medium: ApsaraMedium) -> UploadError? {
        settings.uploadEndpoint == nil ? client.objection(to: medium.endpoint, allowed) : nil
    }

    private func endpoint(of medium: ApsaraMedium) -> String {
        if let own = settings.uploadEndpoint { return own }
        guard settings.addressKind != .public, let region = OSS.region(ofHost: WebAddress(medium.endpoint).host) else {
            return allowed.place(of: medium.endpoint)?.url ?? medium.endpoint
        }
        return "https://\(settings.addressKind.host(in: region))"
    }

    // MARK: Other queries

    /// The medium stays, and takes the file from its first byte.
    func lasting(of checkpoint: Checkpoint) -> Checkpoint {
        checkpoint.keeping(
            PartsCheckpoint.lasting + ApsaraCheckpoint.ofTicket + ApsaraCheckpoint.lasting
                + [ApsaraCheckpoint.fields.file.name])
    }

    func obstacleToRemoving(test order: UploadOrder, context: RequestContext) async -> String? {
        "Sluice removes no finished medium at ApsaraVideo VOD"
    }

    func discard(_ checkpoint: Checkpoint, context: RequestContext) async throws(UploadError) -> Bool {
        let checkpoint = PartsCheckpoint(checkpoint)
        if checkpoint.stored.isFinished || Self.transferred(checkpoint) != nil { return false }
        // A request whose answer was lost may have made an empty medium.
        guard let medium = ApsaraMedium(checkpoint.apsara) else { return !checkpoint.apsara.isAsking }
        let mayBeWhole =
            checkpoint.isCompleting || checkpoint.s3.upload == nil && checkpoint.mayBeWhole
        guard checkpoint.s3.upload != nil || mayBeWhole else { return true }
        guard objection(to: medium) == nil else { return false }
        do {
            let (authority, client, size) = (authority, client, checkpoint.size ?? 0)
            let request = ApsaraUploadRequest(
                sort: medium.sort, name: checkpoint.apsara.file ?? medium.key.name.display,
                size: checkpoint.size ?? 0, sha256: checkpoint.sha256.flatMap { bytes(hexadecimal: $0) } ?? [],
                reference: checkpoint.apsara.reference ?? "", metadata: ApsaraFields.MetadataFields())
            let renewed: @Sendable (CredentialRenewal.Reason, RequestContext) async throws -> ApsaraGrant = {
                _, context in
                // VOD gives the right to a picture only with a new picture, which is not wanted here.
                guard medium.sort != .image else { throw client.moved() }
                let ticket = try await authority.renew(medium, request, context)
                client.conceal(ticket.grant)
                guard ticket.medium.isAt(medium) else { throw client.moved() }
                return ticket.grant
            }
            let grant: ApsaraGrant
            if let kept = ApsaraGrant.read(checkpoint.apsara, now: client.clocks.wall())?.grant {
                grant = kept
            } else {
                // No new grant is requested for a medium that may be complete: VOD would take that as a request to
                // overwrite it.
                if mayBeWhole {
                    guard try await authority.isWhole(medium, size: size, context) == false else { return false }
                    if checkpoint.s3.upload == nil { return true }
                }
                grant = try await renewed(.ending, context)
            }
            let keys = ApsaraKeys(
                grant, left: ApsaraKeys.longestLife, clocks: client.clocks, clock: clock, renewal: renewed)
            return try await dialect(of: medium, keys, isSingle: false, nil, context) {
                try await authority.isWhole(medium, size: size, context)
            }.abort(checkpoint)
        } catch let error as UploadError {
            if ApsaraVerdict.isGone(error) { return true }
            if [.service("AccessDenied"), .mediaMoved].contains(error.failure.code) { return false }
            throw error
        } catch {
            throw UploadError(
                client.failure(.cancelled, .cancelled, "the removal was stopped", retryable: true),
                remedy: .retry(after: nil))
        }
    }

    func find(_ order: UploadOrder, context: RequestContext) async throws(UploadError) -> RemoteLookup {
        .unknown("VOD gives no digest of its media, and two media may have one title")
    }

    // MARK: Words

    func object(_ medium: ApsaraMedium, _ verifiedBy: String, _ warnings: [String]) -> RemoteObject {
        RemoteObject(
            id: medium.id ?? medium.key.display, url: medium.imageURL, verifiedBy: verifiedBy, warnings: warnings)
    }

    private func lostMedia(_ checkpoint: PartsCheckpoint) -> [String] {
        let count = checkpoint.apsara.lostMedia ?? 0
        let left = checkpoint.apsara.leftMedia ?? 0
        var words: [String] = []
        if count > 0 {
            words.append("\(count) request(s) for a medium got no answer: VOD may hold as many empty ones")
        }
        if left > 0 {
            let media = left == 1 ? "1 medium is left empty" : "\(left) media are left empty"
            words.append("the credential expired before the file was complete, and VOD gave another medium: \(media)")
        }
        if let failed = checkpoint.apsara.failedMedia {
            words.append(
                "VOD could not process the file that was sent before, which is still there: \(FilePath(failed).display)"
            )
        }
        if let lost = checkpoint.apsara.sentTwiceMedia {
            words.append(
                "it was sent again because \(FilePath(lost).display) was not found there: it may be there twice")
        }
        return words
    }

    /// A path that VOD can show. VOD treats `\` like `/`, and might leave nothing before the ending.
    private static func shown(_ name: FilePath) -> String {
        let isPlain = !name.bytes.contains { $0 < 0x20 || $0 == 0x7F }
        return ((isPlain ? name.text : nil) ?? name.display).replacing("\\", with: "_")
    }

    func refusal(_ code: Failure.Code, _ message: String) -> UploadError {
        UploadError(client.failure(.permanent, code, message, retryable: false), remedy: .failUpload)
    }
}

extension AuthorizedClient {
    func moved() -> UploadError {
        UploadError(
            failure(
                .transient, .mediaMoved, "VOD has given the file another address; it starts again there",
                retryable: true), remedy: .retry(after: .zero))
    }
}
