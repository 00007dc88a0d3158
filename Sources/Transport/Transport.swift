internal import CCurl
package import Core
package import Linux
package import Names
internal import Synchronization

/// Requests over the network, by libcurl.
///
/// One thread owns libcurl's multi handle and everything that hangs on it; others leave commands for it. Connections
/// are kept and used again. A transport that nobody refers to any more ends by itself.
package final class Transport: Transporting {
    private let loop: Loop
    private let names: NameBook
    /// Servers, or proxies before them, that take no `Expect` (RFC 9110, section 10.1.1), by ``WebAddress/origin``.
    private let unexpecting = Mutex<Set<String>>([])

    /// - Parameters:
    ///   - names: What is known of names that may not be asked for just anyhow.
    ///   - counts: Where what a socket has sent is read.
    package init(
        names: NameBook = NameBook(), counts: @escaping @Sendable (_ socket: CInt) -> SocketCounts? = Sockets.counts
    ) {
        self.names = names
        loop = Loop(counts: counts)
    }

    deinit { loop.stop(nil) }

    package func send(_ request: Request) async throws(TransportError) -> Response {
        var request = request
        let origin = WebAddress(request.url).origin
        if unexpecting.withLock({ $0.contains(origin) }) { request.asksFirst = false }
        let transfer = Transfer(request)
        defer { if transfer.answer.refusesExpectation { unexpecting.withLock { _ = $0.insert(origin) } } }
        try await lookUp(transfer)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in loop.start(transfer, continuation) }
        } onCancel: {
            loop.cancel(transfer)
        }
        let response = try result.get()
        return request.onBody == nil && !request.wantsStatusAlone
            ? try response.decoded(limit: request.answerLimit) : response
    }

    /// Finds the addresses of the machine that the request goes to first, where the system may not do that by itself.
    private func lookUp(_ transfer: Transfer) async throws(TransportError) {
        let request = transfer.request
        guard let servers = request.nameServers, request.unixSocket == nil,
            case .server(let host, let port)? = WebAddress(request.url).firstStop(usingProxy: request.mayUseProxy),
            IPAddress(host) == nil, !Proxies.isHere(host)
        else { return }
        let found: Result<[IPAddress], any Error>
        do { found = .success(try await names.addresses(of: host, servers)) } catch { found = .failure(error) }
        // Also where there was no answer.
        let owed = names.takeOwed(for: host)
        if owed.bytes > 0 { transfer.charge(owed.bytes) }
        if owed.received > 0 { transfer.chargeArrived(owed.received) }
        switch found {
        case .success(let addresses):
            transfer.resolved = ResolvedName(host: host, port: port, addresses: addresses)
        case .failure(let error as NameQuestion.Failure):
            switch error {
            case .notAllowed(let text): throw transfer.error(.interface, 0, text)
            case .unknown(let text, _): throw transfer.error(.resolve, 0, text)
            case .cancelled: throw transfer.cancelled
            }
        case .failure(let error as SystemError): throw transfer.unable(error)
        case .failure: throw transfer.cancelled
        }
    }

    /// Ends what runs over `interface` (`.interface`, abortively) and closes its kept connections. When this returns nothing
    /// leaves there any more; requests that are sent later may use it again.
    package func close(interface: String) async {
        await withCheckedContinuation { continuation in loop.close(interface: interface, continuation) }
    }

    /// Charges what runs with all that has left for it by now.
    package func charge() async { await withCheckedContinuation { continuation in loop.charge(continuation) } }

    /// These addresses are no longer this machine's. No packet comes to them any more, and the kernel goes on sending from them
    /// for a long time: what goes over such connections is stranded (``Request/onAddressLost``), and none of them is used again.
    package func lose(addresses: Set<IPAddress>) { loop.lose(addresses) }

    /// Ends what runs (`.cancelled`, abortively) and gives everything back. Requests sent later are cancelled at once.
    package func stop() async { await withCheckedContinuation { continuation in loop.stop(continuation) } }
}
