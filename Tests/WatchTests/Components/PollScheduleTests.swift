import Core
import Testing

@testable import Watch

@Suite("PollSchedule")
struct PollScheduleTests {
    let trees = Trees()
    let start = MonotonicTime.start
    var schedule: PollSchedule = {
        var pace = WatchLimits()
        pace.poll = .seconds(2)
        pace.pollMost = .seconds(60)
        return PollSchedule(pace: pace)
    }()

    /// The seconds until the next poll, which is then made.
    private mutating func nextPoll(after time: MonotonicTime) -> Int? {
        guard let next = schedule.nextDeadline, schedule.popDue(at: next) != nil else { return nil }
        return Int(next.since(time).inSeconds)
    }

    @Test("the interval doubles while scans find no change, up to the longest one")
    mutating func doubles() {
        let directory = trees.directory("a")
        schedule.add(directory, at: start)
        var time = start
        var intervals: [Int?] = []
        for _ in 0..<7 {
            let interval = nextPoll(after: time)
            intervals.append(interval)
            time = time + .seconds(interval ?? 0)
            schedule.scanEnded(directory, at: time)
        }
        #expect(intervals == [2, 4, 8, 16, 32, 60, 60])
    }

    @Test("a change resets the interval to the shortest")
    mutating func accelerated() {
        let directory = trees.directory("a")
        schedule.add(directory, at: start)
        for _ in 0..<4 {
            _ = schedule.popDue(at: start + .seconds(1000))
            schedule.scanEnded(directory, at: start)
        }
        schedule.accelerate(directory, at: start)
        #expect(schedule.popDue(at: start + .seconds(2)) === directory)
        schedule.scanEnded(directory, at: start + .seconds(2))
        // The change is used up by that scan.
        #expect(schedule.popDue(at: start + .seconds(4)) === directory)
        schedule.scanEnded(directory, at: start + .seconds(4))
        #expect(schedule.popDue(at: start + .seconds(7)) == nil)
        #expect(schedule.popDue(at: start + .seconds(8)) === directory)
    }

    @Test("a directory is not polled again before its scan has ended")
    mutating func once() {
        let directory = trees.directory("a")
        schedule.add(directory, at: start)
        #expect(schedule.popDue(at: start + .seconds(1)) == nil)
        #expect(schedule.popDue(at: start + .seconds(2)) === directory)
        #expect(schedule.popDue(at: start + .seconds(1000)) == nil)
        schedule.add(directory, at: start)
        #expect(schedule.popDue(at: start + .seconds(1000)) == nil)
    }

    @Test("a change in a directory without polling counts once it is polled")
    mutating func changedBefore() {
        let directory = trees.directory("a")
        schedule.accelerate(directory, at: start)
        #expect(schedule.isEmpty)
        schedule.add(directory, at: start)
        #expect(nextPoll(after: start) == 2)
        schedule.scanEnded(directory, at: start)
        #expect(nextPoll(after: start) == 2)
    }

    @Test("polling ends for a directory, and for all directories of a root")
    mutating func ends() {
        let other = Trees()
        let (a, b, c) = (trees.directory("a"), trees.directory("b"), other.directory("c"))
        for directory in [a, b, c] { schedule.add(directory, at: start) }
        let count = PollSchedule.Count(polled: 2, unwatched: 2)
        #expect(schedule.countsByRoot[ObjectIdentifier(trees.root)] == count)
        #expect(schedule.remove(a) == true)
        #expect(schedule.remove(a) == false)
        schedule.drop(trees.root)
        #expect(schedule.popDue(at: start + .seconds(1000)) === c)
        #expect(schedule.popDue(at: start + .seconds(1000)) == nil)
        #expect(schedule.countsByRoot.count == 1)
    }
}
