import Core
import Linux
import TestKit
import Testing

@testable import Destinations

@Suite("Manual pages of destinations")
struct ManualTests {
    @Test("each kind has a page with exactly its keys", arguments: DestinationTable.builtIn.map(\.type))
    func keys(_ type: DestinationSchema) throws {
        let page = Repository.root.appending(FilePath("docs/destinations/\(type.name).md"))
        let lines = String(decoding: try Files.read(page), as: UTF8.self).split(separator: "\n")
        let section = lines.drop { $0 != "## Keys" }.dropFirst().prefix { !$0.hasPrefix("## ") }
        let listed = section.filter { $0.hasPrefix("| `") }.map { String($0.dropFirst(3).prefix { $0 != "`" }) }
        #expect(listed == type.keys.map(\.name))
    }

    @Test("a kind knows what its destinations can list")
    func listings() {
        let kinds = DestinationTable.builtIn
        #expect(Set(kinds.filter(\.listsObjects).map(\.type.name)) == ["oss", "s3", "vimeo"])
        #expect(Set(kinds.filter(\.listsUnfinished).map(\.type.name)) == ["oss", "s3"])
    }
}
