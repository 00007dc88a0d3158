internal import CCurl
package import Core
package import Linux
package import Names
internal import Synchronization

/// Sends requests over the network, with libcurl.
///
/// One thread owns libcurl's multi handle and everything that belongs to it; other threads send it commands.
/// Connections are kept and reused. A transport without references ends.
package final class Transport: Transporting {
    private let loop: CurlLoop
    private let names: AddressCache
    /// Servers, or proxies before them, that accept no `Expect` (RFC 9110, section 10.1.1), by ``WebAddress/origin``.
    private let withoutExpect = Mutex<Set<String>>([])

    /// - Parameters:
    ///   - names: The known addresses of names.
    ///   - counts: Reads the kernel's counters of a socket.
    package init(
        names: AddressCache = AddressCache(),
        counts: @escaping @Sendable (_ socket: CInt) -> SocketCounts? = Sockets.counts
    ) {
        self.names = names
        loop = CurlLoop(counts: counts)
    }

    deinit { loop.stop(nil) }

    /// Servers, or proxies before them, that have refused `Expect` (417), by ``WebAddress/origin``. Requests to them have
    /// none.
    package var originsWithoutExpect: Set<String> { withoutExpect.withLock { $0 } }

    /// Adds servers that have refused `Expect` to an earlier process.
    package func recall(originsWithoutExpect origins: Set<String>) { withoutExpect.withLock { $0.formUnion(origins) } }

    package func send(_ request: Request) async throws(TransportError) -> Response {
        var request = request
        let origin = WebAddress(request.url).origin
        if withoutExpect.withLock({ $0.contains(origin) }) { request.allowsExpectContinue = false }
        let transfer = CurlTransfer(request)
        if let objection = request.proxyObjection { throw transfer.error(.other, 0, objection) }
        defer { if transfer.answer.refusesExpectation { withoutExpect.withLock { _ = $0.insert(origin) } } }
        try await resolveName(transfer)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in loop.start(transfer, continuation) }
        } onCancel: {
            loop.cancel(transfer)
        }
        let response = try result.get()
        return request.onBody == nil && !request.needsStatusOnly
            ? try response.decoded(limit: request.answerLimit) : response
    }

    /// Finds the addresses of the first machine, where the system may not look them up itself.
    private func resolveName(_ transfer: CurlTransfer) async throws(TransportError) {
        let request = transfer.request
        guard let servers = request.nameServers, request.unixSocket == nil, let (host, port) = request.firstStop,
            IPAddress(host) == nil, !Proxies.isHere(host),
            request.connection.addresses(of: host, port: port) == nil
        else { return }
        let found: Result<[IPAddress], any Error>
        do { found = .success(try await names.addresses(of: host, servers)) } catch { found = .failure(error) }
        // Also where there was no answer.
        let owed = names.removeOwed(for: host)
        if owed.bytes > 0 { transfer.charge(owed.bytes) }
        if owed.received > 0 { transfer.chargeArrived(owed.received) }
        switch found {
        case .success(let addresses):
            let family = request.connection.addressFamily
            let usable = addresses.filter(family.includes)
            guard !usable.isEmpty else {
                throw transfer.error(
                    .resolve, 0,
                    "\(host) has no address of the permitted kind (`http.address_family: \(family.rawValue)`)")
            }
            transfer.resolved = ResolvedName(host: host, port: port, addresses: usable)
        case .failure(let error as DNSLookup.LookupError):
            switch error {
            case .notAllowed(let text): throw transfer.error(.interface, 0, text)
            case .unknown(let text, _): throw transfer.error(.resolve, 0, text)
            case .cancelled: throw transfer.cancelled
            }
        case .failure(let error as SystemError): throw transfer.unable(error)
        case .failure: throw transfer.cancelled
        }
    }

    /// Ends running requests over `interface` (`.interface`, abortively) and closes its kept connections. When this
    /// returns, nothing is sent over it any more; later requests may use it again.
    package func close(interface: String) async {
        await withCheckedContinuation { continuation in loop.close(interface: interface, continuation) }
    }

    /// Charges running requests with all bytes that have left for them by now.
    package func charge() async { await withCheckedContinuation { continuation in loop.charge(continuation) } }

    /// Reports that these addresses no longer belong to this machine. They receive no packets any more, and the kernel
    /// continues to send from them for a long time: requests over such connections are stranded
    /// (``Request/onAddressLost``), and none of these connections is used again.
    package func removeAddresses(addresses: Set<IPAddress>) { loop.lose(addresses) }

    /// Ends running requests (`.cancelled`, abortively) and frees all resources. Later requests are cancelled at once.
    package func stop() async { await withCheckedContinuation { continuation in loop.stop(continuation) } }
}

/// The addresses of a name that libcurl must not look up itself.
struct ResolvedName {
    var host: String
    var port: UInt16
    var addresses: [IPAddress]
    /// Given by a person, and valid for as long as the configuration.
    var isFixed = false

    /// In the form of CURLOPT_RESOLVE; with `+` it is valid for as long as an answer of libcurl's own.
    var entry: String {
        "\(isFixed ? "" : "+")\(host.contains(":") ? "[\(host)]" : host):\(port):"
            + addresses.map { $0.isIPv6 ? "[\($0)]" : "\($0)" }.joined(separator: ",")
    }
}

extension Request {
    /// The host and port of the first machine that it is sent to.
    fileprivate var firstStop: (host: String, port: UInt16)? {
        proxy.map { ($0.host, $0.port) } ?? WebAddress(url).endpoint
    }
}
