import Core
import Credentials
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// The end of an upload at a server that only counts blocks, and makes a file again whenever its last block or `finish`
/// arrives.
@Suite("Chunked forms: the end at a server that only counts", .timeLimit(.minutes(Patience.minutes(3))))
struct FormCountedEndTests {
    /// The answer to one request, after its work was done.
    enum Answer: Sendable {
        case status(Int)
        /// The connection is cut.
        case lost
    }

    /// Stores blocks by id and number, and joins them.
    private final class Joiner: Sendable {
        struct State {
            var held: [String: Set<Int>] = [:]
            /// Ids of files that were made, in order.
            var made: [String] = []
            /// Method, id and number of each request; a number of 0 is `finish`.
            var asked: [(method: String, id: String, number: Int)] = []
            var ends: [Answer] = []
            var tokens = 0
        }
        let state: Mutex<State>
        let count: Int
        let joinsOnDemand: Bool
        /// A server that has joined the blocks no longer has them.
        let forgets: Bool

        /// - Parameter ends: Answers to the requests that end a file; 200 after them.
        init(_ count: Int, joinsOnDemand: Bool = false, forgets: Bool = false, ends: [Answer]) {
            var state = State()
            state.ends = ends
            self.state = Mutex(state)
            (self.count, self.joinsOnDemand, self.forgets) = (count, joinsOnDemand, forgets)
        }

        private static func value(_ name: String, in target: String) -> String? {
            let query = target.split(separator: "?").last ?? ""
            return query.split(separator: "&").first { $0.hasPrefix("\(name)=") }.map {
                String($0.dropFirst(name.count + 1))
            }
        }

        func server() throws -> FakeServer {
            try FakeServer { exchange in
                _ = exchange.body()
                let isFinish = exchange.target.hasPrefix("/done")
                guard let id = Self.value("zid", in: exchange.target),
                    let number = Self.value("zn", in: exchange.target).flatMap({ Int($0) }) ?? (isFinish ? 0 : nil)
                else {
                    let token = self.state.withLock { state in
                        state.tokens += 1
                        return state.tokens
                    }
                    return exchange.reply(200, [], #"{"data":{"upToken":"t\#(token)"}}"#)
                }
                self.state.withLock { $0.asked.append((exchange.method, id, number)) }
                if exchange.method == "GET" {
                    let isThere = self.state.withLock { $0.held[id]?.contains(number) == true }
                    return exchange.reply(isThere ? 200 : 204)
                }
                let answer = self.state.withLock { state -> Answer in
                    if !isFinish { state.held[id, default: []].insert(number) }
                    guard isFinish || !self.joinsOnDemand && number == self.count else { return .status(200) }
                    if state.held[id]?.count == self.count {
                        state.made.append(id)
                        if self.forgets { state.held[id] = nil }
                    }
                    return state.ends.isEmpty ? .status(200) : state.ends.removeFirst()
                }
                switch answer {
                case .lost: exchange.cut()
                case .status(200):
                    exchange.reply(200, [], #"{"success":true,"data":{"fileUrl":"http://h/x"}}"#)
                case .status(let status): exchange.reply(status, [], "virus found")
                }
            }
        }

        var asked: [(method: String, id: String, number: Int)] { state.withLock { $0.asked } }
        var made: [String] { state.withLock { $0.made } }
        var ids: Set<String> { Set(asked.map(\.id).filter { !$0.hasPrefix("sluice-") }) }
        func posts(_ number: Int) -> Int { asked.count { $0.method == "POST" && $0.number == number } }
    }

    static let counting = ["dropzone", "fineuploader", "webuploader", "plupload", "blueimp", "breakpoint", "custom"]
    static let asked = ["resumable", "flow", "simple-uploader"]

    private func destination(
        _ server: FakeServer, _ preset: String, finish: Bool = false, _ more: [String: SettingValue] = [:]
    ) throws -> any Destination {
        let query: SettingValue = .map(["zid": .literal("{id}"), "zn": .literal("{index1}")])
        var values: [String: SettingValue] = [
            "url": .text(server.url + "/up"), "preset": .text(preset), "block.size": .bytes(1000), "send.query": query,
            "finish": .text("none"),
        ]
        if Self.asked.contains(preset) { values["probe.query"] = query }
        if preset == "breakpoint" { values["done"] = .text("none") }
        if finish {
            values["finish"] = nil
            values["finish.url"] = .text("/done")
            values["finish.query"] = .map(["zid": .literal("{id}")])
        }
        return try ChunkedForm.kind.make(
            values.merging(more) { $1 },
            DestinationTools(
                transport: Transport(), secrets: SecretReader(), clocks: SystemClocks(), name: "archive", log: { _ in })
        )
    }

    private func attempts(
        _ destination: any Destination, _ staged: StagedUpload, _ recorder: RecordingReporter, generation: Int = 1,
        most: Int = 5
    ) async throws -> (object: RemoteObject?, errors: [UploadError]) {
        var errors: [UploadError] = []
        for _ in 0..<most {
            var order = staged.order
            order.checkpoint = recorder.last
            order.generation = generation
            recorder.beginAttempt()
            do { return (try await destination.upload(order, reporter: recorder), errors) } catch let error
                as UploadError
            {
                errors.append(error)
                if error.remedy == .failUpload { break }
            }
        }
        return (nil, errors)
    }

    // MARK: Tried again

    @Test(
        "after a refused end, a retry sends every block under another name, and does not query the old one",
        arguments: asked + counting, [400, 422, 500])
    func triedAgain(_ preset: String, _ status: Int) async throws {
        let blocks = Joiner(3, ends: Array(repeating: .status(status), count: 9))
        let server = try blocks.server()
        let (staged, recorder) = (try StagedUpload(3000), RecordingReporter())
        let destination = try destination(server, preset)
        let first = try await attempts(destination, staged, recorder)
        #expect(first.object == nil && first.errors.last?.failure.code == .refusedAtEnd, "\(first.errors)")
        let (old, before) = (blocks.ids, blocks.asked.count)
        blocks.state.withLock { $0.ends = [] }
        let second = try await attempts(destination, staged, recorder, generation: 2)
        #expect(second.object?.warnings.contains { $0.contains("(\(status)): it may hold the file already") } == true)
        let later = blocks.asked[before...]
        #expect(!later.contains { old.contains($0.id) }, "\(Array(later))")
        #expect(later.filter { $0.method == "POST" }.map(\.number) == [1, 2, 3])
    }

    @Test("after a refused `finish`, a retry sends every block under another name", arguments: [422, 500])
    func triedAgainAfterFinish(_ status: Int) async throws {
        let blocks = Joiner(3, joinsOnDemand: true, ends: [.status(status)])
        let server = try blocks.server()
        let (staged, recorder) = (try StagedUpload(3000), RecordingReporter())
        let destination = try destination(server, "webuploader", finish: true)
        let first = try await attempts(destination, staged, recorder)
        #expect(first.errors.map(\.failure.code) == [.refusedAtEnd] && first.errors.last?.failure.http == status)
        let (old, before) = (blocks.ids, blocks.asked.count)
        let second = try await attempts(destination, staged, recorder, generation: 2)
        #expect(second.object != nil)
        #expect(blocks.asked[before...].map(\.number) == [1, 2, 3, 0])
        #expect(!blocks.asked[before...].contains { old.contains($0.id) })
    }

    @Test("a last block whose digest never matches refuses the file: a retry starts with another token")
    func damaged() async throws {
        let blocks = Joiner(3, ends: Array(repeating: .status(422), count: 3))
        let server = try blocks.server()
        let (staged, recorder) = (try StagedUpload(3000), RecordingReporter())
        let destination = try destination(server, "breakpoint")
        let first = try await attempts(destination, staged, recorder)
        #expect(first.errors.map(\.failure.code) == [.refusedAtEnd] && blocks.posts(3) == 3)
        let second = try await attempts(destination, staged, recorder, generation: 2)
        #expect(second.object != nil && blocks.posts(1) == 2 && blocks.state.withLock { $0.tokens } == 2)
        #expect(warns(second.object), "the server may have stored the refused file")
    }

    @Test(
        "if another upload has sent all blocks, the last block is sent and its answer decides",
        arguments: asked)
    func anotherUpload(_ preset: String) async throws {
        let blocks = Joiner(3, ends: [.status(422), .status(422)])
        let server = try blocks.server()
        let staged = try StagedUpload(3000)
        let destination = try destination(server, preset)
        for _ in 0..<2 {
            let end = try await attempts(destination, staged, RecordingReporter())
            #expect(end.errors.last?.failure.code == .refusedAtEnd && end.object == nil)
        }
        // Blocks with known content are not sent again.
        #expect(blocks.posts(1) == 1 && blocks.posts(2) == 1 && blocks.posts(3) == 2)
        let end = try await attempts(destination, staged, RecordingReporter())
        #expect(end.object?.warnings.contains { $0.contains("may hold the file twice") } == true)
    }

    // MARK: Refusals

    @Test(
        "a refused last block ends the upload at once if no query is possible", arguments: counting,
        [400, 413, 500, 512])
    func refused(_ preset: String, _ status: Int) async throws {
        for (size, policy) in [(3000, "fail"), (800, "fail"), (3000, "accept"), (800, "accept")] {
            let count = size == 800 ? 1 : 3
            let blocks = Joiner(count, ends: Array(repeating: .status(status), count: 9))
            let server = try blocks.server()
            let recorder = RecordingReporter()
            let (object, errors) = try await attempts(
                try destination(server, preset, ["final_error": .text(policy)]), try StagedUpload(size), recorder)
            #expect(object == nil && errors.map(\.failure.code) == [.refusedAtEnd], "\(size) \(policy): \(errors)")
            #expect(errors.last?.failure.http == status && errors.last?.failure.message.contains("virus") == true)
            #expect(blocks.posts(count) == 1 && recorder.last?["refused_status"] == "\(status)")
            server.stop()
        }
    }

    @Test(
        "an answer that does not concern the file ends nothing: the last block is repeated",
        arguments: [401, 403, 407, 408, 429])
    func noVerdict(_ status: Int) async throws {
        for size in [800, 3000] {
            let blocks = Joiner(size == 800 ? 1 : 3, ends: [.status(status)])
            let server = try blocks.server()
            let (object, errors) = try await attempts(
                try destination(server, "dropzone"), try StagedUpload(size), RecordingReporter())
            #expect(object != nil && errors.count == 1 && errors.last?.failure.retryable == true, "\(errors)")
            server.stop()
        }
    }

    /// In place of the server, which may have got the request.
    @Test(
        "an answer of a proxy, a firewall, an account or a full disk says nothing about the file: the end is sent again, with a warning",
        arguments: IntermediaryStatus.all.union(IntermediaryStatus.ofGateways).sorted() + [507], [false, true])
    func answerOfPath(_ status: Int, finish: Bool) async throws {
        for (size, policy) in [(800, "fail"), (3000, "fail"), (3000, "accept")] {
            let count = size == 800 ? 1 : 3
            let blocks = Joiner(count, joinsOnDemand: finish, ends: [.status(status), .status(status)])
            let server = try blocks.server()
            let recorder = RecordingReporter()
            let (object, errors) = try await attempts(
                try destination(server, "dropzone", finish: finish, ["final_error": .text(policy)]),
                try StagedUpload(size),
                recorder)
            let remedy: Remedy = status == 507 ? .outOfSpace(after: nil) : .holdDestination(after: nil)
            #expect(errors.map(\.remedy) == [remedy, remedy], "\(errors)")
            #expect(object != nil && recorder.last?["refused_status"] == nil)
            // 417 refuses a request without its body, and 507 the request to finish.
            let isUndone = status == 417 || finish && status == 507
            #expect(warns(object) == !isUndone, "\(object?.warnings ?? [])")
            #expect(blocks.posts(count) == (finish ? 1 : 3))
            server.stop()
        }
    }

    @Test("a web page with a 5xx is no verdict on the file, and uses no attempt", arguments: counting, [500, 501, 511])
    func page(_ preset: String, _ status: Int) async throws {
        let times = Mutex(0)
        let server = try FakeServer { exchange in
            _ = exchange.body()
            let isFirst = times.withLock { times in
                times += 1
                return times == 1
            }
            if isFirst { return exchange.reply(status, [], "<!DOCTYPE html><html><title>Hotel</title></html>") }
            exchange.reply(200, [], #"{"success":true,"data":{"upToken":"t"}}"#)
        }
        let (object, errors) = try await attempts(
            try destination(server, preset), try StagedUpload(800), RecordingReporter())
        #expect(
            errors.map(\.remedy) == [status == 501 ? .misconfigured : .holdDestination(after: nil)], "\(errors)")
        #expect(object != nil)
    }

    @Test("a wrong address refuses no file, and one that accepted blocks is not wrong", arguments: [404, 405, 410])
    func address(_ status: Int) async throws {
        let ends = Array(repeating: Answer.status(status), count: 9)
        let single = Joiner(1, ends: ends)
        let first = try single.server()
        let one = try await attempts(try destination(first, "dropzone"), try StagedUpload(800), RecordingReporter())
        #expect(one.errors.map(\.remedy) == Array(repeating: .misconfigured, count: 5))
        let many = Joiner(3, ends: ends)
        let second = try many.server()
        let three = try await attempts(try destination(second, "dropzone"), try StagedUpload(3000), RecordingReporter())
        #expect(three.errors.map(\.failure.code) == [.refusedAtEnd] && many.posts(3) == 1)
        // An earlier last block that may have arrived.
        let lost = Joiner(1, ends: [.lost] + ends)
        let third = try lost.server()
        let again = try await attempts(try destination(third, "dropzone"), try StagedUpload(800), RecordingReporter())
        #expect(again.errors.last?.failure.code == .refusedAtEnd && lost.posts(1) == 2)
        #expect(again.errors.last?.failure.message.contains("may hold the file twice") == true)
        let joined = Joiner(3, joinsOnDemand: true, ends: [.lost] + ends)
        let fourth = try joined.server()
        let finish = try await attempts(
            try destination(fourth, "webuploader", finish: true), try StagedUpload(3000), RecordingReporter())
        #expect(finish.errors.count == 2 && finish.errors.last?.failure.code == .refusedAtEnd)
        #expect(joined.posts(3) == 1)
        let wrong = Joiner(3, joinsOnDemand: true, ends: ends)
        let fifth = try wrong.server()
        let unheard = try await attempts(
            try destination(fifth, "webuploader", finish: true), try StagedUpload(3000), RecordingReporter())
        #expect(unheard.errors.map(\.remedy) == Array(repeating: .misconfigured, count: 5))
        #expect(wrong.posts(3) == 1)
    }

    // MARK: Twice

    private func warns(_ object: RemoteObject?) -> Bool {
        object?.warnings.contains { $0.contains("may hold the file twice") } == true
    }

    @Test(
        "a last block repeated after it may have arrived causes a warning", arguments: counting, [0, 502, 503, 504])
    func doubled(_ preset: String, _ status: Int) async throws {
        for size in [3000, 800] {
            let count = size == 800 ? 1 : 3
            let blocks = Joiner(count, ends: [status == 0 ? .lost : .status(status)])
            let server = try blocks.server()
            let (object, errors) = try await attempts(
                try destination(server, preset), try StagedUpload(size), RecordingReporter())
            #expect(errors.count == 1 && blocks.made.count == 2 && warns(object), "\(size): \(errors) \(blocks.made)")
            server.stop()
        }
    }

    @Test("a `finish` repeated after it may have been received causes a warning", arguments: [0, 502, 503, 504])
    func finishedTwice(_ status: Int) async throws {
        for preset in ["webuploader", "dropzone", "custom"] {
            let blocks = Joiner(3, joinsOnDemand: true, ends: [status == 0 ? .lost : .status(status)])
            let server = try blocks.server()
            let (object, errors) = try await attempts(
                try destination(server, preset, finish: true), try StagedUpload(3000), RecordingReporter())
            #expect(errors.count == 1 && blocks.made.count == 2 && warns(object), "\(errors)")
            #expect(blocks.posts(3) == 1)
            server.stop()
        }
    }

    @Test("an answer that excludes an effect causes no warning", arguments: [401, 407])
    func notDoubled(_ status: Int) async throws {
        for finish in [false, true] {
            let blocks = Joiner(3, joinsOnDemand: finish, ends: [.status(status)])
            let server = try blocks.server()
            let (object, errors) = try await attempts(
                try destination(server, "webuploader", finish: finish), try StagedUpload(3000), RecordingReporter())
            #expect(errors.count <= 1 && object?.warnings == [], "\(errors) \(object?.warnings ?? [])")
            server.stop()
        }
    }

    @Test("if the server can be queried, a lost last answer causes a warning only if it has forgotten all blocks")
    func lookedFor() async throws {
        for (preset, forgets) in [("flow", false), ("flow", true), ("resumable", false), ("resumable", true)] {
            let blocks = Joiner(3, forgets: forgets, ends: [.lost])
            let server = try blocks.server()
            let (object, errors) = try await attempts(
                try destination(server, preset), try StagedUpload(3000), RecordingReporter())
            #expect(errors.count == 1 && blocks.made.count == (forgets ? 2 : 1) && warns(object) == forgets)
            #expect(object?.verifiedBy == (forgets ? "acknowledgement" : "blocks_unanswered"))
            server.stop()
        }
    }
}
