internal import Core

/// How the settings of a bucket cut a file into parts, and which digests are made of these. Sends no request.
struct S3PartLayout: Sendable {
    let settings: S3Settings
    /// ``S3Bucket/isSecure``.
    let isSecure: Bool
    /// The whole file is sent in one request.
    let isSingle: Bool
    /// Larger parts were cut by the path.
    var largest = Int64.max

    /// Parts of AWS: at most 10,000, at most 5 GiB each. The number stays somewhat below the first limit.
    func plan(forSize size: Int64) -> PartPlan? {
        let most = settings.preset.maxParts / 10 * 9
        var wanted = max(min(settings.partSize, largest), settings.preset.smallestPart)
        if size / most >= wanted { wanted = (size / most / (1 << 20) + 1) * (1 << 20) }
        guard let plan = PartPlan(size: size, partSize: isSingle ? max(1, size) : min(wanted, 5 << 30)),
            plan.count <= settings.preset.maxParts
        else { return nil }
        return plan
    }

    /// The digests that are sent with each part.
    func digestKinds(for checksum: S3Preset.Checksum) -> Set<PartDigests.Kind> {
        var kinds: Set<PartDigests.Kind> = []
        if !isSecure || isSingle { kinds.insert(.sha256) }
        if let kind = checksum.digest { kinds.insert(kind) }
        if checksum == .crc64 { kinds.insert(.md5) }
        return kinds
    }

    /// The digests that staging makes. That of the whole file is always made.
    func requestedDigests(forSize size: Int64) -> [PartDigests.RequestedDigest] {
        guard let plan = plan(forSize: size) else { return [] }
        return digestKinds(for: settings.checksum).subtracting(isSingle ? [.sha256] : []).map {
            PartDigests.RequestedDigest(partSize: plan.partSize, kind: $0)
        }
    }

    /// ``Destination/uncutPiece(ofSize:)``.
    func uncutPiece(ofSize size: Int64?) -> IndivisibleRequest? {
        let part = max(settings.partSize, settings.preset.smallestPart)
        guard let size else {
            let most = max(part, settings.singleUpTo)
            if most <= settings.preset.smallestPart { return IndivisibleRequest(bytes: most) }
            let keys = [("part_size", part), ("single_up_to", settings.singleUpTo)].filter { $0.1 == most }.map(\.0)
            return IndivisibleRequest(bytes: most, keys: keys)
        }
        guard let plan = plan(forSize: size) else { return nil }
        let bytes = plan[0].length
        // No part of such a file may be smaller.
        let smallest = max(settings.preset.smallestPart, size / settings.preset.maxParts)
        if bytes <= smallest { return IndivisibleRequest(bytes: bytes) }
        if !isSingle { return IndivisibleRequest(bytes: bytes, keys: ["part_size"]) }
        return IndivisibleRequest(bytes: bytes, keys: bytes > part ? ["single_up_to"] : ["single_up_to", "part_size"])
    }
}
