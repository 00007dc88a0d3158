import Core
import Glibc
import Linux
import TestKit
import Testing

@Suite("Lease")
struct LeaseTests {
    let folder = TemporaryFolder()

    init() { Lease.ignoreSignal() }

    @Test("is granted where nobody writes, readers or not")
    func free() throws {
        let path = try folder.write("a", noise(10))
        let reader = try Descriptor.open(path, for: .reading)
        let (look, writer) = try Lease.look(at: path)
        #expect(writer == .nobody)
        #expect(try look == FileLook(of: reader, named: path))
    }

    @Test("is refused while somebody has the file open for writing, and only then")
    func busy() throws {
        let path = folder.path.appending("a")
        do {
            let file = try Descriptor.open(path, for: .creating)
            #expect(try Lease.look(at: path).writer == .somebody)
            try file.close(named: path)
        }
        #expect(try Lease.look(at: path).writer == .nobody)
    }

    @Test("is given back at once: a writer can open the file right after")
    func returned() throws {
        let path = try folder.write("a", noise(10))
        for _ in 0..<100 {
            _ = try Lease.look(at: path)
            let number = path.withCString { open($0, O_WRONLY | O_NONBLOCK | O_CLOEXEC) }
            #expect(number >= 0)
            close(number)
        }
    }

    @Test("leaves FIFOs and links alone")
    func special() throws {
        let pipe = folder.path.appending("pipe")
        #expect(pipe.withCString { mkfifo($0, 0o600) } == 0)
        #expect(try Lease.look(at: pipe).writer == .unknown)
        let target = try folder.write("a", [1])
        let link = folder.path.appending("link")
        #expect(target.withCString { from in link.withCString { symlink(from, $0) } } == 0)
        #expect(try !Lease.look(at: link).look.isRegular)
    }

    @Test("says that a name is gone")
    func gone() {
        let error = #expect(throws: SystemError.self) { try Lease.look(at: folder.path.appending("none")) }
        #expect(error?.isMissing == true)
    }
}
