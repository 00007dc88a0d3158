extension Hasher {
    /// An HMAC, which only a holder of `key` can compute (RFC 2104). Every algorithm here works on blocks of 64 bytes.
    package static func authentication(_ algorithm: Algorithm, of bytes: [UInt8], key: [UInt8]) -> [UInt8] {
        let block = 64
        var key = key.count > block ? digest(algorithm, of: key) : key
        key += [UInt8](repeating: 0, count: block - key.count)
        let inner = digest(algorithm, of: key.map { $0 ^ 0x36 } + bytes)
        return digest(algorithm, of: key.map { $0 ^ 0x5C } + inner)
    }
}
