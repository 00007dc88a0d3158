internal import CLinux
package import Core
internal import Glibc
internal import Synchronization

/// Tells when something changed about interfaces, addresses, routes or their rules (rtnetlink(7)).
///
/// One socket and one thread, which sleeps in the kernel until there is something to tell. Both go with ``stop()``, or with
/// this object.
package final class NetworkNews: Sendable {
    package enum Kind: Int, Hashable, Sendable, Comparable {
        /// Nothing that was good can have become worse: to be looked at when no more has come for a moment.
        case other
        /// Bytes may go another way from now on, or none: a link is down or gone, a route is gone or another one is
        /// taken before it, an address is gone, or news were lost. To be looked at before anything else is sent.
        case mayForbid

        package static func < (one: Kind, other: Kind) -> Bool { one.rawValue < other.rawValue }
    }

    private let bell: Bell
    private let listener: Listener

    /// Whoever wants to miss nothing makes this first, and looks at the network then.
    ///
    /// - Parameters:
    ///   - threadName: At most 15 bytes.
    ///   - tell: Called on the thread of the news, once for all that came at once; it must not wait for long.
    package init(
        threadName: String = "network-news", _ tell: @escaping @Sendable (Kind) -> Void
    ) throws(SystemError) {
        let bell = try Bell()
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
                // A kernel before 5.3 has no next hops of their own to tell of.
                guard group == Self.nextHops, error.code == EINVAL else { throw error }
            }
        }
        self.bell = bell
        let listener = Listener(socket: socket, bell: bell, tell: tell)
        self.listener = listener
        try startThread(threadName) { listener.listen() }
    }

    deinit { bell.ring() }

    /// Ends the thread, which closes its socket. What it is telling at this moment is told to the end.
    package func stop() { bell.ring() }

    /// Hears of these routers too, from now on and in place of those of before: a rule may know a network by the hardware
    /// address of its router, and another one may come to stand there without any change of a link or a route. Where one has
    /// another address already than is said here, that is told.
    ///
    /// - Parameter routers: Each with what was found; `nil` where it was not known.
    ///   - hasOverlay: Also hears what a vxlan learns of its other ends.
    /// - Throws: When they cannot be heard of.
    package func follow(_ routers: [Neighbour: HardwareAddress?], hasOverlay: Bool = false) throws(SystemError) {
        try listener.follow(routers, hasOverlay: hasOverlay)
    }

    /// Links, addresses, routes and rules of IPv4 and IPv6, and next hops, whose change tells of no route
    /// (`RTNLGRP_…`, linux/rtnetlink.h).
    private static let groups: [CInt] = [1, 5, 7, 8, 9, 11, 19, nextHops]
    private static let nextHops: CInt = 32
    /// `RTNLGRP_NEIGH`: also whenever somebody was not heard from for a while, so it is joined only where it matters.
    private static let neighbours: CInt = 3

    private final class Listener: Sendable {
        private let socket: Descriptor
        private let bell: Bell
        private let tell: @Sendable (Kind) -> Void
        private let routers = Mutex<[Neighbour: HardwareAddress?]>([:])
        private let isJoined = Mutex(false)

        init(socket: consuming Descriptor, bell: Bell, tell: @escaping @Sendable (Kind) -> Void) {
            self.socket = socket
            self.bell = bell
            self.tell = tell
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
                    _ = try systemCall("setsockopt", on: "netlink group \(NetworkNews.neighbours)") {
                        !joins
                            ? sluice_netlink_leave(number, NetworkNews.neighbours)
                            : sluice_netlink_join(number, NetworkNews.neighbours)
                    }
                }
            }
            let news = wanted.filter { before[$0.key] != .some($0.value) }
            if news.isEmpty { return }
            // What came after it was found and before it was listened for.
            let question = try NetlinkSocket()
            for (router, known) in news {
                guard let now = Routes.hardwareAddress(of: router, by: question), now != known else { continue }
                return tell(.mayForbid)
            }
        }

        func listen() {
            var buffer = [UInt8](repeating: 0, count: 64 << 10)
            while !bell.wait(orReadingFrom: socket) {
                if let kind = readAll(&buffer) { tell(kind) }
            }
        }

        /// Reads until there is no more; the strictest of what came, `nil` for nothing.
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
                    // ENOBUFS: more came than there is room for, and nobody knows what. The kernel says so once, and the
                    // rest can be read.
                    return error.code == EAGAIN ? worst : .mayForbid
                }
                // Only the kernel knows.
                if sender != 0 { continue }
                let kind =
                    got <= buffer.count
                    ? routers.withLock { NetworkNews.kind(of: buffer[..<Int(got)], following: $0) } : .mayForbid
                if let kind { worst = max(worst ?? kind, kind) }
            }
        }
    }

    /// What a datagram tells; `nil` for nothing.
    static func kind(
        of datagram: ArraySlice<UInt8>, following routers: [Neighbour: HardwareAddress?] = [:]
    ) -> Kind? {
        // What cannot be read may be anything.
        guard let messages = NetlinkMessage.all(in: datagram) else { return .mayForbid }
        return messages.compactMap { kind(of: $0, routers) }.max()
    }

    private static func kind(of message: NetlinkMessage, _ routers: [Neighbour: HardwareAddress?]) -> Kind? {
        switch message.type {
        case Netlink.Kind.newNeighbour where message.body.first == Netlink.bridgeFamily:
            // NDA_DST: another end of a vxlan. What a bridge learns has none.
            return message.attributes(after: 12).contains(1) ? .mayForbid : nil
        case Netlink.Kind.newNeighbour:
            // One that does not answer carries nothing either.
            guard let neighbour = Routes.neighbour(in: message), let known = routers[neighbour],
                let address = Routes.hardwareAddress(in: message), address != known
            else { return nil }
            return .mayForbid
        case Netlink.Kind.deleteNeighbour: return nil
        case Netlink.Kind.newLink:
            // The ports of bridges have messages of another family. What cannot be read may be anything.
            if message.body.first.map({ $0 != UInt8(AF_UNSPEC) }) ?? false { return .other }
            guard let facts = LinkFacts(message) else { return .mayForbid }
            if facts.isWirelessEvent { return nil }
            return facts.isUsable ? .other : .mayForbid
        case Netlink.Kind.newRoute:
            guard let facts = RouteFacts(message) else { return .mayForbid }
            if facts.isCloned { return nil }
            if message.flags & Netlink.Flag.replaces != 0 { return .mayForbid }
            // What the kernel makes for an address leads to the neighbours alone.
            return facts.isKernelMade || facts.type == .local ? .other : .mayForbid
        case Netlink.Kind.deleteRoute:
            return RouteFacts(message)?.isCloned == true ? nil : .mayForbid
        case Netlink.Kind.newAddress: return .other
        case let type where type < Netlink.Kind.first: return nil
        default: return .mayForbid
        }
    }
}
