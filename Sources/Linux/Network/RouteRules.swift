internal import Core
internal import Glibc

/// The rules by which the kernel chooses a routing table (ip-rule(8)), where a question to the kernel does not show
/// whether they match: the firewall mark and the source port of a packet are unknown before it is sent.
enum RouteRules {
    /// The packets whose route is requested.
    struct Flow: Hashable {
        var question: RouteQuestion
        /// `IPPROTO_…`; `nil` where it is unknown.
        var transport: UInt8? = UInt8(IPPROTO_TCP)
    }

    /// Interfaces by which packets would leave if rules matched for which that is unknown.
    static func otherLinks(
        than own: Int32, for flow: Flow, by socket: borrowing NetlinkSocket
    ) throws(SystemError) -> [Int32] {
        let family = UInt8(flow.question.address.isIPv6 ? AF_INET6 : AF_INET)
        let question = NetlinkRequest(
            Netlink.Kind.getRule, dump: true, header: [family, 0, 0, 0, 0, 0, 0, 0] + raw(UInt32(0)))
        let rules = try socket.query(question, about: "rules").compactMap { RuleMessage($0) }
        let tables = Set(rules.filter { $0.family == family && $0.mayMatch(flow) }.map(\.table))
        if tables.isEmpty { return [] }
        // The route of each table that would be used: the one to the fewest addresses, and of those the one with the
        // smallest metric.
        var best: [UInt32: RouteMessage] = [:]
        let dump = NetlinkRequest(
            Netlink.Kind.getRoute, dump: true, header: [family, 0, 0, 0, 0, 0, 0, 0] + raw(UInt32(0)))
        for message in try socket.query(dump, about: "routes") {
            guard let facts = RouteMessage(message), tables.contains(facts.table), facts.type == .unicast,
                !facts.isCloned, facts.leads(to: flow.question.address), facts.hops.contains(where: { !$0.isDead })
            else { continue }
            if let known = best[facts.table], !facts.goes(before: known) { continue }
            best[facts.table] = facts
        }
        let links = Set(best.values.flatMap(\.hops).filter { !$0.isDead }.map(\.link))
        return links.subtracting([own, 1]).sorted()
    }
}

/// The contents of a message about a rule (`struct fib_rule_hdr`, linux/fib_rules.h).
struct RuleMessage: Hashable {
    var family: UInt8
    var table: UInt32
    var isInverted: Bool
    var destination: IPSubnet?
    var source: IPSubnet?
    var incoming: String?
    var mark: UInt32
    var mask: UInt32
    var transport: UInt8?
    var sourcePorts: ClosedRange<UInt16>?
    var ports: ClosedRange<UInt16>?

    /// - Returns: `nil` for other messages, and for rules that lead to no table.
    init?(_ message: NetlinkMessage) {
        guard message.type == Netlink.Kind.newRule, let fixed = message.body.number(at: 0, as: UInt64.self),
            let flags = message.body.number(at: 8, as: UInt32.self)
        else { return nil }
        let bytes = raw(fixed)
        // FR_ACT_TO_TBL.
        guard bytes[7] == 1 else { return nil }
        family = bytes[0]
        // FIB_RULE_INVERT.
        isInverted = flags & 2 != 0
        let attributes = message.attributes(after: 12)
        table = attributes.number(15, as: UInt32.self) ?? UInt32(bytes[4])
        func network(_ number: UInt16, _ length: UInt8) -> IPSubnet? {
            attributes[number].flatMap { IPAddress($0) }.flatMap { IPSubnet($0, prefix: Int(length)) }
        }
        (destination, source) = (network(1, bytes[1]), network(2, bytes[2]))
        incoming = attributes.text(3).map { String(decoding: $0, as: UTF8.self) }
        mark = attributes.number(10, as: UInt32.self) ?? 0
        mask = attributes.number(16, as: UInt32.self) ?? (mark == 0 ? 0 : .max)
        transport = attributes.number(22, as: UInt8.self).flatMap { $0 == 0 ? nil : $0 }
        func range(_ number: UInt16) -> ClosedRange<UInt16>? {
            guard let both = attributes.number(number, as: UInt32.self) else { return nil }
            let (low, high) = (UInt16(truncatingIfNeeded: both), UInt16(both >> 16))
            return low <= high && high > 0 ? low...high : nil
        }
        (sourcePorts, ports) = (range(23), range(24))
    }

    /// Whether it may match packets that the kernel's own answer does not cover.
    func mayMatch(_ flow: RouteRules.Flow) -> Bool {
        // A VPN's rule sends everything through it except its own packets, which are marked: then the answer for
        // unmarked packets is right.
        if isInverted { return false }
        let question = flow.question
        if let destination, !destination.contains(question.address) { return false }
        if let source, let own = question.source, !source.contains(own) { return false }
        if let incoming, incoming != "lo" { return false }
        if let transport, let own = flow.transport, transport != own { return false }
        if let ports, let port = question.port, !ports.contains(port) { return false }
        let isAsked = question.port != nil
        return mark & mask != 0 || sourcePorts != nil || transport != nil && !isAsked || ports != nil && !isAsked
    }
}

extension RouteMessage {
    fileprivate func goes(before other: RouteMessage) -> Bool {
        (length, other.metric) > (other.length, metric)
    }

    /// Whether the route covers this address.
    fileprivate func leads(to address: IPAddress) -> Bool {
        if length == 0 { return true }
        guard let destination, let network = IPSubnet(destination, prefix: Int(length)) else { return false }
        return network.contains(address)
    }
}
