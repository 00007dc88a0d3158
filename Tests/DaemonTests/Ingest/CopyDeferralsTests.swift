import Core
import Testing

@testable import Daemon

@Suite("Deferred copies")
struct CopyDeferralsTests {
    private let now = MonotonicTime(nanoseconds: 1_000_000_000)

    private func source(_ asset: Int64, in folder: String = "cam", exports: Bool = false) -> CopyDeferrals.Source {
        CopyDeferrals.Source(asset: asset, folder: folder, exports: exports)
    }

    private func deferrals() -> CopyDeferrals {
        var deferrals = CopyDeferrals()
        for (asset, folder) in [(Int64(1), "cam"), (2, "door")] {
            let wait = deferrals.failed(source(asset, in: folder), at: now, jitter: 1)
            #expect(wait.duration == .seconds(10) && wait.count == 1)
        }
        return deferrals
    }

    @Test("a deferred file waits until its time, and its failures count on")
    func times() {
        var deferrals = deferrals()
        #expect(deferrals.waiting(at: now) == [1, 2])
        let later = now.advanced(by: .seconds(10))
        #expect(deferrals.waiting(at: later).isEmpty)
        #expect(Set(deferrals.due(at: later, exports: false)) == [1, 2])
        #expect(deferrals.due(at: later, exports: true).isEmpty)
        #expect(deferrals.failed(source(1), at: later, jitter: 1).count == 2)
        #expect(deferrals.failed(source(3), at: later, jitter: 1).count == 1)
        #expect(deferrals.waiting(at: later) == [1, 3])
    }

    private func disk(_ fileSystem: String, in folder: String = "cam", exports: Bool = false) -> DiskWork {
        DiskWork(kind: exports ? .export : .staging, folder: folder, root: "/drop", fileSystem: fileSystem)
    }

    @Test("the files of a disk that is away wait together, longer each time, until one of them is copied")
    func disks() {
        var deferrals = deferrals()
        #expect(deferrals.away(disk("a"), [2, 3, 4], at: now, jitter: 1) == .seconds(10))
        #expect(deferrals.away(disk("b"), [5], at: now, jitter: 1) == .seconds(10))
        #expect(deferrals.waiting(at: now) == [1, 2, 3, 4, 5])
        #expect(deferrals.isWaiting(2, with: disk("a"), at: now) && !deferrals.isWaiting(5, with: disk("a"), at: now))
        #expect(deferrals.isWaiting(disk("a"), at: now) && !deferrals.isWaiting(disk("a", in: "door"), at: now))
        let later = now.advanced(by: .seconds(10))
        #expect(deferrals.waiting(at: later).isEmpty)
        #expect(deferrals.away(disk("a"), [3, 4], at: later, jitter: 1) == .seconds(20))
        #expect(deferrals.waiting(at: later) == [3, 4])
        #expect(deferrals.disksDue(at: later, exports: false, without: [9]) == [disk("b")])
        #expect(deferrals.disksDue(at: later, exports: false, without: [5]).isEmpty)
        #expect(deferrals.disksDue(at: later, exports: true, without: []).isEmpty)
        #expect(deferrals.takeWake() == false)
        deferrals.endDisk(of: 3, at: later)
        #expect(deferrals.takeWake() == true)
        #expect(deferrals.waiting(at: later).isEmpty)
        #expect(deferrals.away(disk("a"), [4], at: later, jitter: 1) == .seconds(10))
        deferrals.retry(["cam"], at: later)
        #expect(deferrals.takeWake() == true)
        #expect(deferrals.waiting(at: later).isEmpty)
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
        deferrals.end(1, at: now)
        #expect(deferrals.takeWake() == true)
        deferrals.end(2, at: now.advanced(by: .seconds(10)))
        #expect(deferrals.takeWake() == false)
        #expect(deferrals.isEmpty)
    }

    @Test("a source that changes during each copy is copied less and less often, until it was copied")
    func changes() {
        var deferrals = CopyDeferrals()
        #expect(deferrals.changed(source(1), at: now) == nil)
        #expect(deferrals.changed(source(1), at: now) == nil)
        #expect(deferrals.isEmpty && deferrals.changing == [1])
        let waits = (1...3).compactMap { _ in deferrals.changed(source(1), at: now)?.duration }
        #expect(waits == [.seconds(5), .seconds(10), .seconds(20)])
        #expect(deferrals.waiting(at: now) == [1])
        deferrals.forgetChanges(of: 1)
        #expect(deferrals.changing.isEmpty)
        #expect(deferrals.changed(source(1), at: now) == nil)
        // The wait was for an earlier version.
        #expect(deferrals.isEmpty && deferrals.takeWake() == true)
    }

    @Test("the 1st, 2nd, 4th and 8th failure are logged")
    func logged() {
        var deferrals = CopyDeferrals()
        let waits = (1...9).map { _ in deferrals.failed(source(1), at: now, jitter: 1) }
        #expect(waits.filter(\.shouldLog).map(\.count) == [1, 2, 4, 8])
    }

    @Test("a staging folder that refuses copies blocks all for a while, until it accepts one")
    func blocked() {
        var deferrals = CopyDeferrals()
        #expect(deferrals.nextDeadline(at: now, isTroubled: false) == nil)
        deferrals.block(at: now)
        #expect(deferrals.isBlocked(at: now.advanced(by: .seconds(9))))
        #expect(!deferrals.isBlocked(at: now.advanced(by: .seconds(10))))
        #expect(deferrals.nextDeadline(at: now, isTroubled: false) == .seconds(10))
        deferrals.unblock()
        #expect(!deferrals.isBlocked(at: now))
        #expect(deferrals.nextDeadline(at: now, isTroubled: false) == nil)
    }

    @Test("the next try comes with the first deferral, never at once, and soon while space is lacking")
    func deadline() {
        var deferrals = deferrals()
        #expect(deferrals.failed(source(1), at: now, jitter: 1).duration == .seconds(20))
        #expect(deferrals.nextDeadline(at: now.advanced(by: .seconds(4)), isTroubled: false) == .seconds(6))
        #expect(deferrals.nextDeadline(at: now.advanced(by: .seconds(60)), isTroubled: false) == .seconds(1))
        deferrals.end(2, at: now)
        #expect(deferrals.nextDeadline(at: now, isTroubled: false) == .seconds(20))
        #expect(deferrals.nextDeadline(at: now, isTroubled: true) == .seconds(10))
        #expect(CopyDeferrals().nextDeadline(at: now, isTroubled: true) == .seconds(10))
    }

    @Test("new settings end every wait, and name the folders that the former ones blocked, once")
    func settings() {
        var deferrals = deferrals()
        deferrals.block(at: now)
        deferrals.block(folder: "cam")
        #expect(deferrals.settingsChanged(at: now) == ["cam"])
        #expect(deferrals.waiting(at: now).isEmpty && !deferrals.isBlocked(at: now))
        #expect(deferrals.takeWake() == true)
        #expect(deferrals.settingsChanged(at: now).isEmpty)
    }
}
