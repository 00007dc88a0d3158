import CCurl
import Core
import Glibc
import TestKit
import Testing

@testable import Transport

/// What an error says about TLS, and how far the connection got.
@Suite("Handshakes of TLS", .timeLimit(.minutes(Patience.minutes(1))))
struct HandshakeTests {
    private func failure(_ url: String, proxy: String? = nil) async throws -> TransportError {
        let transport = Transport()
        var request = Request("GET", url, limits: Limits(connect: .seconds(1)))
        request.connection.proxy = .none
        if let proxy {
            request.connection.proxy = .server(
                try #require(ProxyServer(proxy, origin: .configuration)), exempt: [])
        }
        var failure: TransportError?
        do { _ = try await transport.send(request) } catch { failure = error }
        await transport.stop()
        return try #require(failure)
    }

    @Test("a server that accepts the connection and is silent in TLS is told from one that is not reached")
    func silent() async throws {
        // The kernel accepts connections to it.
        let loopback = try Loopback()
        defer { close(loopback.descriptor) }
        let error = try await failure("https://127.0.0.1:\(loopback.port)/")
        #expect(error.kind == .connect && error.isOfSilentTLS && error.hasPeer, "\(error)")
        #expect(error.detail.hasPrefix("TCP is connected, and TLS does not answer: no connection within"), "\(error)")
        let closed = try await failure("https://127.0.0.1:\(try Loopback.freePort())/")
        #expect(closed.kind == .connect && !closed.isOfSilentTLS && !closed.hasPeer, "\(closed)")
    }

    @Test("a server that is silent in TLS behind a proxy is told from a proxy that is silent itself")
    func proxied() async throws {
        let tunnel = try FakeServer { exchange in
            exchange.raw("HTTP/1.1 200 Connected\r\n\r\n")
            exchange.hang()
        }
        let server = try await failure("https://nas.example/", proxy: "http://127.0.0.1:\(tunnel.port)")
        #expect(server.kind == .connect && server.isOfSilentTLS && server.isTunneled, "\(server)")
        #expect(server.detail.hasPrefix("the proxy is connected to the server, and TLS does not answer"), "\(server)")
        let silent = try FakeServer { $0.hang() }
        let proxy = try await failure("https://nas.example/", proxy: "http://127.0.0.1:\(silent.port)")
        #expect(proxy.kind == .connect && proxy.hasPeer && !proxy.isOfSilentTLS, "\(proxy)")
        #expect(proxy.detail.hasPrefix("TCP is connected to the proxy 127.0.0.1:\(silent.port)"), "\(proxy)")
    }

    @Test(
        "alerts about the client's certificate are recognised in the words of each version of OpenSSL",
        arguments: [
            ("OpenSSL SSL_read: error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0", false, true),
            ("error:0A000415:SSL routines::sslv3 alert certificate expired", true, true),
            ("error:0A000412:SSL routines::ssl/tls alert bad certificate", false, true),
            ("error:0A000413:SSL routines::ssl/tls alert unsupported certificate", true, true),
            ("error:0A000414:SSL routines::sslv3 alert certificate revoked", true, true),
            ("error:0A000416:SSL routines::sslv3 alert certificate unknown", true, true),
            ("error:0A000418:SSL routines::tlsv1 alert unknown ca", true, true),
            ("error:0A000419:SSL routines::tlsv1 alert access denied", true, true),
            // Without a certificate these are about something else.
            ("error:0A000418:SSL routines::tlsv1 alert unknown ca", false, false),
            ("error:0A000419:SSL routines::tlsv1 alert access denied", false, false),
            ("error:0A000410:SSL routines::sslv3 alert handshake failure", true, false),
            ("SSL certificate problem: self-signed certificate", true, false),
        ])
    func alerts(_ words: String, _ hasCertificate: Bool, _ isOfClient: Bool) {
        #expect(TLSAlert.refusesClient(words, hasCertificate: hasCertificate) == isOfClient)
    }

    @Test(
        "a failure to make a second connection does not show that the server has not received the request over the first",
        arguments: [
            CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_PROXY, CURLE_SSL_CONNECT_ERROR,
            CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_PINNEDPUBKEYNOTMATCH,
        ].map(\.rawValue))
    func repeated(_ code: UInt32) {
        func kind(isConnected: Bool) -> TransportError.Kind {
            TransportError.Kind(
                CURLcode(rawValue: code), isConnected: isConnected, words: "wrong version number", hasCertificate: true)
        }
        #expect(kind(isConnected: true) == .reset)
        #expect(kind(isConnected: false) != .reset)
    }

    @Test("the alert that this end has sent says why it refuses a certificate")
    func sent() {
        for alert: UInt8 in [42, 43, 44, 45, 46, 48] { #expect(TLSAlert.problem(bySent: alert) != nil, "\(alert)") }
        for alert: UInt8 in [0, 40, 70, 80, 112] { #expect(TLSAlert.problem(bySent: alert) == nil, "\(alert)") }
    }
}
