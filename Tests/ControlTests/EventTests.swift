import API
import Core
import Glibc
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Control
@testable import Daemon

private func event(_ seq: Int64, _ type: EventType = .state, id: String = "01A") -> EventView {
    EventView(seq: seq, ts: "2026-11-20T08:00:00.000Z", type: type, op: .sample(id, name: "z\u{2028}\n.mp4"))
}

@Suite("Events", .timeLimit(.minutes(Patience.minutes(1))))
struct EventTests {
    @Test("events arrive in order, as they happen, and resume after the last one")
    func follow() async throws {
        try await withLine { line in
            for seq in 1...3 as ClosedRange<Int64> { line.daemon.emit(event(seq)) }
            var seen: [EventView] = []
            for try await next in line.client.events(since: 1) {
                seen.append(next)
                if seen.count == 2 { line.daemon.emit(event(4, .completed)) }
                if seen.count == 3 { break }
            }
            #expect(seen == [event(2), event(3), event(4, .completed)])
            #expect(line.daemon.asked == ["events 1"])
            try await eventually("the daemon has noticed that its reader is gone") {
                line.daemon.emit(event(5))
                return line.daemon.state.withLock { $0.gone } == 1
            }
        }
    }

    @Test("events follow the standard for server-sent events")
    func wire() async throws {
        try await withLine(heartbeat: .milliseconds(20)) { line in
            line.daemon.emit(event(8))
            line.daemon.emit(event(9))
            let got = Mutex<[UInt8]>([])
            let request = Request(
                "GET", "http://sluice/v1/events?since=1", headers: [("Last-Event-ID", "8")], unixSocket: line.socket,
                onBody: { piece in
                    got.withLock {
                        $0 += piece
                        return !String(decoding: $0, as: UTF8.self).contains("\n: \n")
                    }
                })
            _ = try? await line.transport.send(request)  // ends by itself, after the first comment
            let text = got.withLock { String(decoding: $0, as: UTF8.self) }
            let data = try JSON.text(event(9))
            #expect(text.hasPrefix("retry: 3000\n\nid: 9\nevent: state\ndata: \(data)\n\n: \n\n"))
            // The header is newer than the address, which a browser repeats.
            #expect(line.daemon.asked == ["events 8"])
        }
    }

    @Test("the stream has headers that forbid caching")
    func headers() async throws {
        try await withLine { line in
            let reply = try await line.ask("HEAD", "/v1/events")
            #expect(reply.status == 200)
            #expect(reply.headers["content-type"] == "text/event-stream")
            #expect(reply.headers["cache-control"] == "no-store")
        }
    }

    @Test("the stream ends when the daemon stops, and the client reports it")
    func stop() async throws {
        let line = try await ControlPair()
        line.daemon.emit(event(1))
        let stream = line.client.events(since: 0)
        var iterator = stream.makeAsyncIterator()
        #expect(try await iterator.next() == event(1))
        await line.server.stop()
        await #expect(throws: ControlError.ended(last: 1)) { try await iterator.next() }
        await line.transport.stop()
    }

    @Test("a refused stream throws the refusal")
    func refused() async throws {
        try await withLine { line in
            line.daemon.refuse(Refusal(.unavailable, "starting"))
            await #expect(throws: Refusal(.unavailable, "starting")) {
                for try await _ in line.client.events(since: nil) {}
            }
        }
    }

    @Test("a slow reader holds a bounded queue, misses nothing, and is not disconnected")
    func slowReader() async throws {
        let queue = EventQueue(capacity: 10)
        let writer = Task {
            for seq in 1...100 as ClosedRange<Int64> where await !queue.put(event(seq)) { return seq }
            queue.end()
            return 0
        }
        var parser = EventParser()
        var seen: [EventView] = []
        while let piece = await queue.next() {
            seen += try parser.parse(piece)
            if seen.last?.seq != 100 {
                try await eventually("the writer waits for the reader") { queue.isBlocked || seen.count > 85 }
            }
            for _ in 0..<3 { queue.heartbeat() }
        }
        #expect(await writer.value == 0)
        #expect(seen.map(\.seq) == Array(1...100))
    }

    @Test("a reader that takes nothing from a full queue for four heartbeats gets `overflow` and the end")
    func stalledReader() async throws {
        let queue = EventQueue(capacity: 10)
        let writer = Task {
            for seq in 1...1000 as ClosedRange<Int64> where await !queue.put(event(seq)) { return seq }; return 0
        }
        try await eventually("the queue is full") { queue.isBlocked }
        // The first heartbeat counts from here.
        for _ in 0..<4 { queue.heartbeat() }
        #expect(queue.isBlocked)
        queue.heartbeat()
        #expect(await writer.value == 10)  // `retry` and nine events are ten
        var parser = EventParser()
        var seen: [EventView] = []
        while let piece = await queue.next() { seen += try parser.parse(piece) }
        #expect(seen.map(\.seq) == Array(1...9) + [9])
        #expect(seen.last?.type == .overflow)
    }

    @Test("a cancelled writer ends, and does not wait for its reader")
    func cancelledWriter() async throws {
        let queue = EventQueue(capacity: 1)
        let writer = Task { await queue.put(event(1)) }
        try await eventually("the queue is full") { queue.isBlocked }
        writer.cancel()
        #expect(await !writer.value)
    }

    // The cancelled task's lock of the runtime is held until `onCancel` returns, and a continuation that is resumed
    // meanwhile waits for it. With the queue's lock held, too, both would wait for ever.
    @Test("a reader that disconnects as an event comes for it delays no other", arguments: [false, true])
    func leaving(byHeartbeat: Bool) async throws {
        let queue = EventQueue(capacity: 10)
        _ = await queue.next()
        let reader = Task {
            await withTaskCancellationHandler {
                await queue.next()
            } onCancel: {
                if byHeartbeat {
                    try? startThread("heartbeat") { queue.heartbeat() }
                } else {
                    Task.detached { await queue.put(event(1)) }
                }
                // The piece is on its way to the reader.
                while queue.isAwaited { sched_yield() }
                queue.end()
            }
        }
        try await eventually("the reader waits") { queue.isAwaited }
        // A thread of its own, as every thread of the pool may be needed for the event.
        try await onLongThread(named: "canceller") { reader.cancel() }
        #expect(await reader.value != nil)
    }

    @Test("a client that was too slow continues from its last event and misses none")
    func overflow() async throws {
        try await withLine { line in
            line.daemon.emit(event(1))
            line.daemon.emit(EventView(seq: 1, ts: "", type: .overflow))
            line.daemon.emit(event(2))
            var seen: [Int64] = []
            for try await next in line.client.events(since: 0) {
                seen.append(next.seq)
                if seen.count == 2 { break }
            }
            #expect(seen == [1, 2])
            #expect(line.daemon.asked == ["events 0", "events 1"])
        }
    }

    @Test("a reader that does not read delays neither the daemon nor another reader")
    func standstill() async throws {
        try await withLine { line in
            // Sends a request, and never reads a byte of the answer.
            let wire = try Wire(unix: line.socket)
            try await wire.send("GET /v1/events HTTP/1.1\r\nHost: sluice\r\n\r\n")
            try await eventually("the first reader has been accepted", holds: { line.daemon.asked.count == 1 })
            let stream = line.client.events(since: 0)
            try await eventually("the second reader has been accepted", holds: { line.daemon.asked.count == 2 })
            for seq in 1...3000 as ClosedRange<Int64> { line.daemon.emit(event(seq)) }
            var last: Int64 = 0
            for try await next in stream {
                #expect(next.seq == last + 1)
                last = next.seq
                if last == 3000 { break }
            }
            withExtendedLifetime(wire) {}
        }
    }

    @Test("events are filtered by type, destination and id; stream problems are always sent")
    func filter() throws {
        let filter = try EventSubscriber.Filter(["types": "completed,failed", "destination": "archive", "id": "01A"])
        #expect(filter.lets(event(1, .completed)))
        #expect(!filter.lets(event(1, .progress)))
        #expect(!filter.lets(event(1, .completed, id: "01B")))
        #expect(filter.lets(EventView(seq: 1, ts: "", type: .reset)))
        #expect(try EventSubscriber.Filter([:]).lets(event(1)))
    }

    @Test("events are parsed from pieces cut anywhere", arguments: [1, 2, 7, 100_000])
    func pieces(_ size: Int) throws {
        let text = Array("retry: 3000\n\n: \n\n".utf8) + (try event(1).lines()) + (try event(2).lines())
        var parser = EventParser()
        var seen: [EventView] = []
        for start in stride(from: 0, to: text.count, by: size) {
            seen += try parser.parse(Array(text[start..<min(start + size, text.count)]))
        }
        #expect(seen == [event(1), event(2)])
    }
}
