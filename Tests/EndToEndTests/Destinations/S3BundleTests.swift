import Core
import FoundationEssentials
import Linux
import TestKit
import TestTraits
import Testing

/// Small files that are sent to a bucket together, and their cost, from the built program.
@Suite("Bundles of small files to a bucket", .needsPackages, .timeLimit(.minutes(Patience.minutes(2))))
struct S3BundleTests {
    private struct Page: Decodable {
        struct Upload: Decodable { let state: String }
        let uploads: [Upload]
    }

    private struct Usage: Decodable {
        struct Quota: Decodable { let used, reserved, left: Int64 }
        let quotas: [Quota]
    }

    /// The reason why the first file is left out of its bundle.
    enum Meeting: String, CaseIterable, Sendable {
        /// The name of the second file gives the same key.
        case oneKey
        /// An object with other content exists, which the service reports when it has all the bytes.
        case taken

        var preset: String { self == .oneKey ? "other" : "minio" }
        var names: [FilePath] {
            switch self {
            case .oneKey: [FilePath(bytes: [0xFF] + Array(".mp4".utf8)), "\\xff.mp4", "plain.mp4"]
            case .taken: ["taken.mp4", "plain.mp4", "other.mp4"]
            }
        }
        /// The first requests of one bundle of all three: three in parallel would have others.
        var beginning: [String] {
            self == .oneKey ? ["head", "head", "put", "head", "put"] : ["put", "head", "put", "put", "head"]
        }
        /// How often all the bytes of a file are sent: to a taken name once.
        var bodies: Int { self == .oneKey ? 3 : 4 }
    }

    private static let size = 200_000

    private func read<Value: Decodable>(
        _ type: Value.Type, _ verb: String, of fixture: DaemonFixture
    ) async throws -> Value? {
        guard let text = try await fixture.runVerb(verb, ["--json"]) else { return nil }
        return try JSONDecoder().decode(type, from: Data(text.utf8))
    }

    @Test(
        "a file that its bundle leaves out follows at once, and a quota counts each of its bytes",
        arguments: Meeting.allCases)
    func leftOut(_ meeting: Meeting) async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        let emulator = try S3Emulator()
        defer { emulator.stop() }
        if meeting == .taken {
            emulator.change { $0.objects["taken.mp4"] = S3Emulator.Object(bytes: [1, 2, 3], etag: "\"theirs\"") }
        }
        fixture.uploadTo = ["bucket"]
        // In the order of the list.
        fixture.policyKeys = ["order: smallest-first"]
        fixture.moreDestinations = [
            "bucket: {type: s3, preset: \(meeting.preset), endpoint: \"\(emulator.url)\", bucket: bucket, "
                + "access_key: {literal: id}, secret_key: {literal: a-secret-key}, concurrency: 1, "
                + "quotas: [{per: month, bytes: 100 MB}, {per: month, files: 3}]}"
        ]
        try fixture.startDaemon()
        _ = try await eventually("the daemon has paused") { try await fixture.runVerb("pause") }
        let camera = Camera(fixture, dice: Dice(seed: 1))
        for (number, name) in meeting.names.enumerated() {
            try camera.drop(Clip(number: number, size: Self.size + number, relative: name))
            try await eventually("\(number + 1) uploads wait", every: .milliseconds(50)) {
                try await read(Page.self, "list", of: fixture)?.uploads.count { $0.state == "waiting" } == number + 1
            }
        }
        _ = try await eventually("the daemon has resumed") { try await fixture.runVerb("resume") }
        try await eventually("all uploads are complete", within: .seconds(30), every: .milliseconds(50)) {
            try fixture.daemon?.requireRunning()
            return try await fixture.status()?.counts.completed == 3
        }
        let requests = emulator.requests
        #expect(Array(requests.prefix(meeting.beginning.count)) == meeting.beginning, "\(requests)")
        let (held, sent) = (emulator.objects.values.map(\.bytes), camera.clips.map(\.content))
        let isWhole = sent.allSatisfy { held.contains($0) } && held.count == (meeting == .taken ? 4 : 3)
        #expect(isWhole, "\(emulator.objects.mapValues(\.bytes.count))")
        // The file would arrive anyway, by its own attempt after a failed one.
        let said = try fixture.daemon?.standardError() ?? ""
        #expect(!said.contains("no transfer permit") && !said.contains("destination held"), "\(said)")
        #expect(requests.count { $0 == "put" } == meeting.bodies, "\(requests)")
        let quotas = try await eventually("no quota has reserved bytes") {
            let quotas = try await read(Usage.self, "usage", of: fixture)?.quotas
            return quotas?.allSatisfy { $0.reserved == 0 } == true ? quotas : nil
        }
        let counted = try #require(quotas.map(\.used).max())
        let left = Int64(meeting.bodies * Self.size)
        #expect(counted >= left && counted < left + left / 10 + 100_000, "\(quotas)")
        #expect(quotas.contains { $0.used == 3 && $0.left == 0 }, "the quota counts each file as one: \(quotas)")
    }
}
