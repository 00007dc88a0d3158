package import Core
internal import Linux
internal import Synchronization
package import WebServer

/// Why a receiver could not start or go on.
package struct ReceiverError: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

/// A tus 1.0 server that stores into a folder.
///
/// A file appears in the folder under its sender's name only when it is whole, verified and on the disk. What was
/// acknowledged survives a kill and a power cut. No file is ever replaced. See ``TusService`` for what is spoken,
/// ``FinalName`` for names, and ``Arrival`` for what happens when two requests want the same upload.
package final class Receiver: Sendable {
    /// The port that was bound; 0 for a Unix socket.
    package let port: Int

    private let shelf: Shelf
    private let server: WebServer
    private let pruning: Mutex<Task<Void, Never>?>

    /// Listens when this returns.
    ///
    /// - Parameters:
    ///   - into: Where files appear; made when missing. Unfinished uploads live in `.sluice-receive` below it. One
    ///     receiver at a time uses a folder.
    ///   - token: Every request must bring it (`Authorization: Bearer …`); `nil` lets everybody in.
    ///   - maxSize: Bytes that one upload may have.
    ///   - limits: What those who connect may have of it.
    ///   - log: Takes one line a fact. Names in it are fit to print; no token and no whole upload id is in it.
    /// - Throws: ``ReceiverError``, `SystemError` or `WebServerError`.
    package static func start(
        into: FilePath, listen: WebAddress, token: [UInt8]? = nil, maxSize: Int64? = nil,
        limits: ConnectionLimits = ConnectionLimits(), clocks: any Clocks = SystemClocks(),
        log: @escaping @Sendable (String) -> Void
    ) async throws -> Receiver {
        let shelf = try await blocking { try Shelf(root: into, clocks: clocks, log: log) }
        do {
            let service = TusService(shelf: shelf, token: token, maxSize: maxSize, clocks: clocks)
            return Receiver(shelf, try WebServer(listen, service: service, threads: 2, limits: limits))
        } catch {
            await Self.close(shelf)
            throw error
        }
    }

    private init(_ shelf: Shelf, _ server: WebServer) {
        self.shelf = shelf
        self.server = server
        port = server.port
        pruning = Mutex(
            Task {
                while true {
                    // Cancelled by `stop`.
                    do { try await Alarms.shared.sleep(for: .seconds(86_400)) } catch { return }
                    shelf.inBackground { shelf.prune() }
                }
            })
    }

    /// Closes all connections, makes durable what they brought, and gives the folder back.
    package func stop() async {
        let pruning = pruning.withLock { pruning in
            defer { pruning = nil }
            return pruning
        }
        pruning?.cancel()
        await pruning?.value
        await server.stop()
        await Self.close(shelf)
    }

    private static func close(_ shelf: Shelf) async {
        // Nothing is thrown: what cannot be synced is logged there.
        try? await blocking { shelf.close() }
    }
}
