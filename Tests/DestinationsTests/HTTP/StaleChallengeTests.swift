import Core
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// Digest authorisation at servers whose nonces get too old (RFC 7616, section 3.3).
@Suite("Outdated challenges", .timeLimit(.minutes(Patience.minutes(1))))
struct StaleChallengeTests {
    /// What a server of these tests knows.
    private final class Book: Sendable {
        struct State {
            var nonce = 0
            /// How many requests with bytes it refuses for their nonces, whatever these are.
            var refusals: Int
            var offset = 0
        }

        let state: Mutex<State>

        init(refusals: Int) { state = Mutex(State(refusals: refusals)) }

        var offset: Int { state.withLock { $0.offset } }

        /// - Parameter word: How it says that a nonce is too old.
        /// - Returns: The headers of a 401; `nil` for a request that is authorised.
        func challenge(_ authorization: String, isForBytes: Bool, _ word: String) -> [(String, String)]? {
            state.withLock { state in
                let isKnown = authorization.contains("nonce=\"n\(state.nonce)\"")
                if isKnown, !isForBytes || state.refusals == 0 { return nil }
                if isKnown { state.refusals -= 1 }
                state.nonce += 1
                let challenge = "Digest realm=\"nas\", nonce=\"n\(state.nonce)\", qop=\"auth\", algorithm=SHA-256"
                return [("WWW-Authenticate", challenge + (authorization.isEmpty ? "" : ", \(word)"))]
            }
        }
    }

    private static let size = 1000

    /// A server for tus, its successor, and forms.
    private func server(_ book: Book, _ word: String = "stale=true") throws -> FakeServer {
        try FakeServer { exchange in
            let count = exchange.body().count
            let isForBytes = exchange.method == "PATCH" || exchange.method == "POST" && count > 0
            let given = exchange.header("authorization") ?? ""
            if let challenge = book.challenge(given, isForBytes: isForBytes, word) {
                return exchange.reply(401, challenge)
            }
            let spoken = [("Tus-Resumable", "1.0.0"), ("Upload-Draft-Interop-Version", "8")]
            switch exchange.method {
            case "OPTIONS":
                exchange.reply(
                    204, [("Tus-Version", "1.0.0"), ("Tus-Extension", "creation"), ("Upload-Limit", "min-size=0")])
            case "POST" where isForBytes: exchange.reply(200, [], "{}")
            case "POST": exchange.reply(201, spoken + [("Location", "/files/1"), ("Upload-Complete", "?0")])
            default:
                let offset = book.state.withLock { state in
                    state.offset += count
                    return state.offset
                }
                exchange.reply(
                    exchange.method == "HEAD" ? 200 : 204,
                    spoken + [
                        ("Upload-Offset", "\(offset)"), ("Upload-Length", "\(Self.size)"),
                        ("Upload-Complete", offset == Self.size ? "?1" : "?0"),
                    ])
            }
        }
    }

    private func scenario(_ server: FakeServer, _ type: String) throws -> UploadScenario {
        var values: [String: SettingValue] = [
            "http.auth": .text("digest"), "http.user": .text("me"),
            "http.password": .secret(.literal("password-of-it")),
        ]
        if type == "chunked-form" { values["preset"] = .text("dropzone") }
        return try UploadScenario(server.url + "/files", size: Self.size, values: values, type: type)
    }

    @Test(
        "a server that refuses the nonce of the only request with bytes gets it again with the new one, after a question",
        arguments: ["tus", "resumable-http"],
        ["stale=true", "stale=TRUE", "Stale=\"true\"", "STALE=\"True\"", "stale = true"])
    func once(_ type: String, _ word: String) async throws {
        let book = Book(refusals: 1)
        let server = try server(book, word)
        _ = try await scenario(server, type).attempt()
        #expect(book.offset == Self.size)
        let verbs = verbs(server)
        #expect(verbs.filter { $0 == "PATCH" }.count == 2, "\(verbs)")
        let first = try #require(verbs.firstIndex(of: "PATCH"))
        #expect(verbs[verbs.index(after: first)] == "HEAD", "\(verbs)")
    }

    @Test(
        "a server that refuses each nonce never makes the credentials wrong, and is tried less and less often",
        arguments: ["tus", "resumable-http"])
    func always(_ type: String) async throws {
        let server = try server(Book(refusals: .max))
        let scenario = try scenario(server, type)
        var errors: [UploadError] = []
        for _ in 0..<5 { errors.append(try await scenario.failedAttempt()) }
        for error in errors {
            #expect(error.remedy.endsOnlyAttempt && error.failure.retryable, "\(error)")
            #expect(error.failure.message.contains("the user and the password are not refused"), "\(error)")
        }
        #expect(errors.first?.remedy == .retry(after: .zero))
        guard case .retry(let wait?)? = errors.last?.remedy else {
            Issue.record("\(errors)")
            return
        }
        #expect(wait >= .seconds(10), "\(wait)")
    }

    @Test("a block whose nonce is refused ends the attempt alone, and the next one sends it")
    func form() async throws {
        let server = try server(Book(refusals: 1))
        let scenario = try scenario(server, "chunked-form")
        let error = try await scenario.failedAttempt()
        #expect(error.remedy == .retry(after: .zero) && error.failure.code == .http(401), "\(error)")
        _ = try await scenario.attempt()
    }

    @Test("a 401 without `stale` to an answered challenge refuses the credentials, also in a list of challenges")
    func wrong() {
        func says(_ lines: String...) -> Bool {
            DigestChallenge.saysStale(Headers(lines.map { ("WWW-Authenticate", $0) }))
        }
        let plain = "Digest realm=\"a\", nonce=\"b\", qop=\"auth\""
        #expect(!says(plain) && !says(plain + ", stale=false") && !says(plain + ", stale=\"no\""))
        #expect(!says("Basic realm=\"stale=true\"", plain))
        #expect(says(plain, plain + ", algorithm=SHA-256, stale=true"))
        #expect(says("Basic realm=\"x\", " + plain + ", stale=\"TRUE\", Negotiate"))
    }
}
