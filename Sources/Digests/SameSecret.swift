internal import CCrypto

/// Whether two secrets are equal. The time that it takes reveals only their lengths.
package func isSameSecret(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    a.count == b.count && CRYPTO_memcmp(a, b, a.count) == 0
}
