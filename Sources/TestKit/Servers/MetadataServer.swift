internal import Core
package import Synchronization

/// A service that gives keys to a machine (IMDSv2) or a container, with the faults of such services.
package final class MetadataServer: Sendable {
    package enum Kind: String, Hashable, Sendable { case token, roles, key, container }

    package enum Fault: Sendable {
        case answer(Int, String = "")
        case silent
    }

    package struct State: Sendable {
        /// Only requests with the newest session token are answered.
        package var sessions = 0
        package var roles = ["uploads"]
        package var key = Key()
        package var faults: [Kind: [Fault]] = [:]
        package var requests: [Kind] = []
        /// The authorization that the container's key requires.
        package var authorization: String?
    }

    package struct Key: Sendable {
        package var id = "ASIATEST"
        package var secret = "the-secret-of-the-instance"
        package var token = "token-1"
        /// RFC 3339.
        package var end = "2999-01-01T00:00:00Z"

        package init() {}
        package init(token: String, end: String) { (self.token, self.end) = (token, end) }
    }

    package let state = Mutex(State())
    private let server: FakeServer
    package var url: String { server.url }

    package init() throws {
        let box = Box()
        server = try FakeServer { box.server?.answer($0) }
        box.set(self)
    }

    package func stop() { server.stop() }

    private final class Box: Sendable {
        private struct Weak: Sendable { weak var server: MetadataServer? }
        private let held = Mutex(Weak())
        var server: MetadataServer? { held.withLock { $0.server } }
        func set(_ server: MetadataServer) { held.withLock { $0.server = server } }
    }

    package func script(_ kind: Kind, _ faults: Fault...) { state.withLock { $0.faults[kind, default: []] += faults } }
    package func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }
    /// The requests since the last call.
    package func drainRequests() -> [Kind] {
        state.withLock { state in
            defer { state.requests = [] }
            return state.requests
        }
    }

    private static let folder = "/latest/meta-data/iam/security-credentials/"

    private func answer(_ exchange: Exchange) {
        let kind: Kind? =
            switch (exchange.method, exchange.target) {
            case ("PUT", "/latest/api/token"): .token
            case ("GET", Self.folder): .roles
            case ("GET", let path) where path.hasPrefix(Self.folder): .key
            case ("GET", let path) where path.hasPrefix("/v1/"): .container
            default: nil
            }
        guard let kind else { return exchange.reply(404) }
        let (state, fault) = state.withLock { state -> (State, Fault?) in
            state.requests.append(kind)
            let first = state.faults[kind]?.first
            if first != nil { state.faults[kind]?.removeFirst() }
            if kind == .token, first == nil { state.sessions += 1 }
            return (state, first)
        }
        switch fault {
        case .answer(let status, let text)?: return exchange.reply(status, [], text)
        case .silent?: return exchange.hang()
        case nil: break
        }
        let isKnown = exchange.header("x-aws-ec2-metadata-token") == "session-\(state.sessions)"
        switch kind {
        case .token:
            guard exchange.header("x-aws-ec2-metadata-token-ttl-seconds") != nil else { return exchange.reply(400) }
            exchange.reply(200, [], "session-\(state.sessions)")
        case .roles where isKnown:
            if state.roles.isEmpty { return exchange.reply(404) }
            exchange.reply(200, [("Content-Type", "text/plain")], state.roles.joined(separator: "\n"))
        case .key where isKnown:
            guard state.roles.contains(String(exchange.target.dropFirst(Self.folder.count))) else {
                return exchange.reply(404)
            }
            exchange.reply(200, [], Self.document(state.key, "\"Code\":\"Success\",\"Type\":\"AWS-HMAC\","))
        case .container where exchange.header("authorization") == state.authorization:
            exchange.reply(200, [], Self.document(state.key, "\"RoleArn\":\"arn:aws:iam::1:role/uploads\","))
        case .roles, .key, .container: exchange.reply(401)
        }
    }

    private static func document(_ key: Key, _ more: String) -> String {
        "{\(more)\"AccessKeyId\":\"\(key.id)\",\"SecretAccessKey\":\"\(key.secret)\",\"Token\":\"\(key.token)\","
            + "\"Expiration\":\"\(key.end)\",\"LastUpdated\":\"2026-01-01T00:00:00Z\"}"
    }
}
