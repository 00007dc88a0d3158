import Core
import Linux
import Synchronization
import TestKit
import TestTraits
import Testing

/// `config/recipes/nas-to-s3.yaml` and its page: two folders, a bucket, and a night.
@Suite("Recipe of a NAS that uploads to S3 at night", .timeLimit(.minutes(Patience.minutes(4))))
struct NASToS3Tests {
    /// A file as `aws configure` writes it.
    static func credentials(in folder: TemporaryFolder, _ id: String, _ secret: String) throws -> FilePath {
        let text = "[default]\naws_access_key_id = \(id)\naws_secret_access_key = \(secret)\n"
        return try folder.write("aws-credentials", Array(text.utf8))
    }

    /// The two folders of the NAS, and a daemon with the recipe.
    private struct Box {
        let fixture: DaemonFixture
        var photos: FilePath { fixture.folder.path.appending("photos") }
        var recordings: FilePath { fixture.folder.path.appending("recordings") }

        /// - Parameters:
        ///   - service: What stands in place of the preset.
        ///   - more: What a test replaces besides.
        init(
            _ url: String, bucket: String, id: String = "AK", secret: String = "some-secret-key",
            _ more: [(String, String)] = []
        ) throws {
            fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
            let key = try NASToS3Tests.credentials(in: fixture.folder, id, secret)
            for folder in [photos, recordings] { try Files.makeFolders(folder) }
            try fixture.use(
                recipe: "nas-to-s3",
                replacing: [
                    ("/srv/photos", photos.display), ("/srv/recordings", recordings.display),
                    ("preset: aws", "endpoint: \"\(url)\""), ("bucket: example-nas", "bucket: \(bucket)"),
                    ("/etc/sluice/aws-credentials", key.display),
                ] + more)
        }

        /// Starts the daemon at an hour of its own time zone.
        func start(at hour: Int, _ minute: Int, _ second: Int) throws {
            try fixture.startDaemon(environment: ["TZ": NightZone.showing(hour, minute, second)])
        }
    }

    @Test("before 23:00 nothing is sent, not even a question; then photos go first, in the class of the recipe")
    func opens() async throws {
        let bucket = try S3Emulator()
        defer { bucket.stop() }
        let stored = Mutex<[String]>([])
        bucket.change {
            $0.region = "eu-central-1"
            // Refuses nothing.
            $0.judge = { exchange in
                if exchange.method == "PUT" { stored.withLock { $0.append(exchange.target) } }
                return nil
            }
        }
        // One after the other, so that their order shows.
        let box = try Box(bucket.url, bucket: "bucket", [("concurrency: {total: 2}", "concurrency: {total: 1}")])
        let fixture = box.fixture
        try box.start(at: 21, 0, 0)
        try await fixture.watches()
        try record(noise(20_000), at: box.recordings.appending("evening.mp4"))
        try record(noise(10_000), at: box.photos.appending("2026/picture.jpg"))
        for ignored in ["upload.tmp", "@eaDir/thumb.jpg"] as [FilePath] {
            try record([1], at: box.photos.appending(ignored))
        }
        try record([1], at: box.recordings.appending("notes.txt"))
        for path in [box.recordings.appending("evening.mp4"), box.photos.appending("2026/picture.jpg")] {
            let hold = try await fixture.holds(path, for: "rule")
            #expect(hold.text.hasSuffix("`windows: [\"23:00-06:30\"]`"), "\(hold.text)")
        }
        #expect(try await fixture.stopDaemon() == .status(0))
        #expect(bucket.requests.isEmpty)
        // The window opens while the daemon runs.
        try box.start(at: 22, 59, 57)
        try await fixture.completes(2)
        let objects = bucket.objects
        #expect(Set(objects.keys) == ["photos/2026/picture.jpg", "recordings/evening.mp4"])
        #expect(objects["photos/2026/picture.jpg"]?.bytes == noise(10_000))
        #expect(objects["recordings/evening.mp4"]?.bytes == noise(20_000))
        #expect(objects.values.allSatisfy { $0.headers["x-amz-storage-class"] == "STANDARD_IA" })
        let order = stored.withLock { $0 }
        #expect(order == ["/bucket/photos/2026/picture.jpg", "/bucket/recordings/evening.mp4"])
        #expect(try Outcome.files(in: box.photos, hidden: true).count == 3)
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test(
        "at 06:30 an upload stops in the middle, and the next night sends only the parts that are missing")
    func closes() async throws {
        let bucket = try S3Emulator()
        defer { bucket.stop() }
        bucket.change { $0.region = "eu-central-1" }
        let box = try Box(bucket.url, bucket: "bucket")
        let fixture = box.fixture
        let clip = Clip(number: 1, size: 120 << 20, relative: "long.mkv")
        let path = box.recordings.appending(clip.relative)
        try box.start(at: 12, 0, 0)
        try await fixture.watches()
        try record(clip.content, at: path)
        try await fixture.holds(path, for: "rule")
        #expect(try await fixture.stopDaemon() == .status(0))
        #expect(bucket.requests.isEmpty)
        // At 40 Mbit/s four parts of 16 MiB, sent together, take thirteen seconds.
        try box.start(at: 6, 29, 40)
        try await eventually("the upload has begun; \(fixture.lastWords())") { !bucket.uploads.isEmpty }
        try await fixture.holds(path, for: "rule")
        let parts = try #require(bucket.uploads.values.first).parts
        #expect(!parts.isEmpty && bucket.objects.isEmpty)
        let sent = bucket.requests.filter { $0.hasPrefix("part") && !$0.hasPrefix("parts") }.count
        #expect(try await fixture.stopDaemon() == .status(0))
        // By day: no request reaches the bucket.
        let requests = bucket.requests.count
        try box.start(at: 12, 0, 0)
        try await fixture.holds(path, for: "rule")
        #expect(bucket.requests.count == requests)
        #expect(try await fixture.stopDaemon() == .status(0))
        try box.start(at: 22, 59, 58)
        try await fixture.completes(1)
        #expect(bucket.objects["recordings/long.mkv"]?.bytes == clip.content)
        let whole = (clip.size + (16 << 20) - 1) / (16 << 20)
        let later = bucket.requests.filter { $0.hasPrefix("part") && !$0.hasPrefix("parts") }.count - sent
        #expect(later == whole - parts.count, "\(bucket.requests)")
    }

    @Test(
        "a real server gets each file of both folders once, at night, with a key as `aws configure` writes it",
        .needsPackages)
    func real() async throws {
        let server = try await S3Server(.rclone)
        let box = try Box(server.url, bucket: server.bucket, id: S3Server.id, secret: S3Server.secretKey)
        let fixture = box.fixture
        var clips: [Clip] = []
        for number in 1...20 {
            let isPhoto = number % 2 == 0
            let name = FilePath(isPhoto ? "photos/album \(number)/\(number).jpg" : "recordings/\(number).mp4")
            let clip = Clip(number: number, size: number == 1 ? 20_000_000 : number * 20_000, relative: name)
            try record(clip.content, at: fixture.folder.path.appending(name))
            clips.append(clip)
        }
        try box.start(at: 23, 30, 0)
        try await fixture.completes(clips.count)
        let copy = TemporaryFolder()
        try await server.client("copy", "there:\(server.bucket)", copy.path.display)
        #expect(try Set(Outcome.files(in: copy.path, hidden: true)) == Set(clips.map(\.relative)))
        for clip in clips {
            let isWhole = try Files.read(copy.path.appending(clip.relative), limit: 1 << 30) == clip.content
            #expect(isWhole, "\(clip.relative)")
        }
        #expect(try await fixture.stopDaemon() == .status(0))
    }
}
