import Core
import Credentials
import Linux
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
        response.possibleProxy = "proxy.lan:3128"
        return response
    }
}

@Suite("A 401 over a proxy")
struct ProxyAnswerTests {
    private static let basic = ("WWW-Authenticate", "Basic realm=\"Tinyproxy\"")
    private static let page = "<!DOCTYPE html><html><body>401 Unauthorized</body></html>"

    private static let kinds: [(DestinationKind, [String: SettingValue])] = [
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
        _ kind: DestinationKind, _ values: [String: SettingValue], _ headers: [(String, String)], _ body: String
    ) async throws -> UploadError {
        let destination = try kind.make(
            values,
            DestinationTools(
                transport: Unauthorized(headers: Headers(headers), body: body), secrets: SecretReader(),
                clocks: SystemClocks(), name: "nas", log: { _ in }))
        let parcel = try Parcel(800)
        return try #require(
            await #expect(throws: UploadError.self) {
                try await destination.upload(parcel.order, reporter: Logbook())
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
}
