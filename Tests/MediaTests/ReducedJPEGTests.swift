import TestKit
import TestTraits
import Testing

@testable import Media

@Suite("Reduced JPEG", .ownThreads)
struct ReducedJPEGTests {
    private static let start: [UInt8] = [0xFF, 0xD8]
    private static let end: [UInt8] = [0xFF, 0xD9]
    private static let table: [UInt8] = [0xFF, 0xDB, 0, 4, 0, 1]
    private static let scan: [UInt8] = [0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0, 7, 0xFF, 0, 7, 0xFF, 0xD0, 7]
    private static func frame(_ width: Int, _ height: Int, marker: UInt8 = 0xC0, components: UInt8 = 1) -> [UInt8] {
        var frame: [UInt8] = [0xFF, marker, 0, 8 + 3 * components, 8]
        for length in [height, width] { frame += [UInt8(length >> 8), UInt8(length & 255)] }
        frame.append(components)
        for component in 0..<components { frame += [component, 0x11, 0] }
        return frame
    }

    @Test("tables, frame and scan stay; metadata, comments and what follows the end go")
    func reduced() {
        let plain = Self.start + Self.table + Self.frame(320, 180) + Self.scan + Self.end
        #expect(JPEG.reduced(plain, side: 320) == plain)
        let extra: [UInt8] = [0xFF, 0xE1, 0, 5, 1, 2, 3] + [0xFF, 0xFE, 0, 3, 65] + [0xFF, 0xEE, 0, 2]
        let long =
            Self.start + extra + Self.table + extra + Self.frame(320, 180) + extra + Self.scan + Self.end + [1, 2, 3]
        #expect(JPEG.reduced(long, side: 320) == plain)
    }

    private static let others: [[[UInt8]]] = [
        [], [start], [start, end], [start, table, scan, end], [start, frame(321, 10), scan, end],
        [start, frame(10, 321), scan, end], [start, frame(0, 10), scan, end], [start, frame(10, 10), scan],
        [start, frame(10, 10, marker: 0xC2), scan, end], [start, frame(10, 10, components: 4), scan, end],
        [start, frame(10, 10), frame(10, 10), scan, end], [start, frame(10, 10), scan, scan, end],
        [start, frame(10, 10), [0xFF, 0xE0, 0xFF, 0xFF]], [start, frame(10, 10), [0xFF, 0xE0, 0, 1], scan, end],
        [start, frame(10, 10), [0], scan, end], [Array("GIF89a".utf8), scan, end],
    ]

    @Test("anything but one whole baseline picture of the size is refused", arguments: others)
    func refused(_ parts: [[UInt8]]) { #expect(JPEG.reduced(Array(parts.joined()), side: 320) == nil) }

    @Test("no bytes make it read past their end")
    func fuzz() {
        let plain = Self.start + Self.table + Self.frame(32, 18, components: 3) + Self.scan + Self.end
        var dice = Dice(seed: 20_261_130)
        for _ in 0..<20_000 {
            var bytes = plain
            for _ in 0..<Int.random(in: 1...4, using: &dice) {
                bytes[Int.random(in: 0..<bytes.count, using: &dice)] = UInt8.random(in: 0...255, using: &dice)
            }
            let cut = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &dice)))
            for each in [bytes, cut] {
                guard let kept = JPEG.reduced(each, side: 320) else { continue }
                #expect(kept.count <= each.count && JPEG.reduced(kept, side: 320) == kept)
            }
        }
    }
}
