import Core
import Linux
import TestKit
import Testing

/// The test server itself, called by curl: accepted requests, and all that it must refuse.
@Suite("Test server for chunked forms", .timeLimit(.minutes(Patience.minutes(2))))
struct FormServerTests {
    private let folder = TemporaryFolder()

    /// - Returns: The status, and the body.
    private func curl(_ url: String, _ arguments: [String]) async throws -> (status: Int, body: String) {
        let name = hexadecimal((0..<6).map { _ in UInt8.random(in: 0...255) })
        let child = try Child(
            "/usr/bin/env", ["curl", "-sS", "-w", "\n%{http_code}", url] + arguments,
            environment: ["PATH": "/usr/bin:/bin", "no_proxy": "*"],
            output: folder.path.appending(FilePath("\(name).out")),
            errors: folder.path.appending(FilePath("\(name).err")))
        _ = try await child.end(within: .seconds(20))
        let lines = try child.standardOutput().split(separator: "\n", omittingEmptySubsequences: false)
        return (Int(lines.last ?? "") ?? 0, lines.dropLast().joined(separator: "\n"))
    }

    /// Fields and the file, as arguments of curl.
    private func form(_ fields: [String: String], _ file: String) -> [String] {
        fields.sorted { $0.key < $1.key }.flatMap { ["--form-string", "\($0.key)=\($0.value)"] } + ["-F", file]
    }

    private static let size = 2500

    private func block(_ number: Int, _ token: String, total: Int = size, crc: String = "") -> [String: String] {
        [
            "sequenceNo": "\(number)", "blockSize": "1000", "totFileSize": "\(total)", "suffix": "mp4", "token": "",
            "upToken": token, "crc": crc,
        ]
    }

    private static let opening = [
        "sequenceNo": "0", "blockSize": "1000", "totFileSize": "\(size)", "suffix": "mp4", "token": "",
    ]

    @Test("the server accepts the block protocol from curl, and joins the blocks")
    func takes() async throws {
        let server = try FormServer("breakpoint", into: folder.path.appending("made"))
        try Files.makeFolders(folder.path.appending("made"))
        let content = noise(Self.size)
        try folder.write("empty", [])
        for number in 0..<3 { try folder.write(FilePath("\(number)"), Array(content[(1000 * number)...].prefix(1000))) }
        let root = folder.path.display
        let type = "type=application/octet-stream;filename=clip.mp4"
        let opened = try await curl(server.url, form(Self.opening, "block=@\(root)/empty;\(type)"))
        #expect(opened.status == 200 && opened.body == #"{"data":{"upToken":"up-token-1"}}"#, "\(opened)")
        for number in [2, 1, 3] {
            let answer = try await curl(
                server.url, form(block(number, "up-token-1"), "block=@\(root)/\(number - 1);\(type)"))
            #expect(answer.status == 200, "\(answer)")
            #expect(answer.body.contains("fileUrl") == (number == 3), "\(answer)")
        }
        #expect(try Files.read(folder.path.appending("made/clip.mp4"), limit: 1 << 20) == content)
        #expect(server.refused.isEmpty && server.unfinished == 0)
    }

    @Test("each violation of a rule is refused with its status")
    func refuses() async throws {
        try Files.makeFolders(folder.path.appending("made"))
        let server = try FormServer("breakpoint", into: folder.path.appending("made"))
        try folder.write("empty", [])
        try folder.write("block", noise(1000))
        try folder.write("short", noise(900))
        let root = folder.path.display
        let type = "type=application/octet-stream;filename=clip.mp4"
        let (empty, full, short) = (
            "block=@\(root)/empty;\(type)", "block=@\(root)/block;\(type)", "block=@\(root)/short;\(type)"
        )
        #expect(try await curl(server.url, form(Self.opening, empty)).status == 200)
        let token = "up-token-1"
        func status(_ fields: [String: String], _ file: String, _ more: [String] = []) async throws -> Int {
            try await curl(server.url, form(fields, file) + more).status
        }
        var missing = block(1, token)
        missing["suffix"] = nil
        var strange = block(1, token)
        strange["sequenceno"] = "1"
        var resized = block(2, token)
        resized["blockSize"] = "1250"
        var renamed = block(1, token)
        renamed["suffix"] = "mov"
        try folder.write("larger", noise(1250))
        let larger = "block=@\(root)/larger;\(type)"
        #expect(try await status(resized, larger) == 409, "blocks of another size")
        #expect(try await status(renamed, full) == 409, "another ending")
        var reopened = Self.opening
        reopened["upToken"] = token
        #expect(try await status(missing, full) == 400, "a field is missing")
        #expect(try await status(strange, full) == 400, "an unknown field")
        #expect(try await status(block(1, "no-token"), full) == 404, "an unknown token")
        #expect(try await status(block(1, token), short) == 400, "a wrong length")
        #expect(try await status(block(1, token, crc: "00000000"), full) == 422, "a wrong digest")
        #expect(try await status(block(4, token), full) == 400, "beyond the last block")
        #expect(try await status(block(1, token, total: 2600), full) == 409, "another size")
        #expect(try await status(reopened, empty) == 409, "a second opening")
        #expect(try await status(Self.opening, full) == 400, "bytes in an opening")
        #expect(try await status(block(1, token), full, ["-H", "Transfer-Encoding: chunked"]) == 411, "chunks")
        let wrongName = full.replacing("block=@", with: "blok=@")
        #expect(try await status(block(1, token), wrongName) == 400, "the part's name")
        var options = FormServer.Options()
        options.limit = 500
        let small = try FormServer("breakpoint", into: folder.path.appending("made"), options)
        #expect(try await curl(small.url, form(block(1, token), full)).status == 413, "a body that is too large")
        let joining = try FormServer("webuploader", into: folder.path.appending("made"), finishing)
        let early = [
            "id": "x", "name": "a", "type": "b", "lastModifiedDate": "1", "size": "2500", "chunks": "3", "chunk": "0",
        ]
        let part = "file=@\(root)/block;type=application/octet-stream;filename=a"
        #expect(try await curl(joining.url, form(early, part)).status == 200)
        let finish = joining.url.replacing("/upload", with: "/finish")
        #expect(try await curl(finish, ["-d", "id=x"]).status == 409, "the end before all blocks")
        #expect(try await curl(finish, ["-d", "id=y"]).status == 404, "the end of nothing")
    }

    @Test("a single-block file has no block fields, and a larger one always has")
    func singles() async throws {
        let folder = folder.path.appending("made")
        try Files.makeFolders(folder)
        let server = try FormServer("dropzone", into: folder)
        try self.folder.write("block", noise(1000))
        try self.folder.write("long", noise(1001))
        let root = self.folder.path.display
        func status(_ fields: [String: String], _ name: String) async throws -> Int {
            let headers = Self.browser.flatMap { ["-H", $0] }
            let file = "file=@\(root)/\(name);type=application/octet-stream;filename=\(name)"
            return try await curl(server.url, headers + form(fields, file)).status
        }
        #expect(try await status([:], "block") == 200)
        #expect(try await status([:], "long") == 400)
        let fields = [
            "dzuuid": "6f0f9a5c-3d1b-4c52-9a0e-0d8e6c1f2a3b", "dzchunkindex": "0", "dztotalfilesize": "1000",
            "dzchunksize": "1000", "dztotalchunkcount": "1", "dzchunkbyteoffset": "0",
        ]
        #expect(try await status(fields, "block") == 400)
    }

    @Test("jQuery File Upload uses headers only: each block but the last is full, and a single one has no range")
    func ranges() async throws {
        let folder = folder.path.appending("made")
        try Files.makeFolders(folder)
        let server = try FormServer("blueimp", into: folder)
        try self.folder.write("block", noise(1000))
        try self.folder.write("short", noise(900))
        let root = self.folder.path.display
        func status(_ name: String, _ range: String?, _ fields: [String: String] = [:]) async throws -> Int {
            let headers =
                ["Content-Disposition: attachment; filename=\"a.mp4\""]
                + (range.map { ["Content-Range: \($0)"] } ?? [])
            let file = "files[]=@\(root)/\(name);type=application/octet-stream;filename=a.mp4"
            return try await curl(server.url, headers.flatMap { ["-H", $0] } + form(fields, file)).status
        }
        #expect(try await status("block", "bytes 0-999/1000") == 400, "a range of one block")
        #expect(try await status("short", "bytes 0-899/1900") == 400, "a short block that is not the last")
        #expect(try await status("block", "bytes 0-999/1900", ["chunk": "0"]) == 400, "a field")
        #expect(try await status("block", "bytes 0-999/1900") == 200)
        #expect(try await status("short", "bytes 1000-1899/1900") == 200)
    }

    private static let browser = [
        "Accept: application/json", "Cache-Control: no-cache", "X-Requested-With: XMLHttpRequest",
    ]

    private var finishing: FormServer.Options {
        var options = FormServer.Options()
        options.wantsFinish = true
        return options
    }
}
