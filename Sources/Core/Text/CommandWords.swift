/// The words of a command with placeholders: a program and its arguments, run without a shell.
///
/// `{{` and `}}` stand for the braces themselves.
package struct CommandWords: Hashable, Sendable {
    /// Names in a word: the input file, the output file, and the identity of the source.
    package enum Placeholder: String, Hashable, Sendable, CaseIterable {
        case input, output, folder, relative, name, stem, ext
    }

    /// As they were written.
    package let source: [String]
    private let words: [[Piece]]

    private enum Piece: Hashable, Sendable {
        case text(String)
        case placeholder(Placeholder)
    }

    /// The problem, with the word that has it.
    package struct SyntaxError: Error, Hashable, Sendable {
        package let word: Int
        package let problem: String
    }

    package init(_ source: [String]) throws(SyntaxError) {
        self.source = source
        var words: [[Piece]] = []
        for (index, word) in source.enumerated() { words.append(try Self.pieces(of: word, index)) }
        self.words = words
        guard let program = words.first else { throw SyntaxError(word: 0, problem: "names no program") }
        guard !program.contains(where: { if case .placeholder = $0 { true } else { false } }) else {
            throw SyntaxError(word: 0, problem: "the program itself cannot depend on the file")
        }
        let named = words.joined().compactMap { if case .placeholder(let name) = $0 { name } else { nil } }
        for needed in [Placeholder.input, .output] where !named.contains(needed) {
            throw SyntaxError(
                word: 0,
                problem:
                    "no argument names `{\(needed.rawValue)}`: the command needs the paths of its input and its output")
        }
    }

    private static func pieces(of word: String, _ index: Int) throws(SyntaxError) -> [Piece] {
        var pieces: [Piece] = []
        var text = ""
        var rest = word[...]
        while let letter = rest.first {
            if rest.hasPrefix("{{") || rest.hasPrefix("}}") {
                text.append(letter)
                rest = rest.dropFirst(2)
            } else if letter == "{" {
                let inner = rest.dropFirst().prefix { $0 != "}" }
                guard let name = Placeholder(rawValue: String(inner)), rest.dropFirst(inner.count + 1).first == "}"
                else {
                    let known = Placeholder.allCases.map(\.rawValue)
                    let near = closest(to: String(inner), among: known).map { "did you mean `{\($0)}`?" }
                    throw SyntaxError(
                        word: index,
                        problem: "no placeholder is called `{\(inner)}`; "
                            + (near ?? "there are: \(known.joined(separator: ", ")); write `{{` for the brace itself"))
                }
                if !text.isEmpty { pieces.append(.text(text)) }
                text = ""
                pieces.append(.placeholder(name))
                rest = rest.dropFirst(inner.count + 2)
            } else if letter == "}" {
                throw SyntaxError(word: index, problem: "a `}` without its `{`; write `}}` for the brace itself")
            } else {
                text.append(letter)
                rest = rest.dropFirst()
            }
        }
        if !text.isEmpty { pieces.append(.text(text)) }
        return pieces
    }

    /// Fills in the values: bytes, since file names are bytes.
    package func filled(_ value: (Placeholder) -> [UInt8]) -> [[UInt8]] {
        words.map { word in
            word.flatMap { piece in
                switch piece {
                case .text(let text): Array(text.utf8)
                case .placeholder(let name): value(name)
                }
            }
        }
    }
}
