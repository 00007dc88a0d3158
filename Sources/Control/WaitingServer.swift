internal import API
package import Core
internal import Linux
internal import WebServer

/// Answers on the control socket before the daemon runs: each request is refused with the reason why the start waits.
package final class WaitingServer: Sendable {
    private let server: WebServer

    private struct Service: WebService {
        let reason: @Sendable () -> String

        func denial(of request: WebRequest) -> WebDenial? { SocketAccess.ofThisProcess.denial(of: request) }
        func plan(_ request: WebRequest) -> BodyPlan { .collect(limit: ControlService.bodyLimit) }

        func reply(to request: WebRequest, body: ReceivedBody) async -> WebReply {
            let refusal = Refusal(.unavailable, reason())
            return WebReply(json: ErrorReply(refusal), status: refusal.code.status)
        }

        func refusal(_ status: Int, _ text: String) -> WebReply {
            WebReply(json: ErrorReply(code: Refusal.Code.badRequest.rawValue, message: text), status: status)
        }
    }

    /// Listens like ``ControlServer``.
    ///
    /// - Parameter reason: The present reason for the wait.
    /// - Throws: ``WebServerError``, `SystemError`.
    package init(socket: FilePath, reason: @escaping @Sendable () -> String) throws {
        try Files.makeFolders(socket.parent)
        server = try WebServer(.unix(socket, mode: 0o660), service: Service(reason: reason), threads: 1)
    }

    /// Removes the socket.
    package func stop() async { await server.stop() }
}
