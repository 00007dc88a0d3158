import Core
import Glibc
import TestKit
import Testing

@testable import Linux

/// Checks that distinguish an existing folder from an empty mount point.
@Suite("Presence of a folder")
struct PresenceTests {
    let folder = TemporaryFolder()
    var path: FilePath { folder.path.appending("card") }

    init() throws { try Files.makeFolders(path) }

    private func missing(_ requirement: FolderRequirement, fstab: String = "") throws -> String? {
        let table = try folder.write("fstab", Array(fstab.utf8))
        return MountCheck(SourceFolders()[path], [requirement], table: table).missing()
    }

    @Test("the required file is missing or present, whatever its type")
    func file() throws {
        let requirement = FolderRequirement(file: "DCIM/.sluice-here")
        #expect(try missing(requirement)?.hasPrefix("DCIM/.sluice-here is missing (require.file)") == true)
        try Files.makeFolders(path.appending("DCIM/.sluice-here"))
        #expect(try missing(requirement) == nil)
        #expect(try missing(FolderRequirement()) == nil)
    }

    @Test("a folder that cannot be opened is missing")
    func gone() throws {
        let none = folder.path.appending("none")
        #expect(MountCheck(SourceFolders()[none], []).missing() == "it does not exist")
        #expect(
            MountCheck(SourceFolders()[path.appending("none")], [FolderRequirement(mount: "/")]).missing()
                == "it does not exist")
    }

    @Test("a folder that disappeared with its disk is reported as such", .enabled(if: SmallDisk.isPossible))
    func below() throws {
        let inner = path.appending("DCIM")
        let gate = MountCheck(SourceFolders()[inner], [FolderRequirement(mount: path)])
        #expect(gate.missing() == "nothing is mounted at \(path.display) (require.mount)")
        let disk = try SmallDisk(at: path)
        #expect(gate.missing() == "it does not exist")
        try Files.makeFolders(inner)
        #expect(gate.missing() == nil)
        withExtendedLifetime(disk) {}
    }

    @Test("a missing mount is reported, as configured or according to fstab")
    func mount() throws {
        let point = path.display
        #expect(try missing(FolderRequirement(mount: path)) == "nothing is mounted at \(point) (require.mount)")
        let fstab = "UUID=1 \(point) vfat noauto 0 0\n"
        #expect(try missing(FolderRequirement(), fstab: fstab)?.contains("nothing is mounted at \(point) (") == true)
        #expect(try missing(FolderRequirement(mount: "/"), fstab: fstab) == nil)
    }

    @Test("a mount at the path, or below it, suffices", .enabled(if: SmallDisk.isPossible))
    func mounted() throws {
        let disk = try SmallDisk(at: path)
        #expect(try missing(FolderRequirement(mount: path)) == nil)
        try Files.makeFolders(path.appending("in"))
        #expect(MountCheck(SourceFolders()[path.appending("in")], [FolderRequirement(mount: path)]).missing() == nil)
        withExtendedLifetime(disk) {}
    }

    static let table = """
        28 1 254:0 / / rw,relatime - ext4 /dev/vda rw
        40 28 0:50 / ROOT/nas rw - nfs4 nas:/export rw
        41 28 0:51 / ROOT/phone rw - fuse.sshfs phone:/ rw
        42 28 0:52 / ROOT/disk rw - ext4 /dev/sda1 rw
        """

    private var mounts: MountTable {
        MountTable(Array(Self.table.replacing("ROOT", with: Files.real(folder.path)?.display ?? "").utf8))
    }

    @Test("a path onto a server is detected without a request to it, through links too")
    func slow() throws {
        let root = try #require(Files.real(folder.path))
        try Files.makeFolders(root.appending("a"))
        #expect(makeLink(to: "../nas/cam", at: root.appending("a/link")))
        #expect(makeLink(to: root.appending("a/link"), at: root.appending("again")))
        #expect(makeLink(to: "loop", at: root.appending("loop")))
        let nas = root.appending("nas")
        #expect(mounts.place(of: nas).slow == nas)
        #expect(mounts.place(of: nas.appending("x/y")) == (nas.appending("x/y"), nas))
        #expect(mounts.place(of: root.appending("again/day")) == (nas.appending("cam/day"), nas))
        #expect(mounts.place(of: root.appending("disk/x")) == (root.appending("disk/x"), nil))
        #expect(mounts.place(of: root.appending("a/../phone/b")).slow == root.appending("phone"))
        #expect(mounts.place(of: root.appending("loop/x")).slow == nil)
        #expect(mounts.hasSlow(below: root))
        #expect(!mounts.hasSlow(below: root.appending("a")))
        #expect(Set(mounts.points(below: root).keys) == ["nas", "phone", "disk"])
    }

    @Test("memory and local disks report changes, and unknown file systems do not")
    func silent() throws {
        #expect(!FileSystemKind.lacksChangeEvents(try FolderStream(path)))
        #expect(FileSystemKind.lacksChangeEvents(try FolderStream("/proc")))
    }
}
