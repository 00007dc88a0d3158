import Core
import Linux
import Testing

@testable import Watch

@Suite("Root")
struct RootTests {
    private let root = Trees().root

    private func mount(_ number: UInt64, device: UInt64 = 7) -> MountTable.Mounted {
        MountTable.Mounted(number: number, device: device)
    }

    @Test("mount points are read once for each real path, and again after the folder was away")
    func mounts() {
        var reads = 0
        func points(_ path: FilePath) -> [FilePath: MountTable.Mounted] {
            reads += 1
            return ["a": mount(UInt64(reads))]
        }
        let isMoved = root.found(at: root.real, mountPoints: points)
        #expect(!isMoved && reads == 1)
        #expect(!root.found(at: root.real, mountPoints: points) && reads == 1)
        #expect(!root.found(at: nil, mountPoints: points) && reads == 1)
        #expect(root.found(at: "/elsewhere", mountPoints: points) && reads == 2)
        #expect(root.real == "/elsewhere")
        root.forgetMountPoints()
        #expect(!root.found(at: root.real, mountPoints: points) && reads == 3)
        #expect(root.mountPoints == ["a": mount(3)])
    }

    @Test("only changed mount points are returned, and none before they were known")
    func changedMounts() {
        #expect(root.replaceMountPoints(["a": mount(1)]).isEmpty)
        #expect(root.mountPoints == nil)
        _ = root.found(at: nil) { _ in ["a": mount(1), "b": mount(1), "c": mount(1), "e": mount(1)] }
        let points = ["a": mount(1), "b": mount(2), "d": mount(1), "e": mount(1, device: 8)] as [FilePath: _]
        #expect(Set(root.replaceMountPoints(points)) == ["b", "c", "d", "e"])
        #expect(root.replaceMountPoints(points).isEmpty)
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
