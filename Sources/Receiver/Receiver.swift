package import Core
internal import Linux
internal import Synchronization
package import WebServer

/// Why a receiver could not start or continue.
package struct ReceiverError: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

/// A tus 1.0 server that stores files in a folder.
///
/// A file appears in the folder under its sender's name only when it is complete, verified and on the disk.
/// Acknowledged bytes survive a kill and a power cut. No file is ever replaced. See ``TusService`` for the protocol,
/// ``FinalName`` for names, and ``IncomingUpload`` for two requests for the same upload.
package final class Receiver: Sendable {
    /// The port that was bound; 0 for a Unix socket.
    package let port: Int
    /// Whether no interface of this machine had the address when the receiver started.
    package var awaitsAddress: Bool { server.awaitsAddress }

    private let directory: UploadDirectory
    private let server: WebServer
    private let pruning: Mutex<Task<Void, Never>?>

    /// Listens when this returns.
    ///
    /// - Parameters:
    ///   - into: The folder for the files; created when missing. Unfinished uploads are in `.sluice-receive` below it.
    ///     Only one receiver at a time uses a folder.
    ///   - token: Required in every request (`Authorization: Bearer …`); `nil` allows every client.
    ///   - maxSize: The maximum size of one upload in bytes.
    ///   - limits: Limits of connections.
    ///   - log: Takes one line for each event. Names in it are safe to print; it contains no token and no complete
    ///     upload id.
    /// - Throws: ``ReceiverError``, `SystemError` or `WebServerError`.
    package static func start(
        into: FilePath, listen: ServerEndpoint, token: [UInt8]? = nil, maxSize: Int64? = nil,
        limits: ConnectionLimits = ConnectionLimits(), clocks: any Clocks = SystemClocks(),
        log: @escaping @Sendable (String) -> Void
    ) async throws -> Receiver {
        let directory = try await blocking { try UploadDirectory(root: into, clocks: clocks, log: log) }
        do {
            let service = TusService(directory: directory, token: token, maxSize: maxSize, clocks: clocks)
            return Receiver(directory, try WebServer(listen, service: service, threads: 2, limits: limits))
        } catch {
            await Self.close(directory)
            throw error
        }
    }

    private init(_ directory: UploadDirectory, _ server: WebServer) {
        self.directory = directory
        self.server = server
        port = server.port
        pruning = Mutex(
            Task {
                while true {
                    // Cancelled by `stop`.
                    do { try await Alarms.shared.sleep(for: .seconds(86_400)) } catch { return }
                    directory.inBackground { directory.prune() }
                }
            })
    }

    /// Closes all connections, makes their received bytes durable, and releases the folder.
    package func stop() async {
        let pruning = pruning.withLock { pruning in
            defer { pruning = nil }
            return pruning
        }
        pruning?.cancel()
        await pruning?.value
        await server.stop()
        await Self.close(directory)
    }

    private static func close(_ directory: UploadDirectory) async {
        // Throws nothing: errors of syncing are logged there.
        try? await blocking { directory.close() }
    }
}
