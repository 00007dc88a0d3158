package import Core
internal import Glibc

/// The routes that packets to an address may take without contradicting this machine's configuration.
///
/// A route to fewer addresses, a table that a rule selects (`ip rule`), a tunnel: these were configured so that packets
/// take that route and no other, and a second link that leads everywhere replaces none of them. Only among routes to
/// the same destination in the same table any may be chosen.
package enum RouteCandidates {
    package struct Candidate: Hashable, Sendable {
        package var route: NetworkRoute
        /// Among equal routes the smallest comes first.
        package var metric: UInt32
        /// A policy of IPsec, or the route itself, puts its packets into others, which may leave by another interface.
        package var isEncapsulated = false
        /// Interfaces by which packets would leave if rules (`ip rule`) matched for which that cannot be known
        /// beforehand: by mark, for example.
        package var others: [Int32] = []
    }

    /// - Parameter links: The interfaces to consider, in addition to the one that the kernel chooses.
    /// - Returns: First the kernel's own choice, which may be dead (``NetworkRoute/isDead``); then, by metric, the
    ///   equal ones that are not dead. Empty where the kernel has no route.
    package static func candidates(
        to address: IPAddress, port: UInt16? = nil, over links: [Int32]
    ) throws(SystemError) -> [Candidate] {
        let socket = try NetlinkSocket()
        let question = RouteQuestion(address: address, port: port)
        guard let own = try choice(question, by: socket) else { return [] }
        guard let entry = own.entry, try refusal(toLeave: own, entry, by: socket) == nil else { return [own.candidate] }
        var equal: [Candidate] = []
        for link in links where link != own.candidate.route.link {
            if case .equal(let candidate) = try other(link, question, entry, by: socket) { equal.append(candidate) }
        }
        return [own.candidate] + equal.sorted { ($0.metric, $0.route.link) < ($1.metric, $1.route.link) }
    }

    /// The reason why an interface may not be chosen.
    package enum Refusal: Hashable, Sendable {
        /// A rule (`ip rule`) has led to the kernel's own route.
        case ownIsByRule
        /// A rule may lead elsewhere, by criteria that a question does not contain (a firewall mark, the source port of
        /// a connection).
        case ruleMayLead
        case ownIsTunnel
        /// A policy of IPsec applies to the kernel's own route.
        case ownIsEncapsulated
        /// The packets stay on this machine.
        case ownIsInside
        case noRoute
        /// The interface is down, or has no carrier.
        case dead
        /// A policy of IPsec applies there.
        case encapsulated
        /// Its route leads to other addresses than the kernel's own, is in another table, or has another scope.
        case unequal
    }

    /// - Parameter links: The interfaces in question.
    /// - Returns: Why each of them may not be chosen; no entry for those that may.
    package static func refusals(
        to address: IPAddress, port: UInt16? = nil, over links: [Int32]
    ) throws(SystemError) -> [Int32: Refusal] {
        let socket = try NetlinkSocket()
        let question = RouteQuestion(address: address, port: port)
        guard let own = try choice(question, by: socket) else { return [:] }
        var reason: Refusal? = .ownIsInside
        if let entry = own.entry { reason = try refusal(toLeave: own, entry, by: socket) }
        var refusals: [Int32: Refusal] = [:]
        for link in links where link != own.candidate.route.link {
            if let reason {
                refusals[link] = reason
            } else if let entry = own.entry, case .refused(let reason) = try other(link, question, entry, by: socket) {
                refusals[link] = reason
            }
        }
        return refusals
    }

    private enum Other {
        case equal(Candidate)
        case refused(Refusal)
    }

    private static func other(
        _ link: Int32, _ question: RouteQuestion, _ entry: RouteMessage, by socket: borrowing NetlinkSocket
    ) throws(SystemError) -> Other {
        var other = question
        other.link = link
        guard let choice = try choice(other, by: socket), choice.candidate.route.link == link else {
            return .refused(.noRoute)
        }
        if choice.candidate.route.isDead { return .refused(.dead) }
        if choice.candidate.isEncapsulated { return .refused(.encapsulated) }
        return choice.entry.map { $0.isEqual(to: entry) } ?? false ? .equal(choice.candidate) : .refused(.unequal)
    }

    /// Whether a connection to an address may be bound to an interface.
    ///
    /// - Throws: `ENODEV` where there is no such interface, and other errors of the kernel.
    package static func leads(_ interface: String, to address: IPAddress, port: UInt16) throws(SystemError) -> Bool {
        let link = interface.withCString { if_nametoindex($0) }
        guard link != 0 else { throw SystemError(call: "if_nametoindex", subject: interface, code: ENODEV) }
        return try candidates(to: address, port: port, over: [Int32(clamping: link)]).contains {
            $0.route.link == link && !$0.route.isDead
        }
    }

    private struct Choice {
        var candidate: Candidate
        /// `nil` for a route that stays on this machine.
        var entry: RouteMessage?
    }

    /// Chooses like TCP: a route first, then its source address, and with that the route once more.
    private static func choice(
        _ question: RouteQuestion, by socket: borrowing NetlinkSocket
    ) throws(SystemError) -> Choice? {
        guard var route = try Routes.route(question, by: socket) else { return nil }
        var again = question
        again.source = route.source
        if question.link != nil, route.source != nil {
            // A rule by source may lead elsewhere, regardless of the bound interface.
            var unbound = again
            unbound.link = nil
            guard let entry = try Routes.entry(unbound, by: socket), isOrdinary(entry) else { return nil }
        }
        if question.link != nil, question.address.isIPv6 {
            // With a source, this question treats the interface as a preference, while a bound socket does not.
            again = question
        } else if route.source != nil {
            guard let second = try Routes.route(again, by: socket) else { return nil }
            route = second
            // The answer does not repeat a source from the question.
            route.source = second.source ?? again.source
        }
        if route.link == 1 { return Choice(candidate: Candidate(route: route, metric: 0), entry: nil) }
        guard let entry = try Routes.entry(again, by: socket) else { return nil }
        var candidate = Candidate(route: route, metric: entry.metric)
        if !route.isDead {
            let answer = try IPsec.answer(
                to: question.address, port: question.port, over: question.link, route, by: socket)
            candidate.isEncapsulated = answer != .untouched
            candidate.others = try RouteRules.otherLinks(
                than: route.link, for: RouteRules.Flow(question: again), by: socket)
        }
        return Choice(candidate: candidate, entry: entry)
    }

    /// RT_TABLE_MAIN and RT_TABLE_DEFAULT: every other table is used because a rule leads to it.
    private static func isOrdinary(_ entry: RouteMessage) -> Bool { entry.table == 254 || entry.table == 253 }

    /// Why no other route may replace the kernel's choice; `nil` where one may.
    private static func refusal(
        toLeave own: Choice, _ entry: RouteMessage, by socket: borrowing NetlinkSocket
    ) throws(SystemError) -> Refusal? {
        guard isOrdinary(entry) else { return .ownIsByRule }
        if !own.candidate.others.isEmpty { return .ruleMayLead }
        if own.candidate.isEncapsulated { return .ownIsEncapsulated }
        return try Links.facts(of: own.candidate.route.link, by: socket)?.link.isTunnel == true ? .ownIsTunnel : nil
    }
}

extension RouteMessage {
    /// Whether it differs from another only by its metric.
    ///
    /// For routes that lead everywhere the scope does not count: a modem has no gateway, so its scope is the link.
    fileprivate func isEqual(to other: RouteMessage) -> Bool {
        table == other.table && length == other.length && (scope == other.scope || length == 0) && type == other.type
    }
}
