import Core
import Credentials
import Glibc
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

@Suite("Values of the section `http` that cannot be used", .timeLimit(.minutes(Patience.minutes(1))))
struct UnusableSettingsTests {
    private let folder = TemporaryFolder()

    private func scenario(_ url: String, _ http: [String: SettingValue]) throws -> UploadScenario {
        var values: [String: SettingValue] = [:]
        for (key, value) in http { values["http.\(key)"] = value }
        return try UploadScenario(url, values: values)
    }

    private func failure(_ url: String, _ http: [String: SettingValue]) async throws -> UploadError {
        try await scenario(url, http).failedAttempt()
    }

    @Test(
        "a file of certificates that cannot be used is named before a connection, with its key",
        arguments: [("ca_file", Failure.Code.tls), ("client_certificate", .clientCertificate)])
    func files(_ key: String, _ code: Failure.Code) async throws {
        let server = try SilentPort()
        let url = server.url.replacing("http://", with: "https://")
        let garbage = "-----BEGIN CERTIFICATE-----\nPLANTED\n-----END CERTIFICATE-----\n"
        let cases: [(file: FilePath, words: String)] = [
            (folder.path.appending("absent"), "cannot be read"), (folder.path, "cannot be read"),
            (try folder.write("empty", []), "contains no certificate"),
            (try folder.write("garbage", Array(garbage.utf8)), "contains no certificate"),
            (try folder.write("key", Array(garbage.replacing("CERTIFICATE", with: "PRIVATE KEY").utf8)), "contains no"),
        ]
        for (file, words) in cases {
            let error = try await failure(url, [key: .path(file)])
            let message = error.failure.message
            #expect(error.failure.code == code && error.remedy == .misconfigured, "\(message)")
            #expect(message.contains("`http.\(key)` \(file.display) \(words)"), "\(message)")
            let check = await (try scenario(url, [key: .path(file)])).destination.check()
            #expect(check.verdict == .failed && check.detail.contains("`http.\(key)`"), "\(check.detail)")
        }
        #expect(!server.hasCaller)
    }

    @Test("a file of certificates that can be used is read again when it or its link has changed, and not before")
    func changed() throws {
        let reads = Mutex(0)
        let files = UsableCertificateFiles { file in
            reads.withLock { $0 += 1 }
            return CertificateFile.problem(of: file)
        }
        let good = "-----BEGIN CERTIFICATE-----\n\(base64([0x30, 0x03, 0x02, 0x01, 0x00]))\n-----END CERTIFICATE-----\n"
        let file = try folder.write("a.pem", Array(good.utf8))
        let link = folder.path.appending("link.pem")
        try #require(symlink("a.pem", link.display) == 0)
        for _ in 0..<3 { #expect(files.problem(of: link) == nil) }
        #expect(reads.withLock { $0 } == 1)
        try Files.replace(file, with: Array("nothing".utf8))
        for _ in 0..<2 { #expect(files.problem(of: link)?.contains("contains no certificate") == true) }
        #expect(reads.withLock { $0 } == 3)
        _ = try folder.write("b.pem", Array(good.utf8))
        try #require(unlink(link.display) == 0 && symlink("b.pem", link.display) == 0)
        for _ in 0..<2 { #expect(files.problem(of: link) == nil) }
        #expect(reads.withLock { $0 } == 4)
        try #require(unlink(link.display) == 0)
        #expect(files.problem(of: link)?.contains("cannot be read") == true)
    }

    @Test("policy that ends a request after it has left does not show that the server has not received it")
    func ended() throws {
        let client = AuthorizedClient(
            transport: Transport(), credentials: CredentialProvider([], reader: SecretReader()), origin: "",
            clocks: SystemClocks(), name: "nas")
        let request = Request("POST", "https://nas.example/files")
        for wasSent in [true, false] {
            let error = TransportError(kind: .interface, detail: "ended", url: request.url, wasSent: wasSent)
            #expect(client.problem(error, request).leavesNothingBehind == !wasSent)
        }
    }

    /// openssl(1) as a server that ends TLS.
    private func server(_ certificates: TestCertificates, _ more: String...) async throws -> (Child, url: String) {
        let server = try Child(
            "/usr/bin/openssl",
            [
                "s_server", "-accept", "127.0.0.1:0", "-cert", certificates.server.certificate.display, "-key",
                certificates.server.key.display, "-CAfile", certificates.authority.display, "-www",
            ] + more, output: folder.path.appending("output"), errors: folder.path.appending("errors"))
        return (server, "https://127.0.0.1:\(try await server.line(after: "ACCEPT 127.0.0.1:"))/files")
    }

    @Test(
        "a server that requires a client certificate is reported, whether the alert comes in the handshake or after it",
        arguments: ["-tls1_2", "-tls1_3"])
    func required(_ version: String) async throws {
        let certificates = try await TestCertificates(in: folder.path.appending("tls"))
        let strangers = try await TestCertificates(in: folder.path.appending("strangers"))
        let (server, url) = try await server(certificates, "-Verify", "1", "-verify_return_error", version)
        defer { server.end(with: SIGKILL) }
        var http: [String: SettingValue] = ["ca_file": .path(certificates.authority)]
        let missing = try await failure(url, http)
        // In TLS 1.2 the alert for a missing one is that of any failed handshake.
        #expect(missing.failure.code == (version == "-tls1_3" ? .clientCertificate : .tls), "\(missing)")
        let words = version == "-tls1_3" ? "requires a client certificate" : "may require a client certificate"
        #expect(missing.remedy == .misconfigured && missing.failure.message.contains(words), "\(missing)")
        #expect(missing.failure.message.contains("`http.client_certificate`"), "\(missing)")
        #expect(!missing.failure.message.contains("ca_file"), "\(missing)")
        for pair in [strangers.client, try await certificates.expiredClient()] {
            http["client_certificate"] = .path(pair.certificate)
            http["client_key"] = .secret(.file(pair.key))
            let error = try await failure(url, http)
            #expect(error.failure.code == .clientCertificate && error.remedy == .misconfigured, "\(error)")
            let message = error.failure.message
            #expect(message.contains("does not accept the certificate in `http.client_certificate`"), "\(message)")
            #expect(message.contains("expired") == (pair.certificate != strangers.client.certificate), "\(message)")
        }
    }

    @Test("a key that cannot be read, or belongs to another certificate, is named with its key of the configuration")
    func keys() async throws {
        let certificates = try await TestCertificates(in: folder.path.appending("tls"))
        let (server, url) = try await server(certificates)
        defer { server.end(with: SIGKILL) }
        let locked = folder.path.appending("locked.key")
        let locking = try Child(
            "/usr/bin/openssl",
            [
                "pkey", "-in", certificates.client.key.display, "-aes128", "-passout", "pass:right", "-out",
                locked.display,
            ], output: folder.path.appending("output2"), errors: folder.path.appending("errors2"))
        #expect(try await locking.end(within: .seconds(60)) == .status(0))
        let http: [String: SettingValue] = [
            "ca_file": .path(certificates.authority), "client_certificate": .path(certificates.client.certificate),
        ]
        let keys: [[String: SettingValue]] = [
            ["client_key": .secret(.file(locked)), "client_key_password": .secret(.literal("wrong-password"))],
            ["client_key": .secret(.file(locked))], ["client_key": .secret(.file(certificates.server.key))], [:],
        ]
        for key in keys {
            let error = try await failure(url, http.merging(key) { $1 })
            let message = error.failure.message
            #expect(error.failure.code == .clientCertificate && error.remedy == .misconfigured, "\(message)")
            #expect(
                message.contains("`http.client_key`") && message.contains("`http.client_key_password`"), "\(message)")
            #expect(!message.contains("the server requires") && !message.contains("wrong-password"), "\(message)")
        }
    }

    @Test("a server whose newest TLS is older than `tls_min` is reported as that")
    func version() async throws {
        let certificates = try await TestCertificates(in: folder.path.appending("tls"))
        let (server, url) = try await server(certificates, "-tls1_2")
        defer { server.end(with: SIGKILL) }
        let error = try await failure(
            url, ["ca_file": .path(certificates.authority), "tls_min": .text("TLSv1.3")])
        #expect(error.failure.code == .tls && error.failure.message.contains("`http.tls_min`"), "\(error)")
        #expect(!error.failure.message.contains("not trusted"), "\(error)")
    }

    @Test("a proxy that closes the connection is named", arguments: ["http", "https"])
    func closing(_ scheme: String) async throws {
        let proxy = try FakeServer { _ in }
        let error = try await failure(
            "\(scheme)://nas.example/files", ["proxy": .text("http://127.0.0.1:\(proxy.port)")])
        #expect(
            error.failure.message.contains("the proxy 127.0.0.1:\(proxy.port), as `http.proxy` says"), "\(error)")
    }

    @Test("headers of an answer that are too large are reported as that")
    func headers() async throws {
        let server = try FakeServer { $0.reply(204, [("X-Large", String(repeating: "x", count: 400_000))]) }
        let error = try await failure(server.url, [:])
        #expect(error.failure.message.contains("the headers of the answer are too large"), "\(error)")
    }

    @Test(
        "challenges that `auth: digest` cannot answer are named",
        arguments: [
            (#"Basic realm="nas""#, "`Basic`"), (#"Digest realm="a", nonce="b", qop="auth-int""#, "`Digest auth-int`"),
            (#"Digest realm="a", nonce="b", algorithm=SHA-512-256, qop="auth""#, "`Digest SHA-512-256 auth`"),
        ])
    func challenges(_ challenge: String, _ words: String) async throws {
        let server = try FakeServer { $0.reply(401, [("WWW-Authenticate", challenge)]) }
        let scenario = try scenario(
            server.url,
            ["auth": .text("digest"), "user": .text("me"), "password": .secret(.literal("password-of-it"))])
        let error = try await scenario.failedAttempt()
        #expect(error.remedy == .authenticate && error.failure.message.contains(words), "\(error)")
        let check = await scenario.destination.check()
        #expect(check.verdict == .failed && check.detail.contains(words), "\(check.detail)")
        #expect(check.detail.contains("`http.auth: digest` cannot answer"), "\(check.detail)")
    }

    @Test("a check names the credentials that are configured", arguments: ["tus", "resumable-http", "chunked-form"])
    func credentials(_ type: String) async throws {
        let server = try FakeServer { $0.reply(403) }
        let password = SettingValue.secret(.literal("password-of-it"))
        let cases: [(values: [String: SettingValue], words: String)] = [
            (
                ["http.auth": .text("basic"), "http.user": .text("me"), "http.password": password],
                "check `http.user` and `http.password`"
            ), (["http.auth": .text("bearer"), "http.token": password], "check `http.token`"),
            (
                ["http.headers": .map(["X-Key": .literal("key-of-it")])],
                type == "chunked-form" ? "check the credential and the headers" : "check `http.headers`"
            ),
        ]
        for (values, words) in cases {
            var values = values
            if type == "chunked-form" { values["preset"] = .text("dropzone") }
            let check = await (try UploadScenario(server.url, values: values, type: type)).destination.check()
            #expect(check.verdict == .failed && check.detail.contains(words), "\(check.detail)")
            #expect(!check.detail.contains("check the token"), "\(check.detail)")
        }
    }

    @Test(
        "a password of the proxy that cannot be sent is named with its key, and nothing else is blamed",
        arguments: [("", "it is empty"), ("pass\tword-of-it", "control character"), ("pass\u{0}word-of-it", "control")])
    func proxyPassword(_ password: String, _ words: String) async throws {
        let server = try SilentPort()
        let proxy = try SilentPort()
        for type in ["tus", "resumable-http", "chunked-form", "vimeo"] {
            var values: [String: SettingValue] = [
                "http.proxy": .text(proxy.url), "http.proxy_user": .text("camera"),
                "http.proxy_password": .secret(.file(try folder.write("password", Array(password.utf8)))),
            ]
            if type == "chunked-form" { values["preset"] = .text("dropzone") }
            if type == "vimeo" { values["token"] = .secret(.literal("token-of-the-account")) }
            let check = await (try UploadScenario(server.url, values: values, type: type)).destination.check()
            #expect(check.verdict == .failed && check.detail.contains("`http.proxy_password`"), "\(check.detail)")
            #expect(check.detail.contains(words), "\(check.detail)")
            for other in ["none is configured", "check the token", "word-of-it"] {
                #expect(!check.detail.contains(other), "\(check.detail)")
            }
        }
        #expect(!server.hasCaller && !proxy.hasCaller)
    }

    @Test("a secret of the section that cannot be read is named with its key", arguments: ["tus", "chunked-form"])
    func unreadable(_ type: String) async throws {
        let server = try SilentPort()
        let absent = SettingValue.secret(.file("/absent/secret"))
        let cases: [(key: String, values: [String: SettingValue])] = [
            ("http.token", ["http.auth": .text("bearer"), "http.token": absent]),
            ("http.password", ["http.auth": .text("basic"), "http.user": .text("me"), "http.password": absent]),
            ("http.headers.X-Key", ["http.headers": .map(["X-Key": .file("/absent/secret")])]),
        ]
        for (key, values) in cases {
            var values = values
            if type == "chunked-form" { values["preset"] = .text("dropzone") }
            let check = await (try UploadScenario(server.url, values: values, type: type)).destination.check()
            #expect(check.verdict == .failed, "\(check.detail)")
            #expect(check.detail.contains("`\(key)`: the secret from the file /absent/secret"), "\(check.detail)")
        }
        #expect(!server.hasCaller)
    }
}
