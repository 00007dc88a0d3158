import Synchronization
import TestKit
import Testing

@testable import Media

@Suite("JPEG")
struct JPEGTests {
    private let start: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 1, 2, 0xFF, 0xDA, 0, 3, 9]
    private let end: [UInt8] = [0xFF, 0xD9]

    @Test("bytes after the picture are no fault, near or far")
    func trailing() throws {
        let film = [UInt8](repeating: 7, count: 300_000)
        #expect(try FakeFile(start + [1, 2, 3] + end).verdict() == .complete(.jpeg))
        #expect(try FakeFile(start + [1, 2, 3] + end + [0, 0]).verdict() == .complete(.jpeg))
        #expect(try FakeFile(start + [1, 2, 3] + end + film).verdict() == .complete(.jpeg))
    }

    @Test("a picture without an end is incomplete, and a marker within its header is no end")
    func unfinished() throws {
        #expect(try FakeFile(start + [1, 2, 3]).verdict().reason == "has no end of its picture yet")
        #expect(try FakeFile(start + [1, 0xFF]).verdict().isNotWhole)
        let thumbnail: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE1, 0, 6, 0xFF, 0xD9, 1, 1] + start.dropFirst(2)
        #expect(try FakeFile(thumbnail).verdict().isNotWhole)
    }

    @Test("an end that spans two reads is found", arguments: [65_523, 65_535, 65_536, 131_071])
    func border(_ length: Int) throws {
        let filler = [UInt8](repeating: 7, count: length)
        #expect(
            try FakeFile(start + filler + end + [UInt8](repeating: 7, count: 200_000)).verdict() == .complete(.jpeg))
    }

    @Test("much data without an end gives no verdict")
    func long() throws {
        let file = FakeFile(size: 1 << 32, [(0, start)])
        #expect(try file.verdict() == .tooLong(.jpeg))
        #expect(file.asked.withLock { $0.bytes } < 16 << 20)
    }
}
