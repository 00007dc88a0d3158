import Core
import Linux
import Synchronization
import TestKit
import Testing
import Transport

/// The reported bytes of a broken request, compared with the bytes that the other kernel has received.
@Suite("Delivered bytes", .timeLimit(.minutes(Patience.minutes(1))))
struct DeliveryTests {
    let transport = Transport()
    let folder = TemporaryFolder()

    enum End: String, CaseIterable { case shutDown, reset, cancelled }

    /// Sends a body to a server that reads `read` bytes of it.
    ///
    /// - Returns: The bounds, and how many bytes of the body the server's kernel had.
    private func broken(_ size: Int, after read: Int, by end: End) async throws -> (DeliveryBounds, received: Int64) {
        let received = Mutex<Int64?>(nil)
        let isRead = Mutex(false)
        let server = try FakeServer { exchange in
            let head = (exchange.counts?.received ?? 0)
            let body = exchange.body(read)
            isRead.withLock { $0 = true }
            if end == .cancelled {
                while exchange.counts?.isOver == false, exchange.piece(1 << 20).isEmpty == false {}
            }
            // The first read may have included a part of the body with the header, so the header is the rest of the
            // total.
            received.withLock { $0 = max(Int64(body.count), (exchange.counts?.received ?? 0) - head) }
            if end != .cancelled { exchange.cut(reset: end == .reset) }
        }
        let path = try folder.write("video", noise(size))
        let request = Request(
            "PATCH", server.url, headers: [("Expect", "")], body: .file(.path(path), offset: 0, count: Int64(size)))
        let task = Task { try await transport.send(request) }
        if end == .cancelled {
            try await eventually("the server has read the body") { isRead.withLock { $0 ? true : nil } }
            task.cancel()
        }
        let error = try #require(await #expect(throws: TransportError.self) { try await task.value })
        let total = try await eventually("the server has counted the bytes") { received.withLock { $0 } }
        return (error.delivery, total)
    }

    @Test(
        "acknowledged bytes are a lower and sent bytes an upper bound of the received ones",
        arguments: End.allCases, [1, 1_000, 100_000, 1_000_000, 6_000_000])
    func bounds(_ end: End, _ read: Int) async throws {
        let size = 8 << 20
        let (delivery, received) = try await broken(size, after: read, by: end)
        #expect(delivery.atLeast <= delivery.atMost)
        #expect(delivery.atMost <= Int64(size))
        #expect(delivery.atMost >= received)
        #expect(delivery.atMost >= Int64(read))
    }

    @Test("a body that the peer received completely is acknowledged completely", arguments: [End.shutDown, .reset])
    func whole(_ end: End) async throws {
        let (delivery, _) = try await broken(100_000, after: 100_000, by: end)
        #expect(delivery.atMost == 100_000)
        // A reset may leave before the acknowledgement of the last bytes does, and then the acknowledgement is lost.
        #expect(end == .reset ? (0...100_000).contains(delivery.atLeast) : delivery.atLeast == 100_000)
    }

    @Test("bytes that the peer never read are neither acknowledged nor in flight")
    func unread() async throws {
        let size = 64 << 20
        let (delivery, _) = try await broken(size, after: 1_000_000, by: .reset)
        #expect(delivery.atLeast < Int64(size) && delivery.atMost < Int64(size))
    }

    @Test("without a connection there is no byte")
    func unconnected() async throws {
        let server = try FakeServer { $0.reply(200) }
        let url = server.url
        server.stop()
        let path = try folder.write("video", noise(1000))
        let error = await #expect(throws: TransportError.self) {
            try await transport.send(Request("PUT", url, body: .file(.path(path), offset: 0, count: 1000)))
        }
        #expect(error?.delivery == DeliveryBounds(atLeast: 0, atMost: 0))
    }

    @Test("if the kernel does not count, nothing is acknowledged, and all written bytes may have been sent")
    func uncounted() async throws {
        let transport = Transport(counts: { _ in nil })
        let server = try FakeServer { exchange in
            _ = exchange.body(1000)
            exchange.cut()
        }
        let path = try folder.write("video", noise(1000))
        let error = await #expect(throws: TransportError.self) {
            try await transport.send(Request("PUT", server.url, body: .file(.path(path), offset: 0, count: 1000)))
        }
        #expect(error?.delivery == DeliveryBounds(atLeast: 0, atMost: 1000))
    }

    @Test("only the file's bytes of a framed body are counted")
    func framed() async throws {
        let server = try FakeServer { exchange in
            _ = exchange.body()
            exchange.cut()
        }
        let path = try folder.write("video", noise(5000))
        let error = await #expect(throws: TransportError.self) {
            try await transport.send(
                Request(
                    "POST", server.url,
                    body: .framed(head: noise(300), .path(path), offset: 0, count: 5000, tail: noise(40))))
        }
        #expect(error?.delivery == DeliveryBounds(atLeast: 5000, atMost: 5000))
    }
}
