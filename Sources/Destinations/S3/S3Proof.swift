internal import Core
internal import Digests
internal import Linux

/// What the service wants to hear of a part in the end, and what we know of it.
struct S3Tag: Hashable, Sendable {
    /// As it came, quotes included.
    var etag: String
    /// As the service writes it.
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

extension S3Dialect {
    /// What is sent along with bytes, so that the service can compare.
    struct Proof: Sendable {
        let kind: S3Preset.Checksum
        var headers: [(name: String, value: String)] = []
        /// Hexadecimal SHA-256 of the bytes, over a connection that proves nothing itself.
        var payload: String?
        /// As the service writes it, of what it keeps with the part.
        var checksum: String?
        var md5: [UInt8]?
        var sha256: [UInt8]?
        /// Nothing of it was made of the copy as it is now.
        var isOfStaging = false

        func isCompared(by preset: S3Preset) -> Bool {
            preset.comparesDigests && !(headers.isEmpty && payload == nil)
        }

        /// The ETag is the MD5 of what was sent.
        func isTold(by etag: String) -> Bool {
            md5.map { hexadecimal($0) == etag.filter { $0 != "\"" }.lowercased() } ?? false
        }
    }

    /// What an upload was begun with, whatever is set by now.
    func checksum(of piece: PartsPiece) -> S3Preset.Checksum {
        piece.checkpoint["checksum"].flatMap { S3Preset.Checksum(rawValue: $0) } ?? api.settings.checksum
    }

    /// What is said with each part.
    func digests(_ checksum: S3Preset.Checksum) -> Set<PartDigests.Kind> {
        var kinds: Set<PartDigests.Kind> = []
        if !api.isSecure || isSingle { kinds.insert(.sha256) }
        if let kind = checksum.digest { kinds.insert(kind) }
        if checksum == .crc64 { kinds.insert(.md5) }
        return kinds
    }

    /// What was found out while the file was staged counts, and for the rest the part is read: also a single request's
    /// bytes, which nobody but the service looks at again before the object is there.
    func proof(of part: PartPlan.Part, _ piece: PartsPiece, _ checksum: S3Preset.Checksum) async throws -> Proof {
        let file = piece.order.file
        let wanted = digests(checksum)
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
                    return digesters.map { ($0.wish.kind, $0.finish()) }
                }
                for (kind, digest) in read { found[kind] = digest }
            } catch {
                throw UploadError(failure(.local, "staged_unreadable", "\(error)", retryable: true), remedy: .restage)
            }
        }
        var proof = Proof(kind: checksum, md5: found[.md5], sha256: found[.sha256], isOfStaging: missing.isEmpty)
        if !api.isSecure { proof.payload = proof.sha256.map { hexadecimal($0) } }
        if let md5 = proof.md5 { proof.headers.append(("Content-MD5", base64(md5))) }
        if checksum.answered != nil, let digest = checksum.digest.flatMap({ found[$0] }) {
            proof.checksum = checksum.text(digest)
            if let name = checksum.header { proof.headers.append((name, checksum.text(digest))) }
        }
        return proof
    }

    /// The checksum of the whole object, of those of its parts, as the service writes it. A part that only the service knows of is read once more.
    func wholeChecksum(_ parts: [TakenPart], _ piece: PartsPiece) async throws -> String? {
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
    /// That of the whole object can be made of those of its parts.
    var kind: CRC.Kind? {
        switch self {
        case .crc64nvme: .crc64nvme
        case .crc32c: .crc32c
        case .crc64: .crc64xz
        case .sha256, .md5, .none: nil
        }
    }

    /// What it is made of, of each part.
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

    /// The service's word.
    var algorithm: String? {
        switch self {
        case .crc64nvme, .crc32c, .sha256: rawValue.uppercased()
        case .crc64, .md5, .none: nil
        }
    }

    /// Sent with the bytes.
    var header: String? { algorithm.map { "x-amz-checksum-\($0.lowercased())" } }
    /// In answers.
    var answered: String? { self == .crc64 ? "x-oss-hash-crc64ecma" : header }
    /// In documents.
    var element: String? { algorithm.map { "Checksum\($0)" } }

    /// As the service writes it: a number, or Base64.
    func text(_ digest: [UInt8]) -> String { self == .crc64 ? "\(Self.number(digest))" : base64(digest) }

    /// 0 for what is no checksum.
    func number(_ text: String) -> UInt64 {
        self == .crc64 ? UInt64(text) ?? 0 : Self.number(bytes(base64: text) ?? [])
    }

    private static func number(_ bytes: [UInt8]) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
}
