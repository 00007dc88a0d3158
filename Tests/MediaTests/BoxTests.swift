import Synchronization
import TestKit
import Testing

@testable import Media

@Suite("MP4 and QuickTime")
struct BoxTests {
    private let opening = box("ftyp", Array("isom".utf8))
    private let movie = box("moov", box("mvhd", [UInt8](repeating: 0, count: 100)))

    @Test("64-bit sizes exceed 4 GiB, and no content is read")
    func long() throws {
        let data = big(1, 4) + Array("mdat".utf8) + big(6 << 30, 8)
        let behind = Int64(opening.count) + (6 << 30)
        let file = FakeFile(
            size: behind + Int64(movie.count), [(0, opening), (Int64(opening.count), data), (behind, movie)])
        #expect(try file.verdict() == .complete(.mp4))
        #expect(file.asked.withLock { $0.bytes } < 10_000)
        let short = FakeFile(size: behind - 1, [(0, opening), (Int64(opening.count), data)])
        #expect(try short.verdict().reason == "ends 1 B before its box 'mdat' does")
        let endless = big(1, 4) + Array("mdat".utf8) + big(-1, 8)
        #expect(try FakeFile(opening + endless).verdict().reason == "ends 9.2 EB before its box 'mdat' does")
    }

    @Test("data without a size extends to the end: complete after its 'moov', incomplete without one")
    func open() throws {
        let data = big(0, 4) + Array("mdat".utf8) + [1, 2, 3]
        #expect(try FakeFile(opening + movie + data).verdict() == .complete(.mp4))
        #expect(try FakeFile(opening + data).verdict().isNotWhole)
    }

    @Test("a fragment without its data is incomplete, and so is a header without a fragment")
    func fragments() throws {
        let head = opening + box("moov", box("mvex"))
        #expect(try FakeFile(head).verdict().reason == "has no fragment yet")
        #expect(try FakeFile(head + box("moof")).verdict().reason == "has no data for its last fragment")
        #expect(try FakeFile(head + box("moof") + box("mdat", [1])).verdict() == .complete(.mp4))
    }

    @Test("stills and stream segments have no 'moov'")
    func relatives() throws {
        #expect(try FakeFile(box("ftyp", Array("heic".utf8)) + box("meta") + box("mdat")).verdict() == .complete(.mp4))
        #expect(try FakeFile(box("styp") + box("moof") + box("mdat", [1])).verdict() == .complete(.mp4))
    }

    @Test("older QuickTime files start with their data")
    func old() throws {
        #expect(try FakeFile(box("mdat", [1, 2]) + movie).verdict() == .complete(.mp4))
        #expect(try FakeFile(movie).verdict().reason == "has no 'mdat' yet")
        #expect(try FakeFile(box("wide") + box("mdat", [1, 2])).verdict().isNotWhole)
    }

    @Test("sizes beyond every file end in a verdict", arguments: [big(7, 4), big(1, 4), big(0x7FFF_FFFF, 4)])
    func sizes(_ size: [UInt8]) throws {
        for long in [0, 15, Int.max, -1] {
            #expect(try FakeFile(opening + size + Array("mdat".utf8) + big(long, 8)).verdict().isNotWhole)
        }
    }

    @Test("too many boxes count as too long, not too slow")
    func many() throws {
        let file = FakeFile(opening + (0..<60_000).flatMap { _ in box("free") } + movie)
        #expect(try file.verdict() == .tooLong(.mp4))
        #expect(file.asked.withLock { $0.bytes } <= HeaderReader.maxBytes)
    }
}

extension FakeFile {
    convenience init(_ bytes: ArraySlice<UInt8>) { self.init(Array(bytes)) }
}
