import Config
import Core
import Destinations
import Linux
import TestKit
import Testing

/// All pages of the manual.
enum ManualPages {
    static let all: [String] =
        ["README.md", "CONTRIBUTING.md", "SECURITY.md"]
        + ["docs", "docs/destinations", "docs/recipes", "docs/architecture", "docs/decisions"].flatMap { folder in
            let names = (try? Files.names(in: Repository.root.appending(FilePath(folder)))) ?? []
            return names.filter { $0.fileExtension == "md" }.map { "\(folder)/\($0.display)" }.sorted()
        }
}

/// ``DocumentTests`` demands more of those for people who begin.
@Suite("Blocks of the manual")
struct ManualBlockTests {
    @Test("the pages are found")
    func found() {
        #expect(Self.count(below: "docs/") > 12)
        #expect(Self.count(below: "docs/destinations/") == DestinationTable.builtIn.count)
    }

    private static func count(below folder: String) -> Int {
        ManualPages.all.count { $0.hasPrefix(folder) && !$0.dropFirst(folder.count).contains("/") }
    }

    @Test("each block of YAML has only keys and values that the program knows", arguments: ManualPages.all)
    func blocks(_ page: String) throws {
        for block in try Page(FilePath(page)).blocks("yaml") {
            let mistakes = try Self.forms(block, page).map(Self.mistakes)
            #expect(mistakes.contains([]), "\(page):\n\(block)\n\(mistakes)")
        }
    }

    @Test(
        "a block with a mistake is found",
        arguments: ["policy: {bandwith: 1 MB/s}", "settle: {container: chek}", "token: {fil: /a}", "folders: {"])
    func planted(_ block: String) throws {
        #expect(try !Self.forms(block, "docs/configuration.md").map(Self.mistakes).contains([]))
    }

    /// The configurations that a block may be a part of: it is whole, or has keys of a folder or of a destination.
    private static func forms(_ block: String, _ page: String) -> [String] {
        let lines = block.split(separator: "\n")
        let margin = lines.map { $0.prefix { $0 == " " }.count }.min() ?? 0
        func text(_ indent: Int) -> String {
            lines.map { String(repeating: " ", count: indent) + $0.dropFirst(margin) + "\n" }.joined()
        }
        let name = FilePath(page).name.display.dropLast(3)
        let type = page.hasPrefix("docs/destinations/") ? String(name) : "tus"
        return [
            block.contains("version: 1") ? text(0) : "version: 1\n" + text(0),
            "version: 1\nfolders:\n  - name: front\n    path: /srv/front\n    upload_to: [nas]\n" + text(4),
            "version: 1\ndestinations:\n  nas:\n    type: \(type)\n" + text(4),
        ]
    }

    private static let incomplete = [
        "is missing", "no destination is called", "no folder is called", "needs a key: set", "is `aws`: set `region`",
    ]

    /// The problems of a configuration, except that a part of it does not have all that a whole one needs.
    private static func mistakes(_ text: String) throws -> [String] {
        let folder = TemporaryFolder()
        do {
            _ = try Settings.load(
                try folder.write("a.yaml", Array(text.utf8)), types: DestinationTable.builtIn.map(\.type),
                disk: .unchecked)
            return []
        } catch let errors as ConfigErrors {
            return errors.problems.map(\.description).filter { words in
                !Self.incomplete.contains { words.contains($0) }
            }
        }
    }
}
