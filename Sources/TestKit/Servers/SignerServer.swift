internal import Core
internal import FoundationEssentials
package import Synchronization

/// A service that signs for a bucket at ``S3Emulator``, with faults on demand. Its signatures are numbers that it
/// stores.
package final class SignerServer: Sendable {
    /// A request that it was asked to sign.
    package struct Wanted: Codable, Sendable {
        package var operation: String
        package var method: String
        package var key: String?
        package var query: [String: String]
        package var headers: [String: String]
        package var size: Int
    }

    package struct Question: Codable, Sendable {
        package var version: Int
        package var destination: String
        package var bucket: String
        package var endpoint: String
        package var requests: [Wanted]
    }

    private struct Answer: Encodable {
        struct Signed: Encodable {
            var url: String?
            var headers: [String: String]?
            var expires: Int?
            var error: String?
            var final: Bool?
        }

        var signed: [Signed]
    }

    package enum Fault: Sendable {
        case answer(Int, String = "", headers: [(String, String)] = [])
        case silent
        /// The address is replaced.
        case address(@Sendable (String) -> String)
        case refuse(String, isFinal: Bool)
        case headers([String: String])
        /// The lifetime that it reports for the address.
        case life(Int)
    }

    package struct State: Sendable {
        package var faults: [Fault] = []
        package var questions: [Question] = []
        package var token: String?
        /// Operations that it does not sign.
        package var refused: Set<String> = []
        /// The number of requests of a list that it signs; all unless set.
        package var most = Int.max
        package var life: Int?
        /// By signature.
        var signed: [String: Wanted] = [:]
        /// Signatures up to this one are not valid any more.
        package var ended = 0
    }

    package let state = Mutex(State())
    private let server: FakeServer
    package var url: String { server.url + "/sign" }

    package init() throws {
        let box = Box()
        server = try FakeServer { try box.server?.answer($0) }
        box.set(self)
    }

    package func stop() { server.stop() }

    private final class Box: Sendable {
        private struct Weak: Sendable { weak var server: SignerServer? }
        private let held = Mutex(Weak())
        var server: SignerServer? { held.withLock { $0.server } }
        func set(_ server: SignerServer) { held.withLock { $0.server = server } }
    }

    package func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }
    package func script(_ faults: Fault...) { state.withLock { $0.faults += faults } }
    package var questions: [Question] { state.withLock { $0.questions } }
    /// The first operation of each request, with the number of others: `part+2`.
    package var requestedOperations: [String] {
        questions.map { question in
            let more = question.requests.count - 1
            return (question.requests.first?.operation ?? "") + (more > 0 ? "+\(more)" : "")
        }
    }
    /// Makes all signatures so far expire.
    package func endAll() { state.withLock { $0.ended = $0.signed.count } }

    private func answer(_ exchange: Exchange) throws {
        let body = exchange.body()
        let (fault, token) = state.withLock { state in
            (state.faults.isEmpty ? nil : state.faults.removeFirst(), state.token)
        }
        switch fault {
        case .answer(let status, let text, let headers)?: return exchange.reply(status, headers, text)
        case .silent?: return exchange.hang()
        default: break
        }
        guard exchange.method == "POST", token == nil || exchange.header("authorization") == "Bearer \(token ?? "")"
        else {
            return exchange.reply(401)
        }
        let question = try JSONDecoder().decode(Question.self, from: Data(body))
        let answer = state.withLock { state in
            state.questions.append(question)
            return Answer(signed: question.requests.prefix(state.most).map { sign($0, question, fault, &state) })
        }
        exchange.reply(200, [], String(decoding: try JSONEncoder().encode(answer), as: UTF8.self))
    }

    private func sign(_ wanted: Wanted, _ question: Question, _ fault: Fault?, _ state: inout State) -> Answer.Signed {
        if case .refuse(let words, let isFinal)? = fault { return Answer.Signed(error: words, final: isFinal) }
        if state.refused.contains(wanted.operation) { return Answer.Signed(error: "not here") }
        var headers: [String: String]?
        if case .headers(let more)? = fault { headers = more }
        let signature = "signature-that-nobody-may-see-\(state.signed.count + 1)"
        var known = wanted
        known.headers.merge(headers ?? [:]) { $1 }
        state.signed[signature] = known
        let query =
            wanted.query.sorted { $0.key < $1.key }.map {
                "\(PercentCoding.encode($0.key.utf8))=\(PercentCoding.encode($0.value.utf8))"
            } + ["X-Amz-Signature=\(signature)"]
        let path = wanted.key.map { "/" + PercentCoding.encode($0.utf8, keeping: "/") } ?? ""
        var url = "\(question.endpoint)/\(question.bucket)\(path)?\(query.joined(separator: "&"))"
        if case .address(let change)? = fault { url = change(url) }
        if case .life(let life)? = fault { return Answer.Signed(url: url, headers: headers, expires: life) }
        return Answer.Signed(url: url, headers: headers, expires: state.life)
    }

    /// The bucket's refusal of a request that was not signed, was signed for another request, or whose signature has
    /// expired.
    package func refusal(_ exchange: Exchange) -> (Int, String, String)? {
        let parts = exchange.target.split(separator: "?", maxSplits: 1)
        let query = PercentCoding.query(decoding: parts.count > 1 ? parts[1] : "") ?? [:]
        let signature = query["X-Amz-Signature"] ?? ""
        let (wanted, ended) = state.withLock { ($0.signed[signature], $0.ended) }
        guard let wanted, exchange.header("authorization") == nil, exchange.method == wanted.method else {
            return (403, "SignatureDoesNotMatch", "it was not signed: \(signature)")
        }
        if let number = signature.split(separator: "-").last.flatMap({ Int($0) }), number <= ended {
            return (403, "AccessDenied", "Request has expired")
        }
        let known = Set(wanted.headers.keys.map { $0.lowercased() })
        if let name = exchange.headerNames.first(where: { $0.hasPrefix("x-amz-") && !known.contains($0) }) {
            return (403, "AccessDenied", "There were headers present in the request which were not signed: \(name)")
        }
        return nil
    }
}
