internal import CCrypto

/// A digest that is updated with the bytes it is given. One owner at a time; not `Sendable`.
package final class Hasher {
    package enum Algorithm: String, Hashable, Sendable, CaseIterable {
        case sha256, sha1, md5

        /// Size of the finished digest in bytes.
        package var length: Int {
            switch self {
            case .sha256: 32
            case .sha1: 20
            case .md5: 16
            }
        }
    }

    package let algorithm: Algorithm
    private let context: OpaquePointer

    package init(_ algorithm: Algorithm) {
        self.algorithm = algorithm
        context = Self.newContext()
        check(EVP_DigestInit_ex2(context, DigestMethods.all[algorithm], nil), "EVP_DigestInit_ex2")
    }

    /// A second digest with the same bytes so far, which continues independently.
    package init(copying other: Hasher) {
        algorithm = other.algorithm
        context = Self.newContext()
        check(EVP_MD_CTX_copy_ex(context, other.context), "EVP_MD_CTX_copy_ex")
    }

    package func update(_ bytes: UnsafeRawBufferPointer) {
        check(EVP_DigestUpdate(context, bytes.baseAddress, bytes.count), "EVP_DigestUpdate")
    }

    package func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update($0) } }

    /// The digest of all bytes so far; afterwards the hasher is reset.
    package func finish() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: algorithm.length)
        check(EVP_DigestFinal_ex(context, &digest, nil), "EVP_DigestFinal_ex")
        check(EVP_DigestInit_ex2(context, DigestMethods.all[algorithm], nil), "EVP_DigestInit_ex2")
        return digest
    }

    /// The digest of bytes in memory.
    package static func digest(_ algorithm: Algorithm, of bytes: [UInt8]) -> [UInt8] {
        let hasher = Hasher(algorithm)
        hasher.update(bytes)
        return hasher.finish()
    }

    /// The digest of all bytes from `read`, for any source.
    ///
    /// - Parameters:
    ///   - expected: The probable number of bytes, so that a small file needs little memory.
    ///   - read: Fills the buffer from the offset, and returns fewer bytes than fit only at the end.
    package static func digest<E: Error>(
        _ algorithm: Algorithm, expecting expected: Int64 = .max,
        reading read: (_ into: UnsafeMutableRawBufferPointer, _ offset: Int64) throws(E) -> Int
    ) throws(E) -> [UInt8] {
        let hasher = Hasher(algorithm)
        let blockSize = Int(min(expected, (1 << 20) - 1) >> 12 + 1) << 12
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: blockSize, alignment: 4096)
        defer { block.deallocate() }
        var offset: Int64 = 0
        while true {
            let got = try read(block, offset)
            hasher.update(UnsafeRawBufferPointer(rebasing: block[..<got]))
            offset += Int64(got)
            if got < block.count { return hasher.finish() }
        }
    }

    private static func newContext() -> OpaquePointer {
        guard let context = EVP_MD_CTX_new() else { fatalError("EVP_MD_CTX_new: out of memory") }
        return context
    }

    deinit { EVP_MD_CTX_free(context) }
}

/// The methods, fetched once: a fetch for each digest of a small file costs three times the digest.
///
/// `@unchecked Sendable`: an `EVP_MD` never changes after it was fetched, and libcrypto allows its use from any thread
/// (EVP_MD_fetch(3)); the dictionary is a constant.
private struct DigestMethods: @unchecked Sendable {
    private let methods: [Hasher.Algorithm: OpaquePointer]

    static let all = DigestMethods()

    private init() {
        var methods: [Hasher.Algorithm: OpaquePointer] = [:]
        for algorithm in Hasher.Algorithm.allCases {
            // MD5 is a checksum here, never a proof, so a machine in FIPS mode may give it from its default provider.
            let method = EVP_MD_fetch(nil, algorithm.rawValue, nil) ?? EVP_MD_fetch(nil, algorithm.rawValue, "-fips")
            methods[algorithm] = method
        }
        self.methods = methods
    }

    subscript(algorithm: Hasher.Algorithm) -> OpaquePointer {
        guard let method = methods[algorithm] else {
            fatalError("libcrypto has no \(algorithm.rawValue): its default provider is switched off in openssl.cnf")
        }
        return method
    }
}

/// libcrypto's digests fail only for lack of memory or misuse.
private func check(_ result: CInt, _ call: StaticString) {
    guard result == 1 else { fatalError("\(call): libcrypto refused") }
}
