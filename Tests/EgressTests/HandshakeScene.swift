@testable import Egress

/// A handshake whose only valid login is `user`, `word`, for the lease 7.
struct HandshakeScene {
    static func isKnown(_ login: ProxyLogin) -> Int? {
        login.matches(ProxyLogin(user: Array("user".utf8), password: Array("word".utf8))) ? 7 : nil
    }

    /// `user:word` in base 64.
    static let basic = "Basic dXNlcjp3b3Jk"

    static func steps(_ pieces: [ArraySlice<UInt8>]) -> [ClientHandshake.Step] {
        var handshake = ClientHandshake()
        return pieces.flatMap { handshake.receive($0, authenticate: isKnown) }
    }

    static func steps(_ bytes: [UInt8]) -> [ClientHandshake.Step] { steps([bytes[...]]) }
    static func steps(_ lines: String...) -> [ClientHandshake.Step] {
        steps(Array(lines.map { $0 + "\r\n" }.joined().utf8))
    }

    static let login: [UInt8] = [1, 4] + Array("user".utf8) + [4] + Array("word".utf8)
    static func socks(_ command: [UInt8]) -> [UInt8] { [5, 1, 2] + login + command }

    /// Handshakes that succeed.
    static let good: [[UInt8]] = [
        Array(
            "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\nProxy-Authorization: \(basic)\r\n\r\n".utf8),
        Array(
            ("POST http://Example.org:8080/a?b HTTP/1.1\r\nHost: x\r\nproxy-authorization: \(basic)\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n").utf8),
        Array(
            ("PUT http://192.0.2.1/ HTTP/1.0\r\nProxy-Authorization: \(basic)\r\nContent-Length: 4\r\n"
                + "Connection: close, x-a\r\nX-A: 1\r\n\r\nabcd").utf8),
        socks([5, 1, 0, 3, 11] + Array("example.org".utf8) + [0x01, 0xBB]),
        socks([5, 1, 0, 1, 192, 0, 2, 1, 0, 80]),
        socks([5, 1, 0, 4, 0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 80]),
    ]
}
