import Core
import Notices
import TestKit
import Testing
import Transport

@testable import Daemon

@Suite("Queue of one hook")
struct HookQueueTests {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000_000)
    private let wall = WallTime(milliseconds: 1_800_000_000_000)

    private func line(_ uploads: [String?], retry: Backoff = Hook.defaultBackoff) -> HookQueue {
        var line = HookQueue(Hook(name: "h", target: .command(CommandHook(["/x"])), retry: retry))
        line.add(
            uploads.enumerated().map { index, upload in
                .init(
                    seq: Int64(index + 1), at: wall, upload: upload, tries: 0, queuedAt: start, due: start)
            })
        return line
    }

    private func fail(_ line: inout HookQueue, _ seq: Int64, at now: MonotonicTime) {
        line.begin(seq)
        _ = line.failed(seq, "no", because: .exitStatus(1), after: nil, at: wall, now, jitter: 1)
    }

    private func pass(_ line: inout HookQueue, _ seq: Int64, at now: MonotonicTime) {
        line.begin(seq)
        line.succeeded(seq, at: wall, now)
        line.forget([seq])
    }

    @Test("notices are delivered one at a time, in order")
    func order() {
        var line = line(["a", "b"])
        #expect(line.next(at: start)?.seq == 1)
        line.begin(1)
        #expect(line.next(at: start) == nil)
        line.succeeded(1, at: wall, start)
        #expect(line.next(at: start)?.seq == 2)
    }

    @Test("notices of one upload keep their order; an upload that fails alone delays no other")
    func poison() {
        var line = line(["a", "a", "b"])
        fail(&line, 1, at: start)
        #expect(line.next(at: start)?.seq == 3)
        pass(&line, 3, at: start)
        #expect(line.next(at: start) == nil)
        #expect(line.nextTry == start.advanced(by: .seconds(5)))
        let later = start.advanced(by: .seconds(5))
        #expect(line.next(at: later)?.seq == 1)
        pass(&line, 1, at: later)
        #expect(line.next(at: later)?.seq == 2)
    }

    @Test(
        "after several failures in a row, deliveries pause and one probes; after a success all others follow at once"
    )
    func down() {
        var line = line(["a", "b", "c", "d"])
        fail(&line, 1, at: start)
        fail(&line, 2, at: start)
        #expect(line.next(at: start) == nil)
        let probe = start.advanced(by: .seconds(10))
        #expect(line.nextTry == probe)
        #expect(line.next(at: probe)?.seq == 3)
        fail(&line, 3, at: probe)
        #expect(line.nextTry == probe.advanced(by: .seconds(20)))
        let back = probe.advanced(by: .seconds(20))
        pass(&line, 4, at: back)
        #expect(line.trouble == nil)
        // From the oldest on, regardless of the number of tries.
        for seq in [1, 2, 3] as [Int64] {
            #expect(line.next(at: back)?.seq == seq)
            pass(&line, seq, at: back)
        }
    }

    @Test("a delay that the server names is kept")
    func retryAfter() {
        var line = line(["a"])
        line.begin(1)
        _ = line.failed(1, "busy", because: .answer(503), after: .seconds(120), at: wall, start, jitter: 0)
        #expect(line.nextTry == start.advanced(by: .seconds(120)))
        #expect(line.trouble?.until == wall.advanced(by: .seconds(120)))
    }

    @Test("the same trouble is reported once")
    func news() {
        var line = line(["a"])
        let isFirst = line.failed(
            1, "after 0 ms", because: .transport(.connect), after: nil, at: wall, start, jitter: 1
        ).isNew
        #expect(isFirst)
        let isSecond = line.failed(
            1, "after 5 ms", because: .transport(.connect), after: nil, at: wall, start, jitter: 1
        ).isNew
        #expect(!isSecond)
        let isThird = line.failed(1, "no", because: .answer(500), after: nil, at: wall, start, jitter: 1).isNew
        #expect(isThird)
    }

    @Test("above a thousand notices the oldest are dropped, but not the one being delivered")
    func full() {
        var line = line((0..<HookQueue.capacity).map { "\($0)" })
        line.begin(1)
        #expect(line.overflow(adding: 2) == [2, 3])
        let (count, isNew) = line.drop([2, 3])
        #expect((count, isNew) == (2, true))
        let again = line.drop([3, 4])
        #expect((again.count, again.isNew) == (1, false))
        #expect(line.droppedCount == 3)
        #expect(line.waiting.count == HookQueue.capacity - 3)
    }

    @Test(
        "a notice is given up after too long or too many failures, untried ones only if others failed too"
    )
    func hopeless() {
        var one = line(["a", "b"])
        let late = start.advanced(by: .seconds(86_400))
        #expect(one.noticesToGiveUp(at: late).isEmpty)
        fail(&one, 1, at: start)
        #expect(one.noticesToGiveUp(at: start).isEmpty)
        #expect(one.noticesToGiveUp(at: late) == [1])
        fail(&one, 2, at: start)
        #expect(one.noticesToGiveUp(at: late) == [1, 2])
        var worn = line(["a", "b"], retry: Backoff(attempts: 2))
        fail(&worn, 1, at: start)
        #expect(worn.noticesToGiveUp(at: start).isEmpty)
        fail(&worn, 1, at: start)
        #expect(worn.noticesToGiveUp(at: start) == [1])
    }

    @Test("a refused notice is given up, counts once, and delays no other one")
    func refused() {
        var line = line(["a", "b"])
        line.begin(1)
        line.refused(1, "gone", at: wall)
        #expect(line.abandonedCount == 1 && line.delivered == [1] && line.failures == 0)
        #expect(line.trouble?.text == "gone")
        #expect(line.next(at: start)?.seq == 2)
        line.forget([1])
        #expect(line.abandonedCount == 1 && line.delivered.isEmpty && line.waiting.map(\.seq) == [2])
    }

    @Test("notices that are given up leave the queue and are counted")
    func abandoned() {
        var line = line(["a", "b", "c"])
        line.abandon([1, 2])
        #expect(line.abandonedCount == 2 && line.waiting.map(\.seq) == [3])
    }

    @Test("a hold by policy lasts until policy permits the notices, or until other settings come")
    func held() {
        var line = line(["a"])
        let hold = Hold(.rule, since: wall, text: "closed")
        line.held(by: hold)
        #expect(line.hold == hold)
        line.held(by: nil)
        #expect(line.hold == nil)
        line.held(by: hold)
        var hook = line.hook
        hook.timeout = .seconds(1)
        line.apply(hook, at: start)
        #expect(line.hold == nil)
    }

    @Test("a changed configuration retries all notices at once")
    func taken() {
        var line = line(["a", "b"])
        fail(&line, 1, at: start)
        fail(&line, 2, at: start)
        var hook = line.hook
        hook.timeout = .seconds(1)
        line.apply(hook, at: start)
        #expect(line.next(at: start)?.seq == 1)
    }
}
