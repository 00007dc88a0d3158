import Config
import Core
import Linux
import TestKit
import Testing

@testable import Destinations

/// The examples of the repository, read with the program's types of destination.
@Suite("Examples")
struct ExampleTests {
    private static let folder = Repository.root.appending("config")

    @Test("each example loads with the real types, without a warning")
    func examples() throws {
        let names = try Files.names(in: Self.folder).filter { $0.fileExtension == "yaml" }
        #expect(names.count >= 4)
        for name in names {
            let loaded = try Settings.load(
                Self.folder.appending(name), types: DestinationTable.builtIn.map(\.type), disk: .unchecked)
            #expect(loaded.warnings.isEmpty, "\(name)")
            #expect(!loaded.settings.destinations.isEmpty, "\(name)")
            // The printed form is a configuration with the same meaning, except for texts that may be secrets.
            let printed = TemporaryFolder()
            let file = try printed.write("a.yaml", Array(EffectiveConfiguration(loaded).yaml.utf8))
            let again = try Settings.load(file, types: DestinationTable.builtIn.map(\.type), disk: .unchecked)
            #expect(Self.plain(again.settings) == Self.plain(loaded.settings), "\(name)")
        }
    }

    private static func plain(_ settings: Settings) -> [[String: SettingValue]] {
        settings.destinations.map { $0.values.filter { if case .map = $0.value { false } else { true } } }
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
