/// Digests of the parts of a file, computed while it is read for staging. A destination that cuts the file in the same
/// way need not read a part again for its digest.
///
/// All parts have one size, except the last, which may be shorter (``PartPlan/Rule/short``).
package struct PartDigests: Hashable, Sendable {
    package enum Kind: UInt8, Hashable, Sendable, CaseIterable {
        case sha256 = 1
        case md5, crc32c, crc64nvme, crc64xz

        /// Size of one digest in bytes.
        package var length: Int {
            switch self {
            case .sha256: 32
            case .md5: 16
            case .crc32c: 4
            case .crc64nvme, .crc64xz: 8
            }
        }
    }

    /// A digest that a destination will need for each part.
    package struct RequestedDigest: Hashable, Sendable {
        /// In bytes, at least 1.
        package let partSize: Int64
        package let kind: Kind

        package init(partSize: Int64, kind: Kind) {
            self.partSize = max(1, partSize)
            self.kind = kind
        }
    }

    private var columns: [RequestedDigest: [UInt8]] = [:]

    package init() {}

    package var isEmpty: Bool { columns.isEmpty }

    /// - Parameter digests: Digests of all parts, one after the other.
    package mutating func set(_ requested: RequestedDigest, _ digests: [UInt8]) { columns[requested] = digests }

    /// - Parameter index: Counted from 0.
    /// - Returns: `nil` when it is not known.
    package func digest(_ requested: RequestedDigest, of index: Int) -> [UInt8]? {
        guard let column = columns[requested], index >= 0, (index + 1) * requested.kind.length <= column.count else {
            return nil
        }
        return Array(column[index * requested.kind.length..<(index + 1) * requested.kind.length])
    }

    // MARK: As bytes

    /// For each column: the kind, one byte; the size of a part and the number of bytes, eight each, the lowest byte
    /// first; the bytes.
    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        for (requested, column) in columns.sorted(by: {
            ($0.key.partSize, $0.key.kind.rawValue) < ($1.key.partSize, $1.key.kind.rawValue)
        }) {
            bytes.append(requested.kind.rawValue)
            for number in [requested.partSize, Int64(column.count)] {
                bytes += (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
            }
            bytes += column
        }
        return bytes
    }

    /// - Returns: `nil` for anything but ``encoded``.
    package init?(encoded: [UInt8]) {
        var rest = encoded[...]
        func number() -> Int64? {
            guard rest.count >= 8 else { return nil }
            defer { rest = rest.dropFirst(8) }
            return rest.prefix(8).reversed().reduce(0) { $0 << 8 | Int64($1) }
        }
        while let first = rest.popFirst() {
            guard let kind = Kind(rawValue: first), let partSize = number(), partSize > 0, let count = number(),
                count >= 0, count <= rest.count, count % Int64(kind.length) == 0
            else { return nil }
            columns[RequestedDigest(partSize: partSize, kind: kind)] = Array(rest.prefix(Int(count)))
            rest = rest.dropFirst(Int(count))
        }
    }
}
