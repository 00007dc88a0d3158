import Core
import Linux
import TestKit
import Testing

@Suite("The build for arm64")
struct CrossBuildTests {
    private static func text(_ path: FilePath) throws -> String {
        String(decoding: try Files.read(Repository.root.appending(path)), as: UTF8.self)
    }

    /// The lines between a line that begins with `start` and the next `)`.
    private static func entries(_ start: String, in script: String) -> [String] {
        script.split(separator: "\n").drop { !$0.hasPrefix(start) }.dropFirst().prefix { $0 != ")" }.map {
            String($0.filter { $0 != " " && $0 != "\"" }.prefix { $0 != ":" })
        }
    }

    @Test("it has every library of the build on this machine, for arm64")
    func libraries() throws {
        let needed = Self.entries("readonly BUILD=(", in: try Self.text("scripts/install-deps"))
        let line = try #require(
            try Self.text("scripts/cross-arm64").split(separator: "\n").first {
                $0.hasPrefix("readonly LIBRARY_PACKAGES=")
            })
        let given = Set(line.drop { $0 != "=" }.dropFirst().split(separator: ",").map(String.init))
        #expect(needed.count > 5)
        // The tool runs beside the compiler.
        #expect(Set(needed).subtracting(["pkg-config"]).subtracting(given).sorted() == [])
    }

    @Test("the page of limits names the script's commands, and no others")
    func commands() throws {
        let page = try Self.text("docs/limits.md").split(separator: "\n")
        let named = Set(
            page.filter { $0.hasPrefix("scripts/cross-arm64") }.map { $0.prefix { $0 != "#" } }.map(Self.trimmed))
        let usage = try Self.text("scripts/cross-arm64").split(separator: "\n").filter { $0.hasPrefix("#   scripts/") }
            .map { $0.dropFirst(4) }
        let offered = Set(usage.map { Self.trimmed($0.split(separator: "  ").first ?? $0) })
        #expect(offered.count == 5)
        #expect(named == offered)
    }

    private static func trimmed(_ text: Substring) -> String { text.split(separator: " ").joined(separator: " ") }
}
