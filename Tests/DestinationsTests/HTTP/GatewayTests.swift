import Core
import Digests
import Glibc
import Linux
import TestKit
import Testing
import Transport

@testable import Destinations

/// Uploads to a tus server of others through gateways of others: proxies, TLS, HTTP/2, passwords.
@Suite("Uploads through gateways", .timeLimit(.minutes(Patience.minutes(2))))
struct GatewayTests {
    private let folder = TemporaryFolder()
    private var place: FilePath { folder.path.appending("gateway") }

    /// A server of its own, of which nothing listens any more after the test.
    private final class Running {
        let child: Child
        let port: Int
        init(_ started: (child: Child, port: Int)) { (child, port) = started }
        deinit { child.end(with: SIGKILL) }
    }

    private func start(
        _ server: Gateway, in name: FilePath? = nil, _ site: (Int) throws -> String
    ) async throws -> Running {
        Running(try await server.start(in: name.map { folder.path.appending($0) } ?? place, site: site))
    }

    private func nginx(_ tus: TusProcess, _ certificates: TestCertificates, _ more: String = "") async throws -> Running
    {
        try await start(.nginx) { port in
            """
            server {
              listen 127.0.0.1:\(port) ssl http2;
              ssl_certificate \(certificates.server.certificate.display);
              ssl_certificate_key \(certificates.server.key.display);
              \(more)
              client_max_body_size 0;
              location / { proxy_pass \(origin(tus)); proxy_set_header Host $http_host; add_header X-Protocol $server_protocol; }
            }
            """
        }
    }

    private func origin(_ tus: TusProcess) -> String { WebAddress(tus.url).shownOrigin }

    /// Sends a file in three requests, and compares what arrived.
    private func arrives(
        _ url: String, _ http: [String: SettingValue], at tus: TusProcess, transport: Transport = Transport()
    ) async throws {
        let scenario = try scenario(url, http, transport: transport)
        let object = try await scenario.attempt()
        #expect(object.verifiedBy == "offset")
        #expect(try tus.held == [scenario.content])
        await transport.stop()
    }

    private func scenario(
        _ url: String, _ http: [String: SettingValue], transport: any Transporting = Transport()
    ) throws -> UploadScenario {
        var values: [String: SettingValue] = [:]
        for (key, value) in http { values["http.\(key)"] = value }
        return try UploadScenario(url, size: 300_000, chunk: 120_000, values: values, transport: transport)
    }

    private func failure(_ url: String, _ http: [String: SettingValue]) async throws -> UploadError {
        try await scenario(url, http).failedAttempt()
    }

    // MARK: Proxies

    @Test(
        "a forward proxy with a password carries an upload; a wrong password holds the destination and names the keys",
        .enabled("\(Gateway.need(.tinyproxy))") { await Gateway.areHere(.tinyproxy) })
    func forward() async throws {
        let tus = try await TusProcess.faulty()
        defer { tus.kill() }
        let proxy = try await start(.tinyproxy) { _ in "BasicAuth camera password-of-it\n" }
        var http: [String: SettingValue] = [
            "proxy": .text("http://127.0.0.1:\(proxy.port)"), "proxy_user": .text("camera"),
            "proxy_password": .secret(.literal("wrong-password")),
        ]
        let error = try await failure(tus.url, http)
        #expect(error.failure.code == .proxyRefused && error.remedy == .holdDestination(after: nil))
        #expect(
            error.failure.message.contains("`http.proxy_user` and `http.proxy_password`"), "\(error.failure.message)")
        #expect(!error.failure.message.contains("wrong-password"))
        http["proxy_password"] = .secret(.literal("password-of-it"))
        try await arrives(tus.url, http, at: tus)
        // The proxy has seen each request.
        #expect(
            String(decoding: try Files.read(place.appending("log"), limit: 1 << 20), as: UTF8.self)
                .contains(WebAddress(tus.url).authority ?? "-"))
    }

    @Test(
        "a renewed password of a proxy is read after a refusal",
        .enabled("\(Gateway.need(.tinyproxy))") { await Gateway.areHere(.tinyproxy) })
    func renewed() async throws {
        let tus = try await TusProcess.faulty()
        defer { tus.kill() }
        let proxy = try await start(.tinyproxy) { _ in "BasicAuth camera second-password\n" }
        let secret = try folder.write("secret", Array("first-password\n".utf8))
        let scenario = try scenario(
            tus.url,
            [
                "proxy": .text("http://127.0.0.1:\(proxy.port)"), "proxy_user": .text("camera"),
                "proxy_password": .secret(.file(secret)),
            ])
        #expect(try await scenario.failedAttempt().failure.code == .proxyRefused)
        try Files.replace(secret, with: Array("second-password\n".utf8))
        // The proxy closes its connection after each answer, and no request is sent over it.
        _ = try await scenario.attempt()
        #expect(try tus.held == [scenario.content])
    }

    @Test(
        "an HTTPS proxy with a password carries uploads to servers with and without TLS; one whose certificate is not trusted gets no request",
        .enabled("\(Gateway.need(.tinyproxy, .tls, .nginx))") { await Gateway.areHere(.tinyproxy, .tls, .nginx) })
    func secureProxy() async throws {
        let certificates = try await TestCertificates(in: folder.path.appending("certificates"))
        let inner = try await start(.tinyproxy) { _ in "BasicAuth camera password-of-it\n" }
        let proxy = try await start(.tls, in: "front") { port in
            "server { listen 127.0.0.1:\(port) ssl; ssl_certificate \(certificates.server.certificate.display); "
                + "ssl_certificate_key \(certificates.server.key.display); proxy_pass 127.0.0.1:\(inner.port); }"
        }
        func log() throws -> String {
            String(decoding: try Files.read(place.appending("log"), limit: 1 << 20), as: UTF8.self)
        }
        let plain = try await TusProcess.faulty()
        defer { plain.kill() }
        var http: [String: SettingValue] = [
            "proxy": .text("https://127.0.0.1:\(proxy.port)"), "proxy_user": .text("camera"),
            "proxy_password": .secret(.literal("password-of-it")),
        ]
        let error = try await failure(plain.url, http)
        #expect(error.remedy == .holdDestination(after: nil) || error.failure.retryable, "\(error.failure)")
        #expect(error.failure.message.contains("proxy"), "\(error.failure.message)")
        #expect(try !log().contains("Request (file descriptor"))
        http["proxy_ca_file"] = .path(certificates.authority)
        try await arrives(plain.url, http, at: plain)
        #expect(try log().contains(WebAddress(plain.url).authority ?? "-"))
        let hidden = try await TusProcess.faulty()
        defer { hidden.kill() }
        let server = try await start(.nginx, in: "server") { port in
            """
            server {
              listen 127.0.0.1:\(port) ssl;
              ssl_certificate \(certificates.server.certificate.display);
              ssl_certificate_key \(certificates.server.key.display);
              client_max_body_size 0;
              location / { proxy_pass \(origin(hidden)); proxy_set_header Host $http_host; }
            }
            """
        }
        let url = "https://127.0.0.1:\(server.port)\(hidden.url.dropFirst(origin(hidden).count))"
        // The error names the reason. No question without TLS goes through the proxy to find it out.
        let untrusted = try await failure(url, http)
        #expect(untrusted.failure.code == .tls, "\(untrusted)")
        #expect(untrusted.failure.message.contains("a certificate that is not trusted means"), "\(untrusted)")
        #expect(try !log().contains("http://127.0.0.1:\(server.port)"))
        http["ca_file"] = .path(certificates.authority)
        try await arrives(url, http, at: hidden)
        #expect(try log().contains("CONNECT 127.0.0.1:\(server.port)"))
    }

    @Test(
        "a SOCKS proxy with a password carries an upload, and looks up the name; a wrong password holds the destination",
        .enabled("\(Gateway.need(.microsocks))") { await Gateway.areHere(.microsocks) })
    func socks() async throws {
        let tus = try await TusProcess.faulty()
        defer { tus.kill() }
        let proxy = try await start(.microsocks) { _ in "-u camera -P password-of-it" }
        let url = tus.url.replacing("127.0.0.1", with: "localhost")
        var http: [String: SettingValue] = [
            "proxy": .text("socks5://127.0.0.1:\(proxy.port)"), "proxy_user": .text("camera"),
            "proxy_password": .secret(.literal("wrong-password")),
            // Not used: the proxy looks up the name.
            "resolve": .texts(["localhost:\(WebAddress(tus.url).port ?? ""):192.0.2.1"]),
        ]
        let error = try await failure(url, http)
        #expect(error.failure.code == .proxyRefused, "\(error.failure.message)")
        for words in ["the proxy 127.0.0.1:\(proxy.port), which `http.proxy` names", "`http.proxy_user`"] {
            #expect(error.failure.message.contains(words), "\(error.failure.message)")
        }
        http["proxy_password"] = .secret(.literal("password-of-it"))
        try await arrives(url, http, at: tus)
    }

    @Test("a proxy that does not answer is named, and `no_proxy` goes around it")
    func around() async throws {
        let tus = try await TusProcess.faulty()
        defer { tus.kill() }
        let closed = try Loopback.freePort()
        let http: [String: SettingValue] = ["proxy": .text("http://127.0.0.1:\(closed)")]
        let error = try await failure(tus.url, http)
        #expect(error.failure.code == .unreachable)
        #expect(error.failure.message.contains("the proxy 127.0.0.1:\(closed), as `http.proxy` says"))
        try await arrives(tus.url, http.merging(["no_proxy": .texts(["127.0.0.0/8"])]) { $1 }, at: tus)
    }

    // MARK: TLS

    @Test(
        "a server with an authority of its own is trusted with `ca_file` alone, by name and by `resolve`",
        .enabled("\(Gateway.need(.nginx))") { await Gateway.areHere(.nginx) })
    func authority() async throws {
        let tus = try await TusProcess.faulty()
        defer { tus.kill() }
        let certificates = try await TestCertificates(in: folder.path.appending("tls"))
        let server = try await nginx(tus, certificates)
        let url = "https://nas.example:\(server.port)/files"
        let resolve = SettingValue.texts(["nas.example:\(server.port):127.0.0.1"])
        let error = try await failure(url, ["resolve": resolve])
        #expect(error.failure.code == .tls && error.remedy == .misconfigured, "\(error.failure.message)")
        try await arrives(url, ["resolve": resolve, "ca_file": .path(certificates.authority)], at: tus)
    }

    @Test(
        "a key that is not pinned gets no request; a pinned one among several does",
        .enabled("\(Gateway.need(.nginx))") { await Gateway.areHere(.nginx) })
    func pins() async throws {
        let tus = try await TusProcess.faulty()
        defer { tus.kill() }
        let certificates = try await TestCertificates(in: folder.path.appending("tls"))
        let server = try await nginx(tus, certificates)
        let other = "sha256//" + base64([UInt8](repeating: 7, count: 32))
        var http: [String: SettingValue] = [
            "ca_file": .path(certificates.authority), "pinned_keys": .texts([other]),
        ]
        let url = "https://127.0.0.1:\(server.port)/files"
        let error = try await failure(url, http)
        #expect(error.failure.code == .pinnedKey && error.remedy == .misconfigured, "\(error.failure.message)")
        #expect(try tus.requests.isEmpty)
        http["pinned_keys"] = .texts([other, try await certificates.pin()])
        try await arrives(url, http, at: tus)
    }

    @Test(
        "a server that requires a client certificate gets one; without it, or with another's, no file fails",
        .enabled("\(Gateway.need(.nginx))") { await Gateway.areHere(.nginx) })
    func client() async throws {
        let tus = try await TusProcess.faulty()
        defer { tus.kill() }
        let certificates = try await TestCertificates(in: folder.path.appending("tls"))
        let strangers = try await TestCertificates(in: folder.path.appending("strangers"))
        let server = try await nginx(
            tus, certificates,
            "ssl_client_certificate \(certificates.authority.display); ssl_verify_client on;")
        let url = "https://127.0.0.1:\(server.port)/files"
        var http: [String: SettingValue] = ["ca_file": .path(certificates.authority)]
        func refusal(_ http: [String: SettingValue]) async throws {
            let error = try await failure(url, http)
            #expect(
                error.failure.code == .clientCertificate && error.remedy == .misconfigured, "\(error.failure.message)")
            #expect(error.failure.message.contains("`http.client_certificate`"), "\(error.failure.message)")
        }
        try await refusal(http)
        http["client_certificate"] = .path(strangers.client.certificate)
        http["client_key"] = .secret(.file(strangers.client.key))
        try await refusal(http)
        // A key that belongs to another certificate.
        http["client_certificate"] = .path(certificates.client.certificate)
        try await refusal(http)
        // An encrypted key is not asked for on the terminal.
        let encrypted = try await certificates.encryptedClientKey("password-of-the-key")
        http["client_key"] = .secret(.file(encrypted))
        try await refusal(http)
        http["client_key_password"] = .secret(.literal("wrong-password"))
        try await refusal(http)
        #expect(try tus.requests.isEmpty)
        http["client_key_password"] = .secret(.literal("password-of-the-key"))
        try await arrives(url, http, at: tus)
    }

    @Test(
        "a server with an older version of TLS than `tls_min` gets no request",
        .enabled("\(Gateway.need(.nginx))") { await Gateway.areHere(.nginx) })
    func version() async throws {
        let tus = try await TusProcess.faulty()
        defer { tus.kill() }
        let certificates = try await TestCertificates(in: folder.path.appending("tls"))
        let server = try await nginx(tus, certificates, "ssl_protocols TLSv1.2;")
        let url = "https://127.0.0.1:\(server.port)/files"
        var http: [String: SettingValue] = [
            "ca_file": .path(certificates.authority), "tls_min": .text("TLSv1.3"),
        ]
        let error = try await failure(url, http)
        #expect(error.failure.code == .tls, "\(error.failure.message)")
        #expect(error.failure.message.contains("`http.tls_min`"), "\(error.failure.message)")
        #expect(try tus.requests.isEmpty)
        http["tls_min"] = .text("TLSv1.2")
        try await arrives(url, http, at: tus)
    }

    @Test(
        "HTTP/2 is used where it is allowed and offered, with a connection for each request",
        .enabled("\(Gateway.need(.nginx))") { await Gateway.areHere(.nginx) }, arguments: ["never", "auto", "always"])
    func second(_ choice: String) async throws {
        let tus = try await TusProcess.faulty()
        defer { tus.kill() }
        let certificates = try await TestCertificates(in: folder.path.appending("tls"))
        let server = try await nginx(tus, certificates)
        let (url, transport) = ("https://127.0.0.1:\(server.port)/files", Transport())
        var request = Request("OPTIONS", url)
        request.connection.caFile = certificates.authority
        request.connection.http2 = try #require(ConnectionSettings.HTTP2(rawValue: choice))
        let response = try await transport.send(request)
        #expect(response.headers["X-Protocol"] == (choice == "never" ? "HTTP/1.1" : "HTTP/2.0"))
        try await arrives(
            url, ["ca_file": .path(certificates.authority), "http2": .text(choice)], at: tus, transport: transport)
    }

    @Test(
        "HTTP/2 without TLS carries a file in several requests",
        .enabled("\(Gateway.need(.nginx))") { await Gateway.areHere(.nginx) })
    func secondWithoutTLS() async throws {
        let tus = try await TusProcess.faulty()
        defer { tus.kill() }
        let server = try await start(.nginx) { port in
            """
            server {
              listen 127.0.0.1:\(port) http2;
              client_max_body_size 0;
              location / { proxy_pass \(origin(tus)); proxy_set_header Host $http_host; }
            }
            """
        }
        try await arrives("http://127.0.0.1:\(server.port)/files", ["http2": .text("always")], at: tus)
    }

    // MARK: Passwords

    @Test(
        "a server that asks for a password gets an upload with basic and digest authorisation",
        .enabled("\(Gateway.need(.lighttpd))") { await Gateway.areHere(.lighttpd) }, arguments: ["basic", "digest"])
    func password(_ kind: String) async throws {
        let tus = try await TusProcess.faulty()
        defer { tus.kill() }
        let users = try folder.write("users", Array("camera:password-of-it\n".utf8))
        let digest = hexadecimal(Hasher.digest(.md5, of: Array("camera:nas:password-of-it".utf8)))
        let hashed = try folder.write("hashed", Array("camera:nas:\(digest)\n".utf8))
        let server = try await start(.lighttpd) { _ in
            """
            server.modules = ("mod_auth", "mod_authn_file", "mod_proxy")
            server.stream-request-body = 2
            auth.backend = "\(kind == "basic" ? "plain" : "htdigest")"
            auth.backend.plain.userfile = "\(users.display)"
            auth.backend.htdigest.userfile = "\(hashed.display)"
            auth.require = ("/" => ("method" => "\(kind)", "realm" => "nas", "require" => "valid-user", \
            "algorithm" => "MD5"))
            proxy.server = ("" => (("host" => "127.0.0.1", "port" => \(WebAddress(tus.url).port ?? "0"))))

            """
        }
        let url = "http://127.0.0.1:\(server.port)/files"
        var http: [String: SettingValue] = [
            "auth": .text(kind), "user": .text("camera"), "password": .secret(.literal("wrong-password")),
        ]
        let error = try await failure(url, http)
        #expect(error.remedy == .authenticate, "\(error.failure.message)")
        #expect(!error.failure.message.contains("wrong-password"))
        #expect(try tus.requests.isEmpty)
        http["password"] = .secret(.literal("password-of-it"))
        try await arrives(url, http, at: tus)
    }
}
