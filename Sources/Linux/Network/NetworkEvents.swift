internal import CLinux
package import Core
internal import Glibc
internal import Synchronization

/// Reports changes of interfaces, addresses, routes or their rules (rtnetlink(7)).
///
/// Uses one socket and one thread, which sleeps in the kernel until there is an event. Both end with ``stop()``, or
/// with this object.
package final class NetworkEvents: Sendable {
    package enum Kind: Int, Hashable, Sendable, Comparable {
        /// No route can have become worse. The network is examined when no event has come for a moment.
        case other
        /// Bytes may take another route from now on, or none: a link is down or gone, a route is gone or replaced by
        /// another, an address is gone, or events were lost. The network is examined before more bytes are sent.
        case mayForbid

        package static func < (one: Kind, other: Kind) -> Bool { one.rawValue < other.rawValue }
    }

    private let signal: EventFD
    private let listener: Listener

    /// To miss no change, make this object first, and examine the network then.
    ///
    /// - Parameters:
    ///   - threadName: At most 15 bytes.
    ///   - tell: Called on the thread of the events, once for all that came together; it must not wait for long.
    package init(
        threadName: String = "network-events", _ tell: @escaping @Sendable (Kind) -> Void
    ) throws(SystemError) {
        let signal = try EventFD()
        let socket = Descriptor(
            adopting: try systemCall("socket", on: "netlink") { sluice_netlink(Netlink.routing, 0) })
        for group in Self.groups {
            do {
                try socket.withNumber { number throws(SystemError) in
                    _ = try systemCall("setsockopt", on: "netlink group \(group)") {
                        sluice_netlink_join(number, group)
                    }
                }
            } catch {
                // A kernel before 5.3 has no next hop objects to report.
                guard group == Self.nextHops, error.code == EINVAL else { throw error }
            }
        }
        self.signal = signal
        let listener = Listener(socket: socket, signal: signal, tell: tell)
        self.listener = listener
        try startThread(threadName) { listener.listen() }
    }

    deinit { signal.signal() }

    /// Ends the thread, which closes its socket. A running call is completed.
    package func stop() { signal.signal() }

    /// Replaces the routers that are observed too. A rule may identify a network by the hardware address of its router,
    /// and the router may change without any change of a link or a route. If a router already has another address than
    /// given here, that is reported.
    ///
    /// - Parameter routers: Each with its known address; `nil` where it was unknown.
    ///   - hasOverlay: Also observes the other ends that a vxlan learns.
    /// - Throws: When they cannot be observed.
    package func follow(_ routers: [Neighbour: HardwareAddress?], hasOverlay: Bool = false) throws(SystemError) {
        try listener.follow(routers, hasOverlay: hasOverlay)
    }

    /// Links, addresses, routes and rules of IPv4 and IPv6, and next hops, whose change causes no event of a route
    /// (`RTNLGRP_…`, linux/rtnetlink.h).
    private static let groups: [CInt] = [1, 5, 7, 8, 9, 11, 19, nextHops]
    private static let nextHops: CInt = 32
    /// `RTNLGRP_NEIGH`: it also has an event whenever a neighbour was silent for a while, so it is joined only where it
    /// matters.
    private static let neighbours: CInt = 3

    private final class Listener: Sendable {
        private let socket: Descriptor
        private let signal: EventFD
        private let onEvent: @Sendable (Kind) -> Void
        private let routers = Mutex<[Neighbour: HardwareAddress?]>([:])
        private let isJoined = Mutex(false)

        init(socket: consuming Descriptor, signal: EventFD, tell: @escaping @Sendable (Kind) -> Void) {
            self.socket = socket
            self.signal = signal
            self.onEvent = tell
        }

        func follow(_ wanted: [Neighbour: HardwareAddress?], hasOverlay: Bool) throws(SystemError) {
            let before = routers.withLock { routers in
                defer { routers = wanted }
                return routers
            }
            let joins = hasOverlay || !wanted.isEmpty
            let isNew = isJoined.withLock { isJoined in
                defer { isJoined = joins }
                return isJoined != joins
            }
            if isNew {
                try socket.withNumber { number throws(SystemError) in
                    _ = try systemCall("setsockopt", on: "netlink group \(NetworkEvents.neighbours)") {
                        !joins
                            ? sluice_netlink_leave(number, NetworkEvents.neighbours)
                            : sluice_netlink_join(number, NetworkEvents.neighbours)
                    }
                }
            }
            let changes = wanted.filter { before[$0.key] != .some($0.value) }
            if changes.isEmpty { return }
            // A change after the address was found and before the subscription.
            let question = try NetlinkSocket()
            for (router, known) in changes {
                guard let now = Routes.hardwareAddress(of: router, by: question), now != known else { continue }
                return onEvent(.mayForbid)
            }
        }

        func listen() {
            var buffer = [UInt8](repeating: 0, count: 64 << 10)
            while !signal.wait(orReadingFrom: socket) {
                if let kind = readAll(&buffer) { onEvent(kind) }
            }
        }

        /// Reads all pending data. Returns the strictest kind of event; `nil` for none.
        private func readAll(_ buffer: inout [UInt8]) -> Kind? {
            var worst: Kind?
            while true {
                var sender: UInt32 = 0
                let got: Int64
                do {
                    got = try socket.withNumber { number throws(SystemError) in
                        try systemCall("recvfrom", on: "netlink") {
                            buffer.withUnsafeMutableBytes {
                                sluice_netlink_receive(number, $0.baseAddress, $0.count, &sender)
                            }
                        }
                    }
                } catch {
                    // ENOBUFS: events were lost, and it is unknown which. The kernel says so once, and the rest can be
                    // read.
                    return error.code == EAGAIN ? worst : .mayForbid
                }
                // Only the kernel is trusted.
                if sender != 0 { continue }
                let kind =
                    got <= buffer.count
                    ? routers.withLock { NetworkEvents.kind(of: buffer[..<Int(got)], following: $0) } : .mayForbid
                if let kind { worst = max(worst ?? kind, kind) }
            }
        }
    }

    /// The kind of event in a datagram; `nil` for none.
    static func kind(
        of datagram: ArraySlice<UInt8>, following routers: [Neighbour: HardwareAddress?] = [:]
    ) -> Kind? {
        // An unreadable datagram may be about anything.
        guard let messages = NetlinkMessage.all(in: datagram) else { return .mayForbid }
        return messages.compactMap { kind(of: $0, routers) }.max()
    }

    private static func kind(of message: NetlinkMessage, _ routers: [Neighbour: HardwareAddress?]) -> Kind? {
        switch message.type {
        case Netlink.Kind.newNeighbour where message.body.first == Netlink.bridgeFamily:
            // NDA_DST: another end of a vxlan. Entries that a bridge learns have none.
            return message.attributes(after: 12).contains(1) ? .mayForbid : nil
        case Netlink.Kind.newNeighbour:
            // A router that does not answer carries nothing either.
            guard let neighbour = Routes.neighbour(in: message), let known = routers[neighbour],
                let address = Routes.hardwareAddress(in: message), address != known
            else { return nil }
            return .mayForbid
        case Netlink.Kind.deleteNeighbour: return nil
        case Netlink.Kind.newLink:
            // The ports of bridges have messages of another family. An unreadable message may be about anything.
            if message.body.first.map({ $0 != UInt8(AF_UNSPEC) }) ?? false { return .other }
            guard let facts = LinkMessage(message) else { return .mayForbid }
            if facts.isWirelessEvent { return nil }
            return facts.isUsable ? .other : .mayForbid
        case Netlink.Kind.newRoute:
            guard let facts = RouteMessage(message) else { return .mayForbid }
            if facts.isCloned { return nil }
            if message.flags & Netlink.Flag.replaces != 0 { return .mayForbid }
            // Routes that the kernel makes for an address lead only to the neighbours.
            return facts.isKernelMade || facts.type == .local ? .other : .mayForbid
        case Netlink.Kind.deleteRoute:
            return RouteMessage(message)?.isCloned == true ? nil : .mayForbid
        case Netlink.Kind.newAddress: return .other
        case let type where type < Netlink.Kind.first: return nil
        default: return .mayForbid
        }
    }
}
