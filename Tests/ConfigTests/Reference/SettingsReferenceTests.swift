import Core
import Linux
import TestKit
import Testing

@testable import Config

@Suite("The reference of all keys")
struct SettingsReferenceTests {
    /// Without links, which only a page can follow.
    private func plain(_ text: Substring) -> String {
        String(text)
            .replacing(#/;? ?see \[[^\]]*\]\([^)]*\)(, \[[^\]]*\]\([^)]*\))*/#, with: "")
            .replacing(#/ \(\[[^\]]*\]\([^)]*\)\)/#, with: "")
            .replacing(#/ as \[[^\]]*\]\([^)]*\)/#, with: "")
            .replacing(#/\[([^\]]*)\]\([^)]*\)/#) { $0.output.1 }
            .split(separator: " ").joined(separator: " ")
    }

    @Test("each key of each section has a form and a meaning, and no other key has words")
    func complete() {
        for section in Section.all {
            #expect(section.keys.filter { section.kinds[$0] == nil && $0 != "type" } == [], "\(section.path)")
        }
        let known = Section.all.flatMap { section in
            section.keys.map { section.path.isEmpty ? $0 : "\(section.path).\($0)" }
        }
        #expect(SettingsReference.texts.keys.sorted() == known.sorted())
        for mapping in SettingsReference.mappings {
            #expect(mapping.keys.filter { $0.summary.isEmpty } == [])
        }
    }

    @Test("each section that a key refers to exists")
    func references() {
        func sections(_ kind: ValueKind) -> [String] {
            switch kind {
            case .section(let path): [path]
            case .list(let inner), .oneOrList(let inner), .map(let inner): sections(inner)
            case .either(let kinds): kinds.flatMap(sections)
            default: []
            }
        }
        let used = Set(Section.all.flatMap { $0.kinds.values.flatMap(sections) })
        let known = Set(Section.all.map(\.path))
        #expect(used.subtracting(known) == [])
        // These two have the keys of `policy.retry`, and the top is referred to by nothing.
        #expect(known.subtracting(used) == ["", "folders[].retry", "destinations.*.retry"])
    }

    @Test("the manual has the same defaults and meanings")
    func manual() throws {
        let page = String(
            decoding: try Files.read(Repository.root.appending("docs/configuration.md")), as: UTF8.self)
        let rows = page.split(separator: "\n").drop { $0 != "## The top of the file" }
            .filter { $0.hasPrefix("| `") }
            .map { $0.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false) }
        #expect(rows.count == SettingsReference.texts.count)
        for row in rows where row.count == 4 {
            let path = plain(row[0]).filter { $0 != "`" }
            let texts = try #require(SettingsReference.texts[path])
            #expect(plain(row[2]) == texts[0], "\(path)")
            let meaning = plain(row[3])
            #expect(meaning.isEmpty || meaning.hasPrefix(texts[1]) || path.hasSuffix(".networks"), "\(path)")
        }
    }

    @Test("a default in the form of the file is told from one in words")
    func defaults() {
        let folder = SettingsReference.mappings.first { $0.path == "folders[]" }
        func key(_ name: String) -> SettingsReference.Key? { folder?.keys.first { $0.name == name } }
        #expect(key("recursive")?.defaultValue == "true")
        #expect(key("include")?.defaultText == "every file")
        #expect(key("include")?.defaultValue == nil)
        #expect(key("release_unsure")?.defaultValue == nil)
        #expect(key("path")?.isRequired == true)
        #expect(key("path")?.defaultText == nil)
    }
}
