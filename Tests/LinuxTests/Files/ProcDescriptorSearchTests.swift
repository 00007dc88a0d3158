import Core
import Glibc
import TestKit
import Testing

@testable import Linux

@Suite("Open files of all processes")
struct ProcDescriptorSearchTests {
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
