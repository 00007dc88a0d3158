import Testing

@testable import Core

@Suite("Pieces, letters and written times")
struct PiecesTests {
    @Test("an array is cut into pieces in order, and the last may be shorter")
    func pieces() {
        #expect([Int]().pieces(of: 3).isEmpty)
        #expect([1, 2, 3].pieces(of: 3) == [[1, 2, 3]])
        #expect([1, 2, 3, 4, 5, 6, 7].pieces(of: 3).map(Array.init) == [[1, 2, 3], [4, 5, 6], [7]])
    }

    @Test("only letters of ASCII are lowered", arguments: [("", ""), ("ÉaZ@[", "Éaz@["), ("*.MP4", "*.mp4")])
    func lowered(_ text: String, _ expected: String) { #expect(text.loweredInASCII == expected) }

    @Test(
        "a time is read as it is written",
        arguments: [Int64(0), -1, 951_782_400_123, 4_102_444_799_999, 253_402_300_799_999])
    func times(_ milliseconds: Int64) {
        let time = WallTime(milliseconds: milliseconds)
        #expect(WallTime(described: time.description) == time)
    }
}
