import Digests
import TestKit
import Testing

@Suite("CRC")
struct CRCTests {
    /// The check value of each, for the nine digits (RFC 3720 for CRC-32C; xz and NVM Express for the 64-bit ones).
    @Test(
        "each CRC has the published check value",
        arguments: [
            (CRC.Kind.crc32, UInt64(0xCBF4_3926)), (.crc32c, 0xE306_9283), (.crc64xz, 0x995D_C9BB_DF19_39FA),
            (.crc64nvme, 0xAE8B_1486_0A79_9888),
        ])
    func check(_ kind: CRC.Kind, _ value: UInt64) {
        #expect(crc(kind, Array("123456789".utf8)) == value)
        #expect(crc(kind, []) == 0)
    }

    @Test("the CRC of longer data matches other programs, also for ranges and combined ranges")
    func ranges() {
        let whole = (0..<300_000).map { UInt8(truncatingIfNeeded: ($0 * 2_654_435_761) >> 13) }
        let cuts = [0..<102_400, 102_400..<204_800, 204_800..<300_000]
        let known: [(CRC.Kind, [UInt64], UInt64)] = [
            (.crc64nvme, [0x7C1D_AD57_5CEF_DB70, 0x9640_2194_3650_C952, 0xE8E2_E97D_137B_F993], 0xA34C_8DA5_D903_240E),
            (.crc32c, [0xCECB_F076, 0x5202_FE63, 0x6010_51B1], 0xA22B_E05A),
            (.crc64xz, [0x45AF_90DC_6404_CCD5, 0x1946_DD23_FD43_B323, 0x981F_8CF4_0213_58E3], 0x3E7E_B3C2_4FC6_0366),
        ]
        for (kind, parts, all) in known {
            #expect(cuts.map { crc(kind, Array(whole[$0])) } == parts)
            #expect(crc(kind, whole) == all)
            var joined: UInt64 = 0
            for (part, cut) in zip(parts, cuts) {
                joined = CRC.combined(joined, part, length: Int64(cut.count), kind)
            }
            #expect(joined == all)
        }
    }

    @Test("CRC-64/XZ as in OSS headers matches the vendor's packages")
    func oss() {
        let known: [([UInt8], UInt64)] = [
            ([], 0), (Array("a".utf8), 3_675_645_893_302_102_789),
            (Array("123456789".utf8), 11_051_210_869_376_104_954),
            (Array("hello world".utf8), 5_981_764_153_023_615_706),
            ([UInt8](repeating: 0, count: 1 << 20), 6_947_770_692_288_575_170),
            (Array("1234567890".utf8), 12_811_388_247_244_714_686),
        ]
        for (data, value) in known { #expect(crc(.crc64xz, data) == value) }
        #expect(
            CRC.combined(6_748_440_630_437_108_969, 6_285_347_597_771_850_461, length: 5, .crc64xz)
                == 12_811_388_247_244_714_686)
        #expect(
            CRC.combined(0x45AF_90DC_6404_CCD5, 0x1946_DD23_FD43_B323, length: 102_400, .crc64xz)
                == 0x968D_291A_C0FF_8E69)
    }

    @Test("the CRC is the same however the data is cut, and two pieces combine to it", arguments: 0..<50)
    func cuts(_ seed: UInt64) {
        var dice = Dice(seed: seed)
        let data = noise(Int.random(in: 0...5000, using: &dice), seed: seed)
        let middle = Int.random(in: 0...data.count, using: &dice)
        for kind in CRC.Kind.allCases {
            let all = crc(kind, data)
            var grown = CRC(kind)
            var at = 0
            while at < data.count {
                let end = min(data.count, at + Int.random(in: 1...40, using: &dice))
                data[at..<end].withUnsafeBytes { grown.update($0) }
                at = end
            }
            #expect(grown.value == all)
            let (first, second) = (crc(kind, Array(data[..<middle])), crc(kind, Array(data[middle...])))
            #expect(CRC.combined(first, second, length: Int64(data.count - middle), kind) == all)
        }
    }

    @Test("the CRC of a range over 4 GiB is combined by its length alone")
    func long() {
        // Followed by zero bytes, twice as many each time; compared with counting them one by one.
        let start = crc(.crc64nvme, [1, 2, 3])
        func zeros(_ count: Int64, behind first: UInt64) -> UInt64 {
            CRC.combined(first, zeroCRC(count), length: count, .crc64nvme)
        }
        let once = zeros(6 << 30, behind: start)
        let twice = zeros(3 << 30, behind: zeros(3 << 30, behind: start))
        #expect(once == twice)
        #expect(once != start)
    }

    private func zeroCRC(_ count: Int64) -> UInt64 {
        if count <= 1 << 20 { return crc(.crc64nvme, [UInt8](repeating: 0, count: Int(count))) }
        let half = zeroCRC(count / 2)
        return CRC.combined(half, half, length: count / 2, .crc64nvme)
    }

    @Test("the most significant byte is written first")
    func bytes() {
        #expect(CRC.bytes(0xE306_9283, .crc32c) == [0xE3, 0x06, 0x92, 0x83])
        #expect(CRC.bytes(1, .crc64xz) == [0, 0, 0, 0, 0, 0, 0, 1])
    }

    private func crc(_ kind: CRC.Kind, _ data: [UInt8]) -> UInt64 {
        var crc = CRC(kind)
        data.withUnsafeBytes { crc.update($0) }
        return crc.value
    }
}
