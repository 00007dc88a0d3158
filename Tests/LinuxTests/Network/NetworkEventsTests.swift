import Core
import Glibc
import Synchronization
import TestKit
import Testing

@testable import Linux

/// The reported kinds so far, and their number.
private final class Reports: Sendable {
    private let seen = Mutex<[NetworkEvents.Kind]>([])
    func add(_ kind: NetworkEvents.Kind) { seen.withLock { $0.append(kind) } }
    var all: [NetworkEvents.Kind] { seen.withLock { $0 } }
    func forget() { seen.withLock { $0 = [] } }
}

/// Threads of this process with that name (proc(5)).
private func threads(named name: String) throws -> Int {
    try Files.names(in: "/proc/self/task").count { thread in
        let path = FilePath("/proc/self/task").appending(thread).appending("comm")
        // Threads of other tests start and end.
        return (try? Files.read(path)).map { String(decoding: $0, as: UTF8.self) == "\(name)\n" } ?? false
    }
}

@Suite(
    "Network events in a namespace", .serialized,
    .enabled(if: NetworkNamespace.isPossible, "\(NetworkNamespace.need)"), .timeLimit(.minutes(Patience.minutes(1))))
struct NetworkEventsTests {
    private let network: NetworkNamespace
    private let reports = Reports()

    init() throws {
        network = try NetworkNamespace()
        try network.addCable("left0", "left1")
        try network.ip("addr", "add", "10.1.0.2/24", "dev", "left0")
        try network.ip("route", "add", "default", "via", "10.1.0.1", "dev", "left0")
    }

    private func listen() throws -> NetworkEvents {
        try network.run { [reports] in try NetworkEvents { reports.add($0) } }
    }

    /// A change, its arguments for `ip`, and the least that is reported of it.
    struct Change: CustomTestStringConvertible, Sendable {
        let what: String
        let words: [[String]]
        let kind: NetworkEvents.Kind
        var testDescription: String { what }
    }

    static let changes = [
        Change(what: "a link that goes down", words: [["link", "set", "left0", "down"]], kind: .mayForbid),
        Change(what: "a cable that is pulled", words: [["link", "set", "left1", "down"]], kind: .mayForbid),
        Change(what: "a link that is deleted", words: [["link", "del", "left0"]], kind: .mayForbid),
        Change(
            what: "a route that is replaced",
            words: [["route", "replace", "default", "via", "10.1.0.9", "dev", "left0"]], kind: .mayForbid),
        Change(what: "a route that goes", words: [["route", "del", "default"]], kind: .mayForbid),
        Change(
            what: "a route that takes over",
            words: [["route", "add", "203.0.113.0/24", "via", "10.1.0.9", "dev", "left0"]], kind: .mayForbid),
        Change(
            what: "an address that goes", words: [["addr", "del", "10.1.0.2/24", "dev", "left0"]], kind: .mayForbid),
        Change(what: "an address that comes", words: [["addr", "add", "10.1.0.3/24", "dev", "left0"]], kind: .other),
        Change(
            what: "an IPv6 address that comes", words: [["-6", "addr", "add", "fd01::3/64", "dev", "left0", "nodad"]],
            kind: .other),
        Change(what: "a rule for routes", words: [["rule", "add", "dport", "443", "lookup", "77"]], kind: .mayForbid),
        Change(
            what: "a rule for IPv6 routes", words: [["-6", "rule", "add", "from", "fd00::/8", "lookup", "77"]],
            kind: .mayForbid),
        Change(
            what: "a route of IPv6", words: [["-6", "route", "add", "2001:db8::/32", "dev", "left0"]], kind: .mayForbid),
    ]

    @Test("each change is reported, and at once if it may forbid", arguments: changes)
    func change(_ change: Change) async throws {
        let events = try listen()
        for words in change.words { try network.run(words) }
        try await eventually("\(change.what) has been reported") { reports.all.contains { $0 >= change.kind } }
        events.stop()
    }

    @Test("a reconnected cable is reported as an improvement that may wait")
    func carrier() async throws {
        try network.ip("link", "set", "left1", "down")
        let events = try listen()
        try network.ip("link", "set", "left1", "up")
        try await eventually("the change has been reported") { reports.all.contains(.other) }
        events.stop()
    }

    @Test("events come only from the own namespace, and none without a change")
    func quiet() async throws {
        let other = try NetworkNamespace()
        let mine = try listen()
        let theirs = Reports()
        let others = try other.run { try NetworkEvents { theirs.add($0) } }
        try other.addCable("one", "two")
        try await eventually("the other network has reported its changes") { !theirs.all.isEmpty }
        // All earlier events come before this change.
        try network.ip("link", "set", "left0", "mtu", "1400")
        try await eventually("the change of this network has been reported") { !reports.all.isEmpty }
        #expect(reports.all.allSatisfy { $0 == .other })
        mine.stop()
        others.stop()
    }

    @Test("a router replaced at its address is reported, even if replaced before listening")
    func router() async throws {
        func answers(_ hardware: String, at address: String = "10.1.0.1") throws {
            try network.ip("neigh", "replace", address, "lladdr", hardware, "dev", "left0", "nud", "reachable")
        }
        let (known, other) = ("02:00:00:00:00:01", "02:00:00:00:00:02")
        try answers(known)
        let address = try #require(IPAddress("10.1.0.1"))
        let route = try #require(try network.run { try Routes.route(to: address) })
        let router = Neighbour(link: route.link, address: address)
        let found = try #require(HardwareAddress(known))
        let events = try listen()
        try network.run { try events.follow([router: found]) }
        // All earlier events come before an unrelated change.
        var mtu = 1300
        func end(_ what: String) async throws {
            mtu += 1
            try network.ip("link", "set", "left0", "mtu", "\(mtu)")
            try await eventually(what) { reports.all.last == .other }
        }
        try answers(known)
        try answers(other, at: "10.1.0.7")
        try await end("the unrelated change has been reported")
        #expect(!reports.all.contains(.mayForbid))
        reports.forget()
        try answers(other)
        // A change may be reported in several pieces, the last of them only now.
        try await eventually("the change has been reported") { reports.all.contains(.mayForbid) }
        reports.forget()
        try network.run { try events.follow([:]) }
        try answers(known)
        try await end("no router is followed any more")
        #expect(!reports.all.contains(.mayForbid))
        reports.forget()
        try answers(other)
        try network.run { try events.follow([router: found]) }
        try await eventually("the earlier change has been reported") { reports.all.contains(.mayForbid) }
        events.stop()
    }

    @Test("lost events count as any event at once, and later ones are reported again")
    func overflow() async throws {
        let gate = ConditionLock(false)
        let events = try network.run { [reports] in
            try NetworkEvents {
                reports.add($0)
                _ = gate.wait { $0 ? true : nil }
            }
        }
        try network.ip("addr", "add", "10.1.0.3/24", "dev", "left0")
        try await eventually("the listener is called with the change") { reports.all == [.other] }
        // More than the socket's buffer holds while it is not read; none of it forbids anything.
        let folder = TemporaryFolder()
        let batch = (0..<6000).map { "addr add 10.\(100 + $0 / 250).\($0 % 250).1/32 dev left0\n" }.joined()
        try network.run(["-batch", folder.write("batch", Array(batch.utf8)).display])
        gate.changeForAll { $0 = true }
        try await eventually("the loss of events has been reported") { reports.all.contains(.mayForbid) }
        reports.forget()
        try network.ip("link", "set", "left0", "mtu", "1400")
        try await eventually("the next change has been reported") { !reports.all.isEmpty }
        events.stop()
    }

    @Test("stopped listeners leave no thread and no descriptor, also from inside or when released")
    func stopped() async throws {
        let name = "stopped-events"
        let sockets = try network.run { try socketsOfNetwork() }
        for round in 0..<10 {
            let own = Mutex<NetworkEvents?>(nil)
            let events = try network.run { [reports] in
                try NetworkEvents(threadName: name) {
                    reports.add($0)
                    own.withLock { $0?.stop() }
                }
            }
            try await eventually("the thread of the listener runs") { try threads(named: name) > 0 }
            switch round % 3 {
            case 0: events.stop()
            case 1:
                own.withLock { $0 = events }
                reports.forget()
                try network.ip("link", "set", "left0", "mtu", "\(1300 + round)")
                try await eventually("the change has been reported") { !reports.all.isEmpty }
                own.withLock { $0 = nil }
            default: break
            }
        }
        try await eventually("no thread of the listeners is left") { try threads(named: name) == 0 }
        try await eventually("no socket of the listeners is left") {
            try network.run { try socketsOfNetwork() } == sockets
        }
    }
}

/// Netlink sockets of the calling thread's network (proc(5), net/netlink).
private func socketsOfNetwork() throws -> Int {
    try Files.read("/proc/thread-self/net/netlink").split(separator: UInt8(ascii: "\n")).count
}
