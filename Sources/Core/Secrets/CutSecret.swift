/// Finds long parts of a secret: a server may quote only its beginning or its end.
struct CutSecret {
    /// Of a shorter secret a part may be a word of any message. (bytes)
    private static let minLength = 16

    private let secret: [UInt8]
    /// More than half of the secret. (bytes)
    private let partLength: Int
    /// Where the parts of that length begin, by their hash.
    private let starts: [UInt64: [Int]]

    /// - Returns: `nil` for a secret that is too short, and for one with blanks, such as `Bearer …`: of that the message
    ///   itself may have a part, and the token is a secret of its own.
    init?(_ text: String) {
        let secret = Array(text.utf8)
        guard secret.count >= Self.minLength, !secret.contains(UInt8(ascii: " ")) else { return nil }
        let partLength = secret.count / 2 + 1
        let hashes = Self.hashes(of: partLength, in: secret)
        starts = Dictionary(grouping: hashes.indices) { hashes[$0] }
        (self.secret, self.partLength) = (secret, partLength)
    }

    /// Where parts of the secret are, each with more than half of it. The ranges overlap where a part is longer.
    func places(in text: [UInt8]) -> [Range<Int>] {
        Self.hashes(of: partLength, in: text).enumerated().compactMap { index, hash in
            let place = index..<(index + partLength)
            let isPart = starts[hash]?.contains { secret[$0..<($0 + partLength)] == text[place] }
            return isPart == true ? place : nil
        }
    }

    /// The hash of each run of `length` bytes, each made from the one before (Karp and Rabin).
    private static func hashes(of length: Int, in bytes: [UInt8]) -> [UInt64] {
        guard bytes.count >= length else { return [] }
        let base: UInt64 = 0x100_0000_01B3
        let highest = (1..<length).reduce(1) { power, _ in power &* base }
        var hash = bytes[..<length].reduce(0) { $0 &* base &+ UInt64($1) }
        var hashes = [hash]
        for end in length..<bytes.count {
            hash = (hash &- UInt64(bytes[end - length]) &* highest) &* base &+ UInt64(bytes[end])
            hashes.append(hash)
        }
        return hashes
    }
}
