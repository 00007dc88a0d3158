internal import Core
internal import Digests
internal import Linux

/// What the service wants to hear of a part in the end, and what we know of it.
struct S3Tag: Hashable, Sendable {
    /// As it came, quotes included.
    var etag: String
    /// Base64.
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
        /// Base64, of what the service keeps with the part.
        var checksum: String?
        var md5: [UInt8]?
        var sha256: [UInt8]?

        /// - Returns: What is wrong; `nil` when nothing is.
        func differs(from etag: String, isMD5: Bool) -> String? {
            let digits = etag.filter { $0 != "\"" }
            guard isMD5, let md5, digits.utf8.count == 32, hexadecimal(md5) != digits.lowercased() else { return nil }
            return "the service has MD5 \(FilePath(digits).display) of bytes with MD5 \(hexadecimal(md5))"
        }
    }

    /// What an upload was begun with, whatever is set by now.
    func checksum(of piece: PartsPiece) -> S3Preset.Checksum {
        piece.checkpoint["checksum"].flatMap { S3Preset.Checksum(rawValue: $0) } ?? api.settings.checksum
    }

    /// All digests of a part in one pass over the copy.
    func proof(of part: PartPlan.Part, _ path: FilePath, _ kind: S3Preset.Checksum) async throws -> Proof {
        let wantsPayload = !api.isSecure
        let wantsSHA = wantsPayload || kind == .sha256 || isSingle
        guard wantsSHA || kind != .none else { return Proof(kind: kind) }
        do {
            return try await blocking {
                var proof = Proof(kind: kind)
                let sha = wantsSHA ? Hasher(.sha256) : nil
                let md5 = kind == .md5 ? Hasher(.md5) : nil
                var crc = kind.kind.map { CRC($0) }
                try readPieces(of: path, part.range) { bytes in
                    sha?.update(bytes)
                    md5?.update(bytes)
                    crc?.update(bytes)
                }
                let digest = sha?.finish()
                proof.sha256 = digest
                if wantsPayload { proof.payload = digest.map { hexadecimal($0) } }
                if kind == .sha256 { proof.checksum = digest.map { base64($0) } }
                if let crc { proof.checksum = base64(crc.bytes) }
                if let md5 {
                    let digest = md5.finish()
                    proof.md5 = digest
                    proof.headers.append(("Content-MD5", base64(digest)))
                }
                if let name = kind.header, let value = proof.checksum { proof.headers.append((name, value)) }
                return proof
            }
        } catch {
            throw UploadError(failure(.local, "staged_unreadable", "\(error)", retryable: true), remedy: .restage)
        }
    }

    /// Whether an object is this file: by the digest that we give each object, else by its ETag, which is the MD5 of the content
    /// or, where it came in parts, of the parts' MD5s.
    func isSame(_ object: S3API.Object, _ file: StagedFile, _ plan: PartPlan) async throws -> Bool {
        guard object.size == file.size else { return false }
        if let sha256 = object.sha256 { return sha256 == hexadecimal(file.sha256) }
        let tag = (object.etag ?? "").lowercased().filter { $0 != "\"" }
        let ends = tag.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.first?.utf8.count == 32, ends.count == 1 || ends.count == 2 && ends[1] == "\(plan.count)" else {
            return false
        }
        do {
            return try await blocking {
                if ends.count == 1 { return tag == hexadecimal(try digestOfPiece(.md5, file.path, 0..<file.size)) }
                let parts = try (0..<plan.count).map { try digestOfPiece(.md5, file.path, plan[$0].range) }
                return ends[0] == hexadecimal(Hasher.digest(.md5, of: parts.flatMap { $0 }))
            }
        } catch let error as SystemError {
            throw UploadError(failure(.local, "staged_unreadable", "\(error)", retryable: true), remedy: .restage)
        }
    }

    /// The checksum of the whole object, of those of its parts; Base64. A part that only the service knows of is read once more.
    func wholeChecksum(_ parts: [TakenPart], _ piece: PartsPiece) async throws -> String? {
        let sort = checksum(of: piece)
        guard let kind = sort.kind else { return nil }
        var whole: UInt64 = 0
        for part in parts {
            var checksum = S3Tag(part.tag).checksum
            if checksum == nil {
                let place = piece.plan[part.index]
                checksum = try await proof(of: place, piece.order.file.path, sort).checksum
            }
            let value = bytes(base64: checksum ?? "")?.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } ?? 0
            whole = CRC.combined(whole, value, length: part.size, kind)
        }
        return base64(CRC.bytes(whole, kind))
    }
}

extension S3Preset.Checksum {
    /// That of the whole object can be made of those of its parts.
    var kind: CRC.Kind? {
        switch self {
        case .crc64nvme: .crc64nvme
        case .crc32c: .crc32c
        case .sha256, .md5, .none: nil
        }
    }

    /// The service's word.
    var algorithm: String? {
        switch self {
        case .crc64nvme, .crc32c, .sha256: rawValue.uppercased()
        case .md5, .none: nil
        }
    }

    var header: String? { algorithm.map { "x-amz-checksum-\($0.lowercased())" } }
    /// In lists and answers.
    var element: String? { algorithm.map { "Checksum\($0)" } }
}
