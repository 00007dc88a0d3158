import API
import Core
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

@testable import Control
@testable import Daemon

/// Bytes that are handed over, from a pipe through client and server to the daemon.
@Suite("Bodies of requests at the control socket", .timeLimit(.minutes(Patience.minutes(1))))
struct ReceivingTests {
    /// Both ends of a pipe; open ends are closed with the last reference.
    private final class Pipe: Sendable {
        let reading: CInt
        private let writing: CInt
        private let isOpen = Mutex(true)

        init() throws {
            var ends: [CInt] = [0, 0]
            try #require(pipe(&ends) == 0)
            (reading, writing) = (ends[0], ends[1])
        }

        deinit {
            end()
            close(reading)
        }

        var stream: ByteStream { ByteStream(number: reading) }

        /// Waits while the pipe is full.
        func write(_ bytes: [UInt8]) async throws {
            let writing = writing
            try await blocking {
                var done = 0
                while done < bytes.count {
                    let count = bytes.withUnsafeBytes {
                        Glibc.write(writing, $0.baseAddress?.advanced(by: done), $0.count - done)
                    }
                    guard count > 0 else { throw Broken() }
                    done += count
                }
            }
        }

        func end() {
            isOpen.withLock { isOpen in
                if isOpen { close(writing) }
                isOpen = false
            }
        }

        struct Broken: Error {}
    }

    @Test("piped bytes arrive complete, with all their attributes", arguments: [0, 1, 3_000_000])
    func whole(_ size: Int) async throws {
        try await withLine { line in
            let pipe = try Pipe()
            let content = noise(size)
            async let reply = line.client.receive(
                ReceiveRequest(
                    name: "ä b&c.mp4", to: ["nas", "archive"], key: "k=1", context: ["trip": "alps/2"],
                    headers: ["X-Secret": "word"], url: "http://nas/other?x=1"), from: pipe.stream)
            try await pipe.write(content)
            pipe.end()
            #expect(try await reply.uploads == [.sample()])
            #expect(line.daemon.state.withLock { $0.received } == content)
            #expect(line.daemon.state.withLock { $0.isWhole } == true)
            #expect(
                line.daemon.asked == [
                    "receive ä b&c.mp4|nas,archive|k=1|trip=alps/2|x-secret=word|http://nas/other?x=1"
                ])
        }
    }

    @Test("the address of an upload that exists travels in a header, and not in the address of the request")
    func given() async throws {
        try await withLine { line in
            let pipe = try Pipe()
            async let reply = line.client.receive(
                ReceiveRequest(name: "a", uploadURL: "http://nas/u/1"), from: pipe.stream)
            pipe.end()
            _ = try await reply
            #expect(line.daemon.asked == ["receive a|||||http://nas/u/1"])
            #expect(ReceiveRequest(name: "a", uploadURL: "http://nas/u/1").pairs.map(\.0) == ["name"])
            var once = ReceiveRequest(name: "a", key: "k")
            once.isKeyOnce = true
            #expect(once.pairs.map(\.0) == ["name", "key", "once"])
        }
    }

    @Test("a key for one file alone reaches the daemon as one, and other keys do not")
    func once() async throws {
        try await withLine { line in
            for query in [
                "name=a&key=k&once=true", "once=true&key=k&name=a", "name=a&key=k&once=false", "name=a&once=false",
            ] {
                #expect(try await line.ask("POST", "/v1/bytes?\(query)", "abc").status == 202, "\(query)")
            }
            let pipe = try Pipe()
            var request = ReceiveRequest(name: "a", key: "k")
            request.isKeyOnce = true
            async let reply = line.client.receive(request, from: pipe.stream)
            pipe.end()
            _ = try await reply
            #expect(
                line.daemon.asked == ["k once", "k once", "k", "", "k once"].map { "receive a||\($0)|||" })
        }
    }

    @Test(
        "`once` without a key, or with another value than true and false, is refused",
        arguments: [
            ("once=true", "`once` needs a `key`"), ("key=k&once=yes", "`once` is true or false"),
            ("key=k&once=", "`once` is true or false"), ("key=k&once=TRUE", "`once` is true or false"),
            ("once=1", "`once` is true or false"),
        ])
    func wrongOnce(_ query: String, _ words: String) async throws {
        try await withLine { line in
            let answer = try await line.ask("POST", "/v1/bytes?name=a&\(query)", "abc")
            #expect(answer.status == 400)
            #expect(answer.text.contains(words), "\(answer.text)")
            #expect(line.daemon.asked.isEmpty)
        }
    }

    @Test("slow bytes are passed on as they come, and others are answered meanwhile")
    func silent() async throws {
        try await withLine { line in
            let pipe = try Pipe()
            async let reply = line.client.receive(ReceiveRequest(name: "a"), from: pipe.stream)
            try await pipe.write([1, 2, 3])
            try await eventually("the daemon has received the first bytes") {
                line.daemon.state.withLock { $0.received } == [1, 2, 3]
            }
            #expect(try await line.ask("GET", "/v1/status").status == 200)
            try await pipe.write([4])
            pipe.end()
            _ = try await reply
            #expect(line.daemon.state.withLock { $0.received } == [1, 2, 3, 4])
        }
    }

    @Test("a refusal reaches the sender, during and after the bytes", arguments: [0, 10, 5_000_000])
    func refused(_ size: Int) async throws {
        try await withLine { line in
            line.daemon.refuse(Refusal(.noRoom, "no room"))
            let pipe = try Pipe()
            async let writing: Void = {
                // The pipe breaks when its reader is gone.
                try? await pipe.write(noise(size))
                pipe.end()
            }()
            await #expect(throws: Refusal(.noRoom, "no room")) {
                try await line.client.receive(ReceiveRequest(name: "a"), from: pipe.stream)
            }
            // The rest in the pipe is never read.
            let reading = pipe.reading
            try await blocking {
                var left = [UInt8](repeating: 0, count: 1 << 20)
                while read(reading, &left, left.count) > 0 {}
            }
            await writing
        }
    }

    @Test("a sender that disconnects half-way creates no upload")
    func gone() async throws {
        try await withLine { line in
            let pipe = try Pipe()
            let handing = Task { try await line.client.receive(ReceiveRequest(name: "a"), from: pipe.stream) }
            try await pipe.write(noise(1000))
            try await eventually("the daemon has received the first bytes") {
                line.daemon.state.withLock { $0.received.count == 1000 }
            }
            handing.cancel()
            await #expect(throws: (any Error).self) { try await handing.value }
            try await eventually("the daemon knows that the body is incomplete") {
                line.daemon.state.withLock { $0.isWhole } == false
            }
        }
    }

    @Test(
        "an unknown option and a request without a name are refused",
        arguments: [
            ("/v1/bytes", "`name` is missing"),
            ("/v1/bytes?name=a&nam=b", "no key `nam`; there are: name, to, key, once, url"),
        ])
    func strange(_ target: String, _ words: String) async throws {
        try await withLine { line in
            let answer = try await line.ask("POST", target, "abc")
            #expect(answer.status == 400)
            #expect(answer.text.contains(words), "\(answer.text)")
            #expect(line.daemon.asked.isEmpty)
        }
    }
}
