import Core
import Credentials
import Destinations
import Digests
import Glibc
import Linux
import Synchronization
import TestKit
import Transport

/// A real tus server in a process of its own.
final class TusProcess: Sendable {
    let url: String
    let folder = TemporaryFolder()
    private let child: Child

    /// `resumable-upload` behind our fault wrapper: `"PATCH=503:1,silent"`, `"--max-chunk=1000"`.
    static func faulty(_ plan: [String] = []) async throws -> TusProcess {
        try await TusProcess("faulty_tus.py", plan, path: "/files")
    }

    /// Runs the fault wrapper's own tests.
    ///
    /// - Returns: How it ended, and its output.
    static func proveFaulty() async throws -> (ending: Child.Ending, words: String) {
        try await blocking {
            let folder = TemporaryFolder()
            let child = try Child(
                try Tools.python("tus").appending("python"),
                ["-B", fixture("test_faulty_tus.py").display],
                output: folder.path.appending("out"), errors: folder.path.appending("err"))
            let ending = child.wait()
            return (ending, try child.standardError())
        }
    }

    static func tussi() async throws -> TusProcess {
        try await TusProcess("tussi_server.py", [], path: "/files/")
    }

    private init(_ script: String, _ arguments: [String], path: String) async throws {
        let tools = try await blocking { try Tools.python("tus") }
        child = try Child(
            tools.appending("python"), [fixture(script).display, folder.path.display] + arguments,
            output: folder.path.appending("out"), errors: folder.path.appending("err"))
        url = "http://127.0.0.1:\(try await child.line(after: "ready "))\(path)"
    }

    /// `POST`, `PATCH 0` …: methods with the offset that they named, in order, without OPTIONS.
    var requests: [String] {
        get throws {
            try child.standardOutput().split(separator: "\n").compactMap { line in
                let words = line.split(separator: " ")
                guard words.count == 5, words[0] == "request", words[1] != "OPTIONS" else { return nil }
                return words[4] == "-" ? String(words[1]) : "\(words[1]) \(words[4])"
            }
        }
    }

    /// The contents that `resumable-upload` holds, including unfinished uploads.
    var held: [[UInt8]] {
        get throws {
            let up = folder.path.appending("up")
            return try Files.names(in: up).map { try Files.read(up.appending($0), limit: 1 << 30) }
        }
    }

    func kill() { child.end(with: SIGKILL) }
}

private func fixture(_ name: String) -> FilePath {
    Repository.root.appending("Tests/Fixtures").appending(FilePath(name))
}

/// The records of the daemon, and its counts.
final class CountingReporter: UploadReporter {
    struct Book {
        var checkpoints: [Checkpoint] = []
        var accepted: [Int64] = []
        var parts: [Int: AcknowledgedPart] = [:]
        var sending: Int64 = 0
        var phases: [UploadPhase] = []
        /// Checkpoints to be removed at the remote.
        var left: [Checkpoint] = []
        var names: [String] = []
        var credentials: [CredentialRenewal] = []
    }

    let book = Mutex(Book())
    private let onRecord: @Sendable (Checkpoint) throws -> Void

    /// - Parameter onRecord: May throw, as for a daemon that dies at this moment.
    init(onRecord: @escaping @Sendable (Checkpoint) throws -> Void = { _ in }) { self.onRecord = onRecord }

    func record(_ checkpoint: Checkpoint) async throws {
        try onRecord(checkpoint)
        book.withLock { $0.checkpoints.append(checkpoint) }
    }
    func accepted(_ offset: Int64, _ checkpoint: Checkpoint) async throws {
        book.withLock {
            $0.checkpoints.append(checkpoint)
            $0.accepted.append(offset)
        }
    }
    func companions() async throws -> [Companion] { [] }
    func parts() async throws -> [AcknowledgedPart] { book.withLock { $0.parts.values.sorted { $0.index < $1.index } } }
    func recordParts(_ parts: [AcknowledgedPart], lost: [Int], acked: Int64) async throws {
        book.withLock { book in
            for index in lost { book.parts[index] = nil }
            for part in parts { book.parts[part.index] = part }
            book.accepted.append(acked)
        }
    }
    func renewed(_ checkpoint: Checkpoint, leaving old: Checkpoint?) async throws {
        book.withLock {
            $0.checkpoints.append(checkpoint)
            $0.accepted.append(0)
            $0.parts = [:]
            if let old { $0.left.append(old) }
        }
    }
    func recordName(_ id: String, at url: String?) async throws { book.withLock { $0.names.append(id) } }
    func credential(_ renewal: CredentialRenewal) async throws { book.withLock { $0.credentials.append(renewal) } }
    func sending(_ offset: Int64) { book.withLock { $0.sending = offset } }
    func spent(_ bytes: Int64) {}
    func received(_ bytes: Int64) { readBack.withLock { $0 += bytes } }
    /// Bytes that were read back.
    let readBack = Mutex<Int64>(0)
    func entered(_ phase: UploadPhase) { book.withLock { $0.phases.append(phase) } }
    /// A person wants it to end after the requests in flight.
    let pauses = Mutex(false)
    var shouldPause: Bool { pauses.withLock { $0 } }

    var last: Checkpoint? { book.withLock { $0.checkpoints.last } }

    /// The staged copy was damaged: as the store, which gives up the bytes that were sent of it.
    func giveUp(by destination: any Destination) {
        book.withLock { book in
            guard let old = book.checkpoints.last else { return }
            book.checkpoints.append(destination.lasting(of: old))
            book.parts = [:]
            book.left.append(old)
        }
    }
}

/// A destination, a file for it, and the events of its upload.
struct UploadScenario: Sendable {
    let folder = TemporaryFolder()
    let content: [UInt8]
    var order: UploadOrder
    let destination: any Destination
    let ledger: CountingReporter
    let said = LogLines()

    final class LogLines: Sendable {
        let lines = Mutex<[String]>([])
    }

    init(
        _ url: String, size: Int = 1000, chunk: Int64? = nil, values: [String: SettingValue] = [:],
        name: FilePath = "front/clip.mp4", metadata: [String: String] = [:], transport: any Transporting = Transport(),
        ledger: CountingReporter = CountingReporter(), checkpoint: Checkpoint? = nil,
        clocks: any Clocks = SystemClocks(), type: String = "tus"
    ) throws {
        content = noise(size)
        let path = try folder.write("staged", content)
        order = UploadOrder(
            id: "01JQ", generation: 1,
            file: StagedFile(path: path, size: Int64(size), sha256: Hasher.digest(.sha256, of: content)), name: name,
            mediaType: "video/mp4", modified: 1_700_000_000_123_456_789, metadata: metadata, checkpoint: checkpoint)
        var values = values
        values["url"] = .text(url)
        if let chunk { values["chunk_size"] = .bytes(chunk) }
        let said = said
        guard let kind = DestinationTable.builtIn.first(where: { $0.type.name == type }) else { throw Absent() }
        destination = try kind.make(
            values,
            DestinationTools(
                transport: transport, secrets: SecretReader(), clocks: clocks, name: "archive",
                log: { line in said.lines.withLock { $0.append(line) } }))
        self.ledger = ledger
    }

    struct Absent: Error {}

    /// One attempt, from the state in the ledger.
    ///
    /// - Parameter headers: Request headers of the upload's own.
    func attempt(headers: [String: String] = [:]) async throws -> RemoteObject {
        var order = order
        if let last = ledger.last { order.checkpoint = last }
        return try await destination.upload(
            order, reporter: ledger, context: RequestContext(permit: OpenPermit(), headers: headers))
    }

    /// The error of one attempt that must fail.
    func failedAttempt() async throws -> UploadError {
        do {
            _ = try await attempt()
            throw Unexpected(what: "the attempt succeeded")
        } catch let error as UploadError { return error }
    }

    struct Unexpected: Error { let what: String }

    /// Attempts until it works, like the daemon's, but without its waits.
    func arrive(within attempts: Int = 20) async throws -> (object: RemoteObject, errors: [UploadError]) {
        var errors: [UploadError] = []
        while true {
            do { return (try await attempt(), errors) } catch let error as UploadError {
                errors.append(error)
                if errors.count >= attempts || error.remedy == .failUpload { throw error }
            }
        }
    }
}
