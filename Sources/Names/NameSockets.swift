internal import CCares
internal import Core
internal import Glibc
internal import Linux

/// The sockets of one ``DNSLookup``. Each is bound to the interface of its server, and its sent and received bytes
/// are counted.
///
/// Used on one thread.
final class NameSockets {
    private let interfaces: [IPAddress: String]
    /// Sockets that may send, by their numbers, and the size of a header there.
    private var bound: [CInt: Int64] = [:]
    private var streams: Set<CInt> = []
    private(set) var spent = Spending.none
    private(set) var result: (status: CInt, addresses: [IPAddress])?

    init(_ interfaces: [IPAddress: String]) { self.interfaces = interfaces }

    func receive(_ status: CInt, _ list: UnsafeMutablePointer<ares_addrinfo>?) {
        defer { if let list { ares_freeaddrinfo(list) } }
        var found: [IPAddress] = []
        var at = list?.pointee.nodes
        while let node = at?.pointee {
            at = node.ai_next
            if let address = SystemResolver.address(node.ai_addr, Int(node.ai_addrlen)), !found.contains(address) {
                found.append(address)
            }
        }
        result = (status, found)
    }

    /// `nonisolated(unsafe)`, proof: written once, before its first use. c-ares keeps the address for as long as a
    /// channel lives.
    nonisolated(unsafe) static let functions: UnsafePointer<ares_socket_functions> = {
        let functions = UnsafeMutablePointer<ares_socket_functions>.allocate(capacity: 1)
        functions.initialize(to: made)
        return UnsafePointer(functions)
    }()

    private static var made: ares_socket_functions {
        ares_socket_functions(
            asocket: { family, kind, number, context in
                let made = socket(family, kind | CInt(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), number)
                if made >= 0, kind == CInt(SOCK_STREAM.rawValue) { NameSockets.of(context)?.streams.insert(made) }
                return made
            },
            aclose: { number, context in
                NameSockets.of(context)?.bound[number] = nil
                NameSockets.of(context)?.streams.remove(number)
                return close(number)
            },
            aconnect: { number, address, length, context in
                guard let own = NameSockets.of(context), let address else { return -1 }
                return own.connect(number, address, length)
            },
            arecvfrom: { number, buffer, count, flags, from, length, context in
                guard let buffer, let own = NameSockets.of(context) else { return -1 }
                let came = recvfrom(number, buffer, count, flags, from.map { UnsafeMutablePointer($0) }, length)
                if came > 0, let header = own.bound[number] { own.spent.received += Int64(came) + header }
                return came
            },
            asendv: { number, pieces, count, context in
                guard let own = NameSockets.of(context) else { return -1 }
                return own.send(number, pieces, count)
            })
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> NameSockets? {
        context.map { Unmanaged<NameSockets>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Connects to a server over its interface. Other addresses come from the answer: c-ares connects a socket to them,
    /// without sending, to find out which of them to try first.
    private func connect(_ number: CInt, _ address: UnsafePointer<sockaddr>, _ length: ares_socklen_t) -> CInt {
        if let server = SystemResolver.address(address, Int(length)), let interface = interfaces[server] {
            let overhead: Int64
            do {
                try Sockets.bind(number, to: interface)
                overhead = try Encapsulation.overhead(to: server, port: 53, over: interface) ?? 0
            } catch {
                errno = error.code
                return -1
            }
            let isStream = streams.contains(number)
            let header = (server.isIPv6 ? 40 : 20) + (isStream ? 32 : 8) + overhead
            bound[number] = header
            // A connection is opened, acknowledged and closed.
            if isStream { spent += Spending(bytes: 6 * (header + 8), received: 6 * (header + 8)) }
        }
        return Glibc.connect(number, address, length)
    }

    private func send(_ number: CInt, _ pieces: UnsafePointer<iovec>?, _ count: CInt) -> ares_ssize_t {
        guard let header = bound[number] else {
            errno = EPERM
            return -1
        }
        let written = writev(number, pieces, count)
        if written > 0 { spent.bytes += Int64(written) + header }
        return written
    }
}
