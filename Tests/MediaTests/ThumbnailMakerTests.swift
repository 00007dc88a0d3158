import Core
import FoundationEssentials
import Glibc
import Linux
import TestKit
import TestTraits
import Testing

@testable import Media

/// ffmpeg itself, in its sandbox, over recordings that are whole, broken and hostile.
@Suite(
    "Thumbnails by ffmpeg", .ownThreads, .serialized, .timeLimit(.minutes(Patience.minutes(8))),
    .enabled(
        if: ThumbnailMaker.installed() != nil && Confinement.Support.here.holdsDecoders,
        "needs ffmpeg, Landlock (Linux 5.13) and seccomp"))
struct ThumbnailMakerTests {
    private let folder = TemporaryFolder()
    private static let recordings = Repository.root.appending("Tests/Fixtures/media")

    /// - Parameter limit: Long: ffmpeg gets the least share of a busy processor.
    private func maker(_ limit: Duration = .seconds(300)) throws -> ThumbnailMaker {
        ThumbnailMaker(program: try #require(Program.installed("ffmpeg")), limit: limit)
    }

    private func picture(_ path: FilePath) throws -> Result<[UInt8], ThumbnailMaker.Failure> {
        let file = try Descriptor.open(path, for: .reading)
        let maker = try maker()
        return Result { () throws(ThumbnailMaker.Failure) in try maker.picture(of: file, isStopped: { false }) }
    }

    private func picture(of content: [UInt8], named name: FilePath = "file") throws
        -> Result<[UInt8], ThumbnailMaker.Failure>
    {
        try picture(try folder.write(name, content))
    }

    /// Programs with this name that this process has started and not awaited, or that still run.
    private static func leftPrograms() throws -> [String] {
        try Files.names(in: "/proc").compactMap { name in
            guard let text = try? Files.read(FilePath("/proc").appending(name).appending("stat")) else { return nil }
            let fields = String(decoding: text, as: UTF8.self)
            guard fields.contains("(ffmpeg)"), let rest = fields.split(separator: ") ").last else { return nil }
            return rest.split(separator: " ")[1] == "\(getpid())" ? fields : nil
        }
    }

    private static let recordingNames = [
        "plain.mp4", "faststart.mp4", "fragmented.mp4", "camera.mov", "rotated.mp4", "video.avi", "video.m2ts",
        "video.mkv", "video.ts", "video.webm", "camera.jpg", "picture.jpg",
    ]

    @Test("recordings and photos have a small picture, also with the index at the end", arguments: recordingNames)
    func whole(_ name: String) throws {
        let bytes = try picture(Self.recordings.appending("whole").appending(FilePath(name))).get()
        #expect((1_000...ThumbnailMaker.mostBytes).contains(bytes.count))
        #expect(JPEG.reduced(bytes, side: ThumbnailMaker.side) == bytes)
    }

    @Test("the index of one of these is at the end, and the recording does not fit into a first read")
    func indexAtEnd() throws {
        let original = try Files.read(Self.recordings.appending("whole/plain.mp4"))
        func place(_ box: String) -> Int? {
            let wanted = Array(box.utf8)
            return original.indices.dropLast(4).first { original[$0..<($0 + 4)].elementsEqual(wanted) }
        }
        let (data, index) = (try #require(place("mdat")), try #require(place("moov")))
        #expect(data < index)
    }

    @Test("broken recordings end in time with a picture or a reason, and leave no program")
    func broken() throws {
        var dice = Dice(seed: 20_261_130)
        var cases: [(String, [UInt8])] = []
        for name in Self.recordingNames {
            let original = try Files.read(Self.recordings.appending("whole").appending(FilePath(name)))
            for share in [1, 5, 30, 60, 95] {
                cases.append(("\(name) cut at \(share) %", Array(original.prefix(original.count * share / 100))))
            }
            cases.append(("\(name) without its last byte", Array(original.dropLast())))
            for round in 0..<6 {
                var damaged = original
                // In the headers, and anywhere.
                let range = round.isMultiple(of: 2) ? 0..<min(600, damaged.count) : 0..<damaged.count
                for _ in 0..<(1 << round) {
                    damaged[Int.random(in: range, using: &dice)] = UInt8.random(in: 0...255, using: &dice)
                }
                cases.append(("\(name) with damage \(round)", damaged))
            }
        }
        let (clock, limit) = (ContinuousClock(), Duration.seconds(12) * Patience.factor)
        for (what, content) in Tier.sample(cases, 36) {
            let began = clock.now
            switch try picture(of: content) {
            case .success(let bytes): #expect(JPEG.reduced(bytes, side: ThumbnailMaker.side) == bytes, "\(what)")
            case .failure(.unreadable), .failure(.overdue): break
            case .failure(let failure): Issue.record("\(what): \(failure)")
            }
            #expect(began.duration(to: clock.now) < limit, "\(what)")
        }
        #expect(try Self.leftPrograms() == [])
    }

    private static func png(_ width: UInt32, _ height: UInt32) -> [UInt8] {
        func bytes(_ number: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) } }
        return [0x89] + Array("PNG\r\n".utf8) + [0x1A, 0x0A] + bytes(13) + Array("IHDR".utf8) + bytes(width)
            + bytes(height) + [8, 6, 0, 0, 0] + [0, 0, 0, 0] + bytes(4) + Array("IDAT".utf8) + [0x78, 0x9C, 3, 0]
            + [0, 0, 0, 0]
    }

    /// A grey BMP with 24 bits for a pixel.
    private static func grey(_ width: UInt32, _ height: UInt32) -> [UInt8] {
        func bytes(_ numbers: UInt32...) -> [UInt8] {
            numbers.flatMap { number in (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } }
        }
        let size = (width * 3 + 3) / 4 * 4 * height
        return Array("BM".utf8) + bytes(54 + size, 0, 54, 40, width, height) + [1, 0, 24, 0]
            + bytes(0, size, 2_835, 2_835, 0, 0) + [UInt8](repeating: 128, count: Int(size))
    }

    @Test("a line of pixels has a picture", arguments: [(2, 8_000), (8_000, 2)] as [(UInt32, UInt32)])
    func line(_ width: UInt32, _ height: UInt32) throws {
        let bytes = try picture(of: Self.grey(width, height)).get()
        #expect(JPEG.reduced(bytes, side: ThumbnailMaker.side) == bytes)
    }

    @Test("the reasons against a recording with sound alone name that it has no picture")
    func sound() throws {
        var recording = try Files.read(Self.recordings.appending("whole/video.avi"))
        let (video, audio) = (Array("vids".utf8), Array("auds".utf8))
        for place in recording.indices.dropLast(4) where recording[place..<(place + 4)].elementsEqual(video) {
            recording.replaceSubrange(place..<(place + 4), with: audio)
        }
        guard case .failure(.unreadable(let text)) = try picture(of: recording) else {
            Issue.record("sound has a picture, or ffmpeg did not start")
            return
        }
        #expect(text.contains("it has no picture"), "\(text)")
    }

    private static let noPictures: [(String, [UInt8])] = [
        ("no bytes", []), ("zeros", [UInt8](repeating: 0, count: 100_000)), ("text", Array("Hello there.\n".utf8)),
        ("noise", noise(200_000)), ("a PNG of 65535 by 65535", png(65_535, 65_535)),
        ("a PNG of 2147483647 by 1", png(2_147_483_647, 1)),
        (
            "a JPEG of 65535 by 65535",
            [0xFF, 0xD8, 0xFF, 0xC0, 0, 17, 8, 0xFF, 0xFF, 0xFF, 0xFF, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]
        ), ("a GIF of 65535 by 65535", Array("GIF89a".utf8) + [0xFF, 0xFF, 0xFF, 0xFF, 0xF0, 0, 0]),
        ("a script", Array("#!/bin/sh\ntouch /tmp/run\n".utf8)),
    ]

    @Test("what is no picture has none", arguments: noPictures.indices)
    func nothing(_ index: Int) throws {
        let (what, content) = Self.noPictures[index]
        guard case .failure(.unreadable) = try picture(of: content) else {
            Issue.record("\(what) has a picture, or ffmpeg did not start")
            return
        }
    }

    @Test("a recording that claims to last for ever, and one of 100 GB that is empty, end in time")
    func endless() throws {
        var endless = try Files.read(Self.recordings.appending("whole/plain.mp4"))
        for box in ["mvhd", "tkhd", "mdhd"] {
            let wanted = Array(box.utf8)
            let places = endless.indices.dropLast(40).filter { endless[$0..<($0 + 4)].elementsEqual(wanted) }
            // The length is at different places in them, and everything behind the times is damaged here.
            for place in places { for offset in 20..<28 { endless[place + offset] = 0xFF } }
        }
        // Its first frame is where it was.
        _ = try picture(of: endless).get()
        let head = try Files.read(Self.recordings.appending("whole/video.ts")).prefix(188)
        let path = try folder.write("empty.ts", Array(head))
        #expect(path.withCString { truncate($0, 100 << 30) } == 0)
        guard case .failure(let failure) = try picture(path) else {
            Issue.record("an empty recording has a picture")
            return
        }
        #expect(failure != .stopped)
        #expect(try Self.leftPrograms() == [])
    }

    @Test("lists of other files lead to none of them, and to no server")
    func lists() throws {
        let server = try Loopback()
        defer { close(server.descriptor) }
        #expect(fcntl(server.descriptor, F_SETFL, O_NONBLOCK) == 0)
        let other = Self.recordings.appending("whole/plain.mp4").display
        for target in [other, "file://\(other)", "file:/etc/passwd", "http://127.0.0.1:\(server.port)/x.ts"] {
            let lists: [FilePath: String] = [
                "list.m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\n\(target)\n#EXT-X-ENDLIST\n",
                "master.mp4": "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n\(target)\n",
                "list.ffconcat": "ffconcat version 1.0\nfile '\(target)'\n",
                "list.mpd": "<MPD><BaseURL>\(target)</BaseURL><Period></Period></MPD>",
                "list.sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=video \(server.port) RTP/AVP 96\n",
                "drawing.svg": "<svg xmlns='http://www.w3.org/2000/svg'><image href='\(target)'/></svg>",
            ]
            for (name, text) in lists {
                guard case .failure(.unreadable) = try picture(of: Array(text.utf8), named: name) else {
                    Issue.record("\(name) to \(target) has a picture, or ffmpeg did not start")
                    continue
                }
            }
        }
        #expect(accept(server.descriptor, nil, nil) == -1 && errno == EAGAIN, "ffmpeg has connected")
    }

    @Test("ffmpeg is killed after its time, and one whose picture is not wanted any more at once")
    func ended() throws {
        let file = try Descriptor.open(Self.recordings.appending("whole/plain.mp4"), for: .reading)
        let (hasty, patient) = (try maker(.zero), try maker())
        func result(_ maker: ThumbnailMaker, isStopped: Bool) -> Result<[UInt8], ThumbnailMaker.Failure> {
            Result { () throws(ThumbnailMaker.Failure) in try maker.picture(of: file, isStopped: { isStopped }) }
        }
        #expect(result(hasty, isStopped: false) == .failure(.overdue("ffmpeg took longer than 0 seconds")))
        #expect(result(patient, isStopped: true) == .failure(.stopped))
        #expect(try Self.leftPrograms() == [])
    }

    @Test("an ffmpeg that is killed from outside, as for lack of memory, says little about its file")
    func killed() throws {
        let file = try Descriptor.open(Self.recordings.appending("whole/plain.mp4"), for: .reading)
        let words = file.withNumber { "file:/proc/self/fd/\($0)\0" }
        func kill() throws {
            for stat in try Self.leftPrograms() {
                guard let pid = pid_t(stat.prefix { $0 != " " }) else { continue }
                let line = try Files.read(FilePath("/proc/\(pid)/cmdline"))
                if String(decoding: line, as: UTF8.self).contains(words) { _ = Glibc.kill(pid, SIGKILL) }
            }
        }
        let maker = try maker(.seconds(60))
        let result = Result { () throws(ThumbnailMaker.Failure) in
            try maker.picture(of: file) {
                do { try kill() } catch { Issue.record(error) }
                return false
            }
        }
        guard case .failure(.overdue(let text)) = result else {
            Issue.record("\(result)")
            return
        }
        #expect(text.contains("killed") && text.contains("256 MiB of memory"))
    }

    @Test("this machine makes pictures, so check has nothing to say")
    func obstacle() { #expect(ThumbnailMaker.obstacle() == nil) }
}
