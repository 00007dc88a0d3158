internal import Core
internal import Synchronization
internal import Transport

/// What a server speaks that never gave an answer: with TLS taken for none, or none for TLS, most hang up without a word.
final class Greeting: Sendable {
    enum Speech: Sendable {
        case plain, tls
    }

    private struct State {
        /// It has answered, or was asked already.
        var isKnown = false
        /// What was found, until it answers.
        var found: Speech?
    }

    private let state = Mutex(State())
    /// The question is small, and so is what may be waited for its answer.
    private static let limits = Limits(
        connect: .seconds(10), sendingStall: .seconds(10), replyWait: .seconds(10), whole: .seconds(15))

    /// An answer came that can be read.
    func heard() { state.withLock { $0 = State(isKnown: true) } }

    /// What the server speaks, where that is something else than its address says, and explains why a request failed. Asks it once, with
    /// nothing of the person's in the question.
    func mistaken(_ error: TransportError, _ request: Request, over transport: any Transporting) async -> Speech? {
        let address = WebAddress(request.url)
        guard let wanted = Self.wanted(address, error), let authority = address.authority else { return nil }
        if error.kind == .notTLS {
            state.withLock { $0.found = .plain }
            return .plain
        }
        let isKnown = state.withLock { state in
            defer { state.isKnown = true }
            return state.isKnown
        }
        if isKnown { return state.withLock { $0.found == wanted ? wanted : nil } }
        guard await Self.speaks(wanted, authority, over: transport) else { return nil }
        state.withLock { $0.found = wanted }
        return wanted
    }

    /// What it would have to speak to fail so.
    private static func wanted(_ address: WebAddress, _ error: TransportError) -> Speech? {
        switch address.scheme {
        case "http" where error.kind == .reset: .tls
        case "https" where error.kind == .notTLS || error.isOfHandshake: .plain
        default: nil
        }
    }

    private static func speaks(_ speech: Speech, _ authority: String, over transport: any Transporting) async -> Bool {
        var question = Request("HEAD", "\(speech == .tls ? "https" : "http")://\(authority)/", limits: limits)
        // Whose certificate it is does not matter: that there is one does.
        question.verifiesTLS = false
        do throws(TransportError) {
            _ = try await transport.send(question)
            return true
        } catch {
            // There was a handshake, and then no answer; or it wants a certificate of ours, or another version.
            return speech == .tls && (error.kind == .timedOut || error.kind == .tls && error.detail.contains("alert"))
        }
    }

    static func isPlain(_ url: String) -> Bool { WebAddress(url).scheme == "http" }

    /// What servers say in the body of a 400 when a plain request comes to a port of TLS: nginx, Apache, Go.
    static func refusesPlain(_ body: [UInt8]) -> Bool {
        let text = String(decoding: body.prefix(4096), as: UTF8.self)
        return [
            "plain HTTP request was sent to HTTPS port", "speaking plain HTTP to an SSL-enabled",
            "HTTP request to an HTTPS server",
        ].contains { text.contains($0) }
    }
}
