import Config
import Core
import Linux
import Testing

@testable import Destinations

/// The examples of the repository, read with the types of destination that the program has.
@Suite("Examples")
struct ExampleTests {
    private static let folder = FilePath(#filePath).parent.parent.parent.appending("config")

    @Test("each example loads with the real types, without a warning")
    func examples() throws {
        let names = try Files.names(in: Self.folder).filter { $0.fileExtension == "yaml" }
        #expect(names.count >= 4)
        for name in names {
            let loaded = try Settings.load(
                Self.folder.appending(name), types: DestinationTable.builtIn.map(\.type), disk: .unchecked)
            #expect(loaded.warnings.isEmpty, "\(name)")
            #expect(!loaded.settings.destinations.isEmpty, "\(name)")
        }
    }

    @Test("the manual names every key of every type")
    func manual() throws {
        let bytes = try Files.read(Self.folder.parent.appending("docs/configuration.md"))
        let manual = String(decoding: bytes, as: UTF8.self)
        for type in DestinationTable.builtIn.map(\.type) {
            for key in type.keys { #expect(manual.contains("`\(key.name)`"), "\(type.name): \(key.name)") }
        }
    }
}
