import Core
import Glibc
import Linux
import TestKit
import Testing

@testable import Receiver

/// Requests that no correct client sends, and records that a disk has damaged: the receiver survives, and holds exactly
/// the bytes that it acknowledged.
@Suite("Fuzz: receiver", .timeLimit(.minutes(Fuzz.minutes)))
struct ReceiverFuzzTests {
    static let requests = [
        "OPTIONS /files/ HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /files/ HTTP/1.1\r\nHost: h\r\nTus-Resumable: 1.0.0\r\nUpload-Length: 5\r\nContent-Length: 0\r\n"
            + "Upload-Metadata: filename YS5tcDQ=,mtime MTcwMDAwMDAwMDAwMDAwMDAwMA==\r\n\r\n",
        "PATCH /files/ID HTTP/1.1\r\nHost: h\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n"
            + "Content-Type: application/offset+octet-stream\r\nContent-Length: 5\r\n\r\nhello",
        "PATCH /files/ID HTTP/1.1\r\nHost: h\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\nTransfer-Encoding: chunked\r\n"
            + "Content-Type: application/offset+octet-stream\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
        "HEAD /files/ID HTTP/1.1\r\nHost: h\r\nTus-Resumable: 1.0.0\r\n\r\n",
        "POST /files/ID HTTP/1.1\r\nHost: h\r\nTus-Resumable: 1.0.0\r\nX-HTTP-Method-Override: DELETE\r\n\r\n",
    ]

    static let words = [
        "\r\n", "\n", "\r\n\r\n", "\0", " ", "\t", "\u{1B}[2J", "%", "%2e%2e", "%00", "%ff", "/..", "//", "?", "#", "*",
        "Upload-Length: 0\r\n", "Upload-Length: 9223372036854775807\r\n", "Upload-Offset: 9223372036854775807\r\n",
        "Upload-Offset: 5\r\n", "Upload-Concat: partial\r\n", "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: 5, 5\r\n", "Content-Length: 99999999999999999999\r\n", "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: identity\r\n", "Transfer-Encoding: gzip, chunked\r\n", "FFFFFFFFFFFFFFFFF\r\n", "-1\r\n",
        "Expect: 100-continue\r\n",
        "Upload-Metadata: mtime LTkyMjMzNzIwMzY4NTQ3NzU4MDg=,filename YQ==\r\n",
        "Upload-Metadata: filename Li4vLi4vYQ==\r\n",
        "Upload-Metadata: sha256 YWJj,filename YQ==\r\n", "Upload-Metadata: sluicePath JTJGZXRj\r\n",
        "Upload-Metadata: sluiceId YQ==\r\n",
        "Upload-Metadata: ,,\r\n", "X-HTTP-Method-Override: PATCH\r\n", "GET / HTTP/1.0\r\n\r\n", "HTTP/1.1",
        "X: \(String(repeating: "x", count: 20_000))\r\n",
    ]

    @Test("any request gets an HTTP status or a closed connection; only sent files appear")
    func requests() async throws {
        try await ReceiverFixture.open(token: nil, maxSize: 1 << 20) { inbox in
            let mutator = Mutator(Self.requests.map { Array($0.utf8) }, words: Self.words, limit: 40_000)
            try await Fuzz("receiver requests", rounds: 80, share: 20).each(mutator) { round in
                let made = try await inbox.ask(
                    "POST", "/files/", ["Upload-Length": "5", "Upload-Metadata": "filename YQ=="])
                try round.expect(made.status == 201, "a valid creation is answered with \(made.status)")
                let id = try #require(made.headers["location"]?.split(separator: "/").last)
                let text = Self.replacing("ID", by: String(id), in: round.input)
                let wire = try Wire(port: inbox.port)
                do {
                    try await wire.send(text)
                    wire.endSending()
                    let isHead = text.starts(with: "HEAD".utf8)
                    let reply = try await wire.reply(isHead: isHead)
                    try round.expect((200..<600).contains(reply.status), "the receiver answers \(reply.status)")
                    try round.expect(
                        reply.status != 500, "the receiver answers 500; the log says: \(inbox.logged.last ?? "")")
                } catch is Wire.Broken {} catch let error as SystemError where [ECONNRESET, EPIPE].contains(error.code)
                {}
                let stands = try await inbox.ask("HEAD", "/files/\(id)")
                if stands.status == 200 {
                    let offset = try #require(stands.headers["upload-offset"].flatMap { Int($0) })
                    try round.expect((0...5).contains(offset), "the offset is \(offset)")
                    try await Self.finish(inbox, String(id), offset, round)
                } else {
                    try round.expect(stands.status == 404, "a valid query is answered with \(stands.status)")
                }
            }
            for line in inbox.logged { #expect(printable(line) == line) }
        }
    }

    /// The upload can be completed anyway, unless the strange request has ended it.
    private static func finish(_ inbox: ReceiverFixture, _ id: String, _ offset: Int, _ round: Fuzz.Round) async throws
    {
        if offset == 5 { return }
        let rest = Array("hello".utf8.dropFirst(offset))
        let headers = ["Upload-Offset": "\(offset)", "Content-Type": "application/offset+octet-stream"]
        let reply = try await inbox.ask("PATCH", "/files/\(id)", headers, rest)
        try round.expect(reply.status == 204, "a valid end is answered with \(reply.status): \(reply.text)")
    }

    private static func replacing(_ mark: String, by text: String, in bytes: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        var rest = bytes[...]
        while let first = rest.first {
            if rest.starts(with: mark.utf8) {
                out += text.utf8
                rest = rest.dropFirst(mark.utf8.count)
            } else {
                out.append(first)
                rest = rest.dropFirst()
            }
        }
        return out
    }

    @Test("names lead below the folder or are refused with a reason")
    func names() throws {
        let seeds = ["filename YS5tcDQ=,sluicePath ZnJvbnQvY2xpcC5tcDQ=", "relativePath Li4vYQ==", "filename"]
        let mutator = Mutator(
            seeds.map { Array($0.utf8) }, words: [",", " ", "=", "Li4=", "Lw==", "AA==", "JTJl", "\0", "é"])
        try Fuzz("receiver names", rounds: 1000).each(mutator) { round in
            guard let metadata = UploadMetadataHeader(header: String(decoding: round.input, as: UTF8.self)) else {
                return
            }
            try Self.check(
                Result { () throws(FinalName.RefusedNameError) in try FinalName.path(from: metadata) }, round)
            try Self.check(
                Result { () throws(FinalName.RefusedNameError) in try FinalName.checked(round.input) }, round)
        }
    }

    private static func check(_ result: Result<FilePath, FinalName.RefusedNameError>, _ round: Fuzz.Round) throws {
        switch result {
        case .success(let path):
            let parts = path.bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            try round.expect(!path.isAbsolute && path.normalised == path, "the name leads to \(path)")
            try round.expect(parts.allSatisfy { (1...255).contains($0.count) }, "a component is too long in \(path)")
            for number in [2, 10_000] {
                try round.expect(
                    path.name.numbered(number).bytes.count <= 255, "the numbered name is too long")
            }
        case .failure(let refusal): try round.expect(refusal.text.count > 10, "the refusal is \(refusal.text)")
        }
    }

    @Test("a damaged record is kept and reported, and the receiver starts")
    func records() async throws {
        let record = Record(
            id: "0123456789abcdef0123456789abcdef", length: 5, metadata: "filename YS5tcDQ=,mtime LTU=", created: 1,
            touched: 1_700_000_000_000, offset: 3, boot: "x", digest: nil, name: nil)
        let folder = TemporaryFolder()
        let directory = folder.path.appending(FinalName.ownFolder)
        let file = directory.appending("0123456789abcdef0123456789abcdef.json")
        try Files.makeFolders(directory)
        try record.write(file)
        let mutator = Mutator(
            [try Files.read(file)],
            words: ["{", "}", "\"", ",", ":", "null", "true", "[]", "-1", "\\u0000", "name", "\"a\""])
        try await Fuzz("receiver records", rounds: 40, share: 20).each(mutator) { round in
            try Files.replace(file, with: round.input)
            try folder.write(
                FinalName.ownFolder.appending("0123456789abcdef0123456789abcdef.data"), Array("hello".utf8))
            let inbox = ReceiverFixture(into: folder.path)
            try await inbox.start()
            let reply = try await inbox.ask("HEAD", "/files/0123456789abcdef0123456789abcdef")
            if reply.status == 200 {
                let offset = Int64(reply.headers["upload-offset"] ?? "") ?? -1
                let length = Int64(reply.headers["upload-length"] ?? "") ?? -1
                try round.expect(offset >= 0 && offset <= length, "the offset is \(offset) of \(length)")
            }
            await inbox.stop()
        }
    }
}
