import Core
import TestKit
import Testing

@testable import Shell

/// The page's own configuration and commands. The answers on it were decided by hand before the program printed them.
@Suite("Examples of rules")
struct PolicyExamplesTests {
    @Test("each question of the page has the printed answer")
    func answers() async throws {
        let page = try Page("docs/policy-examples.md")
        let folder = TemporaryFolder()
        let yaml = try #require(page.blocks("yaml").first)
        let file = try folder.write("sluice.yaml", Array(yaml.utf8))
        let blocks = page.blocks("")
        #expect(blocks.count == 6)
        for block in blocks {
            let lines = block.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
            let words = shellWords(lines[0])
            #expect(words.starts(with: ["sluice", "policy", "test"]), "\(block)")
            let screen = Screen()
            let status = await Shell.run(
                words.dropFirst().map { FilePath($0) } + ["--config", file], console: screen.console(width: 100),
                signals: nil)
            let wanted = lines[1].drop { $0 == "\n" }
            #expect(screen.output == wanted, "\(words)\n\(screen.errors)")
            #expect(status == (wanted.contains("it is held\n") || wanted.contains("it is held until ") ? .notNow : .ok))
        }
    }
}
