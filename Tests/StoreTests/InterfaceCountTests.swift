import Core
import Linux
import TestKit
import Testing

@testable import Store

/// The counters of a machine with one modem.
private struct Modem {
    var boot = "boot-1"
    var number: Int32 = 9
    var counted = Spending.none

    func read() throws -> LinkBytes {
        try #require(LinkBytes("\(boot) 1 wwan0:\(number):\(counted.bytes):\(counted.received) lo:1:5:5"))
    }
}

@Suite("Quotas of all programs")
struct InterfaceCountTests {
    private static let plan = QuotaName(.policy, "plan")
    private static let account = SpendingAccount(destination: "nas", folder: "cam", network: .metered)

    private func spent(_ scene: Scene) async throws -> Spending {
        let recount = try #require(
            QuotaState(
                policy: PolicyRules(quotas: [
                    Quota(
                        period: .month(startsOn: 1), bytes: 1 << 40, direction: .both, name: "plan",
                        when: .fact(.interface(["wwan0"])), count: .interface)
                ])
            ).recounts(at: scene.clocks.wall()).first)
        return try await scene.store.read { try $0.ledger.spent(for: recount) }
    }

    private func compare(_ scene: Scene, _ modem: Modem) async throws -> Spending {
        let counters = try modem.read()
        return try await scene.store.write {
            try $0.ledger.interfaces.compare(counters, [Self.plan: [modem.number]]).entered[Self.plan] ?? .none
        }
    }

    @Test("counts from the first reading on, over a reboot, and for a modem that was made again")
    func resets() async throws {
        let scene = try await Scene()
        var modem = Modem(counted: Spending(bytes: 1_000, received: 500))
        #expect(try await compare(scene, modem) == .none)
        modem.counted += Spending(bytes: 10, received: 20)
        #expect(try await compare(scene, modem) == Spending(bytes: 10, received: 20))
        // Another modem in its place: its counters begin at zero, and the number is another one.
        (modem.number, modem.counted) = (10, Spending(bytes: 7, received: 3))
        #expect(try await compare(scene, modem) == Spending(bytes: 7, received: 3))
        (modem.boot, modem.counted) = ("boot-2", Spending(bytes: 100, received: 1))
        #expect(try await compare(scene, modem) == Spending(bytes: 100, received: 1))
        // The driver has reset its counters.
        modem.counted = Spending(bytes: 4, received: 2)
        #expect(try await compare(scene, modem) == Spending(bytes: 4, received: 2))
        #expect(try await spent(scene) == Spending(bytes: 121, received: 26))
    }

    @Test("a reading after which nothing has moved needs no transaction, unless bytes that may be ours are open")
    func still() async throws {
        let scene = try await Scene()
        var modem = Modem(counted: Spending(bytes: 1_000, received: 500))
        let links: [QuotaName: Set<Int32>] = [Self.plan: [modem.number]]
        func compare(_ last: InterfaceComparison? = nil) async throws -> InterfaceComparison {
            let counters = try modem.read()
            return try await scene.store.write {
                try $0.ledger.interfaces.compare(counters, links, since: last?.counters)
            }
        }
        var first = try await compare()
        // The row of the quota is new: the reading after that is the first that counts.
        let same = try modem.read()
        let isFirstTaken = first.takes(same, links)
        #expect(!isFirstTaken)
        var second = try await compare(first)
        let areTaken = (second.takes(same, links), second.takes(same, [:]))
        #expect(areTaken == (true, false))
        modem.counted.received += 1
        let more = try modem.read()
        let isMoreTaken = second.takes(more, links)
        #expect(!isMoreTaken)
        second = try await compare(second)
        #expect(second.entered == [Self.plan: Spending(received: 1)])
        // Bytes of ours are reserved: those that the modem has carried may be these, or not.
        _ = try await scene.store.write {
            try $0.ledger.reserve(Reservation(Self.account, Spending(bytes: 1_000), quotas: [Self.plan]))
        }
        modem.counted.bytes += 600
        let third = try await compare(second)
        #expect(third.entered == [:] && !third.isSettled)
    }

    @Test("a quota that was not in the configuration for a while does not count that time")
    func absent() async throws {
        let scene = try await Scene()
        var modem = Modem()
        _ = try await compare(scene, modem)
        let counters = try modem.read()
        _ = try await scene.store.write { try $0.ledger.interfaces.compare(counters, [:]) }
        modem.counted = Spending(bytes: 1_000_000)
        #expect(try await compare(scene, modem) == .none)
        modem.counted.bytes += 5
        #expect(try await compare(scene, modem).bytes == 5)
    }

    @Test(
        "the count and its reservations are never less than what the modem has carried, and equal to it at rest",
        arguments: Tier.sample(1...200, 20, inFull: 60) as [UInt64])
    func never(_ seed: UInt64) async throws {
        var dice = Dice(seed: seed)
        let scene = try await Scene()
        var modem = Modem()
        let links: [QuotaName: Set<Int32>] = [Self.plan: [modem.number]]
        var last: InterfaceComparison?
        /// As the daemon does it: a reading that changes nothing is not compared.
        func read() async throws {
            let counters = try modem.read()
            if last?.takes(counters, links) == true { return }
            last = try await scene.store.write { [last] tx in
                try tx.ledger.interfaces.compare(counters, links, since: last?.counters)
            }
        }
        try await read()
        // What has left of each reservation.
        var open: [(step: StoredReservation, left: Spending)] = []
        func reserved() -> Spending { open.map(\.step.spending).reduce(.none, +) }
        for _ in 0..<40 {
            switch Int.random(in: 0..<6, using: &dice) {
            case 0:
                let most = Spending(
                    bytes: Int64.random(in: 1...9_000_000, using: &dice),
                    received: Int64.random(in: 0...500_000, using: &dice))
                let step = try await scene.store.write {
                    try $0.ledger.reserve(Reservation(Self.account, most, quotas: [Self.plan]))
                }
                open.append((step, .none))
            case 1 where !open.isEmpty:
                // Some of it leaves.
                let one = Int.random(in: 0..<open.count, using: &dice)
                let room = open[one].step.spending.bytes - open[one].left.bytes
                let sent = Spending(bytes: Int64.random(in: 0...room, using: &dice))
                open[one].left += sent
                modem.counted += sent
            case 2 where !open.isEmpty:
                let one = open.remove(at: Int.random(in: 0..<open.count, using: &dice))
                try await scene.store.write { try $0.ledger.close(one.step, one.left) }
            case 3: modem.counted += Spending(bytes: Int64.random(in: 0...2_000_000, using: &dice), received: 77)
            default:
                try await read()
                let count = try await spent(scene)
                #expect(count.bytes + reserved().bytes >= modem.counted.bytes)
                #expect(count.received + reserved().received >= modem.counted.received)
            }
        }
        for one in open { try await scene.store.write { try $0.ledger.close(one.step, one.left) } }
        try await read()
        #expect(try await spent(scene) == modem.counted)
    }

    @Test("bytes that were charged and never carried, as after a crash, are no room for other programs")
    func overcharged() async throws {
        let scene = try await Scene()
        var modem = Modem()
        _ = try await compare(scene, modem)
        let step = try await scene.store.write {
            try $0.ledger.reserve(Reservation(Self.account, Spending(bytes: 8 << 20), quotas: [Self.plan]))
        }
        try await scene.store.write { try $0.ledger.close(step, Spending(bytes: 8 << 20)) }
        _ = try await compare(scene, modem)
        modem.counted = Spending(bytes: 1_000_000)
        let others = try await compare(scene, modem).bytes
        #expect(others >= 1_000_000 - 256 << 10 && others <= 1_000_000)
    }
}

extension QuotaState {
    fileprivate func recounts(at now: WallTime) -> [Recount] {
        var state = self
        return state.advance(to: now, in: .utc)
    }
}
