import Core
import Digests
import TestKit
import Testing

@Suite("Digests of parts")
struct PartDigesterTests {
    private static func digest(_ kind: PartDigests.Kind, _ bytes: ArraySlice<UInt8>) -> [UInt8] {
        func check(_ kind: CRC.Kind) -> [UInt8] {
            var crc = CRC(kind)
            Array(bytes).withUnsafeBytes { crc.update($0) }
            return crc.bytes
        }
        return switch kind {
        case .sha256: Hasher.digest(.sha256, of: Array(bytes))
        case .md5: Hasher.digest(.md5, of: Array(bytes))
        case .crc32c: check(.crc32c)
        case .crc64nvme: check(.crc64nvme)
        case .crc64xz: check(.crc64xz)
        }
    }

    @Test(
        "part digests are those of each part, however the bytes arrive", arguments: PartDigests.Kind.allCases,
        [0, 1, 999, 1000, 1001, 3000, 3001, 12_345])
    func parts(_ kind: PartDigests.Kind, _ size: Int) throws {
        let content = noise(size)
        let requested = PartDigests.RequestedDigest(partSize: 1000, kind: kind)
        let plan = try #require(PartPlan(size: Int64(size), partSize: 1000))
        for step in [1, 7, 999, 1000, 1001, 5000, 20_000] {
            let digester = PartDigester(requested)
            for start in stride(from: 0, to: size, by: step) {
                Array(content[start..<min(start + step, size)]).withUnsafeBytes { digester.update($0) }
            }
            var digests = PartDigests()
            digests.set(requested, digester.finish())
            for index in 0..<plan.count {
                let part = content[Int(plan[index].offset)..<Int(plan[index].end)]
                #expect(digests.digest(requested, of: index) == Self.digest(kind, part))
            }
            #expect(digests.digest(requested, of: plan.count) == nil && digests.digest(requested, of: -1) == nil)
            #expect(digests.digest(PartDigests.RequestedDigest(partSize: 1001, kind: kind), of: 0) == nil)
        }
    }

    @Test("part digests are parsed as written, and from nothing else")
    func coding() throws {
        var digests = PartDigests()
        #expect(digests.isEmpty && digests.encoded.isEmpty && PartDigests(encoded: []) == digests)
        digests.set(PartDigests.RequestedDigest(partSize: 16 << 20, kind: .md5), noise(16 * 130))
        digests.set(PartDigests.RequestedDigest(partSize: 5 << 30, kind: .sha256), noise(32))
        digests.set(PartDigests.RequestedDigest(partSize: 1, kind: .crc64nvme), noise(8 * 3))
        let bytes = digests.encoded
        #expect(PartDigests(encoded: bytes) == digests)
        for length in 1..<40 { #expect(PartDigests(encoded: Array(bytes.dropLast(length))) == nil) }
        #expect(PartDigests(encoded: [9] + bytes.dropFirst()) == nil)
        for seed in 0..<2000 {
            var broken = bytes
            for (place, byte) in zip(noise(4, seed: UInt64(seed)), noise(4, seed: UInt64(seed + 5000))) {
                broken[Int(place) % 60] = byte
            }
            // Any input is read without a trap, and written again unchanged.
            if let read = PartDigests(encoded: broken) { #expect(PartDigests(encoded: read.encoded) == read) }
        }
    }
}
