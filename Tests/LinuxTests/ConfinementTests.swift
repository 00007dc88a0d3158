import Core
import Glibc
import TestKit
import Testing

@testable import Linux

@Suite("Programs that are held to one port")
struct ConfinementTests {
    /// Runs Python statements in a confined program.
    ///
    /// - Returns: What they print.
    private func run(_ statements: String, _ confinement: Confinement?) throws -> String {
        let program = Program(
            words: ["/usr/bin/python3", "-c", "import os, socket, ctypes, subprocess, errno\n" + statements].map {
                Array($0.utf8)
            },
            environment: Program.plainEnvironment, folder: "/", confinement: confinement)
        let output = try program.collectOutput(atMost: 1 << 16, within: .seconds(30))
        return String(decoding: output, as: UTF8.self).split(separator: "\n").joined(separator: "\n")
    }

    private static let attempt = """
        def attempt(make):
            try:
                make()
                return "done"
            except OSError as error:
                return errno.errorcode[error.errno]

        """

    @Test(
        "it connects to its port and to no other one, and binds none; so do the programs that it starts",
        .enabled(if: Confinement.Support.here.holdsTCP, "needs Landlock with ABI 4 (Linux 6.7)"))
    func ports() throws {
        let (own, other) = (try Loopback(), try Loopback())
        defer { for socket in [own.descriptor, other.descriptor] { close(socket) } }
        let statements =
            Self.attempt + """
                own = lambda: socket.create_connection(("127.0.0.1", \(own.port))).close()
                other = lambda: socket.create_connection(("127.0.0.1", \(other.port))).close()
                bind = lambda: socket.socket().bind(("127.0.0.1", 0))
                print(attempt(own), attempt(other), attempt(bind))
                child = "import socket; socket.create_connection(('127.0.0.1', \(other.port)))"
                print(subprocess.run(["/usr/bin/python3", "-c", child], stderr=subprocess.DEVNULL).returncode != 0)
                """
        #expect(try run(statements, Confinement(port: UInt16(own.port))) == "done EACCES EACCES\nTrue")
        #expect(try run(statements, nil) == "done done done\nFalse")
    }

    @Test(
        "it opens TCP and Unix sockets, and none of the kinds that could send past them",
        .enabled(if: Confinement.Support.here.filtersCalls, "needs seccomp"))
    func sockets() throws {
        let statements =
            Self.attempt + """
                def make(family, kind, number=0): return attempt(lambda: socket.socket(family, kind, number).close())
                print(make(socket.AF_UNIX, socket.SOCK_STREAM), make(socket.AF_UNIX, socket.SOCK_DGRAM),
                      make(socket.AF_INET, socket.SOCK_STREAM), make(socket.AF_INET6, socket.SOCK_STREAM),
                      make(socket.AF_INET, socket.SOCK_STREAM, 6), make(16, socket.SOCK_RAW, 0))
                print(make(socket.AF_INET, socket.SOCK_DGRAM), make(socket.AF_INET6, socket.SOCK_DGRAM),
                      make(socket.AF_INET, socket.SOCK_RAW, 1), make(socket.AF_INET, socket.SOCK_STREAM, 262),
                      make(socket.AF_PACKET, socket.SOCK_RAW), make(16, socket.SOCK_RAW, 12), make(40, socket.SOCK_STREAM))
                fast = lambda: socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", 9))
                def wait(make): make().listen(5)
                print(attempt(lambda: wait(socket.socket)), attempt(lambda: wait(lambda: socket.socket(socket.AF_INET6))))
                ring = ctypes.CDLL(None, use_errno=True)
                print(attempt(fast) in ("ENOTSUP", "EOPNOTSUPP"), ring.syscall(425, 1, None), errno.errorcode[ctypes.get_errno()])
                print(open("/proc/self/status").read().split("NoNewPrivs:")[1].split()[0])
                """
        let support = Confinement.Support(landlockABI: 0, filtersCalls: true)
        #expect(
            try run(statements, Confinement(port: 9, support: support)) == """
                done done done done done done
                EACCES EACCES EACCES EACCES EACCES EACCES EACCES
                EACCES EACCES
                True -1 ENOSYS
                1
                """)
    }

    @Test("a kernel that supports neither leaves the program as it is")
    func unsupported() throws {
        let support = Confinement.Support(landlockABI: 3, filtersCalls: false)
        #expect(!support.holdsTCP && !support.isComplete)
        let statements = "socket.socket(socket.AF_INET, socket.SOCK_DGRAM); print('open')"
        #expect(try run(statements, Confinement(port: 9, support: support)) == "open")
    }
}
