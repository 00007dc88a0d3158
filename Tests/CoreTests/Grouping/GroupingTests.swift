import Core
import Testing

@Suite("Grouping")
struct GroupingTests {
    private let start = MonotonicTime(nanoseconds: 0)
    private func at(_ seconds: Int) -> MonotonicTime { start.advanced(by: .seconds(seconds)) }

    private func file(_ relative: String) -> SettledFile {
        let status = FileStatus(device: 1, inode: 1, size: 1, modified: 1, changed: 1, born: nil, mode: 0o100644)
        return SettledFile(
            folder: "cam", root: "/srv", relative: FilePath(relative), status: status,
            identity: FileIdentity(
                folder: "cam", relative: FilePath(relative), size: 1, modified: 1, inode: 1, born: nil, fileSystem: nil),
            settledBy: .lease)
    }

    @Test("files of one directory with one stem form a group, others do not")
    func keys() {
        var grouping = Grouping()
        for name in ["a/c.mp4", "a/c.xml", "b/c.mp4", "a/d.mp4", "a/c.tar.mp4"] {
            grouping.add(file(name), wait: .seconds(5), at: start)
        }
        #expect(grouping.all.count == 4)
        #expect(grouping.count == 5)
        let taken = grouping.remove(Grouping.Key(file("a/c.srt")))
        #expect(taken.map(\.relative.display) == ["a/c.mp4", "a/c.xml"])
    }

    @Test("each new file restarts the wait of its group")
    func wait() {
        var grouping = Grouping()
        grouping.add(file("c.mp4"), wait: .seconds(5), at: start)
        #expect(grouping.due(at: at(4)).isEmpty)
        grouping.add(file("c.xml"), wait: .seconds(5), at: at(4))
        #expect(grouping.due(at: at(8)).isEmpty)
        #expect(grouping.due(at: at(9)).count == 1)
    }

    @Test("missing files that exist on disk are checked less and less often")
    func looks() {
        var grouping = Grouping()
        let key = Grouping.Key(file("c.mp4"))
        grouping.add(file("c.mp4"), wait: .zero, at: start)
        var now = start
        var waits: [Int64] = []
        for _ in 0..<8 {
            let isNew = grouping.wait(key, for: "c.xml", isExpected: true, at: now)
            #expect(isNew == (now == start))
            let next = grouping.next ?? now
            waits.append(next.since(now).components.seconds)
            now = next
        }
        #expect(waits == [1, 2, 4, 8, 16, 32, 64, 64])
        let isNew = grouping.wait(key, for: "its video", isExpected: false, at: now)
        #expect(isNew)
        #expect(grouping.next == now.advanced(by: .seconds(64)))
    }

    @Test("an incomplete group is checked soon, in case its files disappear, and then rarely")
    func lone() {
        var grouping = Grouping()
        let key = Grouping.Key(file("c.xml"))
        grouping.add(file("c.xml"), wait: .zero, at: start)
        var now = start
        var waits: [Int64] = []
        for _ in 0..<7 {
            _ = grouping.wait(key, for: "its video", isExpected: false, at: now)
            let next = grouping.next ?? now
            waits.append(next.since(now).components.seconds)
            now = next
        }
        #expect(waits == [8, 8, 8, 8, 16, 32, 64])
    }

    @Test("a removed member is dropped, and the last one drops its group")
    func drop() {
        var grouping = Grouping()
        grouping.add(file("c.mp4"), wait: .zero, at: start)
        grouping.add(file("c.xml"), wait: .zero, at: start)
        let key = Grouping.Key(file("c.mp4"))
        grouping.drop(["c.mp4"], of: key)
        #expect(grouping.count == 1)
        grouping.drop(["c.xml"], of: key)
        #expect(grouping.all.isEmpty)
        let taken = grouping.remove(key)
        #expect(taken.isEmpty)
    }

    @Test(
        "a sidecar is recognised by its extension, in any case",
        arguments: [
            ("a.xml", true), ("a.XML", true), ("a.Thm", true), ("a.mp4", false), ("xml", false), (".xml", false),
            ("a.xmlx", false),
            ("a.mp4.json", true),
        ])
    func sidecar(name: String, isOne: Bool) { #expect(GroupRule().isSidecar(FilePath(name)) == isOne) }

    @Test("a file with a video's whole name before its extension joins it")
    func join() {
        var grouping = Grouping()
        grouping.add(file("a/c.mp4.json"), wait: .seconds(5), at: start)
        grouping.add(file("a/c.mp4"), wait: .seconds(5), at: at(2))
        let (from, to) = (Grouping.Key(file("a/c.mp4.json")), Grouping.Key(file("a/c.mp4")))
        #expect(from != to)
        grouping.move(from, to: to)
        #expect(grouping.all.count == 1)
        #expect(grouping.due(at: at(6)).isEmpty)
        let taken = grouping.remove(to)
        #expect(taken.map(\.relative.display) == ["a/c.mp4", "a/c.mp4.json"])
        grouping.move(from, to: to)
        #expect(grouping.all.isEmpty)
    }

    @Test("sidecars are accepted if patterns name only the videos")
    func include() {
        let rule = GroupRule(sidecars: ["xml", "srt"])
        #expect(rule.include(with: []) == [])
        #expect(rule.include(with: ["*.mp4", "*.srt"]) == ["*.mp4", "*.srt", "*.xml"])
        #expect(rule.include(with: rule.include(with: ["*.mp4"])) == ["*.mp4", "*.xml", "*.srt"])
    }
}
