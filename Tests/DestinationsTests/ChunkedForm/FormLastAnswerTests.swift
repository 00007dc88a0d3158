import Core
import Credentials
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// The effect of the answer to the last block, at a server that keeps blocks regardless of its answer.
@Suite("Chunked forms: the last answer", .timeLimit(.minutes(Patience.minutes(2))))
struct FormLastAnswerTests {
    /// Stores blocks by their number and lists them.
    private final class Blocks: Sendable {
        struct State {
            /// By id and number.
            var held: [Int: Set<String>] = [:]
            var asked: [String] = []
            /// Further blocks that it claims to have of the upload with this id.
            var alien: (id: String, numbers: Set<Int>)?
        }
        let state = Mutex(State())

        /// - Parameter answer: The answer to a block, by its number from 1; `nil` for no answer.
        func server(_ answer: @escaping @Sendable (Int, Exchange) -> Int?) throws -> FakeServer {
            try FakeServer { exchange in
                let number = Int(exchange.target.split(separator: "=").last ?? "") ?? 0
                self.state.withLock { $0.asked.append(exchange.target) }
                guard exchange.method == "POST" else {
                    let isKnown = self.state.withLock { state in
                        let isAlien = state.alien.map {
                            exchange.target.contains($0.id) && $0.numbers.contains(number)
                        }
                        return state.held[number]?.contains(exchange.target) == true || isAlien == true
                    }
                    return exchange.reply(isKnown ? 200 : 404)
                }
                _ = exchange.body()
                guard let status = answer(number, exchange) else { return exchange.cut() }
                self.state.withLock { _ = $0.held[number, default: []].insert(exchange.target) }
                exchange.reply(status == 299 ? 200 : status, [], Self.words(status))
            }
        }

        /// 299 represents an error in a 200.
        private static func words(_ status: Int) -> String {
            switch status {
            case 200: ""
            case 299: #"{"error":"virus found"}"#
            default: "virus found"
            }
        }

        var asked: [String] { state.withLock { $0.asked } }
    }

    private let blocks = Blocks()

    private func destination(_ url: String, _ more: [String: SettingValue] = [:]) throws -> any Destination {
        let values: [String: SettingValue] = [
            "url": .text(url + "/up"), "preset": .text("custom"), "block.size": .bytes(1000),
            "send.query": .map(["id": .literal("{id}"), "n": .literal("{index1}")]),
            "probe.query": .map(["id": .literal("{id}"), "n": .literal("{index1}")]),
            "success.json": .texts(["/error empty"]),
        ]
        return try ChunkedForm.kind.make(
            values.merging(more) { $1 },
            DestinationTools(
                transport: Transport(), secrets: SecretReader(), clocks: SystemClocks(), name: "archive",
                log: { _ in }))
    }

    private func attempts(
        _ destination: any Destination, _ staged: StagedUpload, _ recorder: RecordingReporter, generation: Int = 1
    ) async throws -> (object: RemoteObject?, errors: [UploadError]) {
        var errors: [UploadError] = []
        for _ in 0..<5 {
            var order = staged.order
            order.checkpoint = recorder.last
            order.generation = generation
            do { return (try await destination.upload(order, reporter: recorder), errors) } catch let error
                as UploadError
            {
                errors.append(error)
                if error.remedy == .failUpload { break }
            }
        }
        return (nil, errors)
    }

    @Test(
        "a server that keeps and refuses the last block has refused the file",
        arguments: [299, 400, 413, 422, 500, 501])
    func refused(_ status: Int) async throws {
        let server = try blocks.server { number, _ in number == 3 ? status : 200 }
        let (staged, recorder) = (try StagedUpload(3000), RecordingReporter())
        let (object, errors) = try await attempts(try destination(server.url), staged, recorder)
        #expect(object == nil)
        let http = status == 299 ? 200 : status
        #expect(errors.last?.remedy == .failUpload && errors.last?.failure.http == http)
        #expect(errors.last?.failure.code == .refusedAtEnd)
        #expect(errors.last?.failure.message.contains("virus found") == true)
        #expect(recorder.last?["refused_status"] == "\(http)")
        // A person retries the upload: it is sent from the first block on, and the old upload is not queried.
        let before = blocks.asked.count
        let old = try #require(recorder.last?["id"])
        _ = try await attempts(try destination(server.url), staged, recorder, generation: 2)
        #expect(blocks.asked.count > before && !blocks.asked[before...].contains { $0.contains(old) })
    }

    @Test("without the refusal the same file completes")
    func control() async throws {
        let server = try blocks.server { _, _ in 200 }
        let (object, errors) = try await attempts(
            try destination(server.url), try StagedUpload(3000), RecordingReporter())
        #expect(object?.warnings == [] && errors.isEmpty)
    }

    @Test("`final_error: accept` completes a refused file that is there, and reports it", arguments: [299, 422, 500])
    func accepted(_ status: Int) async throws {
        let server = try blocks.server { number, _ in number == 3 ? status : 200 }
        let (object, _) = try await attempts(
            try destination(server.url, ["final_error": .text("accept")]), try StagedUpload(3000), RecordingReporter())
        #expect(
            object?.warnings.contains { $0.contains("\(status == 299 ? 200 : status)") && $0.contains("virus found") }
                == true)
    }

    @Test("a refusal of the joining request is final, and a retry starts again")
    func refusedFinish() async throws {
        let asked = Mutex<[String]>([])
        let server = try FakeServer { exchange in
            asked.withLock { $0.append(exchange.target) }
            if exchange.method == "POST" { _ = exchange.body() }
            if exchange.target.contains("/done") { return exchange.reply(422, [], "virus found") }
            exchange.reply(exchange.method == "POST" ? 200 : 404)
        }
        let destination = try destination(
            server.url, ["finish.url": .text("/done"), "finish.query": .map(["id": .literal("{id}")])])
        let (staged, recorder) = (try StagedUpload(3000), RecordingReporter())
        let (_, errors) = try await attempts(destination, staged, recorder)
        #expect(errors.map(\.failure.code) == [.refusedAtEnd] && errors.last?.failure.http == 422)
        let (old, before) = (try #require(recorder.last?["id"]), asked.withLock { $0.count })
        _ = try await attempts(destination, staged, recorder, generation: 2)
        let after = asked.withLock { $0[before...].filter { $0.contains(old) }.count }
        #expect(after == 0 && asked.withLock { $0.count } > before + 3)
    }

    @Test("a gateway's answer to the last block does not concern the file", arguments: [502, 503])
    func gateway(_ status: Int) async throws {
        let times = Mutex(0)
        let server = try blocks.server { number, _ in
            guard number == 3 else { return 200 }
            return times.withLock { times in
                times += 1
                return times == 1 ? status : 200
            }
        }
        let (object, errors) = try await attempts(
            try destination(server.url), try StagedUpload(3000), RecordingReporter())
        #expect(errors.count == 1 && object?.warnings.contains { $0.contains("\(status)") } == true)
    }

    @Test(
        "an answer of a proxy that kept the last block for itself says nothing about the file", arguments: [402, 499])
    func proxy(_ status: Int) async throws {
        let isAnswered = Mutex(false)
        let behind = blocks
        let server = try behind.server { number, exchange in
            guard number == 3, !isAnswered.withLock({ $0 }) else { return 200 }
            isAnswered.withLock { $0 = true }
            exchange.reply(status, [], "please pay")
            return nil
        }
        let (object, errors) = try await attempts(
            try destination(server.url), try StagedUpload(3000), RecordingReporter())
        #expect(errors.map(\.failure.http) == [status] && errors.first?.remedy == .holdDestination(after: nil))
        #expect(object?.warnings == [], "\(object?.warnings ?? [])")
    }

    @Test(
        "an answer that may be an intermediary's says nothing about the file, even if the server has the last block",
        arguments: [402, 406, 418, 451, 499, 505, 511, 522])
    func forwarded(_ status: Int) async throws {
        let server = try blocks.server { number, _ in number == 3 ? status : 200 }
        let recorder = RecordingReporter()
        let (object, errors) = try await attempts(try destination(server.url), try StagedUpload(3000), recorder)
        #expect(errors.map(\.failure.http) == [status] && errors.first?.remedy == .holdDestination(after: nil))
        #expect(object?.warnings.contains { $0.contains("\(status)") && $0.contains("has every byte") } == true)
        #expect(recorder.last?["refused_status"] == nil)
    }

    @Test("a block on the server that was never sent from here is another writer's: a new upload starts")
    func secondWriter() async throws {
        let isCut = Mutex(false)
        let server = try blocks.server { number, _ in
            isCut.withLock { isCut in
                defer { isCut = isCut || number == 2 }
                return number == 2 && !isCut ? nil : 200
            }
        }
        let (staged, recorder) = (try StagedUpload(5000), RecordingReporter())
        let destination = try destination(server.url)
        await #expect(throws: UploadError.self) { try await destination.upload(staged.order, reporter: recorder) }
        let first = try #require(recorder.last?["id"])
        blocks.state.withLock { $0.alien = (first, [2, 3, 4, 5]) }
        var order = staged.order
        order.checkpoint = recorder.last
        let object = try await destination.upload(order, reporter: recorder)
        #expect(recorder.last?["id"] != first)
        // The old upload is left there, with a warning.
        #expect(recorder.left.isEmpty && object.warnings.contains { $0.contains("another writer") })
    }

    @Test("a file stopped in its last block may be incomplete, and starts again without a warning")
    func stopped() async throws {
        let isHanging = Mutex(false)
        let server = try FakeServer { exchange in
            guard exchange.method == "POST" else { return exchange.reply(404) }
            _ = exchange.body(100_000)
            isHanging.withLock { $0 = true }
            exchange.hang()
        }
        let (staged, recorder) = (try StagedUpload(16 << 20), RecordingReporter())
        let destination = try destination(server.url, ["block.size": .bytes(32 << 20)])
        let task = Task { try await destination.upload(staged.order, reporter: recorder) }
        try await eventually("the body is in flight") { isHanging.withLock { $0 ? true : nil } }
        #expect(recorder.last?["final_sent"] == "1")
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(recorder.last?["final_sent"] == nil)
    }
}
