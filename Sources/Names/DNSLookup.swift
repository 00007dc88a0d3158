internal import CCares
package import Core
internal import Glibc
internal import Linux
internal import Synchronization

/// One question for the addresses of a name. It is sent to DNS servers only over their permitted interfaces (c-ares).
package final class DNSLookup: Sendable {
    package struct Answer: Hashable, Sendable {
        /// In the order in which they should be tried (RFC 6724), each once.
        package var addresses: [IPAddress]
        /// Sent and received bytes, with IP headers.
        package var spent: Spending
    }

    package enum LookupError: Error, Hashable, Sendable, CustomStringConvertible {
        /// No server may be asked.
        case notAllowed(String)
        /// No server has an answer, or none answered.
        case unknown(String, Spending)
        case cancelled(Spending)

        package var description: String {
            switch self {
            case .notAllowed(let text), .unknown(let text, _): text
            case .cancelled: "cancelled"
            }
        }
        /// The traffic that it cost nevertheless.
        package var spent: Spending {
            switch self {
            case .notAllowed: .none
            case .unknown(_, let spent), .cancelled(let spent): spent
            }
        }
    }

    private let host: String
    private let servers: NameServers
    private let signal: EventFD
    private let isCancelled = Atomic(false)

    private init(_ host: String, _ servers: NameServers) throws(SystemError) {
        self.host = host
        self.servers = servers
        signal = try EventFD()
    }

    /// Asks on a background thread. Cancelling the task ends the question at once.
    ///
    /// - Parameter host: A name.
    /// - Throws: ``LookupError``; `SystemError` when the question cannot be sent for lack of resources.
    package static func resolve(_ host: String, _ servers: NameServers) async throws -> Answer {
        let question = try DNSLookup(host, servers)
        return try await withTaskCancellationHandler {
            try await blocking { try question.run() }
        } onCancel: {
            question.isCancelled.store(true, ordering: .releasing)
            question.signal.signal()
        }
    }

    private func run() throws -> Answer {
        // Neither a resolver on this machine nor multicast DNS can be bound to an interface: the system asks in its own
        // way.
        if servers.hasLocal || comparableHostName(host).hasSuffix(".local") {
            let most = Self.most(for: host)
            do { return Answer(addresses: try SystemResolver.resolve(host), spent: most) } catch {
                throw LookupError.unknown("\(error)", most)
            }
        }
        let mayAsk = !servers.interfaces.isEmpty
        let failure = SystemError(call: "ares_init", subject: printable(host), code: ENOMEM)
        guard let channel = NameChannel(lookups: mayAsk ? "fb" : "f") else { throw failure }
        let allowed = channel.servers.filter { servers.interfaces[$0] != nil }
        let isSet = channel.setServers(allowed)
        if mayAsk && !isSet { throw failure }
        let sockets = NameSockets(servers.interfaces)
        defer { withExtendedLifetime(sockets) {} }
        return try query(channel, sockets)
    }

    private func query(_ channel: consuming NameChannel, _ sockets: NameSockets) throws -> Answer {
        let context = Unmanaged.passUnretained(sockets).toOpaque()
        var hints = ares_addrinfo_hints()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        ares_set_socket_functions(channel.channel, NameSockets.functions, context)
        host.withCString { name in
            ares_getaddrinfo(
                channel.channel, name, nil, &hints,
                { context, status, _, list in
                    if let context {
                        Unmanaged<NameSockets>.fromOpaque(context).takeUnretainedValue().receive(status, list)
                    }
                }, context)
        }
        while sockets.result == nil { processSockets(channel.channel) }
        // c-ares closes its sockets here, which needs `sockets`.
        ares_cancel(channel.channel)
        let (status, addresses) = sockets.result ?? (CARES_CANCELLED, [])
        if isCancelled.load(ordering: .acquiring) { throw LookupError.cancelled(sockets.spent) }
        if !addresses.isEmpty { return Answer(addresses: addresses, spent: sockets.spent) }
        if servers.interfaces.isEmpty, !servers.forbidden.isEmpty {
            let names = servers.forbidden.map(\.description).joined(separator: ", ")
            throw LookupError.notAllowed(
                "\(printable(host)) cannot be looked up: no allowed network leads to the DNS server \(names)")
        }
        throw LookupError.unknown("\(printable(host)): \(String(cString: ares_strerror(status)))", sockets.spent)
    }

    /// Waits until a socket is ready or a time is over, and lets c-ares continue.
    private func processSockets(_ channel: ares_channel) {
        var numbers = [ares_socket_t](repeating: -1, count: 16)
        let ready = UInt32(bitPattern: ares_getsock(channel, &numbers, 16))
        var watched: [pollfd] = []
        for (index, number) in numbers.enumerated() {
            // ARES_GETSOCK_READABLE and ARES_GETSOCK_WRITABLE of ares.h.
            let events =
                (ready >> UInt32(index) & 1 != 0 ? POLLIN : 0) | (ready >> UInt32(index + 16) & 1 != 0 ? POLLOUT : 0)
            if events != 0 { watched.append(pollfd(fd: number, events: Int16(events), revents: 0)) }
        }
        var wait = timeval()
        let longest = ares_timeout(channel, nil, &wait).map {
            Duration.seconds(Int64($0.pointee.tv_sec)) + .microseconds(Int64($0.pointee.tv_usec))
        }
        watched = signal.wait(or: watched, longest: longest)
        if isCancelled.load(ordering: .acquiring) { return ares_cancel(channel) }
        var isIdle = true
        for one in watched where one.revents != 0 {
            isIdle = false
            let failed = Int16(POLLERR | POLLHUP)
            ares_process_fd(
                channel, one.revents & (Int16(POLLIN) | failed) != 0 ? one.fd : ares_socket_t(-1),
                one.revents & Int16(POLLOUT) != 0 ? one.fd : ares_socket_t(-1))
        }
        if isIdle { ares_process_fd(channel, -1, -1) }
    }

    /// The most that a local resolver sends for a name, as far as that can be estimated from outside: two questions,
    /// each sent twice (RFC 1035, section 4.1; 11 bytes of EDNS, RFC 6891), over IPv6. An answer has at most 1,232
    /// bytes, the limit of servers over UDP (DNS flag day 2020).
    private static func most(for host: String) -> Spending {
        Spending(bytes: 4 * Int64(host.utf8.count + 2 + 12 + 4 + 11 + 48), received: 4 * (1232 + 48))
    }
}
