package import Core
internal import Linux

/// A page of the documentation, whose commands and configurations tests run.
package struct Page: Sendable {
    package let text: String

    /// - Parameter path: Relative to the working copy: `docs/recipes/remux.md`.
    package init(_ path: FilePath) throws {
        text = String(decoding: try Files.read(Repository.root.appending(path)), as: UTF8.self)
    }

    /// The blocks of code in a language; empty for none.
    package func blocks(_ language: String) -> [String] {
        var (blocks, open) = ([String](), String?.none)
        var isWanted = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let bare = line.drop { $0 == " " }
            guard bare.hasPrefix("```") else {
                if isWanted { open? += line + "\n" }
                continue
            }
            if let block = open {
                if isWanted { blocks.append(block) }
                open = nil
                isWanted = false
            } else {
                open = ""
                isWanted = bare.dropFirst(3) == language
            }
        }
        return blocks
    }
}
