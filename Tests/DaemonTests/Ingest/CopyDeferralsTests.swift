import Core
import Testing

@testable import Daemon

@Suite("Deferred copies")
struct CopyDeferralsTests {
    private let now = MonotonicTime(nanoseconds: 1_000_000_000)

    private func deferrals() -> CopyDeferrals {
        var deferrals = CopyDeferrals()
        for (asset, folder) in [(Int64(1), "cam"), (2, "door")] {
            deferrals.set(
                CopyDeferrals.Deferral(
                    until: now.advanced(by: .seconds(10)), failures: 1, exports: false, folder: folder), of: asset)
        }
        return deferrals
    }

    @Test("a deferred file waits until its time, and its failures count on")
    func times() {
        let deferrals = deferrals()
        #expect(Set(deferrals.waiting(at: now)) == [1, 2])
        #expect(deferrals.waiting(at: now.advanced(by: .seconds(10))).isEmpty)
        #expect(Set(deferrals.due(at: now.advanced(by: .seconds(10)), exports: false)) == [1, 2])
        #expect(deferrals.due(at: now.advanced(by: .seconds(10)), exports: true).isEmpty)
        #expect(deferrals.failures(of: 1) == 1 && deferrals.failures(of: 3) == 0)
    }

    @Test("the files of a folder whose disk is back are tried at once, and wake the workers")
    func back() {
        var deferrals = deferrals()
        deferrals.retry(["other"], at: now)
        #expect(deferrals.takeWake() == false)
        deferrals.retry(["cam"], at: now)
        #expect(deferrals.takeWake() == true)
        #expect(deferrals.waiting(at: now) == [2])
        deferrals.retry(at: now)
        #expect(deferrals.takeWake() == true)
        #expect(deferrals.waiting(at: now).isEmpty)
    }

    @Test("a deferral that ends before its time wakes the workers, one that is over does not")
    func ended() {
        var deferrals = deferrals()
        deferrals.remove(1, at: now)
        #expect(deferrals.takeWake() == true)
        deferrals.remove(2, at: now.advanced(by: .seconds(10)))
        #expect(deferrals.takeWake() == false)
        #expect(deferrals.isEmpty)
    }
}
