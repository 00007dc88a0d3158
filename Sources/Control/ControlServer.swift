package import API
package import Core
package import Linux
package import WebServer

/// The daemon's HTTP API: on a Unix socket for the command line, and on an address where one is configured.
package final class ControlServer: Sendable {
    /// An additional address for requests.
    package struct Remote: Sendable {
        package var listen: ListenAddress
        /// Names for `Host` besides `localhost` and addresses.
        package var hosts: [String]
        /// Proxies whose `X-Forwarded-For` is trusted.
        package var trustedProxies: [IPSubnet]
        package var identity: TLSIdentity?
        /// Reads the token, now and again while requests come.
        package var token: @Sendable () async throws -> String
        /// Takes a line for the log.
        package var say: @Sendable (String) -> Void

        package init(
            listen: ListenAddress, hosts: [String] = [], trustedProxies: [IPSubnet] = [], identity: TLSIdentity? = nil,
            say: @escaping @Sendable (String) -> Void = { _ in }, token: @escaping @Sendable () async throws -> String
        ) {
            self.listen = listen
            self.hosts = hosts
            self.trustedProxies = trustedProxies
            self.identity = identity
            self.say = say
            self.token = token
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
            let authorizer = try await TokenAuthorizer(
                names: remote.hosts, clocks: SystemClocks(), say: remote.say, read: remote.token)
            let service = ControlService(
                operations, authorizer: authorizer, subscribers: subscribers, heartbeat: heartbeat, log: log)
            let server = try await blocking {
                try WebServer(
                    .tcp(host: remote.listen.host, port: remote.listen.port), service: service, threads: 1,
                    limits: ConnectionLimits(
                        connections: capacity.connections, trustedProxies: remote.trustedProxies),
                    memory: 64 << 10, identity: remote.identity)
            }
            servers.append((server, service))
        }
        let (port, awaitsAddress) = (servers.first?.server.port, servers.first?.server.awaitsAddress ?? false)
        let service = ControlService(
            operations, authorizer: Access.ofThisProcess, subscribers: subscribers, heartbeat: heartbeat, log: log)
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
