import Core
import Digests
import FoundationEssentials
import Linux
import Receiver
import Synchronization
import TestKit
import WebServer

/// A receiver for a folder of its own, and a raw client for it.
final class ReceiverFixture: Sendable {
    let temporary = TemporaryFolder()
    private let lines = Lines()
    private let running = Mutex<Receiver?>(nil)
    private let token: String?
    private let maxSize: Int64?

    let folder: FilePath
    var port: Int { running.withLock { $0?.port ?? 0 } }
    var logged: [String] { lines.all }
    var log: String { logged.joined(separator: "\n") }

    init(into folder: FilePath? = nil, token: String? = nil, maxSize: Int64? = nil) {
        self.folder = folder ?? temporary.path.appending("in")
        self.token = token
        self.maxSize = maxSize
    }

    func start(clocks: any Clocks = SystemClocks()) async throws {
        // Not `self`: a receiver that is released too late would keep the folder beyond the end of the tests.
        let lines = lines
        let receiver = try await Receiver.start(
            into: folder, listen: .tcp(host: "127.0.0.1", port: 0), token: token.map { Array($0.utf8) },
            maxSize: maxSize, clocks: clocks
        ) { lines.append($0) }
        running.withLock { $0 = receiver }
    }

    func stop() async {
        let receiver = running.withLock { receiver in
            defer { receiver = nil }
            return receiver
        }
        await receiver?.stop()
    }

    /// Starts a receiver, runs `body`, and stops the receiver in every case.
    static func open(
        token: String? = nil, maxSize: Int64? = nil, _ body: (ReceiverFixture) async throws -> Void
    ) async throws {
        let inbox = ReceiverFixture(token: token, maxSize: maxSize)
        try await inbox.start()
        do { try await body(inbox) } catch {
            await inbox.stop()
            throw error
        }
        await inbox.stop()
    }

    // MARK: Requests

    static func head(_ method: String, _ target: String, _ headers: [String: String]) -> String {
        var all = ["Host": "h", "Tus-Resumable": "1.0.0"]
        all.merge(headers) { $1 }
        let lines = all.filter { !$0.value.isEmpty }.map { "\($0.key): \($0.value)\r\n" }
        return "\(method) \(target) HTTP/1.1\r\n" + lines.joined() + "\r\n"
    }

    func ask(
        _ method: String, _ target: String, _ headers: [String: String] = [:], _ body: [UInt8] = []
    ) async throws -> Wire.Reply {
        let wire = try Wire(port: port)
        var headers = headers
        if method != "HEAD" { headers["Content-Length"] = headers["Content-Length"] ?? String(body.count) }
        try await wire.send(Self.head(method, target, headers))
        if !body.isEmpty { try await wire.send(body) }
        return try await wire.reply(isHead: method == "HEAD")
    }

    static func metadata(_ pairs: [String: [UInt8]]) -> String {
        pairs.sorted { $0.key < $1.key }.map { "\($0.key) \(Data($0.value).base64EncodedString())" }.joined(
            separator: ",")
    }

    func create(_ length: Int, _ pairs: [String: String]) async throws -> Wire.Reply {
        let metadata = Self.metadata(pairs.mapValues { Array($0.utf8) })
        return try await ask("POST", "/files/", ["Upload-Length": String(length), "Upload-Metadata": metadata])
    }

    /// Creates an upload and returns its location.
    func made(_ length: Int, _ pairs: [String: String]) async throws -> String {
        let reply = try await create(length, pairs)
        guard reply.status == 201, let location = reply.headers["location"] else {
            throw Unexpected(description: "\(reply.status) \(reply.text)")
        }
        return location
    }

    static let offsetType = "application/offset+octet-stream"

    func patch(_ location: String, at offset: Int, _ body: [UInt8]) async throws -> Wire.Reply {
        try await ask("PATCH", location, ["Upload-Offset": String(offset), "Content-Type": Self.offsetType], body)
    }

    /// Begins a PATCH of `length` bytes, sends `body`, and leaves the connection open.
    func begin(_ location: String, at offset: Int, length: Int, _ body: [UInt8]) async throws -> Wire {
        let wire = try Wire(port: port)
        let headers = [
            "Upload-Offset": String(offset), "Content-Type": Self.offsetType, "Content-Length": String(length),
        ]
        try await wire.send(Self.head("PATCH", location, headers))
        try await wire.send(body)
        return wire
    }

    func offset(_ location: String) async throws -> Int? {
        try await ask("HEAD", location).headers["upload-offset"].flatMap { Int($0) }
    }

    /// Sends a whole file; returns its location.
    @discardableResult
    func upload(_ content: [UInt8], _ pairs: [String: String]) async throws -> String {
        let location = try await made(content.count, pairs)
        if content.isEmpty { return location }
        let reply = try await patch(location, at: 0, content)
        guard reply.status == 204 else { throw Unexpected(description: "\(reply.status) \(reply.text)") }
        return location
    }

    // MARK: Files

    func content(_ name: FilePath) throws -> [UInt8]? {
        let path = folder.appending(name)
        return try FileStatus.ifPresent(at: path) == nil ? nil : Files.read(path, limit: 64 << 20)
    }

    /// Every delivered file below the folder.
    func delivered(_ below: FilePath = "") throws -> [FilePath] {
        var found: [FilePath] = []
        for name in try Files.names(in: folder.appending(below)) where name != ".sluice-receive" {
            let path = below.appending(name)
            found += try FileStatus(at: folder.appending(path)).isDirectory ? delivered(path) : [path]
        }
        return found.sorted()
    }

    /// The receiver's own files with the bytes of an upload.
    func unfinished() throws -> Int {
        try Files.names(in: folder.appending(".sluice-receive")).filter { $0.fileExtension == "data" }.count
    }
}

private final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func append(_ line: String) { lines.withLock { $0.append(line) } }
}

struct Unexpected: Error {
    let description: String
}

func sha256(_ bytes: [UInt8]) -> String { hexadecimal(Digests.Hasher.digest(.sha256, of: bytes)) }
