import Core
import Synchronization
import TestKit
import Testing

@testable import Linux
@testable import Media
@testable import Watch

@Suite("SettleTracker")
struct SettleTrackerTests {
    private final class Log: Sendable {
        let lines = Mutex<[String]>([])
    }

    private let clocks = ManualClocks()
    private let log = Log()

    private func tracker(candidates: Int = 100, onCheck: @escaping (Int) -> Void = { _ in }) -> SettleTracker {
        var pace = WatchLimits()
        pace.candidates = candidates
        let log = log
        return SettleTracker(
            pace: pace, clocks: clocks,
            log: WatchLog(retry: pace.absent) { entry in log.lines.withLock { $0.append(entry.text) } },
            fileSystems: FileSystems(), startCheck: { number, _ in onCheck(number) })
    }

    private func rule(_ change: (inout WatchRule) -> Void = { _ in }) -> WatchRule {
        var rule = WatchRule(name: "cam", path: "/")
        rule.writers = .skip
        rule.quietFor = .seconds(5)
        change(&rule)
        return rule
    }

    private func note(_ place: WatchedFile, _ trees: Trees, _ tracker: SettleTracker) throws {
        let status = try FileStatus(at: trees.folder.path.appending(place.name))
        tracker.note(place, .found, rule: 0, of: trees.rules, status, at: clocks.monotonic())
    }

    /// Evaluates the file, which must be due.
    private func evaluate(_ place: WatchedFile, _ trees: Trees, _ tracker: SettleTracker) -> SettleTracker.Evaluation? {
        let now = clocks.monotonic()
        guard tracker.due(at: now, limit: 10) == [place] else { return nil }
        return tracker.evaluate(place, rules: trees.rules, at: now)
    }

    @Test("a file settles when it was quiet for the time of its folder")
    func quiet() throws {
        let (trees, tracker) = (Trees([rule()]), tracker())
        try trees.folder.write("a", [1, 2])
        let place = trees.place("a")
        try note(place, trees, tracker)
        #expect(tracker.contains(place) && tracker.due(at: clocks.monotonic(), limit: 10).isEmpty)
        clocks.advance(by: .seconds(5))
        guard case .settled(let file)? = evaluate(place, trees, tracker) else {
            return #expect(Bool(false), "the file is settled")
        }
        #expect(file.relative == "a" && file.folder == "cam" && file.status.size == 2 && tracker.isEmpty)
    }

    @Test("a file that has changed starts again, and one that is gone is dropped")
    func changed() throws {
        let (trees, tracker) = (Trees([rule()]), tracker())
        try trees.folder.write("a", [1])
        let place = trees.place("a")
        try note(place, trees, tracker)
        try trees.folder.write("a", [1, 2, 3])
        clocks.advance(by: .seconds(5))
        guard case .waiting? = evaluate(place, trees, tracker) else { return #expect(Bool(false), "the file waits") }
        try Files.remove(trees.folder.path.appending("a"))
        clocks.advance(by: .seconds(5))
        guard case .dropped? = evaluate(place, trees, tracker) else {
            return #expect(Bool(false), "the file is dropped")
        }
        #expect(tracker.isEmpty && log.lines.withLock { $0.isEmpty })
    }

    @Test("a file waits for its marker, whose appearance wakes it")
    func marker() throws {
        let (trees, tracker) = (Trees([rule { $0.marker = MarkerName("{name}.ok") }]), tracker())
        try trees.folder.write("a", [1])
        let place = trees.place("a")
        #expect(tracker.accepts(place, rule: trees.rules[0], at: "", at: clocks.monotonic()))
        try note(place, trees, tracker)
        clocks.advance(by: .seconds(5))
        guard case .waiting? = evaluate(place, trees, tracker) else { return #expect(Bool(false), "the file waits") }
        let waiting = tracker.summary(trees.rules, limit: 10, at: clocks.monotonic()).waiting
        #expect(waiting.map(\.reason) == [.marker("a.ok")])
        try trees.folder.write("a.ok", [])
        #expect(tracker.awaitsMarkers)
        tracker.noteMarker("a.ok", in: trees.root.top, at: clocks.monotonic())
        guard case .settled(let file)? = evaluate(place, trees, tracker) else {
            return #expect(Bool(false), "the file is settled")
        }
        #expect(file.settledBy == .marker && !tracker.awaitsMarkers)
    }

    @Test("only some files without markers are kept; of the others, the directory is remembered")
    func manyWithoutMarkers() throws {
        let (trees, tracker) = (Trees([rule { $0.marker = MarkerName("{name}.ok") }]), tracker(candidates: 8))
        var accepted = 0
        for number in 0..<5 {
            let place = trees.place(FilePath("\(number)"))
            try trees.folder.write(place.name, [1])
            guard tracker.accepts(place, rule: trees.rules[0], at: "", at: clocks.monotonic()) else { continue }
            accepted += 1
            try note(place, trees, tracker)
        }
        #expect(accepted == 2 && trees.root.top.hasUnmarkedFiles)
    }

    @Test("the headers of a quiet file are read once for each status, and the file waits for the result")
    func container() throws {
        var started: [Int] = []
        let (trees, tracker) = (Trees([rule { $0.container = .check }]), tracker { started.append($0) })
        try trees.folder.write("a", [1])
        let place = trees.place("a")
        try note(place, trees, tracker)
        clocks.advance(by: .seconds(5))
        guard case .waiting? = evaluate(place, trees, tracker) else { return #expect(Bool(false), "the file waits") }
        #expect(started == [1])
        tracker.finishCheck(1, .unknownFormat, at: clocks.monotonic())
        guard case .settled? = evaluate(place, trees, tracker) else {
            return #expect(Bool(false), "the file is settled")
        }
        #expect(started == [1])
    }

    @Test("a file below its minimum age counts as too recent, and needs no further event")
    func young() throws {
        let (trees, tracker) = (Trees([rule { $0.limits.minAge = .seconds(86_400 * 20_000) }]), tracker())
        try trees.folder.write("a", [1])
        try note(trees.place("a"), trees, tracker)
        let summary = tracker.summary(trees.rules, limit: 10, at: clocks.monotonic())
        #expect(summary.rules.map(\.young.files) == [1] && summary.waiting.map(\.isYoung) == [true])
        #expect(tracker.isAtRest(trees.rules, at: clocks.monotonic()))
    }

    @Test("the files of a dropped root are dropped")
    func dropped() throws {
        let (trees, other, tracker) = (Trees([rule()]), Trees([rule()]), tracker())
        for trees in [trees, other] {
            try trees.folder.write("a", [1])
            try note(trees.place("a"), trees, tracker)
        }
        tracker.drop(trees.root)
        #expect(!tracker.contains(trees.place("a")) && tracker.contains(other.place("a")))
    }
}
