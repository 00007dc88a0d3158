import Core
import Glibc
import Linux
import TestKit
import TestTraits
import Testing

@testable import Destinations

/// Third-party servers for the forms of Flow.js, Resumable.js and Plupload.
@Suite("Chunked forms with third-party servers", .needsPackages, .timeLimit(.minutes(Patience.minutes(5))))
struct FormServersTests {
    struct Kind: CustomTestStringConvertible, Sendable {
        /// Its name in the script.
        let server: String
        let preset: String
        var testDescription: String { server }
    }

    static let kinds = [
        Kind(server: "flowjs", preset: "flow"), Kind(server: "resumable", preset: "resumable"),
        Kind(server: "plupload", preset: "plupload"),
    ]

    @Test("files of all sizes arrive complete, and a stopped one resumes", arguments: kinds)
    func arrives(_ kind: Kind) async throws {
        let tools = try await blocking { try Tools.python("forms") }
        let folder = TemporaryFolder()
        let script = Repository.root.appending("Tests/Fixtures/form_servers.py")
        let child = try Child(
            tools.appending("python"), [script.display, kind.server, folder.path.display],
            output: folder.path.appending("out"), errors: folder.path.appending("err"))
        defer { child.end(with: SIGKILL) }
        let port = try await child.line(after: "ready ")
        let scene = try FormScene(kind.preset, ["url": .text("http://127.0.0.1:\(port)/upload")])
        let block = Int(FormScene.block)
        var expected: [[UInt8]] = []
        for size in [1, block - 1, block, block + 1, 2 * block, 2 * block + 1, 5 * block + 7] {
            let staged = try StagedUpload(size, name: FilePath("\(size).mp4"), seed: UInt64(size))
            let recorder = RecordingReporter()
            if size > 4 * block {
                try await staged.sendStopped(to: scene, recorder, accepting: 2 * block)
            }
            _ = try await staged.send(to: scene, recorder)
            expected.append(staged.content)
        }
        let done = folder.path.appending("done")
        let held = try Files.names(in: done).filter { $0.fileExtension == "mp4" }
            .map { try Files.read(done.appending($0), limit: 1 << 20) }
        #expect(held.count == expected.count && expected.allSatisfy(held.contains))
        try await scene.close()
    }
}
