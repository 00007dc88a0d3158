internal import CCurl
package import Core
package import Linux
internal import Synchronization

/// Requests over the network, by libcurl.
///
/// One thread owns libcurl's multi handle and everything that hangs on it; others leave commands for it. Connections
/// are kept and used again. A transport that nobody refers to any more ends by itself.
package final class Transport: Transporting {
    private let loop: Loop

    /// - Parameter counts: Where what a socket has sent is read.
    package init(counts: @escaping @Sendable (_ socket: CInt) -> SocketCounts? = Sockets.counts) {
        loop = Loop(counts: counts)
    }

    deinit { loop.stop(nil) }

    package func send(_ request: Request) async throws(TransportError) -> Response {
        let transfer = Transfer(request)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in loop.start(transfer, continuation) }
        } onCancel: {
            loop.cancel(transfer)
        }
        let response = try result.get()
        return request.onBody == nil ? try response.decoded(limit: request.answerLimit) : response
    }

    /// Ends what runs over `interface` (`.interface`, abortively) and closes its kept connections. When this returns nothing
    /// leaves there any more; requests that are sent later may use it again.
    package func close(interface: String) async {
        await withCheckedContinuation { continuation in loop.close(interface: interface, continuation) }
    }

    /// These addresses are no longer this machine's. No packet comes to them any more, and the kernel goes on sending from them
    /// for a long time: what goes over such connections is stranded (``Request/onAddressLost``), and none of them is used again.
    package func lose(addresses: Set<IPAddress>) { loop.lose(addresses) }

    /// Ends what runs (`.cancelled`, abortively) and gives everything back. Requests sent later are cancelled at once.
    package func stop() async { await withCheckedContinuation { continuation in loop.stop(continuation) } }
}
