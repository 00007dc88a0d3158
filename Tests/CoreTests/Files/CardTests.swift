import Core
import Testing

/// When a memory card may be removed.
@Suite("Removable media")
struct CardTests {
    private func time(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: Int64(seconds * 1e9)) }

    static let levels: [(RemovableMediaBacklog, RemovalSafety)] = [
        (RemovableMediaBacklog(), .verified),
        (RemovableMediaBacklog(isSettling: true), .busy),
        (RemovableMediaBacklog(unstaged: 1), .busy),
        (RemovableMediaBacklog(unstaged: 1, unverified: 1), .busy),
        (RemovableMediaBacklog(isSettling: true, unverified: 3), .busy),
        (RemovableMediaBacklog(unverified: 1), .staged),
        (RemovableMediaBacklog(unverified: 1, failed: 1), .staged),
        (RemovableMediaBacklog(unreleased: 1), .staged),
    ]

    @Test("a medium is as safe to remove as its least safe file", arguments: levels)
    func level(_ work: RemovableMediaBacklog, _ level: RemovalSafety) { #expect(work.level == level) }

    @Test("a safe state is reported after it lasted for a moment, once for each improvement")
    func steps() {
        var watch = RemovalSafetyReporter(at: time(0))
        #expect(watch.note(RemovableMediaBacklog(isSettling: true), at: time(0)) == nil)
        #expect(watch.next == nil)
        #expect(watch.note(RemovableMediaBacklog(unverified: 2), at: time(10)) == nil)
        #expect(watch.next == time(12))
        #expect(watch.note(RemovableMediaBacklog(unverified: 2), at: time(11.9)) == nil)
        #expect(watch.note(RemovableMediaBacklog(unverified: 1), at: time(12)) == .staged)
        #expect(watch.next == nil)
        #expect(watch.note(RemovableMediaBacklog(unverified: 1), at: time(20)) == nil)
        #expect(watch.note(RemovableMediaBacklog(), at: time(30)) == nil)
        #expect(watch.note(RemovableMediaBacklog(), at: time(33)) == .verified)
        #expect(watch.note(RemovableMediaBacklog(), at: time(99)) == nil)
    }

    @Test("a short safe state between two files is not reported")
    func passing() {
        var watch = RemovalSafetyReporter(at: time(0))
        for second in stride(from: 0.0, to: 60, by: 2) {
            #expect(watch.note(RemovableMediaBacklog(unstaged: 1), at: time(second)) == nil)
            #expect(watch.note(RemovableMediaBacklog(unverified: 1), at: time(second + 1)) == nil)
        }
    }

    @Test("the state is reported again when a new file was verified before the next check")
    func quick() {
        var watch = RemovalSafetyReporter(at: time(0))
        _ = watch.note(RemovableMediaBacklog(arrivals: 7), at: time(0))
        #expect(watch.note(RemovableMediaBacklog(arrivals: 7), at: time(2)) == .verified)
        #expect(watch.note(RemovableMediaBacklog(arrivals: 8), at: time(30)) == nil)
        #expect(watch.next == time(32))
        #expect(watch.note(RemovableMediaBacklog(arrivals: 8), at: time(32)) == .verified)
        #expect(watch.note(RemovableMediaBacklog(arrivals: 8), at: time(60)) == nil)
    }

    @Test("the state is reported again after a new file; without one, a retry is reported only when verified")
    func again() {
        var watch = RemovalSafetyReporter(at: time(0))
        _ = watch.note(RemovableMediaBacklog(), at: time(0))
        #expect(watch.note(RemovableMediaBacklog(), at: time(2)) == .verified)
        #expect(watch.note(RemovableMediaBacklog(unverified: 1), at: time(3)) == nil)
        #expect(watch.note(RemovableMediaBacklog(unverified: 1), at: time(10)) == nil)
        #expect(watch.note(RemovableMediaBacklog(), at: time(11)) == nil)
        #expect(watch.note(RemovableMediaBacklog(), at: time(13)) == .verified)
        #expect(watch.note(RemovableMediaBacklog(isSettling: true), at: time(14)) == nil)
        #expect(watch.note(RemovableMediaBacklog(unverified: 1), at: time(15)) == nil)
        #expect(watch.note(RemovableMediaBacklog(unverified: 1), at: time(17)) == .staged)
    }
}
