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
