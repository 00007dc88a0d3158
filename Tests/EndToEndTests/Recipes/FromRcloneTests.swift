import Core
import Glibc
import Linux
import TestKit
import TestTraits
import Testing

/// `config/recipes/from-rclone.yaml` and its page: what a cron job with rclone leaves, and what Sluice makes of it.
@Suite("Recipe of moving over from rclone", .needsPackages, .timeLimit(.minutes(Patience.minutes(4))))
struct FromRcloneTests {
    /// A machine with rclone in its cron, and a bucket.
    private struct Box {
        let fixture: DaemonFixture
        let server: S3Server
        let page: Page
        private let program: FilePath
        private var settings: FilePath { fixture.folder.path.appending("rclone.conf") }
        var clips: [Clip] = []

        init(_ maker: S3Maker) async throws {
            fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
            page = try Page("docs/recipes/from-rclone.md")
            server = try await S3Server(maker)
            if maker.makesBuckets { try await server.client("mkdir", "there:\(server.bucket)") }
            program = try await blocking { try Tools.python("rclone").appending("rclone") }
            // The remote of the page, as its owner made it.
            _ = try await rclone([
                "config", "create", "remote", "s3", "provider=Other", "access_key_id=\(S3Server.id)",
                "secret_access_key=\(S3Server.secretKey)", "endpoint=\(server.url)",
            ]).value()
        }

        /// Starts rclone with the settings of this machine.
        func rclone(_ words: [String]) throws -> Running {
            let name = "rclone-\(hexadecimal(Random.bytes(6)))"
            return Running(
                child: try Child(
                    program, ["--config", settings.display] + words,
                    output: fixture.folder.path.appending(FilePath("\(name).out")),
                    errors: fixture.folder.path.appending(FilePath("\(name).err"))))
        }

        /// One run of rclone.
        struct Running {
            let child: Child

            /// Its output, after it has succeeded.
            func value() async throws -> String {
                let ending = try await child.end(within: .seconds(60))
                let complaint = try child.standardError()
                try #require(ending == .status(0), "\(complaint)")
                return try child.standardOutput()
            }
        }

        /// The words of the line in the page's crontab.
        ///
        /// - Parameter replacements: What a test replaces besides folder and bucket.
        func cronLine(_ replacements: [(String, String)]) throws -> [String] {
            let line = try #require(page.blocks("").first { $0.hasPrefix("*/10 * * * * rclone move ") })
            let command = try Adaptation.of(
                String(line.dropLast()),
                replacing: [
                    ("*/10 * * * * rclone ", ""), ("/srv/camera", fixture.drop.display),
                    ("example-recordings", server.bucket),
                ] + replacements)
            // The quoted words of this line have spaces, and no quotes in them.
            return command.split(separator: "\"", omittingEmptySubsequences: false).enumerated().flatMap {
                place, text in
                place % 2 == 1 ? [String(text)] : text.split(separator: " ").map { String($0) }
            }
        }

        mutating func drop(_ number: Int, _ size: Int) throws {
            let clip = Clip(number: number, size: size, relative: FilePath("day \(number % 3)/clip \(number).mp4"))
            try record(clip.content, at: fixture.drop.appending(clip.relative))
            clips.append(clip)
        }

        /// The third step of the page: the key from `rclone config show remote`, in the form of `aws configure`.
        func moveKey() async throws -> FilePath {
            let shown = try await rclone(["config", "show", "remote"]).value()
            func value(_ key: String) throws -> String {
                let line = try #require(shown.split(separator: "\n").first { $0.hasPrefix("\(key) = ") })
                return String(line.dropFirst("\(key) = ".count))
            }
            return try NASToS3Tests.credentials(
                in: fixture.folder, value("access_key_id"), value("secret_access_key"))
        }

        /// The daemon with the recipe.
        func configure(_ more: [(String, String)] = []) async throws {
            try fixture.use(
                recipe: "from-rclone",
                replacing: [
                    ("    path: /srv/camera", "    path: \(fixture.drop.display)"),
                    ("https://s3.example", server.url), ("region: eu-1\n", "region: us-east-1\n"),
                    ("bucket: example-recordings", "bucket: \(server.bucket)"),
                    ("/etc/sluice/aws-credentials", try await moveKey().display),
                ] + more)
        }

        /// Starts the daemon as the last step says, in an hour without a limit.
        func start() async throws {
            try fixture.writeConfiguration()
            let said = try await fixture.runVerb("check")
            #expect(said != nil, "`sluice check` fails")
            try fixture.startDaemon(environment: ["TZ": NightZone.showing(20, 0, 0)])
        }

        /// Names and times of the objects in the bucket.
        func objects() async throws -> [String: String] {
            let lines = try await rclone([
                "lsf", "-R", "--files-only", "--format", "pt", "--separator", "|",
                "remote:\(server.bucket)",
            ]).value().split(separator: "\n")
            return Dictionary(
                uniqueKeysWithValues: try lines.map { line in
                    let parts = line.split(separator: "|")
                    try #require(parts.count == 2)
                    return (String(parts[0]), String(parts[1]))
                })
        }

        /// The bucket has exactly these clips, each once and complete, under the names that rclone gives.
        func expectAll() async throws {
            let copy = TemporaryFolder()
            _ = try await rclone(["copy", "remote:\(server.bucket)", copy.path.display]).value()
            let names = Set(clips.map { FilePath("camera").appending($0.relative) })
            #expect(try Set(Outcome.files(in: copy.path, hidden: true)) == names)
            for clip in clips {
                let path = copy.path.appending("camera").appending(clip.relative)
                #expect(try Files.read(path, limit: 1 << 30) == clip.content, "\(clip.relative)")
            }
        }
    }

    @Test(
        "after a cron job with `rclone move` was killed, the rest is uploaded once, under the same names",
        arguments: [S3Maker.rclone, .moto])
    func move(_ maker: S3Maker) async throws {
        var box = try await Box(maker)
        let count = 24
        let fixture = box.fixture
        for number in 1...count { try box.drop(number, 150_000 + number) }
        let part = fixture.drop.appending("day 1/new.part")
        try record([1, 2, 3], at: part)
        // Two at a time, and slowly, so that the run is killed in the middle.
        let run = try box.rclone(
            box.cronLine([("--bwlimit \"08:00,512k 19:00,off\"", "--bwlimit 1M"), ("--transfers 4", "--transfers 2")]))
        try await eventually("rclone has moved some files", every: .milliseconds(10)) {
            try run.child.requireRunning()
            return try Outcome.files(in: fixture.drop, hidden: true).count < count - 5
        }
        run.child.end(with: SIGKILL)
        let left = Set(try Outcome.files(in: fixture.drop, hidden: true))
        #expect(left.count > 3 && left.count < count)
        // A kill between the end of an upload and the removal of its source leaves the file in both places: a small one,
        // and one of several parts.
        let small = try #require(left.filter { $0 != "day 1/new.part" }.min { $0.display < $1.display })
        let large: FilePath = "day 2/clip 500.mp4"
        try box.drop(500, 12_000_000)
        for both in [small, large] {
            _ = try await box.rclone([
                "copyto", "--s3-upload-cutoff", "5Mi", fixture.drop.appending(both).display,
                "remote:\(box.server.bucket)/camera/\(both.display)",
            ]).value()
        }
        let before = try await box.objects()
        try await box.configure()
        try await box.start()
        // A file that arrives as before.
        try box.drop(count + 1, 300_000)
        try await eventually("all is uploaded, and the sources are gone; \(fixture.lastWords())", within: .seconds(60))
        {
            try fixture.daemon?.requireRunning()
            return try await fixture.status()?.counts.ongoing == 0
                && Outcome.files(in: fixture.drop, hidden: true) == ["day 1/new.part"]
        }
        try await box.expectAll()
        // What rclone had moved stayed as it was.
        let after = try await box.objects()
        let moved = before.filter { !left.contains(FilePath(String($0.key.dropFirst("camera/".count)))) }
        #expect(!moved.isEmpty && moved.allSatisfy { after[$0.key] == $0.value })
        // What was there already is compared, and not sent.
        let lines = try #require(fixture.daemon).standardError().split(separator: "\n")
        for both in [small, large] {
            let line = lines.first { $0.contains("uploaded and verified") && $0.contains("/\(both.display)\"") }
            #expect(line?.contains("verified_by=held") == true, "\(both): \(line ?? "")")
        }
        #expect(try await fixture.stopDaemon() == .status(0))
        // Going back: rclone finds its names, and the line of the page moves the next file beside them.
        try box.drop(count + 2, 1000)
        _ = try await box.rclone(box.cronLine([])).value()
        try await box.expectAll()
        #expect(try Outcome.files(in: fixture.drop, hidden: true) == ["day 1/new.part"])
    }

    @Test(
        "after `rclone copy`, with `existing: skip`, only new files are uploaded")
    func copy() async throws {
        var box = try await Box(.rclone)
        let count = 5
        let fixture = box.fixture
        for number in 1...count { try box.drop(number, 10_000 + number) }
        _ = try await box.rclone(box.cronLine([("move ", "copy ")])).value()
        let before = try await box.objects()
        #expect(before.count == count)
        try await box.configure([
            ("    upload_to: [remote]\n", "    upload_to: [remote]\n    existing: skip\n"),
            ("{source: delete}", "{source: keep}"),
        ])
        try await box.start()
        try await eventually("the daemon has started") { try await fixture.status()?.starting == false }
        try box.drop(count + 1, 20_000)
        try await fixture.completes(1)
        try await box.expectAll()
        let after = try await box.objects()
        #expect(before.allSatisfy { after[$0.key] == $0.value })
        #expect(try await fixture.stopDaemon() == .status(0))
    }
}
