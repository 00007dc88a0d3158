import Core
import Linux
import TestKit
import Testing
import Transport

@testable import Control

/// The files of the web page in the program, and the script that puts them there.
@Suite("Files of the web page", .timeLimit(.minutes(Patience.minutes(1))))
struct PageAssetTests {
    private static let folder = Repository.root.appending("Sources/Control/Web")
    private static let endings = [".css", ".html", ".js", ".svg"]

    @Test("each file of the page is served as it is in the sources, with its type, and there is no other")
    func content() async throws {
        let names = try Files.names(in: Self.folder).map(\.display)
            .filter { name in Self.endings.contains { name.hasSuffix($0) } && !name.hasPrefix(".") }
        #expect(Set(EmbeddedPage.files.map(\.name)) == Set(names))
        #expect(Set(EmbeddedPage.files.map(\.digest)).count == names.count)
        let scene = try await BrowserScene()
        for name in names {
            let path = name == "index.html" ? "/" : "/assets/" + name
            let response = try await scene.ask("GET", path, [("Accept-Encoding", "gzip")])
            #expect(response.status == 200, "\(name)")
            // The transport has decompressed it.
            let file = try Files.read(Self.folder.appending(FilePath(name)), limit: 1 << 20)
            // Both are too long for a message.
            let isSame = response.body == file
            #expect(isSame, "\(name)")
            #expect(response.headers["Content-Type"]?.contains("octet-stream") == false, "\(name)")
        }
        await scene.end()
    }

    /// Runs the script with the programs of `path` before all others.
    private func embed(_ folder: TemporaryFolder, _ names: [String], path: String? = nil) async throws -> Child.Ending {
        let files = names.map { folder.path.appending(FilePath($0)).display }
        let child = try Child(
            "/bin/sh",
            [Repository.root.appending("scripts/embed-page").display, folder.path.appending("out.swift").display]
                + files,
            environment: ["PATH": (path.map { $0 + ":" } ?? "") + "/usr/bin:/bin"],
            output: folder.path.appending("said"), errors: folder.path.appending("complaint"))
        return try await child.end(within: .seconds(30))
    }

    @Test("a file that cannot be compressed, is empty, or is not one of the page fails the build and makes no output")
    func failures() async throws {
        let folder = TemporaryFolder()
        for name in ["a.js", "a.js~", ".a.js.swp"] { _ = try folder.write(FilePath(name), Array("let a = 1;".utf8)) }
        _ = try folder.write("empty.css", [])
        let output = folder.path.appending("out.swift")
        for program in ["gzip", "base64", "sha256sum"] {
            let broken = try folder.writeProgram(FilePath("without-\(program)/\(program)"), "exit 1")
            #expect(try await embed(folder, ["a.js"], path: broken.parent.display) != .status(0), "\(program)")
        }
        for name in ["a.js~", ".a.js.swp", "empty.css", "missing.js"] {
            #expect(try await embed(folder, ["a.js", name]) != .status(0), "\(name)")
        }
        #expect(try FileStatus.ifPresent(at: output) == nil)
        #expect(try Files.names(in: folder.path).allSatisfy { !$0.display.contains(".part") })
        #expect(try await embed(folder, ["a.js"]) == .status(0))
        let made = String(decoding: try Files.read(output), as: UTF8.self)
        #expect(made.contains(/File\(name: "a\.js", digest: "[0-9a-f]{32}", gzip: "H4sI/))
    }
}
