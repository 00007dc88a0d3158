import Core
import Glibc
import TestKit
import Testing
import Transport

@testable import Destinations

/// An address with the wrong scheme.
@Suite("Mistaken http and https", .timeLimit(.minutes(Patience.minutes(1))))
struct SchemeTests {
    @Test("https to a server without TLS is reported")
    func plain() async throws {
        let server = try FakeServer { $0.reply(204, [("Tus-Version", "1.0.0")]) }
        let journey = try UploadScenario(server.url.replacing("http://", with: "https://"))
        // The error stays the same if the server only closes.
        let first = await journey.destination.check()
        let found = await journey.destination.check()
        #expect(first.verdict == .failed && first.detail.contains("does not speak TLS"), "\(first.detail)")
        #expect(found.detail.contains("does not speak TLS") && found.detail.contains("`http://`"), "\(found.detail)")
        #expect(!found.detail.contains("ca_file"))
    }

    @Test(
        "http to a server with TLS that hangs up is reported, after one probe, also if it requires a client certificate",
        arguments: [[], ["-Verify", "1", "-verify_return_error"]])
    func hidden(_ more: [String]) async throws {
        let folder = TemporaryFolder()
        let (chain, key) = (folder.path.appending("c.pem"), folder.path.appending("k.pem"))
        let (output, errors) = (folder.path.appending("output"), folder.path.appending("errors"))
        let making = try Child(
            "/usr/bin/openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=nas", "-keyout", key.display, "-out", chain.display,
            ], output: output, errors: errors)
        #expect(try await making.end(within: .seconds(60)) == .status(0))
        let server = try Child(
            "/usr/bin/openssl",
            ["s_server", "-accept", "127.0.0.1:0", "-cert", chain.display, "-key", key.display, "-www"] + more,
            output: output, errors: errors)
        defer { server.end(with: SIGKILL) }
        let port = try await server.line(after: "ACCEPT 127.0.0.1:")
        let found = await (try UploadScenario("http://127.0.0.1:\(port)/files")).destination.check()
        #expect(found.verdict == .failed)
        #expect(found.detail.contains("speaks TLS there") && found.detail.contains("`https://`"), "\(found.detail)")
    }

    @Test(
        "http to a server with TLS that answers in text is reported",
        arguments: [
            "<center>The plain HTTP request was sent to HTTPS port</center>",
            "Reason: You're speaking plain HTTP to an SSL-enabled server port.<br />",
            "Client sent an HTTP request to an HTTPS server.\n",
        ])
    func told(_ words: String) async throws {
        let server = try FakeServer { $0.reply(400, [], words) }
        let found = await (try UploadScenario(server.url)).destination.check()
        #expect(found.detail.contains("speaks TLS there"), "\(found.detail)")
    }

    @Test(
        "an S3 server with TLS is reported, although its 400 to the look-up of an object has no text",
        arguments: [900, 6 << 20])
    func mute(_ size: Int) async throws {
        let words = "<center>The plain HTTP request was sent to HTTPS port</center>"
        let server = try FakeServer { exchange in
            _ = exchange.body()
            exchange.reply(400, [], exchange.method == "HEAD" ? "" : words)
        }
        let scene = try S3Scene(["endpoint": .text(server.url)])
        for _ in 0..<2 {
            let error = try await StagedUpload(size).failure(to: scene)
            #expect(error.failure.code == .onlyTLS && error.remedy == .misconfigured, "\(error)")
            #expect(error.contact == .unusable)
        }
        #expect(server.seen.filter { $0 == "GET /" }.count <= 1)
    }

    @Test("an error says whether its host could be connected to, and whether it speaks the protocol of its address")
    func contact() async throws {
        let server = try FakeServer { $0.reply(503) }
        let port = try #require(server.url.split(separator: ":").last)
        func contact(_ url: String) async throws -> RemoteContact {
            try await StagedUpload(900).failure(to: try S3Scene(["endpoint": .text(url)])).contact
        }
        #expect(try await contact(server.url) == .made)
        #expect(try await contact("https://127.0.0.1:\(port)") == .unusable)
        #expect(try await contact("http://127.0.0.1:1") == .none)
    }

    @Test("uploads that look up objects side by side at an S3 server with TLS all report it")
    func sideBySide() async throws {
        let words = "<center>The plain HTTP request was sent to HTTPS port</center>"
        let server = try FakeServer { exchange in
            _ = exchange.body()
            exchange.reply(400, [], exchange.method == "HEAD" ? "" : words)
        }
        let scene = try S3Scene(["endpoint": .text(server.url)])
        try await withThrowingTaskGroup(of: Failure.Code.self) { group in
            for number in 0..<6 {
                group.addTask {
                    try await StagedUpload(6 << 20, id: "\(number)", name: FilePath("\(number).mp4")).failure(to: scene)
                        .failure.code
                }
            }
            for try await code in group { #expect(code == .onlyTLS) }
        }
    }

    @Test("a plain server that hangs up is probed once, and blamed for that alone")
    func broken() async throws {
        let server = try FakeServer { $0.cut(reset: true) }
        let journey = try UploadScenario(server.url)
        for _ in 0..<2 {
            let found = await journey.destination.check()
            #expect(!found.detail.contains("TLS"), "\(found.detail)")
        }
    }
}
