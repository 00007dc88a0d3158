import Core
import TestKit
import Testing

@testable import Linux
@testable import Watch

@Suite("StatusBoard")
struct StatusBoardTests {
    var board = StatusBoard()
    let start = MonotonicTime.start
    let folder = TemporaryFolder()

    private func roots() -> WatchRoots {
        let path = folder.path
        let rule = CompiledRule(WatchRule(name: "cam", path: path), skipsExisting: false)
        return WatchRoots(rules: [rule], ours: [path], in: SourceFolders(), at: start)
    }

    private func states(_ roots: WatchRoots) -> [WatchState] {
        let clocks = ManualClocks()
        let tracker = SettleTracker(
            pace: WatchLimits(), clocks: clocks, log: WatchLog(retry: .zero) { _ in }, fileSystems: FileSystems(),
            startCheck: { _, _ in })
        return board.content(
            roots, tracker, PollSchedule(pace: WatchLimits()), DeliveryQueue(limit: 1), overflows: 0, at: start
        ) { _ in true }.states
    }

    @Test("changes are published at most five times a second, and at once on request")
    mutating func pace() {
        #expect(board.beginPublication(at: start) == true)
        #expect(board.beginPublication(at: start + .seconds(1)) == false)
        board.markChanged()
        #expect(board.nextDeadline == start + .milliseconds(200))
        #expect(board.beginPublication(at: start + .milliseconds(199)) == false)
        board.publishWithoutDelay()
        #expect(board.beginPublication(at: start + .milliseconds(199)) == true)
        board.markChanged()
        #expect(board.beginPublication(at: start + .milliseconds(399)) == true)
        #expect(board.nextDeadline == nil)
    }

    @Test("the board reports whether the states have changed")
    mutating func changes() {
        let states = states(roots())
        #expect(board.replaceStates(states) == true)
        #expect(board.replaceStates(states) == false)
    }

    @Test("a scan counts when it has ended, with its files and the new ones among them")
    mutating func scans() {
        let roots = roots()
        let root = roots.watched[0]
        board.addFound(7, in: "cam")
        root.state.visitQueued()
        board.scanBegan(root, at: start)
        board.addFound(3, in: "cam")
        board.addNew(in: "cam")
        board.recordFinishedScans(roots)
        #expect(states(roots).map(\.scannedSince) == [nil])
        root.state.visitEnded()
        board.recordFinishedScans(roots)
        let state = states(roots)[0]
        #expect(state.scannedSince == start && state.found == 3 && state.fresh == 1)
        // The next scan does not hide the last one while it runs.
        root.state.visitQueued()
        board.scanBegan(root, at: start + .seconds(9))
        board.recordFinishedScans(roots)
        #expect(states(roots)[0].scannedSince == start)
    }

    @Test("problems are shown while scans find them, and beyond the first three only counted")
    mutating func problems() {
        let roots = roots()
        let root = roots.watched[0]
        let tree = WatchTree(inotify: nil)
        let directories = (0..<5).map { tree.child(FilePath("\($0)"), of: root.top, visit: 1) }
        for (index, directory) in directories.enumerated() {
            #expect(board.addProblem("problem \(index)", of: directory, visit: 1) == true)
            #expect(board.addProblem("problem \(index)", of: directory, visit: 2) == false)
        }
        #expect(states(roots)[0].troubles == ["problem 0", "problem 1", "problem 2"])
        #expect(states(roots)[0].moreTroubles == 2)
        board.clearProblem(of: directories[0], visit: 2)
        board.clearProblem(of: directories[1], visit: 3)
        board.remove(directories[2])
        #expect(states(roots)[0].troubles == ["problem 0", "problem 3", "problem 4"])
        board.drop(root)
        #expect(states(roots)[0].troubles.isEmpty)
    }
}

@Suite("WatchRoots")
struct WatchRootsTests {
    let folder = TemporaryFolder()

    private func rule(_ name: String, _ path: FilePath, _ change: (inout WatchRule) -> Void = { _ in }) -> CompiledRule
    {
        var rule = WatchRule(name: name, path: path)
        change(&rule)
        return CompiledRule(rule, skipsExisting: false)
    }

    private func roots(_ rules: [CompiledRule]) -> WatchRoots {
        WatchRoots(rules: rules, ours: Set(rules.map(\.settings.path)), in: SourceFolders(), at: .start)
    }

    @Test("each path has one root, and the folder's root is found")
    func paths() {
        let roots = roots([rule("a", "/x"), rule("b", "/y"), rule("c", "/x")])
        #expect(roots.watched.map(\.rules) == [[0, 2], [1]])
        #expect(roots.root(ofFolder: "c") === roots.watched[0] && roots.root(ofFolder: "z") == nil)
        #expect(roots.watched.map { $0.matchers.map(\.rule) } == [[0, 2], [1]])
    }

    @Test("a change keeps the roots whose rules are the same, and scans the others as if for the first time")
    func change() {
        var roots = roots([rule("a", "/x"), rule("b", "/y"), rule("c", "/z")])
        let before = roots.watched
        for root in before {
            _ = root.state.beginScan(next: .start + .seconds(3600))
            _ = root.state.found()
            #expect(root.state.endFirstScan() == true)
        }
        let new = [rule("c", "/z") { $0.include = ["*.mp4"] }, rule("a", "/x")]
        let now = MonotonicTime.start + .seconds(9)
        let change = roots.change(to: new, ours: ["/x", "/z"], at: now)
        #expect(change.oldFolders == ["a", "b", "c"])
        #expect(change.dropped.map(\.path) == ["/y"] && change.dropped.first === before[1])
        #expect(roots.watched.map(\.path) == ["/z", "/x"])
        #expect(roots.watched[0] === before[2] && roots.watched[1] === before[0])
        #expect(roots.watched.map(\.state.isFirstScan) == [true, false])
        #expect(roots.watched[0].state.nextCheck == now && roots.watched[1].state.nextCheck > now)
    }

    @Test("a root that is watched in another way is a new one")
    func watchedOtherwise() {
        var roots = roots([rule("a", "/x")])
        let before = roots.watched[0]
        let new = [rule("a", "/x") { $0.watching = .poll }]
        let change = roots.change(to: new, ours: ["/x"], at: .start)
        #expect(change.dropped.first === before && roots.watched[0] !== before && roots.watched[0].state.isFirstScan)
    }
}
