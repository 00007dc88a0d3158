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

@Suite("AVI")
struct RIFFTests {
    private func header(promisesIndex: Bool, _ more: [UInt8] = []) -> [UInt8] {
        let flags = little(promisesIndex ? 0x10 : 0, 4)
        return list(
            "hdrl", chunk("avih", [UInt8](repeating: 0, count: 12) + flags + [UInt8](repeating: 0, count: 40)) + more)
    }

    @Test("a large file has several RIFFs, and all of them count")
    func openDML() throws {
        let index = list("strl", chunk("strh", [1, 2, 3]) + chunk("indx", [0, 0]))
        let first = list("AVI ", header(promisesIndex: true, index) + list("movi", [1, 2, 3, 4]), as: "RIFF")
        let second = list("AVIX", list("movi", [5, 6]), as: "RIFF")
        #expect(try FakeFile(first + second).verdict() == .complete(.avi))
        #expect(try FakeFile(first + second.dropLast()).verdict().reason == "ends 1 B before its RIFF does")
        #expect(try FakeFile(first + Array("AVIX".utf8)).verdict().isNotWhole)
    }

    @Test("an index that the header promises must exist")
    func index() throws {
        func file(_ promises: Bool, _ index: [UInt8]) -> FakeFile {
            FakeFile(list("AVI ", header(promisesIndex: promises) + list("movi", [1, 2]) + index, as: "RIFF"))
        }
        #expect(try file(true, chunk("idx1", [])).verdict() == .complete(.avi))
        #expect(try file(true, []).verdict().reason == "has no index yet")
        #expect(try file(false, []).verdict() == .complete(.avi))
    }

    @Test("a file without its lists is incomplete")
    func lists() throws {
        #expect(try FakeFile(list("AVI ", list("movi", []), as: "RIFF")).verdict().reason == "has no 'hdrl'")
        #expect(
            try FakeFile(list("AVI ", header(promisesIndex: false), as: "RIFF")).verdict().reason
                == "has no 'movi' in its RIFF")
    }
}

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

@Suite("MPEG-TS")
struct TransportStreamTests {
    @Test("a file cut within a packet is incomplete", arguments: ["video.ts", "video.m2ts"])
    func cut(_ name: String) throws {
        let bytes = try Recordings.read("whole/" + name)
        #expect(try FakeFile(bytes.dropLast(100)).verdict().isNotWhole)
    }
}

extension FakeFile {
    convenience init(_ bytes: ArraySlice<UInt8>) { self.init(Array(bytes)) }
}
