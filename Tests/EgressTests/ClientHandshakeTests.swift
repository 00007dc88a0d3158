import Core
import TestKit
import TestTraits
import Testing

@testable import Egress

@Suite("What a program says to the proxy", .ownThreads, .timeLimit(.minutes(Fuzz.minutes)))
struct ClientHandshakeTests {
    private typealias Scene = HandshakeScene

    private func asked(_ steps: [ClientHandshake.Step]) -> ClientHandshake.Request? {
        if case .request(let request)? = steps.last { request } else { nil }
    }

    private func refusal(_ steps: [ClientHandshake.Step]) -> EgressRefusal? {
        if case .refuse(let refusal, _)? = steps.last { refusal } else { nil }
    }

    @Test("CONNECT opens a tunnel to the named server, and bytes after its head are for the server")
    func connect() throws {
        var steps = Scene.steps(Scene.good[0] + [1, 2, 3])
        let tunnel = try #require(asked(steps))
        #expect(tunnel.target.description == "example.org:443")
        #expect(tunnel.lease == 7 && tunnel.dialect == .connect && tunnel.forwarded == [1, 2, 3])
        #expect(tunnel.body == .unlimited)
        steps = Scene.steps(
            "CONNECT [::ffff:192.0.2.1]:443 HTTP/1.0", "Proxy-Authorization: \(Scene.basic)", "")
        #expect(asked(steps)?.target.description == "192.0.2.1:443")
    }

    @Test("a request with an absolute address reaches the server without credentials and fields of the connection")
    func absolute() throws {
        let steps = Scene.steps(
            "GET http://Example.ORG?q=1 HTTP/1.1", "Host: other.example", "Proxy-Authorization: \(Scene.basic)",
            "Proxy-Connection: keep-alive", "Connection: X-Hop", "X-Hop: 1", "TE: trailers", "Upgrade: h2c",
            "Keep-Alive: 5", "Accept: a, b", "")
        let request = try #require(asked(steps))
        #expect(
            String(decoding: request.forwarded, as: UTF8.self)
                == "GET /?q=1 HTTP/1.1\r\nHost: example.org\r\nAccept: a, b\r\nVia: 1.1 sluice\r\nConnection: close\r\n\r\n"
        )
        #expect(request.target.description == "example.org:80" && request.dialect == .forward && request.body.isOver)
    }

    @Test("only the body of the one request is forwarded: bytes after it are dropped")
    func oneRequest() throws {
        let second = Array("GET http://other.example/ HTTP/1.1\r\nProxy-Authorization: x\r\n\r\n".utf8)
        for number in [1, 2] {
            let request = try #require(asked(Scene.steps(Scene.good[number] + second)))
            #expect(request.body.isOver)
            #expect(request.forwarded.firstRange(of: Array("other.example".utf8)) == nil)
        }
    }

    @Test(
        "SOCKS 5 takes names and addresses, with a user and password",
        arguments: [(3, "example.org:443"), (4, "192.0.2.1:80"), (5, "[2001:db8::1]:80")])
    func socks(_ number: Int, _ target: String) throws {
        let steps = Scene.steps(Scene.good[number] + [9])
        #expect(steps.dropLast() == [.reply([5, 2]), .reply([1, 0])])
        let request = try #require(asked(steps))
        #expect(request.target.description == target && request.dialect == .socks && request.forwarded == [9])
    }

    @Test("missing and wrong credentials are refused in each protocol")
    func unauthorized() {
        let wrong = "Basic dXNlcjp3b3Jr"
        for header in [
            "X: y", "Proxy-Authorization: \(wrong)", "Authorization: \(Scene.basic)", "Proxy-Authorization: Bearer x",
            "Proxy-Authorization: Basic ===",
            "Proxy-Authorization: \(Scene.basic)\r\nProxy-Authorization: \(Scene.basic)",
        ] {
            for line in ["CONNECT example.org:443 HTTP/1.1", "GET http://example.org/ HTTP/1.1"] {
                let steps = Scene.steps(line, header, "")
                #expect(refusal(steps) == .unauthorized, "\(header)")
                guard case .refuse(_, let answer)? = steps.last else { continue }
                #expect(String(decoding: answer, as: UTF8.self).hasPrefix("HTTP/1.1 407 "))
            }
        }
        #expect(Scene.steps([5, 1, 0]) == [.refuse(.unauthorized, [5, 0xFF])])
        #expect(Scene.steps([5, 0]) == [.refuse(.unauthorized, [5, 0xFF])])
        #expect(
            Scene.steps([5, 1, 2, 1, 4] + Array("user".utf8) + [4] + Array("worm".utf8))
                == [.reply([5, 2]), .refuse(.unauthorized, [1, 1])])
        #expect(Scene.steps([5, 1, 2, 1, 0, 0]).last == .refuse(.unauthorized, [1, 1]))
    }

    @Test(
        "requests that two programs may read differently are refused",
        arguments: [
            "CONNECT example.org HTTP/1.1", "CONNECT example.org:0 HTTP/1.1", "CONNECT example.org:65536 HTTP/1.1",
            "CONNECT u@example.org:443 HTTP/1.1", "CONNECT /a HTTP/1.1", "CONNECT  example.org:443 HTTP/1.1",
            "GET / HTTP/1.1", "GET https://example.org/ HTTP/1.1", "GET ftp://example.org/ HTTP/1.1",
            "GET http:///a HTTP/1.1", "GET http://u:p@example.org/ HTTP/1.1", "GET http://example.org/#a HTTP/1.1",
            "GET http://127.1/ HTTP/1.1", "GET http://0x7f.1/ HTTP/1.1", "GET http://2130706433/ HTTP/1.1",
            "GET http://exa_mple.org:80:80/ HTTP/1.1", "GET http://[::1/ HTTP/1.1",
            "GET http://[fe80::1%25eth0]/ HTTP/1.1",
            "GET http://a..b/ HTTP/1.1", "G@T http://example.org/ HTTP/1.1", "GET http://example.org/ HTTP/1.1 ",
            "GET http://example.org/\u{1} HTTP/1.1", "GET http://exämple.org/ HTTP/1.1",
        ])
    func malformed(_ line: String) {
        let steps = Scene.steps(line, "Proxy-Authorization: \(Scene.basic)", "")
        guard case .malformed? = refusal(steps) else {
            Issue.record("\(steps)")
            return
        }
    }

    @Test(
        "heads that hide another request are refused",
        arguments: [
            "Content-Length: 1\r\nContent-Length: 1", "Content-Length: +1", "Content-Length: 1, 1",
            "Content-Length: 99999999999999999999", "Transfer-Encoding: chunked\r\nContent-Length: 1",
            "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Connection: Content-Length\r\nContent-Length: 1", " folded: 1", "Na me: 1", "Name : 1", "X: a\nY: b",
            "X: a\rY: b",
            "X: \u{0}", "no colon",
        ])
    func hidden(_ header: String) {
        let steps = Scene.steps(
            "POST http://example.org/ HTTP/1.1", "Proxy-Authorization: \(Scene.basic)", header, "")
        guard case .malformed? = refusal(steps) else {
            Issue.record("\(steps)")
            return
        }
    }

    @Test("other commands, versions and kinds of addresses are not supported")
    func unsupported() {
        func last(_ command: [UInt8]) -> ClientHandshake.Step? { Scene.steps(Scene.socks(command)).last }
        func reply(_ code: UInt8) -> [UInt8] { [5, code, 0, 1, 0, 0, 0, 0, 0, 0] }
        for command: UInt8 in [2, 3] {
            guard case .refuse(.unsupported, let answer)? = last([5, command, 0, 1, 192, 0, 2, 1, 0, 80]) else {
                Issue.record("command \(command)")
                continue
            }
            #expect(answer == reply(7))
        }
        guard case .refuse(.unsupported, let answer)? = last([5, 1, 0, 2, 0]) else { return #expect(Bool(false)) }
        #expect(answer == reply(8))
        #expect(refusal(Scene.steps("CONNECT example.org:443 HTTP/2.0", "")) == .unsupported("this version of HTTP"))
    }

    @Test("a head without end is refused at its limit")
    func endless() {
        var handshake = ClientHandshake()
        var steps: [ClientHandshake.Step] = []
        var count = 0
        while steps.isEmpty, count < 1 << 20 {
            steps = handshake.receive(
                Array("GET http://example.org/ HTTP/1.1\r\nX: ".utf8)[...], authenticate: Scene.isKnown)
            count += 38
        }
        #expect(refusal(steps) == .tooLong)
        #expect(count < HTTPProxyHead.limit + 500)
    }

    @Test("damaged handshakes, cut anywhere, never trap, and mean the same however they are cut")
    func hostile() throws {
        let mutator = Mutator(
            Scene.good,
            words: [
                "CONNECT ", "http://", ":80", "\r\n", "\r\n\r\n", "Content-Length: 5", "\u{5}\u{1}\u{2}", "chunked",
            ],
            limit: 20 << 10)
        try Fuzz("egress-handshake", rounds: 3_000).each(mutator) { round in
            let whole = Scene.steps(round.input)
            var pieces: [ArraySlice<UInt8>] = []
            var start = 0
            while start < round.input.count {
                let end = min(round.input.count, start + Int.random(in: 1...9, using: &round.dice))
                pieces.append(round.input[start..<end])
                start = end
            }
            let cut = Scene.steps(pieces)
            // Bytes that come after the request are no part of the handshake: only those that came with it are.
            try round.expect(
                cut.map(Self.withoutBody) == whole.map(Self.withoutBody), "\(cut) differs from \(whole)")
            let ends = whole.filter { if case .reply = $0 { false } else { true } }
            try round.expect(ends.count <= 1, "it has ended more than once")
            if case .request(let request)? = whole.last {
                try round.expect(request.lease == 7, "the lease is not the one of the login")
                try round.expect(
                    request.forwarded.firstRange(of: Array("proxy-authorization".utf8)) == nil
                        || request.dialect != .forward
                        || !request.forwarded.starts(with: Array("GET".utf8)), "a login was forwarded")
            }
        }
    }

    private static func withoutBody(_ step: ClientHandshake.Step) -> String {
        switch step {
        case .reply(let bytes): "reply \(bytes)"
        case .refuse(.malformed, _): "malformed"
        case .refuse(let refusal, _): "\(refusal)"
        case .request(let request): "\(request.target) \(request.lease) \(request.dialect)"
        }
    }
}
