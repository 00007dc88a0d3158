import Core
import Credentials
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// Answers 401 to everything, as a proxy or a server behind it.
private struct Unauthorized: Transporting {
    let headers: Headers
    let body: String

    func send(_ request: Request) async throws(TransportError) -> Response {
        var response = Response(status: 401, headers: headers, body: Array(body.utf8), url: request.url)
        response.possibleProxy = ProxyServer("proxy.lan:3128", origin: .environment(variable: "http_proxy"))
        return response
    }
}

@Suite("A 401 over a proxy")
struct ProxyAnswerTests {
    private static let basic = ("WWW-Authenticate", "Basic realm=\"Tinyproxy\"")
    private static let page = "<!DOCTYPE html><html><body>401 Unauthorized</body></html>"

    private static let kinds: [(DestinationDefinition, [String: SettingValue])] = [
        (Tus.kind, ["url": .text("http://nas.lan/files/")]),
        (ChunkedForm.kind, ["url": .text("http://nas.lan/up"), "preset": .text("dropzone")]),
        (
            S3.kind,
            [
                "endpoint": .text("http://nas.lan"), "bucket": .text("clips"),
                "access_key": .secret(.literal("AKEXAMPLE")),
                "secret_key": .secret(.literal("secret-of-the-key")), "region": .text("us-east-1"),
                "addressing": .text("path"),
            ]
        ),
        (Vimeo.kind, ["url": .text("http://nas.lan"), "token": .secret(.literal("token-of-the-account"))]),
    ]

    private func error(
        _ kind: DestinationDefinition, _ values: [String: SettingValue], _ headers: [(String, String)], _ body: String
    ) async throws -> UploadError {
        let destination = try kind.make(
            values,
            DestinationTools(
                transport: Unauthorized(headers: Headers(headers), body: body), secrets: SecretReader(),
                clocks: SystemClocks(), name: "nas", log: { _ in }))
        let staged = try StagedUpload(800)
        return try #require(
            await #expect(throws: UploadError.self) {
                try await destination.upload(staged.order, reporter: RecordingReporter())
            })
    }

    @Test("without a sign of the server it holds the destination, and names the proxy and the secret", arguments: 0..<4)
    func ofProxy(_ index: Int) async throws {
        let (kind, values) = Self.kinds[index]
        let error = try await error(kind, values, [Self.basic], Self.page)
        #expect(error.remedy == .holdDestination(after: nil) && error.isOfPath, "\(error)")
        #expect(error.failure.code == .proxyRefused && error.failure.http == 401)
        for words in ["proxy.lan:3128", "`http_proxy`", "nas.lan", "secret of this destination"] {
            #expect(error.failure.message.contains(words), "\(error)")
        }
    }

    @Test(
        "a sign of the server shows that the secret is wrong",
        arguments: [
            ([("Tus-Resumable", "1.0.0")], ""), ([("WWW-Authenticate", "Bearer realm=\"files\"")], page),
            ([basic, ("x-amz-request-id", "1")], ""), ([basic], #"{"error":"token"}"#),
            ([basic], "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>"),
        ], 0..<4)
    func ofServer(_ answer: ([(String, String)], String), _ index: Int) async throws {
        let (kind, values) = Self.kinds[index]
        #expect(try await error(kind, values, answer.0, answer.1).remedy == .authenticate)
    }

    @Test("the secret is read again for the next attempt", arguments: ["s3", "apsara-vod", "tus"])
    func secretReadAgain(_ name: String) async throws {
        let folder = TemporaryFolder()
        let file = folder.path.appending("key")
        try Files.replace(file, with: Array("OLDKEYOFTHEBOX\n".utf8))
        let secret = SettingValue.secret(.file(file))
        let key: [String: SettingValue] = ["access_key": secret, "secret_key": .secret(.literal("secret-of-the-key"))]
        let (kind, values): (DestinationDefinition, [String: SettingValue]) =
            switch name {
            case "s3": (S3.kind, Self.kinds[2].1.merging(key) { $1 })
            case "apsara-vod": (Apsara.kind, key.merging(["endpoint": .text("http://nas.lan")]) { $1 })
            default: (Tus.kind, Self.kinds[0].1.merging(["token": secret]) { $1 })
            }
        let transport = Recorder()
        let destination = try kind.make(
            values,
            DestinationTools(
                transport: transport, secrets: SecretReader(), clocks: SystemClocks(), name: "nas", log: { _ in }))
        let staged = try StagedUpload(800)
        await #expect(throws: UploadError.self) {
            try await destination.upload(staged.order, reporter: RecordingReporter())
        }
        #expect(transport.last.contains("OLDKEYOFTHEBOX"))
        try Files.replace(file, with: Array("NEWKEYOFTHEBOX\n".utf8))
        await #expect(throws: UploadError.self) {
            try await destination.upload(staged.order, reporter: RecordingReporter())
        }
        #expect(transport.last.contains("NEWKEYOFTHEBOX"))
    }
}

/// Answers 401 in place of a proxy, and keeps the last request with a credential.
private final class Recorder: Transporting {
    private let state = Mutex("")
    var last: String { state.withLock { $0 } }

    func send(_ request: Request) async throws(TransportError) -> Response {
        let text = request.url + " " + request.headers.map { "\($0.0): \($0.1)" }.joined(separator: " ")
        if text.contains("KEYOFTHEBOX") { state.withLock { $0 = text } }
        var response = Response(status: 401, url: request.url)
        response.possibleProxy = ProxyServer("proxy.lan:3128", origin: .environment(variable: "http_proxy"))
        return response
    }
}
