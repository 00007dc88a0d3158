internal import CCrypto

/// Keyed digests (RFC 2104).
package enum HMAC {
    package static func sha256(key: [UInt8], _ message: [UInt8]) -> [UInt8] {
        // The inner and outer pads of RFC 2104 over the fetched method: no second fetch, and any length of key.
        let block = 64
        var padded = key.count > block ? Hasher.digest(.sha256, of: key) : key
        padded += [UInt8](repeating: 0, count: block - padded.count)
        let hasher = Hasher(.sha256)
        hasher.update(padded.map { $0 ^ 0x36 })
        hasher.update(message)
        let inner = hasher.finish()
        hasher.update(padded.map { $0 ^ 0x5C })
        hasher.update(inner)
        return hasher.finish()
    }
}

/// Whether two secrets are equal, in a time that tells nothing but their lengths.
package func isSameSecret(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    a.count == b.count && CRYPTO_memcmp(a, b, a.count) == 0
}
