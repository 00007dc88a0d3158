package import Core
package import Daemon
internal import Linux
internal import WebServer

/// The daemon's HTTP API on a Unix socket. The command line speaks nothing else.
package final class ControlServer: Sendable {
    private let server: WebServer
    private let service: ControlService

    private init(server: WebServer, service: ControlService) {
        self.server = server
        self.service = service
    }

    /// Listens on `socket`, with mode 0660: owner and group of the process may connect.
    ///
    /// The socket's folder is made when it is missing (mode 0750).
    package static func start(socket: FilePath, operations: any Operations) async throws -> ControlServer {
        try await start(socket: socket, operations: operations, heartbeat: .seconds(15))
    }

    static func start(
        socket: FilePath, operations: any Operations, heartbeat: Duration
    ) async throws -> ControlServer {
        let service = ControlService(operations, access: .ofThisProcess, heartbeat: heartbeat)
        let server = try await blocking {
            try Files.makeFolders(socket.parent)
            return try WebServer(.unix(socket, mode: 0o660), service: service, threads: 1)
        }
        return ControlServer(server: server, service: service)
    }

    /// Ends event streams, lets running answers end, and removes the socket.
    package func stop() async {
        service.endStreams()
        await server.stop()
    }
}
