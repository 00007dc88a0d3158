import Core
import Linux
import Synchronization
import TestKit
import Testing

/// The transcripts of `Tests/Fixtures/resumable-http`, which were made by hand from the drafts.
@Suite("Transcripts of resumable uploads", .timeLimit(.minutes(Patience.minutes(1))))
struct ResumableTranscriptTests {
    private static let folder = Repository.root.appending("Tests/Fixtures/resumable-http")

    static var names: [String] {
        get throws { try Files.names(in: folder).filter { $0.fileExtension == "txt" }.map(\.display).sorted() }
    }

    @Test("each upload makes the requests of its transcript, and ends as it says")
    func plays() async throws {
        let names = try Self.names
        #expect(names.count >= 9)
        for name in names {
            let text = String(decoding: try Files.read(Self.folder.appending(FilePath(name))), as: UTF8.self)
            let transcript = Transcript(text)
            #expect(
                transcript.comments.count == 2 && transcript.comments[1].hasPrefix("# Made by hand from"), "\(name)")
            try await play(transcript, name)
        }
    }

    private func play(_ transcript: Transcript, _ name: String) async throws {
        let left = Mutex(transcript.exchanges)
        let errors = Mutex<[String]>([])
        let server = try FakeServer { exchange in
            let next = left.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            guard let next else {
                errors.withLock { $0.append("one more request: \(exchange.method) \(exchange.target)") }
                return exchange.cut()
            }
            let body = exchange.body()
            let objections = next.objections(to: exchange, body.count)
            errors.withLock { $0 += objections }
            exchange.answer(next.answer)
            if next.isCut { exchange.cut() }
        }
        var values: [String: SettingValue] = [:]
        if let interop = transcript.settings["interop"] { values["interop"] = .text(interop) }
        let journey = try UploadScenario(
            server.url + "/files", size: Int(transcript.settings["size"] ?? "") ?? 0,
            chunk: transcript.settings["chunk"].flatMap { Int64($0) }, values: values, type: "resumable-http")
        var end = ""
        for _ in 0..<(Int(transcript.settings["attempts"] ?? "") ?? 1) {
            do { end = "verified_by \(try await journey.attempt().verifiedBy)" } catch let error as UploadError {
                end = "code \(error.failure.code.rawValue)"
            }
        }
        #expect(end == transcript.settings["end"], "\(name)")
        #expect(errors.withLock { $0 }.isEmpty, "\(name)")
        #expect(left.withLock { $0 }.isEmpty, "\(name): requests are missing")
    }
}

/// A transcript, read from its file.
private struct Transcript: Sendable {
    struct Exchange: Sendable {
        var request: [String] = []
        var answer: [UInt8] = []
        var isCut = false

        /// How a request differs from the transcript.
        func objections(to exchange: TestKit.Exchange, _ count: Int) -> [String] {
            let title = "\(exchange.method) \(exchange.target)"
            return request.enumerated().compactMap { index, line in
                if index == 0 { return line == title ? nil : "\(title) in place of \(line)" }
                let words = line.split(separator: " ", maxSplits: 1).map(String.init)
                switch words[0] {
                case "no": return exchange.header(words[1]) == nil ? nil : "\(title): \(words[1])"
                case "body": return Int(words[1]) == count ? nil : "\(title): a body of \(count) bytes"
                default:
                    let value = exchange.header(String(words[0].dropLast()))
                    return value == words[1] ? nil : "\(title): \(words[0]) \(value ?? "is missing")"
                }
            }
        }
    }

    private(set) var comments: [String] = []
    private(set) var settings: [String: String] = [:]
    private(set) var exchanges: [Exchange] = []

    init(_ text: String) {
        for line in text.split(separator: "\n").map(String.init) {
            if line.hasPrefix("#") {
                comments.append(line)
            } else if line.hasPrefix("> ") {
                // A request begins after an answer.
                if exchanges.last.map({ !$0.answer.isEmpty || $0.isCut }) ?? true { exchanges.append(Exchange()) }
                exchanges[exchanges.count - 1].request.append(String(line.dropFirst(2)))
            } else if line.hasPrefix("<<") {
                exchanges[exchanges.count - 1].answer += Array(line.utf8.dropFirst(2))
            } else if line.hasPrefix("<") {
                exchanges[exchanges.count - 1].answer += Array("\(line.dropFirst(2))\r\n".utf8)
            } else if line == "cut" {
                exchanges[exchanges.count - 1].isCut = true
            } else {
                let words = line.split(separator: " ", maxSplits: 1).map(String.init)
                settings[words[0]] = words.count > 1 ? words[1] : ""
            }
        }
    }
}
