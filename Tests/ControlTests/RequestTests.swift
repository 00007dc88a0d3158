import API
import Core
import TestKit
import Testing
import Transport

@testable import Control
@testable import Daemon

@Suite("Requests", .timeLimit(.minutes(Patience.minutes(1))))
struct RequestTests {
    @Test(
        "optional values may be omitted, and unknown ones are refused",
        arguments: [
            ("/v1/pause", #"{"duration":60}"#, 202, "pause ||||60"),
            ("/v1/cancel", #"{"folder":"front"}"#, 202, "cancel ||front||"),
            ("/v1/uploads", #"{"path":"2f61"}"#, 202, "add /a|[]||[:]|false"),
            ("/v1/pause", #"{"foldr":"front"}"#, 400, "no key `foldr`; there are: ids, all, folder"),
            (
                "/v1/pause", #"{"after_parts":true}"#, 400,
                "no key `after_parts`; there are: ids, all, folder, destination, duration, after_part"
            ),
            ("/v1/uploads", #"{"path":"2f61","force":true}"#, 400, "no key `force`; there are: path"),
            ("/v1/allow", #"{"folder":"front","kinds":["quota"],"duration":60}"#, 200, "allow front quota 60"),
            ("/v1/allow", #"{"folder":"front","rules":["night"],"duration":60}"#, 200, "allow front night 60"),
            ("/v1/limit", #"{}"#, 200, "limit off 0"),
            ("/v1/allow", #"{"folder":"front","kind":["quota"],"duration":60}"#, 400, "no key `kind`; there are: ids"),
            ("/v1/limit", #"{"rat":0,"duration":60}"#, 400, "no key `rat`; there are: rate, duration"),
            ("/v1/check", #"{"foldr":"front"}"#, 400, "no key `foldr`; there are: folder, destination"),
            ("/v1/rescan", #"{"foldr":"front"}"#, 400, "no key `foldr`; there are: folder, wait"),
            ("/v1/pause", "[]", 400, "it is not a JSON object"),
            ("/v1/pause", "{", 400, "it is not JSON"),
            ("/v1/pause", #"{"ids":"x"}"#, 400, "`ids` has the wrong type"),
        ])
    func bodies(_ path: String, _ body: String, _ status: Int, _ expected: String) async throws {
        try await withLine { line in
            let answer = try await line.ask("POST", path, body)
            #expect(answer.status == status)
            if status < 400 {
                #expect(line.daemon.asked == [expected])
            } else {
                #expect(answer.text.contains(expected), "\(answer.text)")
                #expect(line.daemon.asked.isEmpty)
            }
        }
    }

    @Test(
        "an invalid or too large request is refused as JSON too",
        arguments: [
            ("GET", "/v1/status?%FF", 0, 400), ("GET", "/v1/%zz", 0, 400), ("POST", "/v1/pause", 300_000, 413),
            ("GET", "/v1/status?" + String(repeating: "a", count: 17_000), 0, 431),
        ])
    func form(_ method: String, _ target: String, _ size: Int, _ status: Int) async throws {
        try await withLine { line in
            let answer = try await line.ask(method, target, String(repeating: "x", count: size))
            #expect(answer.status == status)
            #expect(answer.headers["Content-Type"] == "application/json")
            #expect(answer.text.hasPrefix(#"{"error":{"code":"bad_request","message":""#), "\(answer.text)")
        }
    }

    @Test("an unknown event filter is refused")
    func eventFilter() async throws {
        try await withLine { line in
            let answer = try await line.ask("GET", "/v1/events?tpyes=added")
            #expect(answer.status == 400)
            #expect(answer.text.contains("no filter `tpyes`"))
        }
    }

    @Test(
        "a list accepts times and context filters, and refuses malformed ones",
        arguments: [
            (
                "?since=2026-11-20T08:00:00Z&until=2026-11-21T09:00:00.5+01:00&context.camera=front%20door&context.n=1",
                200,
                "list ||||||100|camera=front door|n=1|2026-11-20T08:00:00.000Z|2026-11-21T08:00:00.000Z"
            ), ("?since=yesterday", 400, "since is `yesterday`; it must be a time like 2026-11-25T17:00:00Z"),
            ("?contxt.a=1", 400, "no filter `contxt.a`; there are: list, state, destination"),
        ])
    func list(_ query: String, _ status: Int, _ expected: String) async throws {
        try await withLine { line in
            let answer = try await line.ask("GET", "/v1/uploads" + query)
            #expect(answer.status == status)
            if status == 200 {
                #expect(line.daemon.asked == [expected])
            } else {
                #expect(answer.text.contains(expected), "\(answer.text)")
            }
        }
    }

    @Test(
        "usage accepts known parameters, and refuses others with a reason",
        arguments: [
            ("", 200, "usage 7|3|||"), ("?days=2&by=network&folder=a%20b", 200, "usage 2|3|network||a b"),
            ("?day=2", 400, "usage takes no `day`; it takes: days, months, minutes, by, destination, folder"),
            ("?days=x", 400, "days is `x`; it takes a whole number"),
        ])
    func usage(_ query: String, _ status: Int, _ expected: String) async throws {
        try await withLine { line in
            let answer = try await line.ask("GET", "/v1/usage" + query)
            #expect(answer.status == status)
            if status == 200 {
                #expect(line.daemon.asked == [expected])
                #expect(answer.text.contains(#""days":[{"bytes":1200000,"files":3,"from":"#), "\(answer.text)")
            } else {
                #expect(answer.text.contains(expected), "\(answer.text)")
            }
        }
    }

    @Test("an event is encoded once for all readers")
    func writer() throws {
        let writer = EventWriter()
        let first = EventView(seq: 5, ts: "t", type: .state, op: .sample(state: .queued))
        let later = EventView(seq: 5, ts: "t", type: .state, op: .sample(state: .uploading))
        #expect(try writer.lines(first) == writer.lines(later))
        // Progress has the number of the event before it.
        let progress = EventView(seq: 5, ts: "t", type: .progress, op: .sample())
        #expect(try writer.lines(progress) == progress.lines())
        for seq in 6...5000 { _ = try writer.lines(EventView(seq: Int64(seq), ts: "t", type: .state)) }
        #expect(try writer.lines(later) == later.lines())
    }
}
