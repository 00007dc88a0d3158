import Core
import Glibc
import Linux
import TestKit
import Testing

@Suite("Lease")
struct LeaseTests {
    private func lease(_ path: FilePath) throws(SystemError) -> (status: FileStatus, writer: OpenWriter) {
        try Lease.status(at: path.name, in: OpenFolder(following: path.parent))
    }

    let folder = TemporaryFolder()

    init() { Lease.ignoreSignal() }

    @Test("a lease is granted if no process writes, with or without readers")
    func free() throws {
        let path = try folder.write("a", noise(10))
        let reader = try Descriptor.open(path, for: .reading)
        let (status, writer) = try lease(path)
        #expect(writer == .absent)
        #expect(try status == FileStatus(of: reader, named: path))
    }

    @Test("a lease is refused only while a process has the file open for writing")
    func busy() throws {
        let path = folder.path.appending("a")
        do {
            let file = try Descriptor.open(path, for: .creating)
            #expect(try lease(path).writer == .present)
            try file.close(named: path)
        }
        #expect(try lease(path).writer == .absent)
    }

    @Test("a lease is returned at once: a writer can open the file right after")
    func returned() throws {
        let path = try folder.write("a", noise(10))
        for _ in 0..<100 {
            _ = try lease(path)
            let number = path.withCString { open($0, O_WRONLY | O_NONBLOCK | O_CLOEXEC) }
            #expect(number >= 0)
            close(number)
        }
    }

    @Test("FIFOs and links get no lease")
    func special() throws {
        let pipe = folder.path.appending("pipe")
        #expect(pipe.withCString { mkfifo($0, 0o600) } == 0)
        #expect(try lease(pipe).writer == .unknown)
        let target = try folder.write("a", [1])
        let link = folder.path.appending("link")
        #expect(target.withCString { from in link.withCString { symlink(from, $0) } } == 0)
        #expect(try !lease(link).status.isRegular)
    }

    @Test("a missing name is reported")
    func gone() {
        let error = #expect(throws: SystemError.self) { try lease(folder.path.appending("none")) }
        #expect(error?.isMissing == true)
    }
}
