import Config
import Core
import Destinations
import Linux
import TestKit
import Testing

@testable import Shell

/// The pages for people who begin: what they say is what the program does.
@Suite("Documents")
struct DocumentTests {
    private static let recipes = ["lte-camera", "memory-card", "nas-to-s3", "remux", "from-rclone"]
    /// The pages whose YAML is whole configurations.
    static let pages =
        ["README.md", "docs/getting-started.md", "docs/troubleshooting.md", "docs/recipes/README.md"]
        + recipes.map { "docs/recipes/\($0).md" }

    private static func text(_ page: String) throws -> String { try Page(FilePath(page)).text }

    @Test("the table of destinations in the README is the program's")
    func destinations() throws {
        let rows = try Self.text("README.md").split(separator: "\n").filter { $0.hasPrefix("| [`") }
        let types = DestinationTable.builtIn.map(\.type)
        #expect(rows.count == types.count)
        for (row, type) in zip(rows, types) {
            let plain = row.replacing("[tus 1.0](https://tus.io)", with: "tus 1.0")
            #expect(plain == "| [`\(type.name)`](docs/destinations/\(type.name).md) | \(type.summary) |")
        }
    }

    @Test("the README shows the picture, leads to the package first, and to the build second")
    func order() throws {
        let text = try Self.text("README.md")
        let marks = [
            "docs/terminal.svg", "sudo apt install ./sluice_*.deb", "sluice demo  ", "sluice init", "make build",
        ]
        let places = marks.map { text.firstRange(of: $0)?.lowerBound }
        #expect(!places.contains(nil))
        #expect(places.compactMap { $0 } == places.compactMap { $0 }.sorted())
        // One screen: the picture and the first command.
        let start = text.split(separator: "\n", omittingEmptySubsequences: false).prefix(36).joined(separator: "\n")
        #expect(start.contains(marks[0]) && start.contains(marks[1]))
    }

    @Test("the picture of the terminal is drawn from its text")
    func picture() async throws {
        let folder = TemporaryFolder()
        let root = Repository.root
        let child = try Child(
            "/usr/bin/env",
            [
                "python3", root.appending("scripts/terminal-picture").display,
                root.appending("docs/terminal.txt").display,
            ], output: folder.path.appending("out"), errors: folder.path.appending("err"))
        #expect(try await child.end(within: .seconds(20)) == .status(0))
        let drawn = try child.standardOutput()
        #expect(
            try Self.text("docs/terminal.svg") == drawn, "scripts/terminal-picture docs/terminal.txt >docs/terminal.svg"
        )
    }

    @Test("each heading of the page on troubleshooting is a message of the program")
    func troubleshooting() throws {
        let headings = try Self.text("docs/troubleshooting.md").split(separator: "\n").filter { $0.hasPrefix("### `") }
        #expect(headings.count > 12)
        var texts: [String] = []
        for file in try Repository.swiftFiles(below: "Sources") {
            let code = String(decoding: try Files.read(file, limit: 1 << 22), as: UTF8.self)
            // A text in several lines is written as a sum.
            texts.append(
                code.split(whereSeparator: \.isWhitespace).joined(separator: " ").replacing("\" + \"", with: ""))
        }
        for heading in headings {
            let message = heading.dropFirst(5).dropLast()
            let pieces = message.split(separator: "…").map { $0.drop { $0 == " " } }.map(String.init)
            #expect(texts.contains { Self.has(pieces, $0) }, "no message of the program reads `\(message)`")
        }
    }

    /// Whether a text has the pieces one after the other, with little in between.
    private static func has(_ pieces: [String], _ text: String) -> Bool {
        guard let first = pieces.first else { return true }
        var rest = text[...]
        while let found = rest.firstRange(of: first) {
            var place = found.upperBound
            let follows = pieces.dropFirst().allSatisfy { piece in
                let near = text[place...].prefix(120)
                guard let next = near.firstRange(of: piece) else { return false }
                place = next.upperBound
                return true
            }
            if follows { return true }
            rest = rest[found.upperBound...]
        }
        return false
    }

    @Test("each command of sluice in the manual is one that the parser accepts", arguments: ManualPages.all)
    func commands(_ page: String) throws {
        for block in try Page(FilePath(page)).blocks("") {
            for line in block.split(separator: "\n") {
                // A unit of systemd names the whole path.
                let line = line.hasPrefix("ExecStart=/usr/bin/") ? line.dropFirst("ExecStart=/usr/bin/".count) : line
                let words = shellWords(line.prefix { $0 != "#" && $0 != "|" && $0 != ">" })
                guard let start = words.lastIndex(of: "sluice"), words[..<start].allSatisfy(Self.isPrefix) else {
                    continue
                }
                let name = try #require(words.dropFirst(start + 1).first, "\(line)")
                let verb = try #require(Shell.verbs.first { $0.name == name }, "\(page): \(line)")
                _ = try Arguments(words.dropFirst(start + 2).map { FilePath($0) }, of: verb)
            }
        }
    }

    /// Words before `sluice` with which a line still runs it.
    private static func isPrefix(_ word: String) -> Bool { ["sudo", "-u", "sluice"].contains(word) }

    @Test("each block of YAML in the pages is a configuration without a warning", arguments: pages)
    func blocks(_ page: String) throws {
        for block in try Page(FilePath(page)).blocks("yaml") {
            let text = block.contains("version: 1") ? block : "version: 1\n" + block
            let folder = TemporaryFolder()
            let loaded = try Settings.load(
                try folder.write("a.yaml", Array(text.utf8)), types: DestinationTable.builtIn.map(\.type),
                disk: .unchecked)
            #expect(loaded.warnings.isEmpty, "\(page)")
        }
    }

    @Test("each recipe has a configuration that loads without a warning, a page, and a line in the list")
    func recipePages() throws {
        let folder = Repository.root.appending("config/recipes")
        let names = Set(try Files.names(in: folder).map(\.display))
        #expect(names == Set(Self.recipes.map { "\($0).yaml" }))
        let list = try Self.text("docs/recipes/README.md")
        for name in Self.recipes {
            let loaded = try Settings.load(
                folder.appending(FilePath("\(name).yaml")), types: DestinationTable.builtIn.map(\.type),
                disk: .unchecked)
            #expect(loaded.warnings.isEmpty, "\(name): \(loaded.warnings)")
            #expect(list.contains("(\(name).md)") && list.contains("(../../config/recipes/\(name).yaml)"))
            #expect(try Self.text("docs/recipes/\(name).md").contains("](../../config/recipes/\(name).yaml)"))
        }
    }

    @Test("each link in the manual leads to a file, and to a heading in it", arguments: ManualPages.all)
    func links(_ page: String) throws {
        let base = FilePath(page).parent
        for piece in try Self.text(page).split(separator: "](").dropFirst() {
            let address = piece.prefix { $0 != ")" }
            guard !address.contains("://") else { continue }
            let parts = address.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
            let target = parts[0].isEmpty ? page : base.appending(FilePath(String(parts[0]))).normalised.display
            let status = try FileStatus.ifPresent(at: Repository.root.appending(FilePath(target)))
            #expect(status != nil, "\(page): \(address)")
            guard parts.count == 2, status?.isRegular == true else { continue }
            let headings = try Self.text(target).split(separator: "\n").filter { $0.hasPrefix("#") }.map(Self.anchor)
            #expect(headings.contains(String(parts[1])), "\(page): \(address)")
        }
    }

    /// The anchor of a heading, as GitHub makes it.
    private static func anchor(_ heading: Substring) -> String {
        let title = heading.drop { $0 == "#" }.dropFirst().lowercased()
        return String(title.compactMap { $0 == " " ? "-" : $0.isLetter || $0.isNumber || "-_".contains($0) ? $0 : nil })
    }
}

/// The words of a line, as a shell splits them: a text in quotes is one word.
func shellWords(_ line: Substring) -> [String] {
    var words: [String] = []
    var word: String?
    var quote: Character?
    for letter in line {
        if letter == quote {
            quote = nil
        } else if quote == nil, letter == "'" || letter == "\"" {
            (quote, word) = (letter, word ?? "")
        } else if quote == nil, letter == " " {
            if let word { words.append(word) }
            word = nil
        } else {
            word = (word ?? "") + String(letter)
        }
    }
    return words + [word].compactMap { $0 }
}
