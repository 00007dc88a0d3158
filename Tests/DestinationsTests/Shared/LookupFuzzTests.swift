import Core
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// The query whether a server holds a file, with damaged answers: a file counts as held only if the server said so.
@Suite("Fuzz: answers to a lookup", .timeLimit(.minutes(Fuzz.minutes)))
struct LookupFuzzTests {
    private static let announces = [("Tus-Version", "1.0.0"), ("Tus-Extension", "creation"), ("Sluice-Lookup", "1")]

    @Test("a file is present or absent only by the server's mark; any other answer is an error with a message")
    func lookups() async throws {
        let seeds = [
            "HTTP/1.1 200 OK\r\nTus-Resumable: 1.0.0\r\nSluice-Lookup: held\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\nTus-Resumable: 1.0.0\r\nSluice-Lookup: absent\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\n",
            "HTTP/1.1 400 Bad\r\nTus-Resumable: 1.0.0\r\nSluice-Lookup: 1\r\nContent-Length: 0\r\n\r\n",
        ]
        let mutator = Mutator(
            seeds.map { Array($0.utf8) },
            words: [
                "\r\n", "\n", "\r", "\r\n\r\n", " ", "\t", "\0", ":", ",", "200", "404", "204", "206", "301", "503",
                "held", "absent", "Held", "held, absent", "Sluice-Lookup: held\r\n", "Sluice-Lookup: absent\r\n",
                "Sluice-Lookup:\r\n held\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\n",
                "HTTP/0.9 200\r\n",
                "Location: /x\r\n", "Location: ftp://h/\r\n", "Retry-After: 5\r\n", "\u{1B}[2J", "\u{202E}",
                "Content-Length: -1\r\n", "Transfer-Encoding: chunked\r\n", "Set-Cookie: a=b\r\n",
            ], limit: 8000)
        // The next answer to HEAD.
        let next = Mutex<[UInt8]>([])
        let server = try FakeServer { exchange in
            if exchange.method == "OPTIONS" { return exchange.reply(204, Self.announces) }
            exchange.answer(next.withLock { $0 })
            exchange.cut()
        }
        let transport = Transport()
        let journey = try UploadScenario(
            server.url + "/files", size: 10,
            values: ["stall_timeout": .duration(.seconds(5)), "reply_timeout": .duration(.seconds(5))],
            transport: transport)
        let fuzz = Fuzz("lookups", rounds: 200, share: 10)
        var (held, absent) = (0, 0)
        try await fuzz.each(mutator) { round in
            next.withLock { $0 = round.input }
            do {
                switch try await journey.destination.find(journey.order) {
                case .found:
                    held += 1
                    try round.expect(
                        Self.says(round.input, "200", "held"), "the file counts as held without the server's mark")
                case .absent:
                    absent += 1
                    try round.expect(
                        Self.says(round.input, "404", "absent"), "the file counts as absent without the server's mark")
                case .unknown(let why): throw round.flaw("unknown, after it was announced: \(why)")
                }
            } catch {
                guard let error = error as? UploadError else { throw error }
                let message = error.failure.message
                try round.expect(message.split(separator: " ").count > 3, "the message is too short: \(message)")
                try round.expect(
                    printable(message) == message, "the message has control characters: \(printable(message))")
            }
        }
        await transport.stop()
        if fuzz.rounds >= 200 { #expect(held > 0 && absent > 0) }
    }

    /// Whether the reply has this status somewhere and the header with this value, with lines unfolded like in libcurl.
    /// A fold that is cut off does not count, so only the beginning of the value is compared.
    private static func says(_ reply: [UInt8], _ status: String, _ mark: String) -> Bool {
        let text = String(decoding: reply.filter { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
            .replacing("\n ", with: " ").replacing("\n\t", with: " ")
        return text.contains(status)
            && text.split(separator: "\n").contains { line in
                let parts = line.split(separator: ":", maxSplits: 1)
                return parts.count == 2 && parts[0].lowercased().filter { !$0.isWhitespace }.hasSuffix("sluice-lookup")
                    && parts[1].filter { !$0.isWhitespace }.hasPrefix(mark)
            }
    }
}
