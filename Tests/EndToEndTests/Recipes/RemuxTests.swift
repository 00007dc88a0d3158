import Core
import Linux
import TestKit
import TestTraits
import Testing

/// `config/recipes/remux.yaml` and its page, with ffmpeg itself.
@Suite("Recipe of a recording machine", .needsPackages, .timeLimit(.minutes(Patience.minutes(4))))
struct RemuxTests {
    /// ffmpeg, unpacked, in a folder that the test adds to `PATH`.
    private struct FFmpeg {
        let folder = TemporaryFolder()
        private var program: FilePath { folder.path.appending("ffmpeg") }
        var path: String { "\(folder.path.display):/usr/bin:/bin" }

        init() async throws {
            let bin = try await blocking { try Tools.python("ffmpeg") }
            // The package finds its program by the kind of the machine.
            let asking = try Child(
                bin.appending("python"), ["-c", "import imageio_ffmpeg; print(imageio_ffmpeg.get_ffmpeg_exe())"],
                output: folder.path.appending("out"), errors: folder.path.appending("err"))
            let ending = try await asking.end(within: .seconds(30))
            let complaint = try asking.standardError()
            try #require(ending == .status(0), "\(complaint)")
            try #require(makeLink(to: FilePath(String(asking.standardOutput().dropLast())), at: program))
        }

        /// Runs it, and expects no complaint.
        ///
        /// - Returns: Its output.
        @discardableResult
        func run(_ words: [String]) async throws -> String {
            let name = "run-\(hexadecimal(Random.bytes(6)))"
            let child = try Child(
                program, ["-nostdin", "-v", "error"] + words, output: folder.path.appending(FilePath(name)),
                errors: folder.path.appending(FilePath("\(name).err")))
            let ending = try await child.end(within: .seconds(30))
            let complaint = try child.standardError()
            try #require(ending == .status(0) && complaint.isEmpty, "\(complaint)")
            return try child.standardOutput()
        }

        /// The digest of each stream's packets: equal if no packet was changed, lost or encoded again.
        func digest(of path: FilePath) async throws -> String {
            try await run([
                "-i", path.display, "-map", "0", "-c", "copy", "-f", "streamhash", "-hash", "sha256", "pipe:1",
            ])
        }
    }

    /// A recording machine and its archive.
    private struct Machine {
        let ffmpeg: FFmpeg
        let fixture: DaemonFixture
        /// Exists while the recorder records.
        let busy: FilePath
        private let token: FilePath

        init() async throws {
            ffmpeg = try await FFmpeg()
            fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
            token = try fixture.folder.write("archive.token", Array(hexadecimal(Random.bytes(32)).utf8))
            busy = fixture.folder.path.appending("recording")
            fixture.receiverKeys = ["--token-file", token.display]
            try await fixture.startReceiver()
        }

        func configure(_ more: [(String, String)] = []) throws {
            try fixture.use(
                recipe: "remux",
                replacing: [
                    ("/srv/recordings", fixture.drop.display), ("/run/recorder/recording", busy.display),
                    ("https://archive.example/files/", "http://\(fixture.address)/files/"),
                    ("/etc/sluice/archive.token", token.display),
                ] + more)
        }

        /// - Parameter shift: Seconds by which the clock is ahead.
        func start(shift: Int64 = 0) async throws {
            try fixture.startDaemon(environment: ["PATH": ffmpeg.path, "SLUICE_TEST_CLOCK": "\(shift)"])
            try await fixture.watches()
        }
    }

    @Test(
        "whole recordings arrive as MP4 with the same streams and stay for seven days; busy and cut ones wait")
    func arrives() async throws {
        let machine = try await Machine()
        let (fixture, ffmpeg) = (machine.fixture, machine.ffmpeg)
        try machine.configure()
        try Files.replace(machine.busy, with: [])
        try await machine.start()
        let whole = ["show.mkv": "whole/video.mkv", "stream.ts": "whole/video.ts"]
        for (name, source) in whole { try record(recording(source), at: fixture.drop.appending(FilePath(name))) }
        try record(recording("cut/video.mkv"), at: fixture.drop.appending("cut.mkv"))
        // The recorder records: the copies are made, and nothing is sent.
        for name in whole.keys { try await fixture.holds(fixture.drop.appending(FilePath(name)), for: "busy") }
        #expect(try await fixture.sentToday() == 0)
        try Files.removeIfPresent(machine.busy)
        try await fixture.completes(2)
        let arrived = try Outcome.files(in: fixture.received, hidden: false)
        #expect(arrived.contains("studio/2024-05-01/show.mp4"), "\(arrived)")
        #expect(arrived.count == 2 && arrived.filter { $0.name == "stream.mp4" }.count == 1, "\(arrived)")
        for (name, _) in whole {
            let source = fixture.drop.appending(FilePath(name))
            let stem = FilePath("\(name.prefix { $0 != "." }).mp4")
            let target = fixture.received.appending(try #require(arrived.first { $0.name == stem }))
            #expect(try await ffmpeg.digest(of: target) == ffmpeg.digest(of: source), "\(name)")
            // The index is at the front, so that a player can begin before it has the whole file.
            let bytes = try Files.read(target, limit: 1 << 20)
            let index = try #require(bytes.firstRange(of: Array("moov".utf8)))
            let content = try #require(bytes.firstRange(of: Array("mdat".utf8)))
            #expect(index.lowerBound < content.lowerBound, "\(name)")
        }
        let cut = try #require(try await fixture.why(fixture.drop.appending("cut.mkv")))
        #expect(cut.state == "settling", "\(cut)")
        #expect(try Files.names(in: fixture.drop).count == 3)
        // The recordings stay for a week, and no longer.
        let week: Int64 = 7 * 86_400
        for (shift, left) in [(week - 3600, 3), (week + 3600, 1)] as [(Int64, Int)] {
            #expect(try await fixture.stopDaemon() == .status(0))
            try await machine.start(shift: shift)
            try await eventually("\(left) recordings are left; \(fixture.lastWords())") {
                try Files.names(in: fixture.drop).count == left
            }
        }
        #expect(try await fixture.stopDaemon() == .status(0))
    }
    @Test(
        "a recording with a stream that does not fit into MP4 fails and stays, and goes after the page's remedy")
    func fails() async throws {
        let machine = try await Machine()
        let (fixture, ffmpeg) = (machine.fixture, machine.ffmpeg)
        try machine.configure()
        try await machine.start()
        let titles = try fixture.folder.write("titles.srt", Array("1\n00:00:00,000 --> 00:00:01,000\nsubtitles\n".utf8))
        let made = fixture.beside.appending("with-titles.mkv")
        try await ffmpeg.run([
            "-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-f", "lavfi", "-i", "sine=duration=1", "-i",
            titles.display, "-c:v", "mpeg4", "-c:a", "aac", "-c:s", "srt", made.display,
        ])
        let path = fixture.drop.appending("with-titles.mkv")
        try record(Files.read(made, limit: 1 << 20), at: path)
        try await eventually("the upload has failed; \(fixture.lastWords())") {
            try await fixture.status()?.counts.failed == 1
        }
        let list = try #require(try await fixture.runVerb("list", ["--json"]))
        #expect(list.contains("\"export_failed\""), "\(list)")
        let id = try #require(list.firstMatch(of: /"id":"([0-9A-Z]+)"/)?.1)
        #expect(try FileStatus.ifPresent(at: path) != nil)
        #expect(try Page("docs/recipes/remux.md").text.contains("`-map 0:v -map 0:a` in place of `-map 0`"))
        try machine.configure([("-map, \"0\",", "-map, \"0:v\", -map, \"0:a\",")])
        try fixture.writeConfiguration()
        #expect(try await fixture.runVerb("reload") != nil)
        #expect(try await fixture.runVerb("retry", [String(id)]) != nil)
        try await fixture.completes(1)
        let arrived = try Outcome.files(in: fixture.received, hidden: false)
        #expect(arrived.map(\.name) == ["with-titles.mp4"], "\(arrived)")
        #expect(try await fixture.stopDaemon() == .status(0))
    }
}
