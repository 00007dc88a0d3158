internal import Core
internal import Credentials
internal import Transport

/// A bucket at Amazon S3, or at a service or server that speaks its protocol.
struct S3: Destination {
    let api: S3API
    let site: DestinationSite

    init(_ values: [String: SettingValue], _ tools: DestinationTools) throws {
        // The loader has reported all of them, with their places.
        if let objection = Self.objections(values).first {
            throw UnusableSetting(key: objection.key, problem: objection.problem)
        }
        guard let settings = Self.settings(values) else {
            throw UnusableSetting(key: "bucket", problem: "is missing")
        }
        guard let access = S3Access.of(values) else { throw UnusableSetting(key: "access_key", problem: "is missing") }
        var caFile: FilePath?
        if case .path(let path)? = values["ca_file"] { caFile = path }
        self.init(settings, access, caFile: caFile, tools)
    }

    init(_ settings: S3Settings, _ access: S3Access, caFile: FilePath?, _ tools: DestinationTools) {
        let client = AuthorizedClient(
            transport: tools.transport, credentials: CredentialProvider([], reader: tools.secrets), origin: "",
            caFile: caFile, clocks: tools.clocks, name: tools.name)
        let address = settings.endpoint.replacing("{region}", with: settings.region)
        api = S3API(
            client: client, settings: settings, signer: access.signer(settings, client, tools), rights: access.shown,
            log: tools.log)
        // The route to the bucket is judged; where the bucket is on this machine, the route to the signer.
        let (bucket, signer) = (WebAddress(address), access.signerAddress)
        site = (bucket.isLoopback ? signer : bucket)?.site ?? bucket.site ?? .here
    }

    private func engine(isSingle: Bool) -> PartsEngine {
        PartsEngine(
            dialect: S3Dialect(api: api, isSingle: isSingle), parallel: api.settings.parallel,
            gone: .reupload)
    }

    func requestedDigests(forSize size: Int64) -> [PartDigests.RequestedDigest] {
        Self.requestedDigests(forSize: size, S3Dialect(api: api, isSingle: size <= api.settings.singleUpTo))
    }

    func uncutPiece(ofSize size: Int64?) -> UncutPiece? {
        Self.uncutPiece(
            ofSize: size, S3Dialect(api: api, isSingle: size.map { $0 <= api.settings.singleUpTo } ?? false))
    }

    static func uncutPiece(ofSize size: Int64?, _ dialect: S3Dialect) -> UncutPiece? {
        let settings = dialect.settings
        let part = max(settings.partSize, settings.preset.smallestPart)
        guard let size else {
            let most = max(part, settings.singleUpTo)
            if most <= settings.preset.smallestPart { return UncutPiece(bytes: most) }
            let keys = [("part_size", part), ("single_up_to", settings.singleUpTo)].filter { $0.1 == most }.map(\.0)
            return UncutPiece(bytes: most, keys: keys)
        }
        guard let plan = dialect.plan(forSize: size) else { return nil }
        let bytes = plan[0].length
        // No part of such a file may be smaller.
        let smallest = max(settings.preset.smallestPart, size / settings.preset.mostParts)
        if bytes <= smallest { return UncutPiece(bytes: bytes) }
        if !dialect.isSingle { return UncutPiece(bytes: bytes, keys: ["part_size"]) }
        return UncutPiece(bytes: bytes, keys: bytes > part ? ["single_up_to"] : ["single_up_to", "part_size"])
    }

    static func requestedDigests(forSize size: Int64, _ dialect: S3Dialect) -> [PartDigests.RequestedDigest] {
        guard let plan = dialect.plan(forSize: size) else { return [] }
        return dialect.digests(dialect.settings.checksum).subtracting(dialect.isSingle ? [.sha256] : []).map {
            PartDigests.RequestedDigest(partSize: plan.partSize, kind: $0)
        }
    }

    func upload(_ order: UploadOrder, reporter: any UploadReporter) async throws -> RemoteObject {
        defer { api.letGo(of: [order.id]) }
        // An upload keeps the way in which it was begun.
        let begun = order.checkpoint.flatMap { $0[PartsUpload.begun] == nil ? nil : $0 }
        let isSingle = begun.map { $0["upload"] == nil } ?? (order.file.size <= api.settings.singleUpTo)
        return try await engine(isSingle: isSingle).upload(order, reporter)
    }

    /// Each file is one request; the files share the records before and after it. Together they are no larger than the
    /// largest file that one request takes by default.
    var bundling: Bundling? {
        Bundling(largest: min(1 << 20, api.settings.singleUpTo), files: 32, bytes: 16 << 20)
    }

    func upload(together orders: [UploadOrder], reporter: any BundleReporter) async throws -> [String: RemoteObject] {
        defer { api.letGo(of: Set(orders.map(\.id))) }
        return try await engine(isSingle: true).upload(together: orders, reporter)
    }

    func discard(_ checkpoint: Checkpoint) async throws(UploadError) -> Bool {
        // A complete object stays: another upload may be counted as done because of it.
        if checkpoint[Checkpoint.isFinished] != nil { return false }
        return try await asked { try await engine(isSingle: false).discard(checkpoint) }
    }

    func find(_ order: UploadOrder) async throws(UploadError) -> Finding {
        try await asked {
            let dialect = S3Dialect(api: api, isSingle: order.file.size <= api.settings.singleUpTo)
            return switch try await dialect.name(for: order, try dialect.plan(order), isTaking: false) {
            case .held(let object): .held(object)
            case .free: .absent
            }
        }
    }

    func list(after mark: String?) async throws(UploadError) -> RemotePage? {
        try await asked { try await api.objects(after: mark) }
    }

    func unfinished() async throws(UploadError) -> [RemoteUnfinished]? {
        try await asked {
            try await api.uploads(beginningWith: "").map { upload in
                RemoteUnfinished(
                    id: upload.id, name: upload.key.display, begunAt: upload.begunAt,
                    checkpoint: Checkpoint([
                        PartsUpload.begun: "1", "server": api.server, "key": upload.key.display, "upload": upload.id,
                    ]))
            }.sorted { ($0.begunAt?.milliseconds ?? 0, $0.id) < ($1.begunAt?.milliseconds ?? 0, $1.id) }
        }
    }

    func check() async -> CheckResult {
        do {
            do {
                let page = try await api.objects(after: nil)
                let count = page.next == nil ? "\(page.items.count)" : "more than \(page.items.count)"
                let right = api.isPresigned ? "the signer's addresses work" : "the key is good"
                return CheckResult(.ok, "\(right), and the bucket has \(count) object(s)")
            } catch let error as UploadError where error.failure.code == S3Presigner.refusal {
                // Uploads work without the list.
                _ = try await api.status(at: "sluice-check")
                return CheckResult(.ok, "the signer's addresses work; \(error.failure.message)")
            } catch let error as UploadError where S3API.isOfNoRight(error) {
                return try await checkWriting()
            }
        } catch let error as UploadError {
            let isSaid = error.failure.message.contains(api.rights)
            return CheckResult(.failed, error.asFound(right: isSaid ? nil : api.rights))
        } catch { return CheckResult(.failed, "the check was stopped") }
    }

    /// The key may not list. Nothing is written to find out whether it may write.
    private func checkWriting() async throws -> CheckResult {
        let place: FilePath = "sluice-check"
        do {
            _ = try await api.glance(at: place)
            return CheckResult(
                .ok,
                "the key is good; it may read objects, and not list them (\(api.listRight)): `sluice remote` needs that"
            )
        } catch is S3API.MissingPermission {
            _ = try await api.hasUpload("sluice-check", place)
        }
        let dialect = S3Dialect(api: api, isSingle: false)
        let lacking =
            "the key may write, and neither list (\(api.listRight)) nor, it seems, read objects (\(api.lookRights)): "
        if api.settings.taken == .replace {
            return CheckResult(.ok, lacking + "existing objects are overwritten without a check (`taken: replace`)")
        }
        if dialect.isGuarded {
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

    private func asked<Answer>(_ body: () async throws -> Answer) async throws(UploadError) -> Answer {
        do { return try await body() } catch let error as UploadError { throw error } catch {
            throw UploadError(
                api.client.failure(.cancelled, "cancelled", "the request was stopped", retryable: true),
                remedy: .again(after: nil))
        }
    }
}
