import TestKit
import Testing

@testable import WebServer

private struct Greeting: WebService {
    func plan(_ request: WebRequest) -> BodyPlan { .collect(limit: 0) }
    func reply(to request: WebRequest, body: ReceivedBody) async -> WebReply { .text(200, "hello") }
}

@Suite("Released servers", .timeLimit(.minutes(Patience.minutes(1))))
struct ReleasedServerTests {
    @Test("a server that was released without a stop goes on, and its threads read no freed memory")
    func goesOn() async throws {
        let port = try WebServer(.tcp(host: "127.0.0.1", port: 0), service: Greeting(), threads: 1).port
        for _ in 0..<10 {
            let wire = try Wire(port: port)
            try await wire.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await wire.reply().status == 200)
        }
    }
}
