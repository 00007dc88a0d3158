import Core
import Digests
import TestKit
import Testing

@Suite("Hasher")
struct HasherTests {
    typealias Algorithm = Digests.Hasher.Algorithm

    /// FIPS 180-4 and RFC 1321: the examples of the standards.
    @Test(
        "digests match the standards' examples",
        arguments: [
            (Algorithm.sha256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (.sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (.sha1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (.md5, "abc", "900150983cd24fb0d6963f7d28e17f72"),
        ])
    func examples(_ algorithm: Algorithm, _ text: String, _ expected: String) {
        #expect(hexadecimal(Hasher.digest(algorithm, of: Array(text.utf8))) == expected)
    }

    @Test("the piece boundaries do not matter", arguments: Algorithm.allCases, [1, 63, 64, 65, 4096])
    func pieces(_ algorithm: Algorithm, _ size: Int) {
        let bytes = noise(10_000)
        let hasher = Hasher(algorithm)
        for start in stride(from: 0, to: bytes.count, by: size) {
            hasher.update(Array(bytes[start..<min(start + size, bytes.count)]))
        }
        #expect(hasher.finish() == Hasher.digest(algorithm, of: bytes))
    }

    @Test("a copy is independent, and a finished hasher is reset")
    func copies() {
        let hasher = Hasher(.sha256)
        hasher.update(Array("ab".utf8))
        let other = Hasher(copying: hasher)
        other.update(Array("x".utf8))
        hasher.update(Array("c".utf8))
        #expect(hasher.finish() == Hasher.digest(.sha256, of: Array("abc".utf8)))
        #expect(other.finish() == Hasher.digest(.sha256, of: Array("abx".utf8)))
        #expect(hasher.finish() == Hasher.digest(.sha256, of: []))
    }
}
