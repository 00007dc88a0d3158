import Core
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

@testable import Transport

/// A connection that is given up while it is being made: libcurl 7.88 closes its socket without a report.
@Suite("Abandoned connection attempts", .timeLimit(.minutes(Patience.minutes(1))))
struct AbandonedConnectionTests {
    /// A port that never answers: its queue is full, and the kernel drops connection requests.
    private final class FullPort: Sendable {
        let loopback: Loopback
        private let waiting: CInt
        var url: String { "http://127.0.0.1:\(loopback.port)" }

        init() throws {
            let loopback = try Loopback()
            // A second call only changes the length of the queue (listen(2)): one connection waits, and no more.
            try systemCall("listen", on: "loopback") { listen(loopback.descriptor, 0) }
            waiting = try AbandonedConnectionTests.connected(to: loopback.port)
            self.loopback = loopback
        }

        deinit {
            close(waiting)
            close(loopback.descriptor)
        }
    }

    private static func connected(to port: Int) throws -> CInt {
        let number = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        try systemCall("connect", on: "loopback") {
            withUnsafePointer(to: address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
        return number
    }

    private static func resetsOnClose(_ socket: CInt) -> Bool {
        var linger = Glibc.linger()
        var length = socklen_t(MemoryLayout<Glibc.linger>.size)
        _ = getsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, &length)
        return linger.l_onoff != 0
    }

    @Test("an abandoned attempt does not touch a reused descriptor number")
    func number() async throws {
        let (full, other) = (try FullPort(), try Loopback())
        defer { close(other.descriptor) }
        let mine = try Self.connected(to: other.port)
        defer { close(mine) }
        // Another test may get the number first.
        for _ in 0..<100 {
            let asked = Mutex<Set<CInt>>([])
            let transport = Transport { socket in
                _ = asked.withLock { $0.insert(socket) }
                return Sockets.counts(socket)
            }
            let sending = Task { try await transport.send(Request("GET", full.url, interface: "lo")) }
            let number = try await eventually("the request is connected") {
                await transport.charge()
                return asked.withLock { $0.first }
            }
            sending.cancel()
            await #expect(throws: TransportError.self) { try await sending.value }
            let copy = fcntl(mine, F_DUPFD_CLOEXEC, number)
            defer { close(copy) }
            guard copy == number else { continue }
            await transport.close(interface: "lo")
            #expect(!Self.resetsOnClose(copy))
            transport.removeAddresses(addresses: [try #require(IPAddress("127.0.0.1"))])
            await transport.charge()
            #expect(send(copy, "x", 1, CInt(MSG_NOSIGNAL)) == 1)
            return
        }
        Issue.record("another descriptor took the number each time")
    }

    @Test("an abandoned attempt is charged once for its bytes")
    func cost() async throws {
        let full = try FullPort()
        let onWire = Mutex<[Int64]>([])
        let transport = Transport()
        let sending = Task {
            try await transport.send(
                Request("GET", full.url, onWire: { more in onWire.withLock { $0.append(more) } }))
        }
        try await eventually("the request has sent bytes") {
            await transport.charge()
            return onWire.withLock { !$0.isEmpty }
        }
        sending.cancel()
        let error = await #expect(throws: TransportError.self) { try await sending.value }
        // A SYN of 60 bytes and those that followed it, and the reservation for the end of a connection.
        #expect(try 60...500 ~= #require(error).bytesOnWire)
        #expect(onWire.withLock { $0.reduce(0, +) } == error?.bytesOnWire)
    }
}
