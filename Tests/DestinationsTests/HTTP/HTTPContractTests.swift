import Core
import Credentials
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// Records each request, and answers 503.
private final class RequestRecorder: Transporting {
    private let recorded = Mutex<[Request]>([])
    var requests: [Request] { recorded.withLock { $0 } }

    func send(_ request: Request) async throws(TransportError) -> Response {
        recorded.withLock { $0.append(request) }
        return Response(status: 503, url: request.url)
    }
}

/// Each key of the section `http` through each kind of destination.
@Suite("The section `http` in every destination")
struct HTTPContractTests {
    private static let key: [String: SettingValue] = [
        "access_key": .secret(.literal("AKEXAMPLE")), "secret_key": .secret(.literal("secret-of-the-key")),
    ]

    /// Minimal values of each kind, with an address of its own.
    private static let minimal: [String: [String: SettingValue]] = [
        "tus": ["url": .text("https://nas.example/files/")],
        "resumable-http": ["url": .text("https://nas.example/files/")],
        "chunked-form": ["url": .text("https://nas.example/up"), "preset": .text("dropzone")],
        "vimeo": ["url": .text("https://nas.example"), "token": .secret(.literal("token-of-the-account"))],
        "s3": key.merging(["endpoint": .text("https://nas.example"), "bucket": .text("clips")]) { $1 },
        "oss": key.merging([
            "endpoint": .text("https://nas.example"), "region": .text("cn-shanghai"), "bucket": .text("clips"),
        ]) { $1 },
        "apsara-vod": key.merging(["endpoint": .text("https://nas.example"), "region": .text("cn-shanghai")]) { $1 },
    ]

    private static let kinds = DestinationTable.builtIn.filter(\.type.sendsRequests).map(\.type.name)

    /// The requests of a check, an upload, a lookup and a question for space, as far as the kind has them.
    private func requests(_ name: String, _ http: [String: SettingValue]) async throws -> [Request] {
        let kind = try #require(DestinationTable.builtIn.first { $0.type.name == name })
        var values = try #require(Self.minimal[name])
        for (key, value) in http { values["http.\(key)"] = value }
        let recorder = RequestRecorder()
        let destination = try kind.make(
            values,
            DestinationTools(
                transport: recorder, secrets: SecretReader(), clocks: SystemClocks(), name: "nas", log: { _ in }))
        let staged = try StagedUpload(800)
        _ = await destination.check()
        _ = try? await destination.upload(staged.order, reporter: RecordingReporter())
        _ = try? await destination.find(staged.order)
        _ = try? await destination.space()
        try #require(recorder.requests.count >= 2, "\(recorder.requests.map(\.url))")
        return recorder.requests
    }

    @Test("each request has the settings of the connection", arguments: kinds)
    func connection(_ name: String) async throws {
        let folder = TemporaryFolder()
        func file(_ name: FilePath) throws -> FilePath {
            try folder.write(
                name, Array("-----BEGIN CERTIFICATE-----\nMAAA\n-----END CERTIFICATE-----\n".utf8))
        }
        let (proxyCA, authority, certificate) = (try file("proxy.pem"), try file("ca.pem"), try file("c.pem"))
        let pin = "sha256//" + base64([UInt8](repeating: 7, count: 32))
        let requests = try await requests(
            name,
            [
                "proxy": .text("https://proxy.example:3128"), "proxy_user": .text("camera"),
                "proxy_password": .secret(.literal("password-of-the-proxy")), "proxy_ca_file": .path(proxyCA),
                "no_proxy": .texts(["other.example"]), "ca_file": .path(authority),
                "client_certificate": .path(certificate),
                "client_key": .secret(.literal("-----BEGIN")), "client_key_password": .secret(.literal("password")),
                "pinned_keys": .texts([pin]), "tls_min": .text("TLSv1.3"), "http2": .text("auto"),
                "address_family": .text("ipv4"), "resolve": .texts(["nas.example:443:192.0.2.7"]),
                "user_agent": .text("camera/1"),
            ])
        var expected = ConnectionSettings()
        expected.proxy = .server(
            try #require(ProxyServer("https://proxy.example:3128", origin: .configuration)), exempt: ["other.example"])
        (expected.proxyUser, expected.proxyPassword) = ("camera", "password-of-the-proxy")
        (expected.proxyCAFile, expected.caFile, expected.clientCertificate) = (proxyCA, authority, certificate)
        (expected.clientKey, expected.clientKeyPassword) = ("-----BEGIN", "password")
        (expected.pinnedKeys, expected.lowestTLS, expected.http2) = ([pin], .v1_3, .auto)
        (expected.addressFamily, expected.userAgent) = (.ipv4, "camera/1")
        expected.fixedAddresses = [try #require(FixedAddress("nas.example:443:192.0.2.7"))]
        for request in requests { #expect(request.connection == expected, "\(request.method) \(request.url)") }
    }

    @Test("policy judges the proxy, and without one the given address", arguments: kinds)
    func site(_ name: String) throws {
        let kind = try #require(DestinationTable.builtIn.first { $0.type.name == name })
        func site(_ key: String, _ value: SettingValue) throws -> DestinationSite {
            var values = try #require(Self.minimal[name])
            values["http.\(key)"] = value
            return try kind.make(
                values,
                DestinationTools(
                    transport: RequestRecorder(), secrets: SecretReader(), clocks: SystemClocks(), name: "nas",
                    log: { _ in })
            ).site
        }
        #expect(try site("proxy", .text("http://proxy.example:3128")) == .server(host: "proxy.example", port: 3128))
        #expect(
            try site("resolve", .texts(["nas.example:443:192.0.2.7"])) == .server(host: "192.0.2.7", port: 443)
                || name == "apsara-vod")
        #expect(try site("proxy", .text("none")).isOverNetwork)
    }

    @Test("requests to the configured address have the further headers", arguments: kinds)
    func headers(_ name: String) async throws {
        let requests = try await requests(name, ["headers": .map(["X-Site": .literal("house")])])
        let own = requests.filter { WebAddress($0.url).host.hasSuffix("nas.example") }
        #expect(!own.isEmpty)
        for request in own {
            #expect(request.headers.filter { $0.0 == "X-Site" }.map(\.1) == ["house"], "\(request.url)")
        }
    }

    @Test("requests without an authorisation of their own have that of `auth`", arguments: ["tus", "chunked-form"])
    func authorisation(_ name: String) async throws {
        func values(_ kind: String) -> [String: SettingValue] {
            kind == "bearer"
                ? ["auth": .text(kind), "token": .secret(.literal("token-of-nas"))]
                : ["auth": .text(kind), "user": .text("me"), "password": .secret(.literal("pässword"))]
        }
        for (kind, expected) in [
            ("bearer", "Bearer token-of-nas"), ("basic", "Basic " + base64(Array("me:pässword".utf8))),
        ] {
            for request in try await requests(name, values(kind)) {
                #expect(request.headers.filter { $0.0 == "Authorization" }.map(\.1) == [expected], "\(request.url)")
            }
        }
    }

    @Test("the request for a challenge, before the first bytes of a file, has what the others have")
    func challenge() async throws {
        let requests = try await requests(
            "chunked-form",
            [
                "auth": .text("digest"), "user": .text("me"), "password": .secret(.literal("password-of-it")),
                "headers": .map(["X-Site": .literal("house")]),
            ])
        #expect(requests.contains { $0.method == "HEAD" })
        for request in requests {
            #expect(request.headers.filter { $0.0 == "X-Site" }.map(\.1) == ["house"], "\(request.method)")
            #expect(request.showsIdentity, "\(request.method)")
        }
    }

    @Test("a secret of the connection that cannot be read holds the destination", arguments: kinds)
    func unreadable(_ name: String) async throws {
        let kind = try #require(DestinationTable.builtIn.first { $0.type.name == name })
        var values = try #require(Self.minimal[name])
        values["http.client_certificate"] = .path("/c.pem")
        values["http.client_key"] = .secret(.file("/absent/client.key"))
        let recorder = RequestRecorder()
        let destination = try kind.make(
            values,
            DestinationTools(
                transport: recorder, secrets: SecretReader(), clocks: SystemClocks(), name: "nas", log: { _ in }))
        let staged = try StagedUpload(800)
        let error = await #expect(throws: UploadError.self) {
            _ = try await destination.upload(staged.order, reporter: RecordingReporter())
        }
        #expect(error?.failure.code == .secretUnreadable, "\(error?.failure.message ?? "")")
        #expect(error?.remedy == .authenticate)
        #expect(recorder.requests.isEmpty)
    }
}
