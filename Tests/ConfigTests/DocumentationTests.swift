import Core
import Linux
import TestKit
import Testing

@testable import Config

/// The top of the repository, from where this file was compiled.
private let top = FilePath(#filePath).parent.parent.parent

@Suite("What the repository says about the configuration")
struct DocumentationTests {
    @Test("the manual lists the keys that the loader knows, and no others")
    func manual() throws {
        let bytes = try Files.read(top.appending("docs/configuration.md"))
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        let tables = lines.drop { $0 != "## The top of the file" }
        let listed = tables.filter { $0.hasPrefix("| `") }.map { String($0.dropFirst(3).prefix { $0 != "`" }) }
        let known = Section.all.flatMap { section in
            section.keys.map { section.path.isEmpty ? $0 : "\(section.path).\($0)" }
        }
        #expect(Set(listed).subtracting(known).sorted() == [])
        #expect(Set(known).subtracting(listed).sorted() == [])
        #expect(listed.count == Set(listed).count)
    }

    @Test(
        "each example loads without a warning",
        arguments: [
            "sluice.yaml", "two-destinations.yaml", "move-after-upload.yaml", "cameras.yaml", "nas-folder.yaml",
        ])
    func examples(_ name: String) throws {
        let loaded = try Settings.load(
            top.appending("config").appending(FilePath(name)), types: types, disk: .unchecked)
        #expect(loaded.warnings.isEmpty)
        #expect(!loaded.settings.folders.isEmpty)
    }

    @Test("no example is left out of the test above")
    func allExamples() throws {
        #expect(
            try Files.names(in: top.appending("config")).filter { $0.fileExtension == "yaml" }.sorted() == [
                "cameras.yaml", "move-after-upload.yaml", "nas-folder.yaml", "sluice.yaml", "two-destinations.yaml",
            ])
    }
}
