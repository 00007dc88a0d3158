import Core
import Testing

@testable import Watch

@Suite("Root")
struct RootTests {
    private let root = Trees().root

    @Test("mount points are read once for each real path, and again after the folder was away")
    func mounts() {
        var reads = 0
        func points(_ path: FilePath) -> [FilePath: UInt64] {
            reads += 1
            return ["a": UInt64(reads)]
        }
        let isMoved = root.found(at: root.real, mountPoints: points)
        #expect(!isMoved && reads == 1)
        #expect(!root.found(at: root.real, mountPoints: points) && reads == 1)
        #expect(!root.found(at: nil, mountPoints: points) && reads == 1)
        #expect(root.found(at: "/elsewhere", mountPoints: points) && reads == 2)
        #expect(root.real == "/elsewhere")
        root.forgetMountPoints()
        #expect(!root.found(at: root.real, mountPoints: points) && reads == 3)
        #expect(root.mountPoints == ["a": 3])
    }

    @Test("only changed mount points are returned, and none before they were known")
    func changedMounts() {
        #expect(root.replaceMountPoints(["a": 1]).isEmpty)
        #expect(root.mountPoints == nil)
        _ = root.found(at: nil) { _ in ["a": 1, "b": 1, "c": 1] }
        #expect(Set(root.replaceMountPoints(["a": 1, "b": 2, "d": 1])) == ["b", "c", "d"])
        #expect(root.replaceMountPoints(["a": 1, "b": 2, "d": 1]).isEmpty)
    }

    @Test("a change in a directory counts once, and so does another modification time")
    func changes() {
        let directory = root.top
        #expect(!directory.takeChange())
        directory.scanned(modified: 5)
        #expect(directory.takeChange() && !directory.takeChange())
        directory.scanned(modified: 5)
        #expect(!directory.takeChange())
        directory.noteChange()
        #expect(directory.takeChange())
    }
}
