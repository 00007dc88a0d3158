import Core
import Digests
import FoundationEssentials
import Linux
import TestKit
import Testing

/// Every kind of destination, using a third-party server where there is one, behind a relay that spoils the end of
/// uploads.
enum CampaignKind: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case receive, resumableUpload = "resumable-upload", tuspyserver, rclone, ceph, vimeo, form, oss, vod, directory

    var testDescription: String { rawValue }
    static let here = allCases.filter {
        ($0 != .ceph || Ceph.isWanted) && (Setting.kind == nil || $0.rawValue == Setting.kind)
    }

    /// Whether the remote reports only the number of its bytes: the answer to the last request decides.
    var onlyCounts: Bool {
        switch self {
        case .receive, .resumableUpload, .tuspyserver, .vimeo, .form: true
        case .rclone, .ceph, .oss, .vod, .directory: false
        }
    }

    fileprivate var relay: ScriptedRelay.Kind? {
        switch self {
        case .receive, .resumableUpload, .tuspyserver, .vimeo: .tus
        case .rclone, .ceph, .oss, .vod: .s3
        case .form: .form
        case .directory: nil
        }
    }

    fileprivate var faults: [String] {
        switch relay {
        case .tus?:
            [
                "none", "refuse", "refuse", "gateway", "lost", "page", "forget", "stale", "look-page", "whole", "drop",
                // Killed inside a PATCH, tuspyserver keeps bytes that its offset does not count, so truncated bodies
                // are left out as well.
            ] + (self == .tuspyserver ? [] : ["cut"]) + (self == .vimeo ? [] : ["lost-begin"])
        case .s3?:
            // VOD's permission to send belongs to the account: after a 403 all uploads wait until the next check.
            [
                "none", self == .vod ? "refuse-file" : "refuse", "gateway", "lost", "page", "forget", "look-page",
                "cut", "drop",
            ]
        case .form?: ["none", "refuse", "refuse", "gateway", "lost", "page", "look-page", "cut", "drop"]
        case nil: []
        }
    }
}

/// One daemon with one destination of a kind, and access to the destination's content.
struct CampaignScene {
    let kind: CampaignKind
    let fixture: DaemonFixture
    let camera: Camera
    let relay: ScriptedRelay?
    /// SHA-256 of each file at the destination, unfinished ones included.
    let held: () async throws -> [String]
    /// The content of an upload, by the relay's name for it, where the relay cannot know the file's name.
    let content: (_ upload: String) -> String?

    /// - Parameter isFaulty: Whether the relay spoils anything.
    init(_ kind: CampaignKind, seed: UInt64, isFaulty: Bool) async throws {
        self.kind = kind
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        self.fixture = fixture
        camera = Camera(fixture, dice: Dice(seed: seed))
        func relay(before port: Int) async throws -> ScriptedRelay? {
            guard let relay = kind.relay else { return nil }
            return try await ScriptedRelay(relay, before: port, seed: seed, faults: isFaulty ? kind.faults : [])
        }
        var content: (String) -> String? = { _ in nil }
        switch kind {
        case .receive:
            try await fixture.startReceiver()
            self.relay = try await relay(before: Self.port(of: fixture.address))
            held = { try Self.digests(below: fixture.received) }
        case .resumableUpload, .tuspyserver:
            let server = try await TusServer(kind)
            self.relay = try await relay(before: server.port)
            held = { try Self.digests(below: server.uploads) }
        case .rclone, .ceph:
            let maker = kind == .rclone ? S3Maker.rclone : .ceph
            let server = try await S3Server(maker)
            if maker.makesBuckets { try await server.client("mkdir", "there:\(server.bucket)") }
            self.relay = try await relay(before: server.port)
            held = {
                let copy = TemporaryFolder()
                try await server.client("copy", "there:\(server.bucket)", copy.path.display)
                return try Self.digests(below: copy.path)
            }
            try Self.configureS3(fixture, maker, bucket: server.bucket, url: self.relay?.url ?? server.url)
        case .vimeo:
            let server = try VimeoServer()
            let relay = try await relay(before: server.bytesPort)
            if let relay { server.redirectLinks(to: relay.url) }
            self.relay = relay
            held = { server.videos.map { Self.digest($0.bytes) } }
            content = { upload in
                let number = upload.split(separator: "/").last.flatMap { Int($0) }
                return server.videos.first { $0.number == number }.map { Self.digest($0.bytes) }
            }
            let token = try fixture.folder.write("token", Array("vimeo-token-1".utf8))
            fixture.moreDestinations = [
                "remote: {type: vimeo, url: \"\(server.url)\", token: {file: \(token.display)}, flow: tus, "
                    + "chunk_size: 128 KiB, poll: 1s, allow_origins: [\(relay?.url ?? server.bytesURL)]}"
            ]
        case .form:
            var options = FormServer.Options()
            options.block = 100_000
            let server = try FormServer("resumable", into: fixture.received, options)
            let relay = try await relay(before: Self.port(of: server.url))
            self.relay = relay
            held = {
                _ = server  // it serves for as long as this is kept
                return try Self.digests(below: fixture.received)
            }
            fixture.moreDestinations = [
                "remote: {type: chunked-form, url: \"\(relay?.url ?? "")/upload\", preset: resumable, block: {size: 100000 B}}"
            ]
        case .oss, .vod:
            let server = try await OSSServer()
            let relay = try await relay(before: server.port)
            self.relay = relay
            held = { try await server.objects().values.map(\.sha256) }
            try Self.configureOSS(fixture, kind, url: relay?.url ?? server.url)
        case .directory:
            self.relay = nil
            held = { try Self.digests(below: fixture.archive) }
        }
        self.content = content
        switch kind {
        case .receive, .resumableUpload, .tuspyserver:
            fixture.destination = (self.relay?.url ?? "") + (kind == .receive ? "/files/" : "/files")
            fixture.destinationKeys = ", chunk_size: 128 KiB"
        case .directory: fixture.uploadTo = ["archive"]
        default: fixture.uploadTo = ["remote"]
        }
    }

    private static func configureS3(_ fixture: DaemonFixture, _ maker: S3Maker, bucket: String, url: String) throws {
        let key = try fixture.folder.write("s3.key", Array(S3Server.secretKey.utf8))
        fixture.moreDestinations = [
            "remote: {type: s3, preset: \(maker.preset), endpoint: \"\(url)\", bucket: \(bucket), "
                + "access_key: {literal: \(S3Server.id)}, secret_key: {file: \(key.display)}, "
                + "part_size: 5 MiB, single_up_to: 1 MiB}"
        ]
    }

    private static func configureOSS(_ fixture: DaemonFixture, _ kind: CampaignKind, url: String) throws {
        let key = try fixture.folder.write("oss.key", Array(OSSServer.secretKey.utf8))
        let place =
            kind == .oss
            ? "type: oss, addressing: path, region: \(OSSServer.region), bucket: \(OSSServer.bucket), endpoint: \"\(url)\""
            : "type: apsara-vod, endpoint: \"\(url)\", upload_endpoint: \"\(url)\""
        fixture.moreDestinations = [
            "remote: {\(place), access_key: {literal: \(OSSServer.id)}, secret_key: {file: \(key.display)}, "
                + "part_size: 1 MiB, single_up_to: 512 KiB}"
        ]
    }

    /// Some fit in one request, others need many, for each kind.
    func sizes() -> ClosedRange<Int> {
        switch kind {
        case .rclone, .ceph: 1000...7_000_000
        case .oss, .vod: 1000...3_000_000
        default: 1000...700_000
        }
    }

    static func digest(_ bytes: [UInt8]) -> String { hexadecimal(Hasher.digest(.sha256, of: bytes)) }

    private static func digests(below folder: FilePath) throws -> [String] {
        try Outcome.files(in: folder, hidden: false).map {
            digest(try Files.read(folder.appending($0), limit: 1 << 30))
        }
    }

    private static func port(of address: String) -> Int {
        Int(address.drop { $0 != "1" }.split(separator: ":").last?.prefix { $0.isNumber } ?? "") ?? 0
    }

    /// A third-party tus server.
    private final class TusServer: Sendable {
        let port: Int
        private let child: Child
        private let folder = TemporaryFolder()

        init(_ kind: CampaignKind) async throws {
            let place = folder.path
            let (output, errors) = (place.appending("out"), place.appending("err"))
            if kind == .tuspyserver {
                let bin = try await blocking { try Tools.python("tuspyserver") }
                let script = Repository.root.appending("Tests/Fixtures/tuspy_server.py")
                child = try Child(
                    bin.appending("python"), ["-B", script.display, place.display], output: output, errors: errors)
                port = Int(try await child.line(after: "ready ", within: .seconds(60))) ?? 0
                return
            }
            let bin = try await blocking { try Tools.python("tus") }
            let port = try Loopback.freePort()
            self.port = port
            let child = try Child(
                bin.appending("resumable-upload"),
                [
                    "serve", "--host", "127.0.0.1", "--port", "\(port)", "--base-path", "/files", "--log-level",
                    "WARNING", "--upload-dir", place.appending("up").display, "--db-path",
                    place.appending("tus.db").display,
                ], output: output, errors: errors)
            self.child = child
            try await eventually("the tus server accepts connections", within: .seconds(60), every: .milliseconds(50)) {
                try child.requireRunning()
                return Loopback.answers(port)
            }
        }

        /// Where it keeps uploads, finished or not.
        var uploads: FilePath { folder.path.appending("up") }
    }
}

/// The part of `sluice list --json` that a campaign reads.
struct CampaignList: Decodable {
    struct Upload: Decodable {
        struct Remote: Decodable { var verifiedBy: String? }
        struct Problem: Decodable {
            var code: String
            var http: Int?
            var message: String
        }
        struct Hold: Decodable { var kind, text: String }
        var id, path, name, state, sourceState: String
        var sha256: String?
        var holds: [Hold]
        var warnings: [String]
        var error: Problem?
        var remote: Remote?

        /// Whether the warnings report that the file may be at the destination more than once.
        var tellsOfDoubt: Bool {
            let words = ["sent twice", "creation(s) got no answer", "may hold the file twice"]
            return (warnings + [error?.message ?? ""]).contains { told in words.contains { told.contains($0) } }
        }
    }
    var uploads: [Upload]
    var next: String?
}
