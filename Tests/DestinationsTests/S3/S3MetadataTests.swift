import Core
import Credentials
import Linux
import Synchronization
import TestKit
import TestTraits
import Testing
import Transport

@testable import Destinations

/// The key that a cloud service gives to a machine or a container.
@Suite("s3 with a key from the instance metadata", .needsPackages, .timeLimit(.minutes(Patience.minutes(2))))
struct S3MetadataTests {
    private final class Scene: RemoteFixture {
        let emulator: S3Emulator
        let metadata: MetadataServer
        let clocks: ManualClocks
        let transport: Watched
        let destination: any Destination
        private let temporary = TemporaryFolder()
        var folder: FilePath { temporary.path }
        let secret: String? = "the-secret-of-the-instance"

        init(
            _ more: [String: SettingValue] = ["instance_metadata.kind": .text("instance")],
            timeout: Duration = .seconds(10), variables: [String: String] = [:]
        ) throws {
            emulator = try S3Emulator()
            metadata = try MetadataServer()
            clocks = ManualClocks(wall: SystemClocks().wall())
            transport = Watched()
            var values: [String: SettingValue] = [
                "endpoint": .text(emulator.url), "bucket": .text("bucket"), "single_up_to": .bytes(1000),
                "part_size": .bytes(5 << 20), "parallel": .whole(1),
            ]
            values.merge(more) { $1 }
            if more["instance_metadata.kind"] == .text("instance") {
                values["instance_metadata.url"] = .text(metadata.url)
            }
            let tools = DestinationTools(
                transport: transport, secrets: SecretReader(variable: { variables[$0] }), clocks: clocks,
                name: "archive", log: { _ in })
            let settings = try #require(S3.settings(values))
            guard case .metadata(var access)? = S3Access(settings.access) else {
                throw StagedUpload.Unexpected(what: "no instance metadata")
            }
            access.timeout = timeout
            destination = S3(settings, .metadata(access), tools)
            emulator.change { $0.token = "token-1" }
        }

        func goAway() async throws { emulator.stop() }
        func close() async throws {
            emulator.stop()
            metadata.stop()
        }

        /// One small file.
        @discardableResult
        func bring(_ number: Int) async throws -> RemoteObject {
            try await StagedUpload(100, id: "\(number)", name: FilePath("\(number).mp4"), seed: UInt64(number)).send(
                to: self, RecordingReporter())
        }

        func failure() async throws -> UploadError { try await StagedUpload(100).failure(to: self) }

        /// The key that is given from now on, with this lifetime.
        func give(_ token: String, for length: Duration) {
            let end = clocks.wall().advanced(by: length).description
            metadata.change { $0.key = MetadataServer.Key(token: token, end: end) }
        }
    }

    /// Records which requests may use a proxy.
    private final class Watched: Transporting {
        private let transport = Transport()
        private let seen = Mutex<[String: Bool]>([:])
        var mayUseProxy: [String: Bool] { seen.withLock { $0 } }

        func send(_ request: Request) async throws(TransportError) -> Response {
            seen.withLock { $0[WebAddress(request.url).origin] = request.mayUseProxy }
            return try await transport.send(request)
        }
    }

    @Test("token, role and key are requested once, without a proxy")
    func asked() async throws {
        let scene = try Scene()
        defer { scene.emulator.stop() }
        for number in 1...3 { try await scene.bring(number) }
        #expect(scene.metadata.drainRequests() == [.token, .roles, .key])
        #expect(scene.emulator.objects.count == 3)
        #expect(scene.transport.mayUseProxy[WebAddress(scene.metadata.url).origin] == false)
        #expect(scene.transport.mayUseProxy[WebAddress(scene.emulator.url).origin] == true)
    }

    @Test("a configured role is not looked up")
    func named() async throws {
        let scene = try Scene([
            "instance_metadata.kind": .text("instance"), "instance_metadata.role": .text("other"),
        ])
        defer { scene.emulator.stop() }
        scene.metadata.change { $0.roles = ["uploads", "other"] }
        try await scene.bring(1)
        #expect(scene.metadata.drainRequests() == [.token, .key])
    }

    @Test("a key is renewed five minutes before its end; an unchanged one is requested once a minute")
    func renewed() async throws {
        let scene = try Scene()
        defer { scene.emulator.stop() }
        scene.give("token-1", for: .seconds(3600))
        try await scene.bring(1)
        scene.clocks.advance(by: .seconds(3000))
        try await scene.bring(2)
        #expect(scene.metadata.drainRequests() == [.token, .roles, .key])
        // Four minutes before its end, and no newer key exists yet.
        scene.clocks.advance(by: .seconds(360))
        for number in 3...5 { try await scene.bring(number) }
        #expect(scene.metadata.drainRequests() == [.roles, .key])
        scene.clocks.advance(by: .seconds(60))
        scene.give("token-2", for: .seconds(3600))
        scene.emulator.change { $0.token = "token-2" }
        for number in 6...8 { try await scene.bring(number) }
        #expect(scene.metadata.drainRequests() == [.roles, .key])
        #expect(scene.emulator.objects.count == 8)
    }

    @Test("a valid key is used while the metadata is unreachable, and no longer")
    func away() async throws {
        let scene = try Scene()
        defer { scene.emulator.stop() }
        scene.give("token-1", for: .seconds(400))
        try await scene.bring(1)
        scene.clocks.advance(by: .seconds(200))
        scene.metadata.stop()
        try await scene.bring(2)
        scene.clocks.advance(by: .seconds(201))
        let error = try await scene.failure()
        #expect(error.remedy == .holdDestination(after: nil))
        #expect(error.failure.message.hasPrefix("archive: no instance metadata at 127.0.0.1:"), "\(error)")
    }

    @Test("a refused key is requested again, once")
    func refused() async throws {
        let scene = try Scene()
        defer { scene.emulator.stop() }
        try await scene.bring(1)
        scene.give("token-2", for: .seconds(3600))
        scene.emulator.change { $0.token = "token-2" }
        try await scene.bring(2)
        #expect(scene.metadata.drainRequests() == [.token, .roles, .key, .roles, .key])
        scene.emulator.change { $0.token = "token-3" }
        let error = try await scene.failure()
        #expect(error.remedy == .authenticate)
        #expect(!error.failure.message.contains("token-2"))
        #expect(scene.metadata.drainRequests() == [.roles, .key])
    }

    @Test("an expired session is started again")
    func stale() async throws {
        let scene = try Scene()
        defer { scene.emulator.stop() }
        try await scene.bring(1)
        // Restarted: all tokens are forgotten.
        scene.metadata.change { $0.sessions += 7 }
        scene.give("token-2", for: .seconds(3600))
        scene.emulator.change { $0.token = "token-2" }
        try await scene.bring(2)
        #expect(scene.metadata.drainRequests() == [.token, .roles, .key, .roles, .token, .roles, .key])
    }

    struct Trouble: Sendable, CustomTestStringConvertible {
        var kind: MetadataServer.Kind
        var fault: MetadataServer.Fault
        var remedy: Remedy
        var words: String
        var testDescription: String { "\(kind.rawValue): \(fault)" }
    }

    static let troubles = [
        Trouble(kind: .token, fault: .answer(403), remedy: .authenticate, words: "it answers 403"),
        Trouble(kind: .token, fault: .answer(404), remedy: .misconfigured, words: "it answers 404"),
        Trouble(kind: .token, fault: .answer(200, ""), remedy: .misconfigured, words: "is not a token"),
        Trouble(kind: .token, fault: .answer(200, "a\r\nX: y"), remedy: .misconfigured, words: "is not a token"),
        Trouble(kind: .token, fault: .silent, remedy: .holdDestination(after: nil), words: "no instance metadata at"),
        Trouble(kind: .roles, fault: .answer(404), remedy: .authenticate, words: "has no role: give it one"),
        Trouble(kind: .roles, fault: .answer(200, "\n"), remedy: .authenticate, words: "has no role: give it one"),
        Trouble(
            kind: .roles, fault: .answer(200, "../up?x"), remedy: .misconfigured, words: "is not the name of a role"),
        Trouble(kind: .roles, fault: .answer(503), remedy: .holdDestination(after: nil), words: "it answers 503"),
        Trouble(kind: .roles, fault: .silent, remedy: .holdDestination(after: nil), words: "no instance metadata at"),
        Trouble(kind: .key, fault: .answer(404), remedy: .authenticate, words: "has no role `uploads`"),
        Trouble(kind: .key, fault: .answer(429), remedy: .rateLimit(after: nil), words: "it answers 429"),
        Trouble(
            kind: .key, fault: .answer(200, #"{"Code":"AssumeRoleUnauthorizedAccess"}"#), remedy: .authenticate,
            words: "`AssumeRoleUnauthorizedAccess`"),
        Trouble(
            kind: .key, fault: .answer(200, #"{"Code":"Success","AccessKeyId":"A"}"#), remedy: .authenticate,
            words: "no access key with its secret"),
        Trouble(kind: .key, fault: .answer(200, "<html>"), remedy: .authenticate, words: "is not JSON"),
        Trouble(
            kind: .key,
            fault: .answer(200, #"{"AccessKeyId":"A","SecretAccessKey":"B","Expiration":"tomorrow"}"#),
            remedy: .authenticate, words: "an `Expiration` that is not a time"),
        Trouble(
            kind: .key, fault: .answer(200, #"{"AccessKeyId":"A","SecretAccessKey":"B","Expiration":7}"#),
            remedy: .authenticate, words: "an `Expiration` that is not a time"),
        Trouble(
            kind: .key, fault: .answer(200, #"{"AccessKeyId":"A\nB","SecretAccessKey":"B"}"#),
            remedy: .authenticate, words: "an access key with a space"),
        Trouble(kind: .key, fault: .answer(200, #"{"Code":"session-1"}"#), remedy: .authenticate, words: "`***`"),
    ]

    @Test("errors are reported in their own words, and the next attempt works", arguments: troubles)
    func trouble(_ trouble: Trouble) async throws {
        var isSilent = false
        if case .silent = trouble.fault { isSilent = true }
        let scene = try Scene(timeout: isSilent ? .seconds(2) : .seconds(10))
        defer { scene.emulator.stop() }
        scene.metadata.script(trouble.kind, trouble.fault)
        let error = try await scene.failure()
        #expect(error.remedy == trouble.remedy)
        #expect(error.failure.message.contains(trouble.words), "\(error)")
        #expect(!error.failure.message.contains("session-1"), "\(error)")
        #expect(scene.emulator.requests.isEmpty)
        try await scene.bring(1)
        #expect(scene.emulator.objects.count == 1)
    }

    @Test("a container's key comes from the address in its environment, with the present token")
    func container() async throws {
        let temporary = TemporaryFolder()
        let file = try temporary.write("token", Array("first-token-of-it\n".utf8))
        let outside = try MetadataServer()
        defer { outside.stop() }
        outside.change { $0.authorization = "first-token-of-it" }
        let scene = try Scene(
            ["instance_metadata.kind": .text("container")],
            variables: [
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": "\(outside.url)/v1/credentials",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": file.display,
            ])
        defer { scene.emulator.stop() }
        try await scene.bring(1)
        outside.change { state in
            state.authorization = "second-token-of-it"
            state.key.token = "token-2"
        }
        scene.emulator.change { $0.token = "token-2" }
        let error = try await scene.failure()
        #expect(error.remedy == .authenticate && error.failure.message.contains("it answers 401"), "\(error)")
        try Files.replace(file, with: Array("second-token-of-it\n".utf8))
        try await scene.bring(2)
        #expect(outside.drainRequests() == [.container, .container, .container])
    }

    @Test("a container without a key, or with a remote address for it, is reported")
    func noContainer() async throws {
        let none = try await Scene(["instance_metadata.kind": .text("container")]).failure()
        #expect(none.remedy == .authenticate)
        #expect(none.failure.message.contains("neither AWS_CONTAINER_CREDENTIALS_FULL_URI nor"), "\(none)")
        let far = try await Scene(
            ["instance_metadata.kind": .text("container")],
            variables: ["AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://192.0.2.7/v1/credentials"]
        ).failure()
        #expect(far.remedy == .misconfigured)
        #expect(far.failure.message.contains("192.0.2.7") && far.failure.message.contains("use https"), "\(far)")
    }

    @Test(
        "no third party may read a key",
        arguments: [
            ("http://169.254.169.254", true), ("http://169.254.170.23/v1/credentials", true),
            ("http://localhost", true),
            ("http://[fd00:ec2::254]", true), ("http://[::1]:80/x", true), ("https://keys.example/x", true),
            ("http://10.0.0.1", false), ("http://[fd00:ec3::254]", false), ("http://keys.example", false),
        ])
    func near(_ url: String, _ isNear: Bool) { #expect(InstanceMetadataKeys.isNear(url) == isNear) }

    @Test("moto's metadata provides a key that moto accepts")
    func moto() async throws {
        let server = try await S3Server(.moto)
        defer { server.stop() }
        let values: [String: SettingValue] = [
            "endpoint": .text(server.url), "bucket": .text("bucket"), "instance_metadata.kind": .text("instance"),
            "instance_metadata.url": .text(server.url),
        ]
        let transport = Transport()
        let destination = try S3(
            values,
            DestinationTools(
                transport: transport, secrets: SecretReader(), clocks: SystemClocks(), name: "archive", log: { _ in }))
        let made = try await transport.send(
            Request(
                "PUT", server.url + "/bucket",
                headers: [("Authorization", "AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/s3/aws4_request")]))
        #expect(made.status == 200)
        let check = await destination.check()
        #expect(check.verdict == .ok, "\(check.detail)")
        let staged = try StagedUpload(100)
        _ = try await destination.upload(staged.order, reporter: RecordingReporter())
        #expect(try await destination.list(after: nil)?.items.map(\.id) == ["front/clip.mp4"])
    }
}
