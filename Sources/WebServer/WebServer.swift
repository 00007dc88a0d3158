internal import CMicroHTTPD
internal import Core
internal import Glibc
internal import Linux
internal import Synchronization

/// An HTTP/1.1 server on one socket.
///
/// libmicrohttpd's threads read and write; a service answers in tasks of its own while its connection is suspended, so
/// that a slow answer delays no other client. A connection without traffic for a while is closed, unless an answer is
/// being made or streamed, and so is one that takes too long for a head: see ``ConnectionLimits``. Headers may have 16
/// KiB. Connections above the limit wait in the kernel's queue.
///
/// A server must be stopped: one that is only released goes on until the process ends.
package final class WebServer: Sendable {
    /// The port that was bound; 0 for a Unix socket.
    package let port: Int
    /// Whether no interface of this machine had the address when it was bound: connections arrive when one has it.
    package let awaitsAddress: Bool

    private let serverState: ServerState
    private let socket: ListeningSocket
    private let daemon: Mutex<Daemon?>

    /// `@unchecked Sendable`: libmicrohttpd's daemon may be used from several threads, and its only stop is protected
    /// by the lock.
    private struct Daemon: @unchecked Sendable {
        let pointer: OpaquePointer
        /// Retained for libmicrohttpd's threads, which read it until they are joined.
        let context: Unmanaged<ServerState>
    }

    /// Listens when this returns.
    ///
    /// - Parameters:
    ///   - threads: Number of threads that read and write. A sink that writes to a disk occupies one while it writes.
    ///   - memory: Bytes that a connection may have for what it reads and writes, at least 64 KiB. Pieces of half of
    ///     that
    ///     reach a sink; what was never used costs nothing.
    ///   - identity: For TLS; `nil`: plain HTTP.
    package init(
        _ address: ServerEndpoint, service: any WebService, threads: Int, limits: ConnectionLimits = ConnectionLimits(),
        memory: Int = 128 << 10, identity: TLSIdentity? = nil
    ) throws(WebServerError) {
        let kept = identity.map { KeptIdentity($0) }
        socket = try ListeningSocket(address)
        serverState = ServerState(service: service, identity: kept, limits: limits)
        port = socket.port
        awaitsAddress = socket.awaitsAddress
        let context = Unmanaged.passRetained(serverState)
        let started = sluice_mhd_start(
            socket.number, UInt32(max(1, threads)), UInt32(limits.connections),
            UInt32(clamping: max(1, limits.idle.components.seconds)), max(memory, 64 << 10),
            kept?.certificate, kept?.key,
            context.toOpaque(),
            handleRequest, noteTarget, forgetRequest, noteConnection)
        guard let started else {
            context.release()
            socket.removeFile()
            throw WebServerError(
                identity == nil
                    ? "libmicrohttpd did not start: out of threads or descriptors"
                    : "the certificate and its key cannot be used: both must be PEM, and the key that of the certificate"
            )
        }
        daemon = Mutex(Daemon(pointer: started, context: context))
    }

    /// Closes every connection and returns when nothing of this server runs any more: bodies in transfer have ended as
    /// incomplete, and every reply's task has ended. Calling it again has no effect.
    package func stop() async {
        let daemon = daemon.withLock { daemon in
            defer { daemon = nil }
            return daemon
        }
        if let daemon {
            socket.removeFile()
            serverState.close()
            // Joins the threads, so it waits; it cannot throw.
            try? await blocking { MHD_stop_daemon(daemon.pointer) }
            daemon.context.release()
        }
        await serverState.finish()
    }
}

/// PEM text as C strings, for as long as a server may read it.
///
/// `@unchecked Sendable`, proof: it never changes after its creation, and its memory is freed with the last reference.
final class KeptIdentity: @unchecked Sendable {
    let certificate: UnsafeMutablePointer<CChar>?
    let key: UnsafeMutablePointer<CChar>?

    init(_ identity: TLSIdentity) {
        certificate = strdup(identity.certificate)
        key = strdup(identity.key)
    }

    deinit {
        free(certificate)
        if let key {
            explicit_bzero(key, strlen(key))
            free(key)
        }
    }
}

// MARK: Callbacks of libmicrohttpd, on its own threads

/// The request line was read. The returned value represents the request until `forgetRequest`.
private func noteTarget(
    _ context: UnsafeMutableRawPointer?, _ target: UnsafePointer<CChar>?, _ connection: OpaquePointer?
) -> UnsafeMutableRawPointer? {
    guard let context, let target else { return nil }
    let serverState = Unmanaged<ServerState>.fromOpaque(context).takeUnretainedValue()
    let exchange = Exchange(serverState: serverState, target: String(cString: target))
    serverState.enter(exchange)
    return Unmanaged.passRetained(exchange).toOpaque()
}

private func handleRequest(
    _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _ path: UnsafePointer<CChar>?,
    _ method: UnsafePointer<CChar>?, _ version: UnsafePointer<CChar>?, _ body: UnsafePointer<CChar>?,
    _ size: UnsafeMutablePointer<Int>?, _ request: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
    guard let connection, let method, let version, let size, let exchange = request?.pointee else { return .NO }
    return Unmanaged<Exchange>.fromOpaque(exchange).takeUnretainedValue()
        .proceed(connection, method: method, version: version, body: body, size: size) ? .YES : .NO
}

/// A connection was made, or its socket is about to be closed.
private func noteConnection(
    _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
    _ socketContext: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ what: MHD_ConnectionNotificationCode
) {
    guard let context, let connection else { return }
    let connections = Unmanaged<ServerState>.fromOpaque(context).takeUnretainedValue().connections
    if sluice_mhd_closes(what) { return connections.closed(.init(connection)) }
    let socket = sluice_mhd_socket(connection)
    connections.opened(.init(connection), socket: socket, peer: WebPeer(ofSocket: socket))
}

/// The request is over, answered or not.
private func forgetRequest(
    _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
    _ request: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ how: MHD_RequestTerminationCode
) {
    guard let pointer = request?.pointee else { return }
    request?.pointee = nil
    let exchange = Unmanaged<Exchange>.fromOpaque(pointer).takeRetainedValue()
    exchange.requestEnded()
    if let connection { exchange.serverState.connections.requestEnded(.init(connection)) }
}
