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

@Suite("Open files of all processes")
struct OpenFilesTests {
    let folder = TemporaryFolder()

    private func answer(_ path: FilePath, root: FilePath = "/proc") throws -> ProcDescriptorSearch.Answer {
        let clocks = SystemClocks()
        return ProcDescriptorSearch(clocks: clocks, root: root).writer(
            of: try FileStatus(at: path), seen: clocks.monotonic())
    }

    @Test("a file open for writing is detected, one open for reading is not")
    func writers() throws {
        let path = try folder.write("a", noise(10))
        let reader = try Descriptor.open(path, for: .reading)
        let before = try answer(path)
        // Other users' processes are not readable unless the test runs as root.
        #expect(before.writer == (before.closed == 0 && ProcVisibility.listsAll() ? .unseen : .unknown))
        let writer = try Descriptor.open(path, for: .updating)
        #expect(try answer(path).writer == .present)
        try writer.close(named: path)
        #expect(try answer(path).writer != .present)
        try reader.close(named: path)
    }

    @Test(
        "a file mapped for writing is detected when its descriptor is closed",
        arguments: [PROT_READ | PROT_WRITE, PROT_READ])
    func mapped(_ rights: CInt) throws {
        let path = try folder.write("a", noise(10))
        let number = open(path.display, O_RDWR)
        let memory = mmap(nil, 10, rights, MAP_SHARED, number, 0)
        close(number)
        #expect((try answer(path).writer == .present) == (rights & PROT_WRITE != 0))
        munmap(memory, 10)
        #expect(try answer(path).writer != .present)
    }

    @Test(
        "inspecting processes of others takes two capabilities",
        arguments: [(1 << 19, false), (1 << 2, false), (1 << 19 | 1 << 2, true)])
    func rights(_ bits: UInt64, _ looks: Bool) throws {
        _ = try folder.write("12/status", Array("Uid:\t5\t5\t5\t5\nCapEff:\t\(String(bits, radix: 16))\n".utf8))
        let rights = try #require(ProcessRights(folder.path.appending("12")))
        #expect(rights.mayExamineOthers == looks)
    }

    @Test("a process that cannot be inspected makes the answer uncertain")
    func closed() throws {
        let path = try folder.write("a", noise(10))
        // A file cannot be listed like a folder, as a forbidden one cannot.
        try Files.makeFolders(folder.path.appending("proc/12"))
        #expect(makeLink(to: "fd", at: folder.path.appending("proc/12/fd")))
        let answer = try answer(path, root: folder.path.appending("proc"))
        #expect(answer.closed == 1)
        #expect(answer.writer == .unknown)
    }

    @Test("a process that hides how it opened the file makes the answer uncertain")
    func withheld() throws {
        let path = try folder.write("a", noise(10))
        let process = folder.path.appending("proc/12")
        for name in ["fd", "fdinfo"] { try Files.makeFolders(process.appending(FilePath(name))) }
        #expect(makeLink(to: path, at: process.appending("fd/3")))
        _ = try folder.write("proc/12/maps", [])
        // The file was closed meanwhile.
        #expect(try answer(path, root: folder.path.appending("proc")).closed == 0)
        for text in ["", "flags:\t0100001\n"] {
            _ = try folder.write("proc/12/fdinfo/3", Array(text.utf8))
            let answer = try answer(path, root: folder.path.appending("proc"))
            #expect(answer.closed == (text.isEmpty ? 1 : 0) && answer.writer == (text.isEmpty ? .unknown : .present))
        }
        try Files.removeIfPresent(process.appending("fdinfo/3"))
        // A folder cannot be read as a file, as a forbidden file cannot.
        try Files.makeFolders(process.appending("fdinfo/3"))
        #expect(try answer(path, root: folder.path.appending("proc")).closed == 1)
    }

    @Test("without a complete process list, the absence of a writer is uncertain")
    func listed() throws {
        func lists(_ line: String) -> Bool { ProcVisibility.listsAll(mounts: Array(line.utf8)) }
        let plain = "22 1 0:21 / /proc rw,nosuid - proc proc rw"
        // In a container the processes of the host are not listed.
        let isMachine = Files.linkTarget("/proc/self/ns/pid") == "pid:[4026531836]"
        #expect(lists(plain) == isMachine)
        #expect(lists(plain + ",hidepid=noaccess") == isMachine)
        #expect(!lists("22 1 0:21 / /proc rw,nosuid - tmpfs tmpfs rw"))
        #expect(!lists("22 1 0:21 / /other rw,nosuid - proc proc rw"))
        if Machine.has(.ptrace) == true { return }
        #expect(!lists(plain + ",hidepid=invisible"))
        #expect(!lists(plain + ",hidepid=2"))
    }

    @Test("without /proc the answer is unknown")
    func none() throws {
        let path = try folder.write("a", noise(10))
        #expect(try answer(path, root: folder.path.appending("none")).writer == .unknown)
    }
}
