import Core
import Credentials
import Destinations
import Linux
import Synchronization
import TestKit
import Testing
import Transport

/// A whole upload over a real socket to a server with damaged answers: it ends, it trusts only real answers, and
/// requests go to one server alone.
@Suite("Fuzz: answers of a tus server", .timeLimit(.minutes(Fuzz.minutes)))
struct ReplyFuzzTests {
    static let canary = "Zq7canaryX9k2"
    static let size = 1000

    static let replies = [
        "HTTP/1.1 204 No Content\r\nTus-Resumable: 1.0.0\r\nTus-Version: 1.0.0,0.2.2\r\nTus-Extension: creation,"
            + "termination,checksum\r\nTus-Max-Size: 4096\r\nTus-Checksum-Algorithm: sha1,sha256\r\n\r\n",
        "HTTP/1.1 201 Created\r\nLocation: /u\r\nTus-Resumable: 1.0.0\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nUpload-Offset: 400\r\nUpload-Length: 1000\r\nTus-Resumable: 1.0.0\r\nCache-Control: no-store\r\n"
            + "Upload-Metadata: filename YS5tcDQ=,sha256 MDEwMjAz\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nUpload-Offset: 1000\r\nTus-Resumable: 1.0.0\r\n"
            + "Upload-Expires: Wed, 25 Jun 2036 16:00:00 GMT\r\n\r\n",
        "HTTP/1.1 308 Permanent Redirect\r\nLocation: /u\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 503 Busy\r\nRetry-After: Wed, 25 Jun 2036 16:00:00 GMT\r\nDate: Wed, 25 Jun 2036 15:00:00 GMT\r\n"
            + "Content-Type: text/plain\r\nContent-Length: 22\r\n\r\nERR_UPLOAD_LOCKED: x y",
        "HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer\r\nContent-Length: 40\r\n\r\nthe token Zq7canaryX9k2 is not for you!!",
        "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\nContent-Type: text/html\r\n\r\n5\r\n<html\r\n0\r\n\r\n",
    ]

    static let words = [
        "\r\n", "\n", "\r\n\r\n", "\r", " ", "\t", "\0", ":", ",", "\u{1B}[2J", "\u{202E}", "\u{301}", "é",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 103 Early\r\nLocation: /x\r\n\r\n", "HTTP/1.1 200 OK\r\n", "HTTP/0.9 200\r\n", "HTTP/2 200\r\n",
        "HTTP/9.9 999 x\r\n",
        "HTTP/1.1 -1 x\r\n", "HTTP/1.1 000 x\r\n", "ICY 200 OK\r\n", "100", "204", "301", "307", "308", "409", "410",
        "413", "415",
        "423", "429", "460", "500", "Content-Length: 5\r\n", "Content-Length: -1\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip, chunked\r\n", "Content-Encoding: gzip\r\n",
        "\u{1F}\u{8B}\u{8}",
        "FFFFFFFFFFFFFFFF\r\n", "-5\r\n", "5;x=y\r\n", "Connection: close\r\n", "Upload-Offset: 0\r\n",
        "Upload-Offset: 1\r\n",
        "Upload-Offset: 400\r\n", "Upload-Offset: 999\r\n", "Upload-Offset: 1000\r\n", "Upload-Offset: 1001\r\n",
        "Upload-Offset: 1e3\r\n",
        "Upload-Offset:+1000\r\n", "Upload-Offset: 1000, 1000\r\n", "Upload-Offset: 01000\r\n",
        "Upload-Offset: 9223372036854775807\r\n",
        "Upload-Length: 1001\r\n", "Upload-Length: -1\r\n", "Retry-After: -1\r\n", "Retry-After: 1e99\r\n",
        "Retry-After: 9223372036854775807\r\n", "Retry-After: Thu, 01 Jan 1970 00:00:00 GMT\r\n",
        "Retry-After: Fri, 31 Dec 9999 23:59:60 GMT\r\n",
        "Location: \r\n", "Location: //\r\n", "Location: ?\r\n", "Location: ../../..\r\n",
        "Location: file:///etc/passwd\r\n",
        "Location: http://localhost:HOME/u\r\n", "Location: http://127.0.0.1:AWAY/u\r\n",
        "Location: //127.0.0.1:AWAY/u\r\n",
        "Location: http://a:b@127.0.0.1:HOME/u\r\n", "Location: http://127.0.0.1:HOME@127.0.0.1:AWAY/u\r\n",
        "Location: http://127.0.0.1:HOME\\@127.0.0.1:AWAY/u\r\n",
        "Location: http://127.0.0.1:AWAY#@127.0.0.1:HOME/u\r\n",
        "Location: http://[::1]:AWAY/u\r\n", "Location: ftp://127.0.0.1:AWAY/u\r\n",
        "Location: https://127.0.0.1:HOME/u\r\n",
        "Location: /u?token=Zq7canaryX9k2\r\n", "Set-Cookie: a=b\r\n", "X: \(String(repeating: "x", count: 2000))\r\n",
        "ERR_UPLOAD_NOT_FOUND", "Zq7canaryX9k2", "Authorization: Bearer Zq7canaryX9k2",
    ]

    @Test("an upload ends, and completes only when the server said so; no request goes elsewhere, no token is shown")
    func uploads() async throws {
        let away = try DamagingTusServer()
        let home = try DamagingTusServer(away: away.port)
        let mutator = home.mutator(Self.replies, Self.words)
        let transport = Transport()
        let fuzz = Fuzz("tus replies", rounds: 100, share: 20)
        var (completed, failed) = (0, 0)
        try await fuzz.each(mutator) { round in
            home.begin(round, mutator)
            let journey = try UploadScenario(
                home.url + "/files", size: Self.size, chunk: 400, values: Self.values(&round.dice), transport: transport
            )
            // As often as the daemon might try within the minute, but without its waits.
            for _ in 0..<3 {
                home.beginAttempt()
                do {
                    let object = try await journey.attempt()
                    completed += 1
                    try round.expect(home.hasConfirmed, "the upload completed after the answers:\n\(home.lies)")
                    try round.expect(
                        home.held.count != Self.size || home.held == journey.content, "the server has other content"
                    )
                    try round.expect(Self.isClean("\(object)"), "\(object)")
                    break
                } catch let error as UploadError {
                    failed += 1
                    try Self.check(error, round)
                }
                try round.expect(home.requests < 100, "\(home.requests) requests in one attempt")
                // The file, its repeats after each lost answer, and both renewals.
                try round.expect(home.received < 40 * Self.size, "\(home.received) bytes for \(Self.size)")
            }
            let check = await journey.destination.check()
            try round.expect(Self.isClean(check.detail), "check says \(printable(check.detail))")
            for line in journey.said.lines.withLock({ $0 }) { try round.expect(Self.isClean(line), "logs \(line)") }
            try round.expect(away.leaked == nil, "a request went elsewhere: \(away.leaked ?? "")")
            try round.expect(home.leaked == nil, "a request went to another name: \(home.leaked ?? "")")
        }
        await transport.stop()
        if fuzz.rounds >= 100 { #expect(completed > 0 && failed > 0) }
    }

    private static func values(_ dice: inout Dice) -> [String: SettingValue] {
        var values: [String: SettingValue] = ["token": .secret(.literal(canary))]
        values["http.headers"] = .map(["X-Key": .literal(canary)])
        values["checksum"] = .text(["none", "sha1", "sha256"].randomElement(using: &dice) ?? "none")
        values["gone"] = .text(["reupload", "hold"].randomElement(using: &dice) ?? "hold")
        // No server here is silent on purpose; one that is silent by accident must not cost the test a minute.
        values["stall_timeout"] = .duration(.seconds(5))
        values["reply_timeout"] = .duration(.seconds(5))
        return values
    }

    private static func check(_ error: UploadError, _ round: Fuzz.Round) throws {
        let message = error.failure.message
        try round.expect(isClean(message), "the message shows a secret or control characters: \(printable(message))")
        try round.expect(message.utf8.count < 1500, "\(message.utf8.count) bytes of message")
        try round.expect(message.split(separator: " ").count > 3, "the message is too short: \(message)")
        let code = error.failure.code.rawValue
        try round.expect(!code.isEmpty && code.allSatisfy(\.isASCII), code)
        switch error.remedy {
        case .outOfSpace(let wait):
            try round.expect(
                wait ?? .seconds(1) >= .seconds(1) && wait ?? .seconds(1) <= .seconds(7 * 86_400),
                "waits \(wait as Any)")
        case .pending(let wait), .lackQuota(let wait):
            throw round.flaw("waits \(wait) for a server that has nothing to do: \(message)")
        case .retry(let wait), .refused(let wait), .holdDestination(let wait), .rateLimit(let wait):
            try round.expect(
                wait ?? .seconds(1) >= .seconds(1) && wait ?? .seconds(1) <= .seconds(3600), "waits \(wait as Any)")
        case .restage: throw round.flaw("stages again because of a server: \(message)")
        case .authenticate, .misconfigured, .failUpload: break
        }
    }

    private static func isClean(_ text: String) -> Bool { !occurs(canary, in: text) && printable(text) == text }
}

/// A tus server that answers correctly half of the time, and with a damaged reply otherwise.
private final class DamagingTusServer: Sendable {
    private struct State {
        var dice = Dice(seed: 0)
        /// `nil` for a server that must not be asked: it closes.
        var mutator: Mutator?
        var next: [UInt8]?
        var lies: [UInt8] = []
        var requests = 0
        var received = 0
        var heldAll = false
        var leaked: String?
    }

    private final class Shared: Sendable {
        let state = Mutex(State())
        let script = ScriptedTusServer()
        /// The only `Host` that requests may have.
        let home = Mutex("")
    }

    private let shared: Shared
    private let server: FakeServer
    let port: Int
    private let away: Int
    var url: String { server.url }

    /// - Parameter away: The port of the other server, to which no request may go; without it this is that server.
    init(away: Int? = nil) throws {
        let shared = Shared()
        self.shared = shared
        server = try FakeServer { exchange in Self.serve(exchange, shared) }
        let port = server.port
        self.port = port
        self.away = away ?? port
        if away != nil { shared.home.withLock { $0 = "127.0.0.1:\(port)" } }
    }

    func mutator(_ replies: [String], _ words: [String]) -> Mutator {
        func here(_ text: String) -> String {
            text.replacing("HOME", with: "\(port)").replacing("AWAY", with: "\(away)")
        }
        return Mutator(replies.map { Array(here($0).utf8) }, words: words.map(here), limit: 16 << 10)
    }

    func begin(_ round: Fuzz.Round, _ mutator: Mutator) {
        shared.script.state.withLock { $0 = ScriptedTusServer.State() }
        shared.state.withLock { $0 = State(dice: round.dice, mutator: mutator, next: round.input, leaked: $0.leaked) }
    }

    func beginAttempt() {
        shared.state.withLock { state in
            state.requests = 0
            state.received = 0
        }
    }

    var requests: Int { shared.state.withLock(\.requests) }
    var received: Int { shared.state.withLock(\.received) }
    var leaked: String? { shared.state.withLock(\.leaked) }
    var lies: String { escaped(shared.state.withLock(\.lies)) }
    /// The content that the correct half holds.
    var held: [UInt8] { shared.script.held }

    /// Whether the server has held all of the file in this round, or claimed so in any reply.
    var hasConfirmed: Bool {
        let (lies, heldAll) = shared.state.withLock { ($0.lies, $0.heldAll) }
        if heldAll { return true }
        // Line ends of either kind, like in libcurl.
        return String(decoding: lies, as: UTF8.self).lowercased().split(whereSeparator: \.isNewline).contains { line in
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, parts[0].hasSuffix("upload-offset") else { return false }
            return parts[1].filter { !$0.isWhitespace }.drop { $0 == "0" } == "\(ReplyFuzzTests.size)"
        }
    }

    private static func serve(_ exchange: Exchange, _ shared: Shared) {
        let home = shared.home.withLock { $0 }
        let host = exchange.header("host") ?? ""
        let lie: (reply: [UInt8], after: Int)? = shared.state.withLock { state in
            state.requests += 1
            if host != home { state.leaked = "\(exchange.method) \(exchange.target) at \(host)" }
            guard let mutator = state.mutator else { return ([], 0) }
            if Bool.random(using: &state.dice) { return nil }
            let reply = state.next ?? mutator.text(&state.dice)
            state.next = nil
            state.lies += reply + [UInt8(ascii: "\n")]
            return (reply, Int.random(in: 0...2 * ReplyFuzzTests.size, using: &state.dice))
        }
        guard let lie else {
            shared.script.serve(exchange)
            let count = shared.script.held.count
            shared.state.withLock { $0.heldAll = $0.heldAll || count == ReplyFuzzTests.size }
            return
        }
        let body = exchange.body(lie.after)
        shared.state.withLock { $0.received += body.count }
        exchange.answer(lie.reply)
        // A reply that promises more bytes ends here, and not after a minute.
        exchange.cut()
    }
}
