import Core
import TestKit
import Testing

@testable import Daemon
@testable import Store

@Suite("The reserved step of an account")
struct ReservedStepTests {
    private static let start = MonotonicTime(nanoseconds: 1_000_000_000)

    private static func reservation(_ bytes: Int64, received: Int64 = 0) -> StoredReservation {
        StoredReservation(
            id: 1, account: SpendingAccount(destination: "nas", folder: "cam", network: .any),
            spending: Spending(bytes: bytes, received: received))
    }

    private static func step(
        _ bytes: Int64, received: Int64 = 0, countsReceived: Bool = false
    ) -> ReservedStep {
        ReservedStep(reservation(bytes, received: received), countsReceived: countsReceived, at: start)
    }

    @Test("sent bytes leave less to be sent, and more is left when more is reserved")
    func sending() {
        var step = Self.step(1000)
        step.spend(300)
        #expect(step.left == 700)
        let entered = step.unentered
        step.spend(50)
        step.endRenewal(Self.reservation(2000), entered: entered, at: Self.start)
        #expect(step.left == 1950)
        #expect(step.unentered == Spending(bytes: 50))
        #expect(step.total == Spending(bytes: 350))
    }

    @Test("bytes that a renewal gives back are not sent any more, and are there again when it fails")
    func returned() {
        var step = Self.step(1000)
        step.spend(100)
        step.beginRenewal(keeping: 400)
        #expect(step.left == 400)
        step.endRenewal(nil, entered: step.unentered, at: Self.start)
        #expect(step.left == 900)
        #expect(step.unentered == Spending(bytes: 100))
    }

    @Test("a step is full when more was received than reserved, where a quota counts that")
    func receiving() {
        var step = Self.step(1000, received: 10)
        step.receive(10)
        #expect(!step.isFull)
        step.setCountsReceived(true)
        #expect(step.isFull)
        #expect(step.receivedLeft == 0)
        #expect(!Self.step(1000, countsReceived: true).isFull, "nothing was received")
    }

    @Test("the next step has room for each request, and for two seconds at the present rate")
    func nextSize() {
        var step = Self.step(0)
        let later = Self.start.advanced(by: .seconds(1))
        #expect(step.nextSize(requests: 0, at: later) == QuotaAccount.minRequest)
        #expect(step.nextSize(requests: 3, at: later) == QuotaAccount.minRequest + 3 * QuotaAccount.margin)
        step.spend(1_000_000)
        #expect(step.nextSize(requests: 1, at: later) == 2_000_000 + QuotaAccount.margin)
        step.spend(1_000_000_000_000)
        #expect(step.nextSize(requests: 1, at: later) == Ledger.step)
    }

    @Test("a step is replaced when it is much too small or too large, or when the account has requested it")
    func replacement() throws {
        let step = Self.step(1_000_000)
        #expect(step.replacement(upTo: 1_000_000, mayShrink: true, need: nil) == nil)
        let more = try #require(step.replacement(upTo: 3_000_000, mayShrink: true, need: nil))
        #expect(more == (kept: 1_000_000, wanted: 2_000_000))
        let less = try #require(step.replacement(upTo: 400_000, mayShrink: true, need: nil))
        #expect(less == (kept: 400_000, wanted: 0))
        #expect(step.replacement(upTo: 400_000, mayShrink: false, need: nil) == nil)
        let needed = try #require(step.replacement(upTo: 400_000, mayShrink: true, need: .sending))
        #expect(needed == (kept: 1_000_000, wanted: QuotaAccount.margin))
        let answers = try #require(step.replacement(upTo: 400_000, mayShrink: true, need: .answers))
        #expect(answers == (kept: 1_000_000, wanted: 0))
    }

    @Test("a closed step is returned once")
    func closing() {
        var step = Self.step(1000)
        step.spend(300)
        let closed = step.close()
        #expect(closed?.spending.bytes == 1000)
        let again = step.close()
        #expect(again == nil)
        #expect(step.unentered == Spending(bytes: 300))
    }
}
