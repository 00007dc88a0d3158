import Core
import Credentials
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// Servers that append blocks in the order of arrival: a repeated block changes the file.
@Suite("Chunked forms with appending servers", .timeLimit(.minutes(Patience.minutes(2))))
struct FormAppendingTests {
    /// The answer to a block, given once.
    enum Odd: Sendable, Hashable {
        case status(Int)
        case page(Int)
        /// A 200 whose JSON reports an error.
        case error
        /// A 200 whose JSON is cut.
        case cut
        /// Bytes that are not an HTTP answer.
        case raw(String)
    }

    /// Appends the numbers of blocks to the name of their upload.
    private final class Appender: Sendable {
        struct State {
            var files: [String: [Int]] = [:]
            var order: [String] = []
            var odd: [Odd] = []
        }
        let state = Mutex(State())
        let number: Int
        let appends: Bool
        let header: String?

        /// - Parameters:
        ///   - number: The block with the odd answers, each given once.
        ///   - appends: The block is appended nevertheless.
        ///   - header: `Range` of that answer.
        init(_ number: Int, _ odd: [Odd], appends: Bool = true, header: String? = nil) {
            (self.number, self.appends, self.header) = (number, appends, header)
            state.withLock { $0.odd = odd }
        }

        func server() throws -> FakeServer {
            try FakeServer { exchange in
                _ = exchange.body()
                let values = exchange.target.split(separator: "?").last?.split(separator: "&") ?? []
                func value(_ name: String) -> String {
                    values.first { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.count + 1)) } ?? ""
                }
                let (id, number) = (value("zid"), Int(value("zn")) ?? 0)
                let odd = self.state.withLock { state -> Odd? in
                    let odd = number == self.number && !state.odd.isEmpty ? state.odd.removeFirst() : nil
                    if state.files[id] == nil { state.order.append(id) }
                    if odd == nil || self.appends { state.files[id, default: []].append(number) }
                    return odd
                }
                let range = self.header.map { [("Range", $0)] } ?? []
                switch odd {
                case .status(let status): exchange.reply(status, range, "later")
                case .page(let status): exchange.reply(status, [("Content-Type", "text/html")], "<html>log in</html>")
                case .error: exchange.reply(200, [], #"{"error":"busy","files":[{"error":"busy"}]}"#)
                case .cut: exchange.reply(200, [], #"{"files":[{"na"#)
                case .raw(let text):
                    exchange.raw(text)
                    exchange.cut()
                case nil: exchange.reply(200, [], #"{"files":[{"name":"a"}]}"#)
                }
            }
        }

        /// Blocks of each upload, in the order in which the uploads were begun.
        var files: [[Int]] { state.withLock { state in state.order.map { state.files[$0] ?? [] } } }
    }

    private func destination(
        _ server: FakeServer, _ preset: String, _ more: [String: SettingValue] = [:]
    ) throws -> any Destination {
        let values: [String: SettingValue] = [
            "url": .text(server.url + "/up"), "preset": .text(preset), "block.size": .bytes(1000),
            "send.query": .map(["zid": .literal("{id}"), "zn": .literal("{index1}")]), "repeat_safe": .flag(false),
            "success.json": .texts(["/error empty", "/files/*/error empty"]),
        ]
        return try ChunkedForm.kind.make(
            values.merging(more) { $1 },
            DestinationTools(
                transport: Transport(), secrets: SecretReader(), clocks: SystemClocks(), name: "archive", log: { _ in })
        )
    }

    private func attempts(
        _ destination: any Destination, _ staged: StagedUpload, _ recorder: RecordingReporter, generation: Int = 1,
        most: Int = 6
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

    static let odd: [Odd] = [
        .status(408), .status(421), .status(425), .status(429), .status(502), .status(503), .status(504), .status(302),
        .page(200), .page(503), .error, .cut, .raw("<html>no status"), .raw("HTTP/9.9 200 OK\r\n\r\n"),
        .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: foo\r\n\r\n{}"),
    ]

    @Test(
        "a possibly appended block is not appended twice: the file starts again under another name, with a warning",
        arguments: ["blueimp", "plupload", "custom"], Tier.sample(odd, 4))
    func unknown(_ preset: String, _ odd: Odd) async throws {
        // Plupload counts redirects as success, as its servers expect.
        if preset == "plupload", odd == .status(302) { return }
        for number in [2, 3] {
            let appender = Appender(number, [odd])
            let server = try appender.server()
            let (object, errors) = try await attempts(
                try destination(server, preset), try StagedUpload(3000), RecordingReporter())
            #expect(errors.count == 1, "\(number): \(errors)")
            #expect(appender.files == [Array(1...number), [1, 2, 3]], "\(number): \(appender.files)")
            let twice = object?.warnings.contains { $0.contains("may hold the file twice") } == true
            #expect(object?.warnings.isEmpty == false && twice == (number == 3), "\(object?.warnings ?? [])")
            server.stop()
        }
    }

    @Test(
        "a connection that breaks repeatedly is no fault of the file, whatever the block",
        arguments: ["blueimp", "plupload"], [1, 2, 3])
    func interrupted(_ preset: String, _ number: Int) async throws {
        let appender = Appender(number, Array(repeating: .raw(""), count: 15))
        let server = try appender.server()
        let (object, errors) = try await attempts(
            try destination(server, preset), try StagedUpload(3000), RecordingReporter(), most: 20)
        #expect(object != nil && errors.count == 15)
        #expect(errors.allSatisfy { $0.remedy == .holdDestination(after: nil) }, "\(errors)")
        #expect(appender.files.last == [1, 2, 3] && appender.files.count == 16)
    }

    @Test(
        "with normal answers each block is appended once, without a warning",
        arguments: ["blueimp", "plupload"])
    func control(_ preset: String) async throws {
        let appender = Appender(3, [])
        let server = try appender.server()
        let (object, errors) = try await attempts(
            try destination(server, preset), try StagedUpload(3000), RecordingReporter())
        #expect(object?.warnings == [] && errors.isEmpty && appender.files == [[1, 2, 3]])
    }

    @Test(
        "an answer that excludes an effect lets the block be repeated under the same name",
        arguments: [401, 403, 404, 407, 413])
    func nothingDone(_ status: Int) async throws {
        let appender = Appender(2, [.status(status)], appends: false)
        let server = try appender.server()
        let destination = try destination(server, "plupload")
        let (staged, recorder) = (try StagedUpload(3000), RecordingReporter())
        let (object, errors) = try await attempts(destination, staged, recorder)
        if errors.last?.remedy == .failUpload {
            // A person retries the upload.
            let again = try await attempts(destination, staged, recorder, generation: 2)
            #expect(again.object != nil)
        } else {
            #expect(object?.warnings == [])
        }
        #expect(errors.count == 1 && appender.files == [[1, 2, 3]], "\(errors) \(appender.files)")
    }

    @Test("a server whose refusal says that it lacks the block gets it again under the same name")
    func lacksIt() async throws {
        for status in [408, 429, 503] {
            let appender = Appender(2, [.status(status)], appends: false, header: "0-999")
            let server = try appender.server()
            let (object, errors) = try await attempts(
                try destination(server, "blueimp"), try StagedUpload(3000), RecordingReporter())
            #expect(object?.warnings == [] && errors.count == 1 && appender.files == [[1, 2, 3]], "\(appender.files)")
            server.stop()
        }
        // A server that reports the block as stored gets it again, like one that reports nothing.
        let appender = Appender(2, [.status(429)], header: "0-1999")
        let server = try appender.server()
        let (object, _) = try await attempts(
            try destination(server, "blueimp"), try StagedUpload(3000), RecordingReporter())
        #expect(object != nil && appender.files.last == [1, 2, 3])
        #expect(appender.files.allSatisfy { Set($0).count == $0.count }, "\(appender.files)")
    }

    @Test(
        "a middle block that was refused for good, and possibly appended, starts again on retry",
        arguments: [400, 409, 422])
    func refusedInTheMiddle(_ status: Int) async throws {
        let appender = Appender(2, [.status(status)])
        let server = try appender.server()
        let destination = try destination(server, "blueimp")
        let (staged, recorder) = (try StagedUpload(3000), RecordingReporter())
        let first = try await attempts(destination, staged, recorder)
        #expect(first.errors.map(\.remedy) == [.failUpload])
        let second = try await attempts(destination, staged, recorder, generation: 2)
        #expect(
            second.object?.warnings.isEmpty == false && appender.files == [[1, 2], [1, 2, 3]], "\(appender.files)")
    }

    @Test("a server that refuses the file repeatedly by message has refused it, and does not get it for ever")
    func denied() async throws {
        let appender = Appender(3, Array(repeating: .error, count: 20))
        let server = try appender.server()
        let (staged, recorder) = (try StagedUpload(3000), RecordingReporter())
        let (object, errors) = try await attempts(try destination(server, "blueimp"), staged, recorder, most: 20)
        #expect(object == nil && errors.last?.failure.code == .refusedAtEnd && appender.files.count == 3)
        #expect(errors.last?.failure.message.contains("busy") == true, "\(errors)")
        #expect(errors.last?.failure.message.contains("may hold the file twice") == true, "\(errors)")
    }

    @Test("a block reported as damaged is not sent after itself", arguments: [2, 3])
    func damaged(_ number: Int) async throws {
        let appender = Appender(number, [.status(422)])
        let server = try appender.server()
        let destination = try destination(server, "blueimp", ["send.fields": .map(["crc": .literal("{crc32}")])])
        let (staged, recorder) = (try StagedUpload(3000), RecordingReporter())
        let (object, errors) = try await attempts(destination, staged, recorder)
        #expect(appender.files.allSatisfy { Set($0).count == $0.count }, "\(appender.files)")
        if number == 3 {
            #expect(object == nil && errors.map(\.failure.code) == [.refusedAtEnd], "\(errors)")
        } else {
            #expect(object?.warnings.isEmpty == false && appender.files.last == [1, 2, 3], "\(errors)")
        }
    }

    @Test(
        "a last block possibly accepted by an answer without a verdict causes a warning when repeated",
        arguments: [
            Odd.status(408), .status(421), .status(425), .status(429), .page(200), .error, .cut,
            .raw("<html>no status"),
        ])
    func safeServers(_ odd: Odd) async throws {
        for finish in [false, true] {
            let asked = Mutex<[String]>([])
            let server = try FakeServer { exchange in
                _ = exchange.body()
                let isEnd = finish ? exchange.target.hasPrefix("/done") : exchange.target.hasSuffix("zn=3")
                let isFirst = asked.withLock { asked in
                    asked.append(exchange.target)
                    return asked.count { $0 == exchange.target } == 1
                }
                guard isEnd, isFirst else { return exchange.reply(200, [], "{}") }
                switch odd {
                case .status(let status): exchange.reply(status, [], "later")
                case .page: exchange.reply(200, [], "<html>log in</html>")
                case .error: exchange.reply(200, [], #"{"error":"busy"}"#)
                case .cut: exchange.reply(200, [], #"{"er"#)
                case .raw(let text):
                    exchange.raw(text)
                    exchange.cut()
                }
            }
            let joining: [String: SettingValue] =
                finish
                ? ["finish.url": .text("/done"), "finish.query": .map(["zid": .literal("{id}")])]
                : ["finish": .text("none")]
            let destination = try destination(
                server, "dropzone", joining.merging(["repeat_safe": .flag(true)]) { $1 })
            let (object, errors) = try await attempts(destination, try StagedUpload(3000), RecordingReporter())
            #expect(errors.count == 1 && object != nil, "\(errors)")
            #expect(object?.warnings.contains { $0.contains("may hold the file twice") } == true, "\(finish) \(odd)")
            server.stop()
        }
    }
}
