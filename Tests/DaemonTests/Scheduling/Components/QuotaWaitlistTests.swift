import Core
import Testing

@testable import Daemon

@Suite("Uploads that wait for quota")
struct QuotaWaitlistTests {
    private let wait = QuotaWait(kind: QuotaState.Class("nas", from: "cam", isMetered: false), bytes: 1000)
    private let unlimited = QuotaState(policy: PolicyRules())

    private func takeReady(
        _ waits: inout QuotaWaitlist, most: Int = 10, folder: Bool = false, upload: Bool = false
    ) -> [String] {
        let ids = waits.ready(unlimited, most: most, isFolderExempt: { _ in folder }, isExempt: { _ in upload })
        waits.remove(ids) { _ in upload }
        return ids
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
        #expect(
            waits.ready(unlimited, most: 2, isFolderExempt: { _ in false }, isExempt: { _ in false }) == ["a", "b"])
        #expect(waits["a"] != nil, "it waits until that is on disk")
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
}
