import API
import Core
import TestKit
import Testing
import Transport

@testable import Daemon

@Suite("Traces of requests")
struct TraceTests {
    private let clocks = ManualClocks()

    private func entry(_ url: String) -> TraceEntry {
        TraceEntry(
            at: "", method: "GET", url: url, interface: nil, proxy: nil, headers: [], body: .init(bytes: 0),
            answer: nil,
            error: nil, sent: 0, wire: 0, milliseconds: 0)
    }

    @Test("a trace gives each entry once, until its time is over")
    func follows() throws {
        let traces = RequestTraces(clocks: clocks)
        #expect(!traces.isFollowed("nas"))
        var reply = try traces.follow("nas", TraceRequest(seconds: 50))
        #expect(traces.isFollowed("nas") && !traces.isFollowed("cloud"))
        traces.record(entry("a"), of: "nas")
        traces.record(entry("b"), of: "nas")
        traces.record(entry("c"), of: "cloud")
        reply = try traces.follow("nas", TraceRequest(after: reply.next))
        #expect(reply.entries.map(\.url) == ["a", "b"] && !reply.ended)
        // A reply that was lost is given again.
        #expect(try traces.follow("nas", TraceRequest(after: 0)).entries.map(\.url) == ["a", "b"])
        traces.record(entry("d"), of: "nas")
        reply = try traces.follow("nas", TraceRequest(after: reply.next))
        #expect(reply.entries.map(\.url) == ["d"])
        clocks.advance(by: .seconds(50))
        #expect(!traces.isFollowed("nas"))
        #expect(try traces.follow("nas", TraceRequest(after: reply.next)).ended)
        #expect(throws: Refusal.self) { try traces.follow("nas", TraceRequest(after: reply.next)) }
    }

    @Test("a trace whose entries are not fetched ends, and old entries are dropped and counted")
    func abandoned() throws {
        let traces = RequestTraces(clocks: clocks)
        _ = try traces.follow("nas", TraceRequest(seconds: 3600))
        for number in 0..<1500 { traces.record(entry("\(number)"), of: "nas") }
        let reply = try traces.follow("nas", TraceRequest(after: 0))
        #expect(reply.entries.count == 1000 && reply.dropped == 500 && reply.entries.first?.url == "500")
        clocks.advance(by: .seconds(61))
        #expect(!traces.isFollowed("nas"))
        #expect(throws: Refusal.self) { try traces.follow("nas", TraceRequest(seconds: 0)) }
        #expect(throws: Refusal.self) { try traces.follow("nas", TraceRequest(seconds: 90_000)) }
    }

    @Test("each of several traces of one destination gets every entry since it began, and ends by itself")
    func several() throws {
        let traces = RequestTraces(clocks: clocks)
        var first = try traces.follow("nas", TraceRequest(seconds: 50))
        traces.record(entry("a"), of: "nas")
        var second = try traces.follow("nas", TraceRequest(seconds: 20))
        traces.record(entry("b"), of: "nas")
        first = try traces.follow("nas", TraceRequest(after: first.next))
        second = try traces.follow("nas", TraceRequest(after: second.next))
        #expect(first.entries.map(\.url) == ["a", "b"] && second.entries.map(\.url) == ["b"])
        clocks.advance(by: .seconds(30))
        traces.record(entry("c"), of: "nas")
        second = try traces.follow("nas", TraceRequest(after: second.next))
        #expect(second.ended && second.entries.isEmpty)
        first = try traces.follow("nas", TraceRequest(after: first.next))
        #expect(!first.ended && first.entries.map(\.url) == ["c"])
    }

    @Test("the number of traces of one destination is limited, and those that are not fetched make room")
    func many() throws {
        let traces = RequestTraces(clocks: clocks)
        for _ in 0..<8 { _ = try traces.follow("nas", TraceRequest(seconds: 3600)) }
        _ = try traces.follow("cloud", TraceRequest(seconds: 3600))
        let refusal = #expect(throws: Refusal.self) { try traces.follow("nas", TraceRequest(seconds: 3600)) }
        #expect(refusal?.code == .conflict)
        clocks.advance(by: .seconds(61))
        _ = try traces.follow("nas", TraceRequest(seconds: 3600))
    }

    @Test(
        "of an address only the origin is shown",
        arguments: [
            ("https://nas.example/files/secret?sig=1", "https://nas.example/…#"),
            ("http://nas.example:8080/", "http://nas.example:8080/"),
            ("/files/secret", "/…#"), ("https://user:pass@nas.example/", "https://nas.example/"),
            ("https://a\u{7}b/secret", "(an invalid host)/…#"),
        ])
    func addresses(_ url: String, _ expected: String) {
        let shown = TraceMask.url(url)
        #expect(shown.hasPrefix(expected) && !shown.contains("secret") && !shown.contains("pass"), "\(shown)")
    }

    @Test("a header is shown only if it is known to have no secret")
    func headers() {
        #expect(TraceMask.line("Upload-Offset", "12") == "Upload-Offset: 12")
        #expect(TraceMask.line("authorization", "Bearer secret") == "authorization: (13 bytes)")
        #expect(TraceMask.line("Upload-Metadata", "filename c2VjcmV0") == "Upload-Metadata: (17 bytes)")
        #expect(TraceMask.line("X-Anything", "secret") == "X-Anything: (6 bytes)")
        let upload = "https://h/files/secret"
        #expect(
            TraceMask.line("Location", "secret", answering: "https://h/files/") == "Location: \(TraceMask.url(upload))")
        #expect(TraceMask.line("X-Anything", "s") == "X-Anything: (1 byte)")
    }
}
