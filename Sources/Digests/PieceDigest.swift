internal import CCrypto

/// A digest that is fed piece by piece (libcrypto, EVP_DigestInit(3)).
package final class PieceDigest {
    package enum Algorithm: String, Hashable, Sendable, CaseIterable { case sha1, sha256 }

    private let context: OpaquePointer

    package init(_ algorithm: Algorithm) {
        guard let context = EVP_MD_CTX_new() else { fatalError("libcrypto: out of memory") }
        self.context = context
        guard EVP_DigestInit_ex(context, algorithm == .sha1 ? EVP_sha1() : EVP_sha256(), nil) == 1 else {
            // Only a libcrypto that was built or configured without the algorithm says so.
            fatalError("libcrypto has no \(algorithm.rawValue)")
        }
    }

    deinit { EVP_MD_CTX_free(context) }

    package func take(_ piece: UnsafeRawBufferPointer) { EVP_DigestUpdate(context, piece.baseAddress, piece.count) }

    /// The digest of everything taken. Called once.
    package func finish() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        EVP_DigestFinal_ex(context, &digest, &count)
        return Array(digest.prefix(Int(count)))
    }
}
