import Core
import Glibc
import TestKit
import Testing
import Transport

@testable import Destinations

/// Refuses everything, as a proxy or a server behind it.
private struct Refusing: Transporting {
    let status: Int
    let headers: Headers
    let body: String

    func send(_ request: Request) async throws(TransportError) -> Response {
        var response = Response(status: status, headers: headers, body: Array(body.utf8), url: request.url)
        response.plainProxy = ProxyServer("10.9.0.2:3128", origin: .configuration)
        return response
    }
}

/// A proxy gets requests to `http` addresses as they are, so that its own refusals look like the server's.
@Suite("Refusals through a proxy without CONNECT", .timeLimit(.minutes(Patience.minutes(1))))
struct PlainProxyTests {
    private static let page = "<!DOCTYPE html><html><body>Filtered</body></html>"
    private static let html = ("Content-Type", "text/html")
    private static let types = ["tus", "resumable-http", "chunked-form"]

    private func scenario(_ type: String, _ transport: any Transporting) throws -> UploadScenario {
        try UploadScenario(
            "http://nas.lan/files", values: type == "chunked-form" ? ["preset": .text("dropzone")] : [:],
            transport: transport, type: type)
    }

    @Test(
        "one with the mark of the proxy is the proxy's: it holds the destination and accuses no credential",
        arguments: types,
        [
            (403, [("Server", "tinyproxy/1.11.1")]), (503, [("X-Squid-Error", "ERR_CONNECT_FAIL 111")]),
            (500, [("Server", "tinyproxy/1.11.1")]),
        ] as [(Int, [(String, String)])])
    func ofProxy(_ type: String, _ answer: (Int, [(String, String)])) async throws {
        let (status, headers) = answer
        let scenario = try scenario(
            type, Refusing(status: status, headers: Headers(headers + [Self.html]), body: Self.page))
        let error = try await scenario.failedAttempt()
        #expect(error.failure.code == .proxyRefused && error.remedy == .holdDestination(after: nil), "\(error)")
        #expect(error.isOfPath && error.failure.http == status)
        let words = "the proxy 10.9.0.2:3128, as `http.proxy` says, answered \(status)"
        #expect(error.failure.message.contains(words), "\(error)")
        let check = await scenario.destination.check()
        #expect(check.verdict == .failed && check.detail.contains(words), "\(check.detail)")
    }

    @Test("one that nothing distinguishes names the proxy as well as the credentials", arguments: types)
    func unclear(_ type: String) async throws {
        let scenario = try scenario(type, Refusing(status: 403, headers: Headers([Self.html]), body: Self.page))
        let error = try await scenario.failedAttempt()
        #expect(error.remedy == .authenticate, "\(error)")
        #expect(error.failure.message.contains(", or the proxy 10.9.0.2:3128 refuses it"), "\(error)")
        let check = await scenario.destination.check()
        #expect(check.detail.contains(", or the proxy 10.9.0.2:3128 refuses it"), "\(check.detail)")
        let gateway = try self.scenario(type, Refusing(status: 502, headers: [:], body: ""))
        let words = try await gateway.failedAttempt().failure.message
        #expect(words.contains(", or the proxy 10.9.0.2:3128 does not reach the server"), "\(words)")
    }

    @Test("one that only the server can have given does not name the proxy", arguments: types)
    func ofServer(_ type: String) async throws {
        let body = #"{"error": "the token is wrong"}"#
        let error = try await scenario(type, Refusing(status: 403, headers: [:], body: body)).failedAttempt()
        #expect(error.remedy == .authenticate && !error.failure.message.contains("proxy"), "\(error)")
    }

    @Test(
        "a proxy that filters requests is named, and not taken for the server",
        .enabled("\(Gateway.need(.tinyproxy))") { await Gateway.areHere(.tinyproxy) })
    func filter() async throws {
        let folder = TemporaryFolder()
        let filter = try folder.write("filter", Array("nothing-that-is-asked-for\n".utf8))
        let (proxy, port) = try await Gateway.tinyproxy.start(in: folder.path.appending("proxy")) { _ in
            "Filter \"\(filter.display)\"\nFilterDefaultDeny Yes\n"
        }
        defer { proxy.end(with: SIGKILL) }
        let scenario = try UploadScenario(
            "http://192.0.2.7/files", values: ["http.proxy": .text("http://127.0.0.1:\(port)")])
        let error = try await scenario.failedAttempt()
        #expect(error.failure.code == .proxyRefused && error.remedy == .holdDestination(after: nil), "\(error)")
        let check = await scenario.destination.check()
        #expect(check.detail.contains("the proxy 127.0.0.1:\(port), as `http.proxy` says, answered 403"), "\(check)")
        #expect(!check.detail.contains("`http.auth`"), "\(check.detail)")
    }
}
