import Core
import Testing

@testable import Daemon

@Suite("Uploads that wait for quota")
struct QuotaWaitlistTests {
    private let wait = QuotaWait(kind: QuotaState.Class("nas", from: "cam"), bytes: 1000)
    private let unlimited = QuotaState(policy: PolicyRules())

    private func takeReady(
        _ waits: inout QuotaWaitlist, most: Int = 10, folder: Bool = false, upload: Bool = false
    ) -> [String] {
        waits.removeReady(unlimited, most: most, isFolderExempt: { _ in folder }, isExempt: { _ in upload }).keys
            .sorted()
    }

    @Test("nothing is recorded until the waits of an earlier run are forgotten")
    func earlierRun() {
        var waits = QuotaWaitlist()
        #expect(waits.isOfEarlierRun)
        waits.ended("a", lacking: wait)
        #expect(waits["a"] == nil)
        waits.begin()
        waits.ended("a", lacking: wait)
        #expect(waits["a"]?.bytes == 1000)
        #expect(waits.count(at: "nas") == 1)
        #expect(waits.count(at: "cloud") == 0)
    }

    @Test("an upload stops waiting once enough quota is left, and no more are woken than can run")
    func ready() {
        var waits = QuotaWaitlist()
        waits.begin()
        for id in ["c", "a", "b"] { waits.ended(id, lacking: wait) }
        #expect(takeReady(&waits, most: 2) == ["a", "b"])
        #expect(waits["a"] == nil)
        #expect(waits["c"] != nil)
        #expect(!waits.wasExempted("a"))
    }

    @Test("an exempted upload is remembered until its next attempt ends")
    func exempted() {
        var waits = QuotaWaitlist()
        waits.begin()
        waits.ended("a", lacking: wait)
        #expect(takeReady(&waits, upload: true) == ["a"])
        #expect(waits.wasExempted("a"))
        waits.ended("a", lacking: nil)
        #expect(!waits.wasExempted("a"))
    }

    @Test("where the end of waits cannot be stored they go on, and a wait recorded meanwhile stays")
    func restored() {
        var waits = QuotaWaitlist()
        waits.begin()
        for id in ["a", "b"] { waits.ended(id, lacking: wait) }
        let removed = waits.removeReady(unlimited, most: 10, isFolderExempt: { _ in false }, isExempt: { _ in true })
        #expect(waits.all.isEmpty)
        waits.ended("b", lacking: QuotaWait(kind: wait.kind, bytes: 7))
        waits.restore(removed)
        #expect(waits["a"]?.bytes == 1000)
        #expect(waits["b"]?.bytes == 7)
        #expect(!waits.wasExempted("a"))
    }
}
