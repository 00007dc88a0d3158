import Core
import Glibc
import Linux
import TestKit
import Testing

/// A replacement for systemd: a datagram socket that keeps the datagrams.
final class Supervisor: Sendable {
    private let number: CInt

    init(_ path: FilePath) {
        number = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.bytes) }
        withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = bind(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    deinit { close(number) }

    /// Datagrams on a Unix socket are there when `sendto` has returned.
    func next() -> String? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(number, &buffer, buffer.count, CInt(MSG_DONTWAIT))
        return count < 0 ? nil : String(decoding: buffer.prefix(count), as: UTF8.self)
    }
}

@Suite("Notify")
struct NotifyTests {
    @Test("a reload starts with the time and ends with ready")
    func reload() throws {
        let folder = TemporaryFolder()
        let path = folder.path.appending("notify")
        let supervisor = Supervisor(path)
        let notify = Notify(socket: path.display)
        notify.reloading()
        notify.reloaded()
        let lines = try #require(supervisor.next()).split(separator: "\n")
        #expect(lines.first == "RELOADING=1")
        // The time is that of CLOCK_MONOTONIC, which starts with the machine, and not the wall clock.
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let told = lines.last.flatMap { $0.hasPrefix("MONOTONIC_USEC=") ? Int64($0.dropFirst(15)) : nil }
        #expect((1...Int64(now.tv_sec + 1) * 1_000_000).contains(told ?? 0))
        #expect(supervisor.next() == "READY=1")
    }

    @Test("the supervisor gets lines of KEY=value")
    func tells() {
        let folder = TemporaryFolder()
        let path = folder.path.appending("notify")
        let supervisor = Supervisor(path)
        let notify = Notify(socket: path.display)
        #expect(notify.isEnabled)
        notify.ready("watching 2 folders")
        notify.status("a\nREADY=0")
        notify.stopping()
        #expect(supervisor.next() == "READY=1\nSTATUS=watching 2 folders")
        // A text cannot begin a second line.
        #expect(supervisor.next() == "STATUS=a\\x0aREADY=0")
        #expect(supervisor.next() == "STOPPING=1")
    }

    @Test("without a supervisor nothing is sent", arguments: [nil, "", "vsock:2:1", "/nowhere/at/all", "relative"])
    func noSupervisor(_ socket: String?) {
        let notify = Notify(socket: socket)
        notify.ready("x")
        #expect(notify.isEnabled == (socket == "/nowhere/at/all"))
    }
}
