import Core
import TestKit
import Testing

@testable import Linux
@testable import Watch

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
