internal import Core
internal import Linux

/// Chooses the key of a file, so that no existing object is overwritten.
///
/// A key that may write but not look gets 403 to `HEAD` and to lists, for example with a policy of only `s3:PutObject`
/// and `s3:AbortMultipartUpload`. Conditional writes then protect existing names.
struct S3Naming: Sendable {
    let api: S3API
    /// The whole file is sent in one request.
    let isSingle: Bool

    private var settings: S3Settings { api.settings }
    private var comparison: S3ObjectComparison { S3ObjectComparison(api: api, isSingle: isSingle) }

    enum Name {
        case free(FilePath)
        /// The same content exists there.
        case held(RemoteObject)
    }

    /// Chooses the key for an upload that is about to begin.
    func choose(
        _ order: UploadOrder, _ plan: PartPlan, _ checkpoint: PartsCheckpoint, restarts: Int64
    ) async throws -> Name {
        // Before one small request a name needs no question, because the service itself guards it.
        guard isSingle, isGuarded, settings.taken != .replace, restarts == 0, case let first = try key(order, 1),
            !api.isTaken(first, from: order.file.sha256)
        else { return try await name(for: order, plan, checkpoint) }
        try reserve(first, order)
        return .free(first)
    }

    /// The key of an order, in UTF-8.
    func key(_ order: UploadOrder, _ number: Int) throws(UploadError) -> FilePath {
        let longest = settings.preset.wire.longestKey
        // Services answer in XML, which cannot represent most control characters.
        let isText = order.name.text != nil && !order.name.bytes.contains { $0 < 0x20 && ![9, 10, 13].contains($0) }
        var name = isText ? order.name : FilePath(order.name.display)
        if let first = name.bytes.first, settings.preset.wire.noFirst.contains(first) {
            name = FilePath(bytes: [UInt8(ascii: "_")] + name.bytes)
        }
        // A key may be longer than a file name, in which a number needs space.
        let key = number == 1 && name.bytes.count <= longest ? name : name.numbered(number)
        guard key.bytes.count <= longest else {
            throw api.fileRefusal(
                .nameTooLong, "its key has \(key.bytes.count) bytes, and the maximum is \(longest)")
        }
        return key
    }

    /// - Parameters:
    ///   - checkpoint: That of the upload; without fields for a query.
    ///   - isTaking: The caller will send the file there.
    func name(
        for order: UploadOrder, _ plan: PartPlan, _ checkpoint: PartsCheckpoint, isTaking: Bool = true
    ) async throws -> Name {
        let first = isTaking ? api.nextName(for: order.id) : 1
        for number in first..<Self.maxNames {
            if number == first + Self.maxNamesOfAttempt, isTaking { throw searchContinues(order, number) }
            if number == first + Self.namesBeforeTest { try await checkPlausibility(order) }
            let key = try key(order, number)
            if isTaking { try reserve(key, order) }
            let there: S3API.Object
            switch isTaking ? try await api.lookUp(key) : try await api.status(at: key).map({ .there($0) }) ?? .nothing
            {
            case .there(let object): there = object
            case .nothing:
                api.setNextName(nil, for: order.id)
                return .free(key)
            case .hidden, .ended: return try await unseenName(order, checkpoint, from: number)
            }
            switch try await comparison.compare(there, at: key, with: order.file, plan, isOurs: false) {
            case .same:
                api.setNextName(nil, for: order.id)
                return .held(RemoteObject(id: key.display, url: api.address(of: key), verifiedBy: "held"))
            case .damaged(let error): throw error
            case .other: break
            }
            if settings.taken != .replace, let sha256 = there.sha256.flatMap({ bytes(hexadecimal: $0) }) {
                api.note(key, with: sha256)
            }
            switch settings.taken {
            case .suffix: continue
            case .replace: return .free(key)
            case .fail:
                throw nameTaken(key)
            }
        }
        throw api.fileRefusal(.nameTaken, "\(order.name.display) and 10,000 numbers after it are taken")
    }

    private static let maxNames = 10_000
    /// Number of names that one attempt queries; the next attempt continues after them.
    private static let maxNamesOfAttempt = 30
    /// After this many taken names in a row, the code tests whether the service calls every name taken.
    private static let namesBeforeTest = 8

    private func searchContinues(_ order: UploadOrder, _ next: Int) -> UploadError {
        api.setNextName(next, for: order.id)
        return UploadError(
            api.failure(
                .transient, .namesTaken,
                "\(order.name.display) and \(next - 1) names after it belong to other files; the next names are tried in a moment",
                retryable: true), remedy: .pending(after: .seconds(30)))
    }

    /// - Throws: ``UploadError`` where the service says that an object exists which cannot exist.
    private func checkPlausibility(_ order: UploadOrder) async throws {
        let unusedKey = try key(order, 1).parent.appending(FilePath("sluice-" + hexadecimal(Random.bytes(16))))
        guard try await api.status(at: unusedKey) != nil else { return }
        throw UploadError(
            api.failure(
                .config, .allNamesTaken,
                "\(api.client.host(settings.endpoint)) reports an object for every name: a login portal or a proxy "
                    + "answers, or the address is wrong", retryable: true), remedy: .misconfigured)
    }

    func reserve(_ key: FilePath, _ order: UploadOrder) throws(UploadError) {
        guard settings.assignedObject == nil, settings.taken != .replace, !api.reserve(key, for: order.id) else {
            return
        }
        throw UploadError(
            api.failure(
                .transient, .nameInUse,
                "\(api.address(of: key)) is the target of another running upload; this one waits for its end",
                retryable: true), remedy: .pending(after: .seconds(30)))
    }

    // MARK: Names that the key may not query

    /// A request that would overwrite an object is refused.
    var isGuarded: Bool { isSingle ? settings.preset.conditions != .none : settings.preset.conditions == .all }

    /// Each further name could cost sending the file again. So this name contains the digest of the content.
    static let namedByContent = 3

    /// The key of an order with the digest of its content: if it exists, this content is there.
    func contentKey(_ order: UploadOrder) throws(UploadError) -> FilePath {
        let digest = String(hexadecimal(order.file.sha256).prefix(16))
        let name = order.name.name
        let stem = FilePath(bytes: name.stem.bytes + Array(" (\(digest))".utf8))
        let ending = name.fileExtension.map { [UInt8(ascii: ".")] + $0.bytes } ?? []
        var renamed = order
        renamed.name = order.name.parent.appending(FilePath(bytes: stem.bytes + ending))
        return try key(renamed, 1)
    }

    /// Chooses a name without knowing if it is free: the first that no request of ours has found taken. If an earlier
    /// request of this upload may have created an object, chooses the name with the digest: an object of any other name
    /// would prove nothing.
    func unseenName(_ order: UploadOrder, _ checkpoint: PartsCheckpoint, from first: Int) async throws -> Name {
        if settings.taken == .replace {
            let key = try key(order, first)
            try reserve(key, order)
            return .free(key)
        }
        guard isGuarded else { throw try await unguarded() }
        let mayExist = checkpoint.mayBeDoubled || checkpoint.wasReuploaded
        for number in first..<max(first, Self.namedByContent) where !mayExist {
            let key = try key(order, number)
            try reserve(key, order)
            if number > checkpoint.s3.takenNames ?? 0, !api.isTaken(key, from: order.file.sha256) { return .free(key) }
            if settings.taken == .fail { throw nameTaken(key) }
        }
        let key = try contentKey(order)
        try reserve(key, order)
        return .free(key)
    }

    /// The fields of the checkpoint after a request that may not query objects has found the upload's key taken.
    func noteTaken(_ piece: PartsContext) throws(UploadError) -> Checkpoint {
        let key = piece.checkpoint.s3.objectKey
        api.note(key, with: [])
        var changes = PartsCheckpoint()
        changes.s3.takenNames = Self.namedByContent - 1
        for number in 1..<Self.namedByContent where try self.key(piece.order, number) == key {
            changes.s3.takenNames = number
        }
        return changes.stored
    }

    func nameTaken(_ key: FilePath) -> UploadError {
        api.fileRefusal(
            .nameTaken, "\(api.address(of: key)) exists already with other content, and `taken: fail` is set")
    }

    /// The error if neither a query nor a condition protects existing objects from being overwritten.
    func unguarded() async throws -> UploadError {
        // A key without any right gets its own error.
        _ = try await api.hasUpload("sluice-check", "sluice-check")
        let preset = settings.preset.name
        return UploadError(
            api.failure(
                .config, .namesUnseen,
                "it cannot be known whether a name is free: the key may not read objects (\(api.lookupRights)), and "
                    + "for `preset: \(preset)` no conditional write \(isSingle ? "" : "of an upload in parts ")is "
                    + "known; give the key these rights, set the service's own `preset`, or `taken: replace`, "
                    + "which overwrites existing objects",
                retryable: true), remedy: .misconfigured)
    }
}
