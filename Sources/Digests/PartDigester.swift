package import Core

/// Digests each part of a file as its bytes pass. One owner at a time; not `Sendable`.
package final class PartDigester {
    private enum Sum {
        case hash(Hasher)
        case check(CRC)
    }

    package let requested: PartDigests.RequestedDigest
    private var sum: Sum
    /// Bytes of the current part.
    private var filled: Int64 = 0
    private var digests: [UInt8] = []

    package init(_ requested: PartDigests.RequestedDigest) {
        self.requested = requested
        sum = Self.sum(requested.kind)
    }

    private static func sum(_ kind: PartDigests.Kind) -> Sum {
        switch kind {
        case .sha256: .hash(Hasher(.sha256))
        case .md5: .hash(Hasher(.md5))
        case .crc32c: .check(CRC(.crc32c))
        case .crc64nvme: .check(CRC(.crc64nvme))
        case .crc64xz: .check(CRC(.crc64xz))
        }
    }

    package func update(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Int(min(Int64(rest.count), requested.partSize - filled)))
            updateSum(UnsafeRawBufferPointer(rebasing: piece))
            rest = rest.dropFirst(piece.count)
            filled += Int64(piece.count)
            if filled == requested.partSize { close() }
        }
    }

    private func updateSum(_ bytes: UnsafeRawBufferPointer) {
        switch sum {
        case .hash(let hasher): hasher.update(bytes)
        case .check(var check):
            check.update(bytes)
            sum = .check(check)
        }
    }

    private func close() {
        switch sum {
        case .hash(let hasher): digests += hasher.finish()
        case .check(let check):
            digests += check.bytes
            sum = Self.sum(requested.kind)
        }
        filled = 0
    }

    /// - Returns: The digests of all parts, one after the other; an empty file is one part without a byte.
    package func finish() -> [UInt8] {
        if filled > 0 || digests.isEmpty { close() }
        return digests
    }
}
