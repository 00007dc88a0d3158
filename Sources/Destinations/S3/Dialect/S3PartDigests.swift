internal import Core
internal import Digests
internal import Linux

/// The tag of a part, which the service requires at the end, and our checksum of it.
struct S3Tag: Hashable, Sendable {
    /// As it was received, including the quotes.
    var etag: String
    /// In the service's own notation.
    var checksum: String?

    init(etag: String, checksum: String?) {
        self.etag = etag
        self.checksum = checksum
    }

    init(_ text: String) {
        let parts = text.split(separator: "\t", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        etag = parts.first ?? ""
        checksum = parts.count > 1 ? parts[1] : nil
    }

    var text: String { checksum.map { "\(etag)\t\($0)" } ?? etag }
}

/// Digests that are sent along with bytes, so that the service can compare.
struct S3PartProof: Sendable {
    let kind: S3Preset.Checksum
    var headers: [(name: String, value: String)] = []
    /// Hexadecimal SHA-256 of the bytes, for a connection that does not protect them.
    var payload: String?
    /// The checksum that the service keeps with the part, in its own notation.
    var checksum: String?
    var md5: [UInt8]?
    var sha256: [UInt8]?
    /// None of the digests was computed from the copy as it is now: all of them date from staging.
    var isOfStaging = false

    func isCompared(by preset: S3Preset) -> Bool {
        preset.comparesDigests && !(headers.isEmpty && payload == nil)
    }

    /// Whether the ETag is the MD5 of the sent bytes.
    func isConfirmed(by etag: String) -> Bool {
        md5.map { hexadecimal($0) == etag.filter { $0 != "\"" }.lowercased() } ?? false
    }
}

/// Computes the digests of parts and of the whole object.
struct S3PartDigests: Sendable {
    let api: S3API
    /// The whole file is sent in one request.
    let isSingle: Bool

    /// The checksum with which an upload was begun, regardless of the present setting.
    func checksum(of piece: PartsContext) -> S3Preset.Checksum {
        piece.checkpoint.s3.checksum ?? api.settings.checksum
    }

    /// The digests that are sent with each part.
    func kinds(for checksum: S3Preset.Checksum) -> Set<PartDigests.Kind> {
        api.bucket.partition(isSingle: isSingle).digestKinds(for: checksum)
    }

    /// Uses the digests from staging, and reads the part for the rest. The bytes of a single request are read too,
    /// because after this only the service checks them before the object exists.
    func proof(of part: PartPlan.Part, _ piece: PartsContext, _ checksum: S3Preset.Checksum) async throws -> S3PartProof
    {
        let file = piece.order.file
        let wanted = kinds(for: checksum)
        var found: [PartDigests.Kind: [UInt8]] = [:]
        for kind in wanted where !(isSingle && kind == .sha256) {
            found[kind] = file.parts.digest(.init(partSize: piece.plan.partSize, kind: kind), of: part.index)
        }
        if isSingle, api.settings.preset.comparesDigests, !found.isEmpty || !api.isSecure {
            found[.sha256] = file.sha256
        }
        let missing = wanted.subtracting(found.keys)
        if !missing.isEmpty {
            do {
                let read = try await blocking {
                    let digesters = missing.map { PartDigester(.init(partSize: .max, kind: $0)) }
                    try readPieces(of: file.place, part.range) { bytes in for one in digesters { one.update(bytes) } }
                    return digesters.map { ($0.requested.kind, $0.finish()) }
                }
                for (kind, digest) in read { found[kind] = digest }
            } catch {
                throw UploadError(
                    api.failure(.local, .stagedUnreadable, "\(error)", retryable: true), remedy: .restage(.unreadable))
            }
        }
        var proof = S3PartProof(kind: checksum, md5: found[.md5], sha256: found[.sha256], isOfStaging: missing.isEmpty)
        if !api.isSecure { proof.payload = proof.sha256.map { hexadecimal($0) } }
        if let md5 = proof.md5 { proof.headers.append(("Content-MD5", base64(md5))) }
        if checksum.answered != nil, let digest = checksum.digest.flatMap({ found[$0] }) {
            proof.checksum = checksum.text(digest)
            if let name = checksum.header { proof.headers.append((name, checksum.text(digest))) }
        }
        return proof
    }

    /// The checksum of the whole object, combined from those of its parts, in the service's notation. A part whose
    /// checksum only the service knows is read once more.
    func wholeChecksum(_ parts: [AcknowledgedPart], _ piece: PartsContext) async throws -> String? {
        let sort = checksum(of: piece)
        guard let kind = sort.kind else { return nil }
        var whole: UInt64 = 0
        for part in parts {
            var checksum = S3Tag(part.tag).checksum
            if checksum == nil {
                let place = piece.plan[part.index]
                checksum = try await proof(of: place, piece, sort).checksum
            }
            whole = CRC.combined(whole, sort.number(checksum ?? ""), length: part.size, kind)
        }
        return sort.text(CRC.bytes(whole, kind))
    }
}

extension S3Preset.Checksum {
    /// The CRC with which the whole object's checksum can be combined from its parts'.
    var kind: CRC.Kind? {
        switch self {
        case .crc64nvme: .crc64nvme
        case .crc32c: .crc32c
        case .crc64: .crc64xz
        case .sha256, .md5, .none: nil
        }
    }

    /// The digest of each part that it is computed from.
    var digest: PartDigests.Kind? {
        switch self {
        case .crc64nvme: .crc64nvme
        case .crc32c: .crc32c
        case .crc64: .crc64xz
        case .sha256: .sha256
        case .md5: .md5
        case .none: nil
        }
    }

    /// The service's name for it.
    var algorithm: String? {
        switch self {
        case .crc64nvme, .crc32c, .sha256: rawValue.uppercased()
        case .crc64, .md5, .none: nil
        }
    }

    /// The header that is sent with the bytes.
    var header: String? { algorithm.map { "x-amz-checksum-\($0.lowercased())" } }
    /// The header in answers.
    var answered: String? { self == .crc64 ? "x-oss-hash-crc64ecma" : header }
    /// The element in documents.
    var element: String? { algorithm.map { "Checksum\($0)" } }

    /// The service's notation: a number, or Base64.
    func text(_ digest: [UInt8]) -> String { self == .crc64 ? "\(Self.number(digest))" : base64(digest) }

    /// Returns 0 for a text that is no checksum.
    func number(_ text: String) -> UInt64 {
        self == .crc64 ? UInt64(text) ?? 0 : Self.number(bytes(base64: text) ?? [])
    }

    private static func number(_ bytes: [UInt8]) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
}
