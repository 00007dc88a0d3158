internal import Core
internal import FoundationEssentials
internal import Glibc
internal import Linux

/// `Tests/Fixtures/relay.py`: a proxy before another server that spoils the end of uploads, by a script that follows
/// from a seed.
package final class ScriptedRelay: Sendable {
    package enum Kind: String, Sendable { case tus, s3, form }

    /// One request, and its answer.
    package struct Line: Decodable, Sendable {
        /// Milliseconds since 1970, right before the answer was sent.
        package var at: Int64
        package var method: String
        package var path: String
        /// The upload's path, or its identifier in a form.
        package var upload: String
        /// The file's name, where it is known.
        package var name: String?
        /// Whether it carried the last byte, or joined the parts.
        package var isEnd: Bool
        /// The fault applied to it; `nil` when it was passed on with its answer.
        package var fault: String?
        /// The status that was sent; `nil` for none.
        package var told: Int?
        /// The server's status, where the request reached it.
        package var did: Int?
    }

    private let child: Child
    private let log: FilePath
    private let folder = TemporaryFolder()
    package let port: Int
    package var url: String { "http://127.0.0.1:\(port)" }

    private static let script = Repository.root.appending("Tests/Fixtures/relay.py")

    /// - Parameters:
    ///   - upstream: The server's port on loopback.
    ///   - faults: Each upload gets one of these faults; none for a relay that only records.
    package init(_ kind: Kind, before upstream: Int, seed: UInt64, faults: [String]) async throws {
        log = folder.path.appending("log")
        child = try Child(
            "/usr/bin/env",
            [
                "python3", "-B", Self.script.display, kind.rawValue, "\(upstream)", log.display, "--seed=\(seed)",
                "--faults=\(faults.joined(separator: ","))",
            ], output: folder.path.appending("out"), errors: folder.path.appending("err"))
        let line = try await child.line(after: "ready ", within: .seconds(30))
        guard let port = Int(line) else { throw Wire.Broken(description: "the relay said \(line)") }
        self.port = port
    }

    /// All requests so far, in the order of the answers.
    package func lines() throws -> [Line] {
        guard try FileStatus.ifPresent(at: log) != nil else { return [] }
        // The last piece may be half a line.
        return try Files.read(log, limit: 256 << 20).split(
            separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false
        )
        .dropLast().map { try JSONDecoder().decode(Line.self, from: Data($0)) }
    }

    /// Runs its own tests.
    ///
    /// - Returns: How it ended, and its output.
    package static func runOwnTests() async throws -> (ending: Child.Ending, words: String) {
        try await blocking {
            let folder = TemporaryFolder()
            let child = try Child(
                "/usr/bin/env", ["python3", "-B", script.parent.appending("test_relay.py").display],
                output: folder.path.appending("out"), errors: folder.path.appending("err"))
            let ending = child.wait()
            return (ending, try child.standardError())
        }
    }

    package func stop() { child.end(with: SIGKILL) }
}
