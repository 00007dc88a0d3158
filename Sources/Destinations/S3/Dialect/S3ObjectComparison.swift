internal import Core
internal import Digests
internal import Linux

/// Compares an object or a part at the service with ours, by the service's description.
struct S3ObjectComparison: Sendable {
    let api: S3API
    /// The whole file is sent in one request.
    let isSingle: Bool

    private var settings: S3Settings { api.settings }

    /// The evidence of an ETag about the sent bytes.
    enum TagEvidence {
        case same
        /// The service has other bytes; contains a description.
        case other(String)
        /// The service has other bytes, or its tags are no MD5s; contains a description.
        case unclear(String)
        /// The tag gives no evidence.
        case absent
    }

    /// The digits of a tag that may be an MD5.
    ///
    /// - Parameter isHidden: See `S3API.hidesTags(_:)`.
    func digits(of etag: String?, isHidden: Bool) -> String? {
        let digits = (etag ?? "").filter { $0 != "\"" }.lowercased()
        let isMD5 = digits.utf8.count == 32 && bytes(hexadecimal: digits) != nil
        return isMD5 && !isHidden && api.tags(ofWhole: isSingle) != .opaque ? digits : nil
    }

    func evidence(of etag: String, isHidden: Bool, against md5: [UInt8]?) -> TagEvidence {
        guard let digits = digits(of: etag, isHidden: isHidden), let mine = md5.map({ hexadecimal($0) }) else {
            return .absent
        }
        if digits == mine {
            api.noteTagIsMD5(ofWhole: isSingle)
            return .same
        }
        if api.tags(ofWhole: isSingle) == .md5 {
            return .other("the service has MD5 \(digits) of bytes with MD5 \(mine)")
        }
        return .unclear(
            "it gives the ETag \(digits) to bytes with MD5 \(mine): it has other bytes than were sent, or its ETags are no MD5s"
        )
    }

    /// The object is neither taken for complete nor sent again and again: a person has to decide.
    func unclear(_ words: String) -> UploadError {
        UploadError(
            api.failure(
                .config, .etagUnclear,
                "\(words); check whether the object is complete, and set `etag: opaque` if the service's ETags are something else",
                retryable: true), remedy: .misconfigured)
    }

    enum Result {
        case same
        case other
        /// An upload of this file has left the object there, and it is not this file.
        case damaged(UploadError)
    }

    /// Whether an object is this file: by the digest that we set on each object, otherwise by its ETag.
    ///
    /// - Parameter isOurs: The object was sent with this plan, so that its tag is predictable.
    func compare(
        _ object: S3API.Object, at key: FilePath, with file: StagedFile, _ plan: PartPlan, isOurs: Bool
    ) async throws -> Result {
        guard let sha256 = object.sha256 else {
            guard object.size == file.size else { return .other }
            if let theirs = object.checksum { return try await theirs == checksum(of: file, plan) ? .same : .other }
            return try await hasTag(of: file, plan, object) ? .same : .other
        }
        // Our own digest describes the bytes to send. The service's checksum may describe the bytes that it received.
        guard sha256 == hexadecimal(file.sha256) else { return .other }
        guard object.size == file.size else {
            return .damaged(damaged(key, "it has \(object.size) bytes, and the file has \(file.size)"))
        }
        if let theirs = object.checksum, let mine = try await checksum(of: file, plan) {
            return theirs == mine
                ? .same
                : .damaged(damaged(key, "it has the checksum \(FilePath(theirs).display), and the file \(mine)"))
        }
        if isSingle {
            guard let digits = digits(of: object.etag, isHidden: object.hidesTag) else {
                guard object.etag == nil, settings.tags == .md5 else { return .same }
                return .damaged(damaged(key, "the answer does not confirm its bytes, as this service otherwise does"))
            }
            switch evidence(of: digits, isHidden: false, against: try await md5(of: file)) {
            case .same, .absent: return .same
            case .other(let words): return .damaged(damaged(key, words))
            case .unclear(let words): return .damaged(unclear("\(api.address(of: key)): \(words)"))
            }
        }
        guard isOurs, api.joinsTags, !object.hidesTag, Self.joinedTag(object.etag, plan.count) != nil else {
            return .same
        }
        guard try await hasTag(of: file, plan, object) else {
            return .damaged(damaged(key, "its ETag is not that of its parts"))
        }
        return .same
    }

    func damaged(_ key: FilePath, _ words: String) -> UploadError {
        UploadError(
            api.failure(
                .protocol, .objectDamaged,
                "\(api.address(of: key)) was made of this file, and is not complete: \(words); remove it there, and the file is sent again",
                retryable: true), remedy: .refused(after: nil))
    }

    /// The digits of an object's tag that was computed from the tags of this many parts.
    static func joinedTag(_ etag: String?, _ count: Int) -> String? {
        let ends = (etag ?? "").lowercased().filter { $0 != "\"" }.split(
            separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = ends.first, first.utf8.count == 32, ends.last == "\(count)" else {
            return nil
        }
        return String(first)
    }

    /// Whether an ETag is the MD5 of the content or, for a multipart object, of the parts' MD5s.
    ///
    /// Other programs send parts of other sizes, which the tag does not tell: each likely size is tried.
    private func hasTag(of file: StagedFile, _ plan: PartPlan, _ object: S3API.Object) async throws -> Bool {
        let tag = (object.etag ?? "").lowercased().filter { $0 != "\"" }
        let count = tag.split(separator: "-").last.flatMap { Int64($0) } ?? 0
        let joined = count > 0 ? Self.joinedTag(tag, Int(count)) : nil
        guard joined != nil || tag.utf8.count == 32 else { return false }
        return try await reading {
            guard let joined else { return tag == hexadecimal(try digestOfPiece(.md5, file.place, 0..<file.size)) }
            return try S3PartSizes.likely(for: file.size, in: count, ours: plan.partSize).contains { size in
                let parts = try (0..<count).map {
                    try digestOfPiece(.md5, file.place, $0 * size..<min(file.size, ($0 + 1) * size))
                }
                return joined == hexadecimal(Hasher.digest(.md5, of: parts.flatMap { $0 }))
            }
        }
    }

    /// The service's checksum for an object with the content of the staged copy. It is combined from the parts as they
    /// were staged, where those checksums are known.
    private func checksum(of file: StagedFile, _ plan: PartPlan) async throws -> String? {
        guard let sort = settings.preset.wire.checksum, let kind = sort.kind, let digest = sort.digest else {
            return nil
        }
        let requested = PartDigests.RequestedDigest(partSize: plan.partSize, kind: digest)
        let known = (0..<plan.count).compactMap { file.parts.digest(requested, of: $0) }
        guard known.count == plan.count else {
            return try await reading {
                var crc = CRC(kind)
                try readPieces(of: file.place, 0..<file.size) { crc.update($0) }
                return sort.text(crc.bytes)
            }
        }
        let whole = known.enumerated().reduce(UInt64(0)) { whole, part in
            CRC.combined(whole, sort.number(sort.text(part.element)), length: plan[part.offset].length, kind)
        }
        return sort.text(CRC.bytes(whole, kind))
    }

    /// The MD5 of the whole staged copy, which must not have changed since staging.
    private func md5(of file: StagedFile) async throws -> [UInt8] {
        if let known = file.parts.digest(.init(partSize: max(1, file.size), kind: .md5), of: 0) { return known }
        let (sha256, md5) = try await reading {
            let (sha256, md5) = (Hasher(.sha256), Hasher(.md5))
            try readPieces(of: file.place, 0..<file.size) { bytes in
                sha256.update(bytes)
                md5.update(bytes)
            }
            return (sha256.finish(), md5.finish())
        }
        guard sha256 == file.sha256 else {
            throw file.changed("no longer has the content that was staged", api.failure)
        }
        return md5
    }

    private func reading<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        do { return try await blocking(body) } catch {
            throw UploadError(
                api.failure(.local, .stagedUnreadable, "\(error)", retryable: true), remedy: .restage(.unreadable))
        }
    }

    /// Whether a part without an acknowledgement has the content that was to be sent, as far as its tag shows.
    func confirmsContent(for part: AcknowledgedPart, _ place: PartPlan.Part, _ piece: PartsContext) async throws -> Bool
    {
        let etag = S3Tag(part.tag).etag
        guard etag.contains(where: { $0 != "\"" }) else { return false }
        guard digits(of: etag, isHidden: false) != nil else { return true }
        if case .same = evidence(of: etag, isHidden: false, against: try await md5(of: place, piece)) { return true }
        return false
    }

    /// The MD5 of a part of the staged copy, from staging where it is known.
    func md5(of place: PartPlan.Part, _ piece: PartsContext) async throws -> [UInt8] {
        let file = piece.order.file
        let requested = PartDigests.RequestedDigest(partSize: piece.plan.partSize, kind: .md5)
        if let known = file.parts.digest(requested, of: place.index) { return known }
        return try await reading { try digestOfPiece(.md5, file.place, place.range) }
    }
}
