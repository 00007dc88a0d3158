import Core
import Glibc
import Linux
import TestKit

/// The program in a folder of its own, with the configuration of the recorded state.
final class GoldenScene {
    static let fixtures = Repository.root.appending("Tests/Fixtures/golden/state")

    let folder = TemporaryFolder()
    var root: FilePath { folder.path }
    var state: FilePath { root.appending("state") }
    var config: FilePath { root.appending("sluice.yaml") }
    /// Replacements for the words in braces; a server that is not named refuses every connection.
    var places = [
        "NAS": "http://127.0.0.1:1", "S3": "http://127.0.0.1:1", "FORM": "http://127.0.0.1:1",
        "VIMEO": "http://127.0.0.1:1", "VIMEOBYTES": "http://127.0.0.1:2", "OSS": "http://127.0.0.1:1",
        "REFUSED": "http://127.0.0.1:1", "AWAY": "http://127.0.0.1:1", "SLOW": "50 MB/s", "MIDDLE": "50 MB/s",
        "FAST": "50 MB/s",
    ]
    /// Seconds that the wall clock of the programs is ahead.
    var clock: Int64 = 0
    private(set) var daemon: Child?
    private(set) var receiver: Child?
    private let binary: FilePath
    var program: String { binary.display }

    init() throws {
        binary = Self.program()
        for name in ["state", "staging", "received", "archive", "copies", "done", "drop", "logs"] {
            try Files.makeFolders(root.appending(FilePath(name)))
        }
        for (name, text) in [
            ("secret", "golden-secret"), ("vimeo-token", "vimeo-token-1"), ("oss-secret", OSSServer.secretKey),
        ] { try folder.write(FilePath(name), Array(text.utf8)) }
    }

    deinit {
        kill()
        killReceiver()
    }

    /// The program that was built with the tests, unless `SLUICE_BINARY` names another one.
    private static func program() -> FilePath {
        if let given = getenv("SLUICE_BINARY").map({ String(cString: $0) }), !given.isEmpty { return FilePath(given) }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = buffer.withUnsafeMutableBytes { buffer in
            buffer.baseAddress.map { readlink("/proc/self/exe", $0, buffer.count) } ?? -1
        }
        return FilePath(bytes: buffer.prefix(max(0, count))).parent.appending("sluice")
    }

    /// Returns `text` with each word in braces replaced.
    func filled(_ text: String) -> String {
        var words = places
        words["ROOT"] = root.display
        // Checkpoints name some servers without a scheme.
        for (name, url) in places where url.hasPrefix("http://") { words[name + "HOST"] = String(url.dropFirst(7)) }
        return words.reduce(text) { text, word in text.replacing("{\(word.key)}", with: word.value) }
    }

    func fixture(_ name: FilePath) throws -> String {
        String(decoding: try Files.read(Self.fixtures.appending(name), limit: 16 << 20), as: UTF8.self)
    }

    // MARK: Programs

    private var environment: [String: String] { clock == 0 ? [:] : ["SLUICE_TEST_CLOCK": "\(clock)"] }

    /// Starts the daemon, and waits until it answers.
    func start(crashingAt step: String? = nil) async throws {
        try Files.replace(config, with: Array(filled(try fixture("sluice.yaml")).utf8))
        let (output, errors) = (root.appending("logs/daemon.out"), root.appending("logs/daemon.err"))
        daemon = try Child(
            binary, ["run", "--config", config.display],
            environment: environment.merging(step.map { ["SLUICE_TEST_CRASH": $0] } ?? [:]) { $1 }, output: output,
            errors: errors)
        try await eventually("the daemon answers", every: .milliseconds(50)) {
            try self.daemon?.requireRunning()
            return try await self.ask("status", ["--json"])?.contains("\"starting\":false") == true
        }
    }

    func kill() { daemon?.end(with: SIGKILL) }

    func startReceiver() async throws {
        let (output, errors) = (root.appending("logs/receiver.out"), root.appending("logs/receiver.err"))
        let child = try Child(
            binary, ["receive", "--listen", "127.0.0.1:0", "--into", root.appending("received").display],
            environment: environment, output: output, errors: errors)
        receiver = child
        let url = try await child.line(after: "listening on ")
        if let base = url.firstMatch(of: /http:\/\/[0-9.]+:[0-9]+/) { places["NAS"] = String(base.0) }
    }

    func killReceiver() { receiver?.end(with: SIGKILL) }

    /// The output of a verb; `nil` if its status is not 0.
    func ask(_ verb: String, _ words: [String] = []) async throws -> String? {
        let name = hexadecimal(Random.bytes(6))
        let child = try start(name, [verb, "--config", config.display] + words)
        return try await child.end(within: .seconds(20)) == .status(0) ? try child.standardOutput() : nil
    }

    /// The output of a verb that must succeed.
    func must(_ verb: String, _ words: [String] = []) async throws -> String {
        let name = hexadecimal(Random.bytes(6))
        let child = try start(name, [verb, "--config", config.display] + words)
        let ending = try await child.end(within: .seconds(20))
        if ending != .status(0) { throw Failed(ending: ending, said: try child.standardError()) }
        return try child.standardOutput()
    }

    func start(_ name: String, _ words: [String]) throws -> Child {
        try Child(
            binary, words, environment: environment, output: root.appending(FilePath("logs/\(name).out")),
            errors: root.appending(FilePath("logs/\(name).err")))
    }

    /// Runs a shell command, and waits for it.
    func shell(_ script: String, _ words: [String] = []) async throws {
        let name = hexadecimal(Random.bytes(6))
        let child = try Child(
            "/bin/sh", ["-ec", script, "sh"] + words, output: root.appending(FilePath("logs/\(name).out")),
            errors: root.appending(FilePath("logs/\(name).err")))
        let ending = try await child.end(within: .seconds(60))
        if ending != .status(0) { throw Failed(ending: ending, said: try child.standardError()) }
    }

    struct Failed: Error {
        let ending: Child.Ending
        let said: String
    }

    func log() -> String { String((try? daemon?.standardError())?.suffix(4000) ?? "") }

    /// Content that compresses well and differs in each place: eight bytes of the file's name and the block's number,
    /// repeated.
    static func content(_ name: String, _ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 4096)
        let seed = name.utf8.reduce(UInt32(7)) { $0 &* 31 &+ UInt32($1) }
        while bytes.count < count {
            let block = UInt32(bytes.count / 4096)
            let word = [24, 16, 8, 0].flatMap { [UInt8(seed >> $0 & 255), UInt8(block >> $0 & 255)] }
            for _ in 0..<512 { bytes += word }
        }
        bytes.removeLast(bytes.count - count)
        return bytes
    }
}
