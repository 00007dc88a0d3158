import Core
import Dispatch
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

@testable import Transport

@Suite("Stopping", .timeLimit(.minutes(Patience.minutes(1))))
struct StoppingTests {
    let transport = Transport()
    let folder = TemporaryFolder()

    @Test("after a cancellation, only bytes in flight still arrive", arguments: [false, true])
    func cancelled(_ isRead: Bool) async throws {
        let arrived = Mutex<Int64>(0)
        let end = Mutex<Int64?>(nil)
        let isCancelled = Mutex(false)
        let socket = Mutex<CInt>(-1)
        // Until then the socket stays open.
        let looked = DispatchSemaphore(value: 0)
        defer { looked.signal() }
        let server = try FakeServer { exchange in
            socket.withLock { $0 = exchange.connection }
            // Either read as fast as the bytes come, or not at all until the cancellation, so that every buffer on the
            // way is full.
            while isRead || !isCancelled.withLock({ $0 }) {
                if isRead, exchange.piece(256 << 10).isEmpty { break }
                if !isRead { usleep(1000) }
                arrived.withLock { $0 = exchange.counts?.received ?? 0 }
            }
            while !exchange.piece(256 << 10).isEmpty {}
            end.withLock { $0 = exchange.counts?.received ?? 0 }
            looked.wait()
            if isRead { #expect(exchange.wasReset) }
        }
        // More than is read before the cancellation, without using the disk.
        let path = try folder.write("video", [])
        let size: Int64 = 1 << 40
        #expect(path.withCString { truncate($0, off_t(size)) } == 0)
        let task = Task { [transport] in
            try await transport.send(
                Request(
                    "PATCH", server.url, headers: [("Expect", "")], body: .file(.path(path), offset: 0, count: size)))
        }
        try await eventually("the server has received bytes") { arrived.withLock { $0 > (isRead ? 1 << 20 : 1000) } }
        if !isRead {
            // By the kernel's own counters: the server's thread may not run for a while.
            var (last, same) = (Int64(-1), 0)
            try await eventually("the socket buffers are full", every: .milliseconds(50)) {
                let now = try #require(Sockets.counts(socket.withLock { $0 })).received
                same = now == last ? same + 1 : 0
                last = now
                return same >= 4
            }
        }
        task.cancel()
        let error = await #expect(throws: TransportError.self) { try await task.value }
        #expect(error?.kind == .cancelled)
        let before = try #require(Sockets.counts(socket.withLock { $0 })).received
        isCancelled.withLock { $0 = true }
        let after = try await eventually("the server has noticed the end") { end.withLock { $0 } }
        // An orderly close would deliver the bytes in our buffer: 128 KiB and more (TCP_NOTSENT_LOWAT).
        #expect(after - before < 128 << 10)
    }
}
