import Core
import Linux
import TestKit
import Testing

@testable import Media

@Suite("Container")
struct ContainerTests {
    @Test("a finished recording is complete", arguments: Recordings.whole)
    func whole(_ name: String) throws {
        let verdict = try FakeFile(Recordings.read("whole/" + name)).verdict()
        #expect(verdict.isWhole, "\(verdict)")
    }

    struct Cut: CustomTestStringConvertible {
        let name: String
        let says: String
        var testDescription: String { name }
    }

    static let cuts = [
        Cut(name: "plain.mp4", says: "has no 'moov' yet, which a recorder writes at the end"),
        Cut(name: "faststart.mp4", says: "has no 'moov' yet, which a recorder writes at the end"),
        Cut(name: "video.mkv", says: "has no size in its Segment yet, which a recorder fills in at the end"),
        Cut(name: "video.webm", says: "has no size in its Segment yet, which a recorder fills in at the end"),
        Cut(name: "live.mkv", says: "has no size in its Segment yet, which a recorder fills in at the end"),
        Cut(name: "video.avi", says: "has no size in its RIFF yet, which a recorder fills in at the end"),
    ]

    @Test("a killed recorder leaves an incomplete file, and the verdict gives the reason", arguments: cuts)
    func killed(_ cut: Cut) throws {
        #expect(try FakeFile(Recordings.read("cut/" + cut.name)).verdict().reason == cut.says)
    }

    @Test("a file killed between two fragments or packets lacks nothing", arguments: ["fragmented.mp4", "video.ts"])
    func killedBetween(_ name: String) throws {
        #expect(try FakeFile(Recordings.read("cut/" + name)).verdict().isWhole)
    }

    /// Places where the beginning of a file may look like a complete one: at the ends of its fragments and packets.
    static func mayPass(_ name: String, _ bytes: [UInt8], _ length: Int) -> Bool {
        switch name {
        case "video.ts": return length % 188 == 0
        case "video.m2ts": return length % 192 == 0
        case "fragmented.mp4":
            // After each `mdat`, and before the box that ends the file.
            let next = Array(bytes[length...].dropFirst(4).prefix(4))
            return next == Array("moof".utf8) || next == Array("mfra".utf8)
        default: return false
        }
    }

    @Test(
        "a recording is closed if nothing can be appended: not a stream, and not a fragmented file",
        arguments: Recordings.whole)
    func closed(_ name: String) throws {
        let hasEnd = !["fragmented.mp4", "video.ts", "video.m2ts"].contains(name)
        #expect(try Container.isClosed(FakeFile(Recordings.read("whole/" + name)).reader, named: "clip") == hasEnd)
        let cut = Array(try Recordings.read("whole/" + name).dropLast(100))
        #expect(try !Container.isClosed(FakeFile(cut).reader, named: "clip"))
    }

    @Test("a recording whose last box has no size and ends with the file is never closed")
    func openEnded() throws {
        let finished = try Recordings.read("whole/faststart.mp4")
        #expect(try Container.isClosed(FakeFile(finished).reader, named: "a.mp4"))
        let mark = try #require(finished.indices.first { finished[$0...].starts(with: Array("mdat".utf8)) })
        var open = finished
        // The bytes after it belong to this box now.
        for index in mark - 4..<mark { open[index] = 0 }
        #expect(try FakeFile(open).verdict().isWhole)
        #expect(try !Container.isClosed(FakeFile(open).reader, named: "a.mp4"))
        #expect(try !Container.isClosed(FakeFile(open + noise(500)).reader, named: "a.mp4"))
    }

    @Test("no prefix of a recording passes as complete, wherever it is cut", arguments: Recordings.whole)
    func beginnings(_ name: String) throws {
        let bytes = try Recordings.read("whole/" + name)
        for length in 1..<bytes.count where !Self.mayPass(name, bytes, length) {
            let verdict = try FakeFile(Array(bytes[..<length])).verdict()
            #expect(!verdict.isWhole, "the first \(length) of \(bytes.count) bytes")
            // Once its format is recognised, it is also judged incomplete.
            if length >= 400 { #expect(verdict.isNotWhole, "the first \(length) of \(bytes.count) bytes") }
        }
    }

    @Test(
        "preallocated space that was never written is no end",
        arguments: Recordings.whole.filter { !$0.hasSuffix("jpg") })
    func preallocated(_ name: String) throws {
        let bytes = try Recordings.read("whole/" + name)
        let verdict = try FakeFile(bytes + [UInt8](repeating: 0, count: 188 * 192)).verdict()
        #expect(verdict.isNotWhole, "\(verdict)")
    }

    @Test(
        "a file of zeros is incomplete if its name is that of a recording",
        arguments: ["a.mp4", "a.MOV", "a.mkv", "a.ts", "a.avi", "a.jpg"])
    func zeros(_ name: FilePath) throws {
        let file = FakeFile([UInt8](repeating: 0, count: 5000))
        #expect(try file.verdict(named: name).isNotWhole)
        #expect(try file.verdict(named: "image.bin") == .unknownFormat)
    }

    @Test(
        "other files give no verdict",
        arguments: ["", "G", "Good day", "blahfree", "RIFF....WAVEfmt ", "\u{1A}EB", "<html>moov</html>"])
    func unknown(_ text: String) throws {
        #expect(try FakeFile(Array(text.utf8)).verdict(named: "a.mp4") == .unknownFormat)
    }

    @Test("a disk error is thrown and is no verdict")
    func unreadable() throws {
        let reader = HeaderReader(size: 100) { _, _ throws(SystemError) in
            throw SystemError(call: "pread", subject: "clip.mp4", code: 5)
        }
        #expect(throws: SystemError.self) { try Container.verdict(of: reader, named: "clip.mp4") }
    }

    @Test("a file on a disk is read through its descriptor")
    func onDisk() throws {
        let folder = TemporaryFolder()
        let path = try folder.write("clip.mkv", Recordings.read("whole/video.mkv"))
        #expect(try Container.verdict(of: HeaderReader(path: path), named: path.name) == .complete(.matroska))
        #expect(throws: SystemError.self) { try HeaderReader(path: folder.path.appending("none")) }
    }
}
