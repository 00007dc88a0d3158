internal import Core
internal import Transport

// Partial uploads, and the demands of a preset.

extension TusDialect {
    var isSection: Bool { section != nil }
    /// The offset in the file of its first byte.
    var start: Int64 { section?.range.lowerBound ?? 0 }

    func remains(of checkpoint: OffsetCheckpoint) -> OffsetCheckpoint? { checkpoint.partialUploads }

    var alignment: Int64 { settings.preset?.alignment ?? 1 }

    func name(of checkpoint: OffsetCheckpoint) -> (id: String, url: String?)? { checkpoint.tus.id.map { ($0, nil) } }

    // MARK: Addresses

    /// Requires that the address that a creation was answered with is that of no other upload.
    ///
    /// - Throws: ``ConcatenationRefusedError`` for a part of a file; ``UploadError`` for a whole one.
    func requireOwn(_ url: String, _ response: Response, _ order: UploadOrder) throws {
        guard isSection else { return try requireOwn(url, among: server.addresses, order) }
        let owner = UploadAddresses.Owner(upload: order.id, part: start)
        var problem: String?
        if !server.addresses.claim(url, for: owner) {
            problem = "\(host(endpoint)) gave a part of the file the address of another upload"
        } else if offset(in: response) ?? 0 > 0 {
            // No byte leaves for a part before its address is recorded.
            problem = "\(host(endpoint)) has bytes of a part of the file that were not sent to it"
        }
        if let problem {
            throw ConcatenationRefusedError(error: error(.protocol, .sameUpload, problem, .failUpload))
        }
    }

    // MARK: Removal

    /// Removes a partial upload, unless its address belongs to something else now: a server may join the parts at the
    /// address of one of them, or give that to another upload.
    ///
    /// - Returns: `false` when the server does not support removal.
    func remove(_ part: ConcatenationCheckpoint.Part, _ checkpoint: OffsetCheckpoint) async throws -> Bool {
        if try await capabilities.current(self)?.lacks(.termination) == true { return false }
        if server.addresses.isClaimed(part.url) { return true }
        let response = try await followRedirects(
            Request("HEAD", part.url, headers: [Self.version], limits: settings.limits.small)
        ).response
        switch verdict(.HEAD, response) {
        case .success where response.hasTusHeader:
            guard isPartial(response, part.size) else { return true }
            return try await methods.remove(part.url, checkpoint)
        case .gone: return true
        case .stop(let remedy): throw refused("the lookup of a part of a file", response, remedy)
        default: throw refused("the lookup of a part of a file", response, .retry(after: nil))
        }
    }

    /// Whether an answer to HEAD describes a partial upload of this size.
    private func isPartial(_ response: Response, _ size: Int64) -> Bool {
        if let kind = response.headers["Upload-Concat"], !kind.lowercased().hasPrefix("partial") { return false }
        if let length = response.headers["Upload-Length"].flatMap({ plainInteger($0) }), length != size { return false }
        return offset(in: response) ?? 0 <= size
    }
}
