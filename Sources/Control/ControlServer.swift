package import API
package import Core
package import Linux
package import WebServer

/// The daemon's HTTP API: on a Unix socket for the command line, and on an address where one is configured.
package final class ControlServer: Sendable {
    /// A token for the address.
    package struct Token: Sendable {
        package var client: ControlClientIdentity
        /// Reads the token, now and again while requests come.
        package var read: @Sendable () async throws -> String

        package init(_ client: ControlClientIdentity, read: @escaping @Sendable () async throws -> String) {
            self.client = client
            self.read = read
        }
    }

    /// An additional address for requests.
    package struct Remote: Sendable {
        package var listen: ListenAddress
        /// Names and addresses for `Host`, with any port, besides those that are listened on.
        package var hosts: [String]
        /// Proxies whose `X-Forwarded-For` is trusted.
        package var trustedProxies: [IPSubnet]
        package var identity: TLSIdentity?
        package var tokens: [Token]
        /// The sign-ins of browsers; `nil`: the address serves no page.
        package var sessions: WebSessions?
        /// Takes a line for the log.
        package var say: @Sendable (String) -> Void

        package init(
            listen: ListenAddress, hosts: [String] = [], trustedProxies: [IPSubnet] = [], identity: TLSIdentity? = nil,
            tokens: [Token], sessions: WebSessions? = nil, say: @escaping @Sendable (String) -> Void = { _ in }
        ) {
            self.listen = listen
            self.hosts = hosts
            self.trustedProxies = trustedProxies
            self.identity = identity
            self.tokens = tokens
            self.sessions = sessions
            self.say = say
        }
    }

    private let servers: [(server: WebServer, service: ControlService)]
    /// The port of the address; `nil` without one.
    package let port: Int?
    /// Whether no interface of this machine had the address when the server started.
    package let awaitsAddress: Bool

    private init(_ servers: [(server: WebServer, service: ControlService)], port: Int?, awaitsAddress: Bool) {
        self.servers = servers
        self.port = port
        self.awaitsAddress = awaitsAddress
    }

    /// Listens on `socket`, with mode 0660: owner and group of the process may connect.
    ///
    /// The socket's folder is created when it is missing (mode 0750).
    ///
    /// - Parameter log: Called for each change that a person makes.
    /// - Throws: ``WebServerError`` for an address that is taken, and errors of reading the token: then nothing
    ///   listens.
    package static func start(
        socket: FilePath, remote: Remote? = nil, operations: any Operations, log: Log = .silent
    ) async throws -> ControlServer {
        try await start(socket: socket, remote: remote, operations: operations, heartbeat: .seconds(15), log: log)
    }

    static func start(
        socket: FilePath, remote: Remote? = nil, operations: any Operations, heartbeat: Duration = .seconds(15),
        log: Log = .silent
    ) async throws -> ControlServer {
        var servers: [(server: WebServer, service: ControlService)] = []
        let capacity = Capacity(openFiles: Machine.openFileLimit.now)
        let subscribers = Subscribers(limit: capacity.subscribers)
        if let remote {
            let clocks = SystemClocks()
            let authorizer = TokenAuthorizer(
                listen: remote.listen, isTLS: remote.identity != nil, names: remote.hosts,
                tokens: try await ControlTokens(remote.tokens, clocks: clocks, say: remote.say),
                sessions: remote.sessions)
            let service = ControlService(
                operations, authorizer: authorizer,
                page: remote.sessions.map { PageService($0, authorizer, log: log, say: remote.say) },
                subscribers: subscribers, mostStreams: max(1, subscribers.limit / 4),
                heartbeat: min(heartbeat, remoteHeartbeat), log: log)
            let server = try await blocking {
                try WebServer(
                    .tcp(host: remote.listen.host, port: remote.listen.port), service: service, threads: 1,
                    limits: ConnectionLimits(
                        connections: capacity.connections, trustedProxies: remote.trustedProxies),
                    memory: 64 << 10, identity: remote.identity)
            }
            authorizer.listens(on: server.port)
            servers.append((server, service))
        }
        let (port, awaitsAddress) = (servers.first?.server.port, servers.first?.server.awaitsAddress ?? false)
        var links: PageLinks?
        if let remote, let sessions = remote.sessions, let port {
            links = PageLinks(
                sessions: sessions, listen: remote.listen, port: port, hosts: remote.hosts,
                isTLS: remote.identity != nil)
        }
        let service = ControlService(
            operations, authorizer: SocketAccess.ofThisProcess, links: links, subscribers: subscribers,
            heartbeat: heartbeat, log: log)
        do {
            let server = try await blocking {
                try Files.makeFolders(socket.parent)
                return try WebServer(
                    .unix(socket, mode: 0o660), service: service, threads: 1,
                    limits: ConnectionLimits(connections: capacity.connections), memory: 64 << 10)
            }
            servers.append((server, service))
        } catch {
            for entry in servers { await entry.server.stop() }
            throw error
        }
        return ControlServer(servers, port: port, awaitsAddress: awaitsAddress)
    }

    /// Time between comment lines in the event streams of other machines and browsers, which cannot see that a daemon
    /// has stopped: the page takes the connection for lost after twice this time (SILENCE in events.js).
    static let remoteHeartbeat: Duration = .seconds(5)

    /// Maximum number of connections, and how many of them may be event streams: fewer, so that a command always gets
    /// through.
    struct Capacity: Hashable, Sendable {
        let connections: Int
        let subscribers: Int

        /// - Parameter openFiles: The limit of descriptors of this process; uploads and folders need some, too.
        init(openFiles: UInt64) {
            connections = min(1536, max(24, (Int(clamping: openFiles) - 256) / 2))
            subscribers = connections * 2 / 3
        }
    }

    /// Ends event streams, waits for running answers, and removes the socket.
    package func stop() async {
        for entry in servers { entry.service.subscribers.end() }
        for entry in servers { await entry.server.stop() }
    }
}
