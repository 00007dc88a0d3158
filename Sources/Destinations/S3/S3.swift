internal import Core
internal import Credentials
internal import Transport

/// A bucket at Amazon S3, or at a service or server that speaks its protocol.
struct S3: ObjectListing, UnfinishedListing {
    let bucket: S3Bucket
    private let judged: JudgedAddress
    var site: DestinationSite { judged.site }

    init(_ values: [String: SettingValue], _ tools: DestinationTools) throws {
        // The loader has reported all of them, with their places.
        if let objection = Self.objections(values).first {
            throw UnusableSettingError(key: objection.key, problem: objection.problem)
        }
        guard let settings = Self.settings(values) else {
            throw UnusableSettingError(key: "bucket", problem: "is missing")
        }
        guard let access = S3Access(settings.access) else {
            throw UnusableSettingError(key: "access_key", problem: "is missing")
        }
        self.init(settings, access, tools)
    }

    init(_ settings: S3Settings, _ access: S3Access, _ tools: DestinationTools) {
        let address = settings.endpoint.replacing("{region}", with: settings.region)
        let client = AuthorizedClient(tools, origins: settings.origins)
        bucket = S3Bucket(
            client: client, settings: settings, signer: access.signer(settings, client, tools), rights: access.shown,
            log: tools.log)
        // The route to the bucket is judged; where the bucket is on this machine, the route to the signer.
        let (endpoint, signer) = (WebAddress(address), access.signerAddress)
        judged = tools.judged((endpoint.isLoopback ? signer ?? endpoint : endpoint).description)
    }

    private func api(_ context: RequestContext) -> S3API { S3API(bucket: bucket, context: context) }

    private func engine(_ context: RequestContext, isSingle: Bool) -> PartsEngine {
        PartsEngine(
            dialect: S3Dialect(api: api(context), isSingle: isSingle), parallel: bucket.settings.parallel,
            gone: .reupload)
    }

    var requestSize: RequestSize? { bucket.requestSize.learned }
    func recall(_ size: RequestSize) { bucket.requestSize.recall(size) }

    func requestedDigests(forSize size: Int64) -> [PartDigests.RequestedDigest] {
        bucket.partition(isSingle: bucket.isSingle(size)).requestedDigests(forSize: size)
    }

    func uncutPiece(ofSize size: Int64?) -> IndivisibleRequest? {
        bucket.partition(isSingle: size.map { bucket.isSingle($0) } ?? false).uncutPiece(ofSize: size)
    }

    func upload(
        _ order: UploadOrder, reporter: any UploadReporter, context: RequestContext
    ) async throws -> RemoteObject {
        defer { bucket.release(of: [order.id]) }
        // An upload keeps the way in which it was begun.
        let begun = order.partsCheckpoint
        let isSingle = begun.isBegun ? begun.s3.upload == nil : bucket.isSingle(order.file.size)
        if isSingle, !bucket.isSingle(order.file.size), PartCuts.isSuspected(begun), !begun.mayBeWhole {
            // The path cuts a request of this size, and no object can exist: the file goes in parts.
            var order = order
            order.checkpoint = begun.stored.keeping(PartsCheckpoint.lasting + S3Checkpoint.lasting)
            return try await engine(context, isSingle: false).upload(order, reporter)
        }
        return try await engine(context, isSingle: isSingle).upload(order, reporter)
    }

    /// Each file is one request; the files share the records before and after it. Together they are no larger than the
    /// largest file that one request takes by default.
    var bundling: Bundling? {
        Bundling(largest: min(1 << 20, bucket.settings.singleUpTo), files: 32, bytes: 16 << 20)
    }

    func upload(
        together orders: [UploadOrder], reporter: any BundleReporter, context: RequestContext
    ) async throws -> [String: RemoteObject] {
        defer { bucket.release(of: Set(orders.map(\.id))) }
        return try await engine(context, isSingle: true).upload(together: orders, reporter)
    }

    func lasting(of checkpoint: Checkpoint) -> Checkpoint { checkpoint.keeping(PartsCheckpoint.lasting) }

    func discard(_ checkpoint: Checkpoint, context: RequestContext) async throws(UploadError) -> Bool {
        // A complete object stays: another upload may be counted as done because of it.
        if checkpoint.isFinished { return false }
        return try await bucket.client.stoppable {
            try await engine(context, isSingle: false).discard(PartsCheckpoint(checkpoint))
        }
    }

    func obstacleToRemoving(test order: UploadOrder, context: RequestContext) async -> String? {
        let api = api(context)
        if api.isPresigned { return "a signer gives no addresses for removals" }
        do {
            // No object has this name, and the same key that may remove nothing gets a refusal.
            return try await api.remove(order.name) ? nil : "the key may not delete objects (\(api.deleteRight))"
        } catch {
            // The upload meets the same error, and reports it.
            return nil
        }
    }

    func remove(
        test order: UploadOrder, _ checkpoint: Checkpoint, context: RequestContext
    ) async throws(UploadError) -> Bool {
        try await bucket.client.stoppable {
            let parts = PartsCheckpoint(checkpoint)
            if parts.s3.upload != nil, !checkpoint.isFinished {
                _ = try await engine(context, isSingle: false).discard(parts)
            }
            return try await api(context).remove(parts.s3.key ?? order.name)
        }
    }

    func find(_ order: UploadOrder, context: RequestContext) async throws(UploadError) -> RemoteLookup {
        try await bucket.client.stoppable {
            let dialect = S3Dialect(
                api: api(context), isSingle: bucket.isSingle(order.file.size))
            return
                switch try await dialect.naming.name(
                    for: order, try dialect.plan(order), PartsCheckpoint(), isTaking: false)
            {
            case .held(let object): .found(object)
            case .free: .absent
            }
        }
    }

    func list(after mark: String?, context: RequestContext) async throws(UploadError) -> RemotePage {
        try await bucket.client.stoppable { try await api(context).objects(after: mark) }
    }

    func unfinished(context: RequestContext) async throws(UploadError) -> [RemoteUnfinished] {
        try await bucket.client.stoppable {
            try await api(context).uploads(beginningWith: "").map { upload in
                var checkpoint = PartsCheckpoint()
                checkpoint.isBegun = true
                checkpoint.s3.server = bucket.server
                checkpoint.s3.key = upload.key
                checkpoint.s3.upload = upload.id
                return RemoteUnfinished(
                    id: upload.id, name: upload.key.display, begunAt: upload.begunAt, checkpoint: checkpoint.stored)
            }.sorted { ($0.begunAt?.milliseconds ?? 0, $0.id) < ($1.begunAt?.milliseconds ?? 0, $1.id) }
        }
    }

    func check(context: RequestContext) async -> CheckResult {
        let api = api(context)
        do {
            do {
                let page = try await api.objects(after: nil)
                let count = page.next == nil ? "\(page.items.count)" : "more than \(page.items.count)"
                let right = api.isPresigned ? "the signer's addresses work" : "the key is good"
                return CheckResult(.ok, "\(right), and the bucket has \(count) object(s)").about(.credentials)
            } catch let error as UploadError where error.failure.code == .signerRefused {
                // Uploads work without the list.
                _ = try await api.status(at: "sluice-check")
                return CheckResult(.ok, "the signer's addresses work; \(error.failure.message)").about(.credentials)
            } catch let error as UploadError where S3API.isAccessDenied(error) {
                return try await checkWriting(api).about(.flow)
            }
        } catch let error as UploadError {
            let isSaid = error.failure.message.contains(api.rights)
            return CheckResult(.failed, error.checkDescription(right: isSaid ? nil : api.rights))
        } catch { return CheckResult(.failed, "the check was stopped") }
    }

    /// The key may not list. Nothing is written to find out whether it may write.
    private func checkWriting(_ api: S3API) async throws -> CheckResult {
        let place: FilePath = "sluice-check"
        do {
            _ = try await api.readObject(at: place)
            return CheckResult(
                .ok,
                "the key is good; it may read objects, and not list them (\(api.listRight)): `sluice remote` needs that"
            )
        } catch is S3API.MissingPermissionError {
            _ = try await api.hasUpload("sluice-check", place)
        }
        let dialect = S3Dialect(api: api, isSingle: false)
        let lacking =
            "the key may write, and neither list (\(api.listRight)) nor, it seems, read objects (\(api.lookupRights)): "
        if api.settings.taken == .replace {
            return CheckResult(.ok, lacking + "existing objects are overwritten without a check (`taken: replace`)")
        }
        if dialect.naming.isGuarded {
            return CheckResult(
                .ok,
                lacking
                    + "conditional writes protect existing names, and a taken name is found only at the end of an "
                    + "upload; a warning follows if a lost answer leaves doubt")
        }
        let which = api.settings.preset.conditions == .put ? "files above `single_up_to` wait" : "uploads wait"
        return CheckResult(
            .warning,
            lacking
                + "of `preset: \(api.settings.preset.name)` too few conditional writes are known, so \(which) (`names_unseen`): give it "
                + "these rights, set the service's own `preset`, or `taken: replace`")
    }
}
