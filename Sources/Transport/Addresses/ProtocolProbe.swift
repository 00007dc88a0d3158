package import Core
internal import Synchronization

/// Finds out the protocol of a server that never gave an answer: when TLS is sent to a plain server, or the reverse,
/// most servers close without a message.
package final class ProtocolProbe: Sendable {
    package enum WireProtocol: Sendable {
        case plain, tls

        /// The mistake in an address whose server speaks this protocol, for people.
        ///
        /// - Parameter detail: The error of the connection, where there was one.
        package func mistake(_ detail: String?) -> String {
            switch self {
            case .tls: "the server speaks TLS there, and its address begins with `http://`: write `https://`"
            case .plain:
                "the server does not speak TLS there, which `https://` asks for: if it has none, its address begins "
                    + "with `http://`, and everything goes there unencrypted" + (detail.map { " (\($0))" } ?? "")
            }
        }

        /// The code of that mistake.
        package var code: Failure.Code {
            switch self {
            case .tls: .onlyTLS
            case .plain: .noTLS
            }
        }
    }

    private struct State {
        /// The server has answered, or was probed already.
        var isKnown = false
        /// The protocol that was found, until the server answers.
        var found: WireProtocol?
    }

    private let state = Mutex(State())
    /// The question is small, and so is the wait for its answer.
    private static let limits = Limits(
        connect: .seconds(10), sendingStall: .seconds(10), replyWait: .seconds(10), whole: .seconds(15))

    package init() {}

    /// Records that a readable answer came.
    package func recordAnswer() { state.withLock { $0 = State(isKnown: true) } }

    /// The protocol of the server, where it differs from its address and explains why a request failed. Asks the server
    /// once, with no data of the person in the question.
    package func protocolMismatch(
        _ error: TransportError, _ request: Request, over transport: PermittedTransport, with permit: any RequestPermit
    ) async -> WireProtocol? {
        let address = WebAddress(request.url)
        guard let wanted = Self.wanted(address, error), let authority = address.authority else { return nil }
        if error.kind == .notTLS {
            state.withLock { $0.found = .plain }
            return .plain
        }
        // A proxy would read an unencrypted question, and might answer it itself.
        if wanted == .plain, error.proxy != nil { return state.withLock { $0.found == .plain ? .plain : nil } }
        let isKnown = state.withLock { state in
            defer { state.isKnown = true }
            return state.isKnown
        }
        if isKnown { return state.withLock { $0.found == wanted ? wanted : nil } }
        guard await Self.speaks(wanted, authority, like: request, over: transport, with: permit) else { return nil }
        state.withLock { $0.found = wanted }
        return wanted
    }

    /// The protocol that the server would have to speak to fail in this way.
    private static func wanted(_ address: WebAddress, _ error: TransportError) -> WireProtocol? {
        switch address.scheme {
        case "http" where error.kind == .reset: .tls
        case "https" where error.kind == .notTLS || error.isOfHandshake: .plain
        default: nil
        }
    }

    private static func speaks(
        _ speech: WireProtocol, _ authority: String, like request: Request, over transport: PermittedTransport,
        with permit: any RequestPermit
    ) async -> Bool {
        var question = Request("HEAD", "\(speech == .tls ? "https" : "http")://\(authority)/", limits: limits)
        // Any certificate is enough: only its existence matters. So any server may answer, and is shown none.
        (question.verifiesTLS, question.showsIdentity) = (false, false)
        question.conceal = request.conceal
        do throws(TransportError) {
            _ = try await transport.send(question, with: permit)
            return true
        } catch {
            // There was a handshake, and then no answer; or the server requires a client certificate, or another
            // version.
            return speech == .tls
                && ([.timedOut, .clientCertificate].contains(error.kind)
                    || error.kind == .tls && error.detail.contains("alert"))
        }
    }

    /// Whether a server has answered 400 to a plain request because it requires TLS. The answer to HEAD has no body
    /// that says so; then the server is asked for the text, unless it has answered before, with no data of the person in the
    /// question.
    package func requiresTLS(
        _ answer: Response, _ request: Request, over transport: PermittedTransport, with permit: any RequestPermit
    ) async -> Bool {
        let address = WebAddress(request.url)
        guard address.scheme == "http", let authority = address.authority else { return false }
        var isRefused = Self.refusesPlain(answer.body)
        if !isRefused, request.method == "HEAD" {
            let known = state.withLock { $0 }
            isRefused = known.found == .tls
            // Uploads that get this answer side by side each ask: none of them may blame the key.
            if !known.isKnown {
                var question = Self.textQuestion("http://\(authority)/")
                question.conceal = request.conceal
                do throws(TransportError) {
                    let text = try await transport.send(question, with: permit)
                    isRefused = text.status == 400 && Self.refusesPlain(text.body)
                } catch {
                    // No answer explains nothing: the 400 counts as it is.
                    isRefused = false
                }
            }
        }
        if isRefused { state.withLock { $0 = State(isKnown: true, found: .tls) } }
        return isRefused
    }

    /// Whether a server has answered because it wants another client certificate, or one at all: nginx answers 400, and
    /// says so in the text. The answer to HEAD has none; then the server is asked for the text.
    package func requiresCertificate(
        _ answer: Response, _ request: Request, over transport: PermittedTransport, with permit: any RequestPermit
    ) async -> Bool {
        let address = WebAddress(request.url)
        guard answer.status == 400, address.scheme == "https", let authority = address.authority else { return false }
        if Self.refusesCertificate(answer.body) { return true }
        guard request.method == "HEAD" else { return false }
        var question = Self.textQuestion("https://\(authority)/")
        (question.caFile, question.showsIdentity, question.conceal) =
            (request.caFile, request.showsIdentity, request.conceal)
        do throws(TransportError) {
            let text = try await transport.send(question, with: permit)
            return text.status == 400 && Self.refusesCertificate(text.body)
        } catch {
            // No answer explains nothing: the 400 counts as it is.
            return false
        }
    }

    /// A question for the text of a refusal, which is short.
    private static func textQuestion(_ url: String) -> Request {
        var question = Request("GET", url, limits: limits, answerLimit: 16 << 10)
        question.needsStatusOnly = true
        return question
    }

    private static func refusesCertificate(_ body: [UInt8]) -> Bool {
        let text = String(decoding: body.prefix(4096), as: UTF8.self)
        return text.contains("No required SSL certificate was sent") || text.contains("The SSL certificate error")
    }

    /// Texts of servers in the body of a 400 when a plain request comes to a TLS port: nginx, Apache, Go.
    private static func refusesPlain(_ body: [UInt8]) -> Bool {
        let text = String(decoding: body.prefix(4096), as: UTF8.self)
        return [
            "plain HTTP request was sent to HTTPS port", "speaking plain HTTP to an SSL-enabled",
            "HTTP request to an HTTPS server",
        ].contains { text.contains($0) }
    }
}
