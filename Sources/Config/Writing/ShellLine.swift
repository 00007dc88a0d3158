/// The commands of a line for a shell, without line breaks, as far as their words can be told apart without running it.
struct ShellLine {
    struct Command {
        /// With their quotes; between quotes a word has blanks.
        var words: [String] = []
        /// What follows each word.
        var separators: [String] = []
    }

    /// Part of a word: what is between two quotes, or outside of them.
    struct Part {
        /// With its quotes.
        var text = ""
        /// `nil` outside of quotes.
        var quote: Character?

        /// What a program gets that the shell starts: another shell may read it again.
        var line: String {
            var (line, isEscaped) = ("", false)
            // An unclosed quote has no end.
            for letter in text.dropFirst().dropLast(text.count > 1 && text.last == quote ? 1 : 0) {
                // POSIX, Shell Command Language, section 2.2.3.
                if quote == "\"", !isEscaped, letter == "\\" {
                    isEscaped = true
                    continue
                }
                if isEscaped, !"\"\\$`".contains(letter) { line.append("\\") }
                isEscaped = false
                line.append(letter)
            }
            return line
        }

        /// The text with another line in it.
        func text(with line: String) -> String {
            guard let quote, line != self.line else { return text }
            let isEscaped = quote == "\"" && text.contains("\\")
            let inner = isEscaped ? String(line.flatMap { "\"\\".contains($0) ? "\\\($0)" : "\($0)" }) : line
            return "\(quote)\(inner)\(quote)"
        }
    }

    let commands: [Command]

    init(_ line: String) {
        var commands: [Command] = []
        var command = Command()
        var (word, separator) = ("", "")
        var nesting = Nesting()
        func finish() {
            command.words.append(word)
            command.separators.append(separator)
            // After these another program begins.
            if separator.contains(where: ends) {
                commands.append(command)
                command = Command()
            }
            (word, separator) = ("", "")
        }
        func ends(_ letter: Character) -> Bool { letter.isNewline || ";|&()`".contains(letter) }
        for letter in line {
            let isInWord = !nesting.isOutside || !(letter.isWhitespace || ends(letter) || "<>".contains(letter))
            if isInWord, !separator.isEmpty { finish() }
            if isInWord { word.append(letter) } else { separator.append(letter) }
            nesting.pass(letter)
        }
        finish()
        if !command.words.isEmpty { commands.append(command) }
        self.commands = commands
    }

    /// A word without the quotes that are around all of it.
    static func withoutQuotesAround(_ word: String) -> Substring {
        let parts = parts(of: word)
        guard parts.count == 3, parts[0].text.isEmpty, parts[2].text.isEmpty, word.count > 1 else { return word[...] }
        return word.dropFirst().dropLast()
    }

    /// What is in quotes, and what is between.
    static func parts(of word: String) -> [Part] {
        var parts = [Part()]
        var nesting = Nesting()
        for letter in word {
            let quote = nesting.quote
            nesting.pass(letter)
            if quote == nil, nesting.quote != nil { parts.append(Part(quote: nesting.quote)) }
            parts[parts.count - 1].text.append(letter)
            if quote != nil, nesting.quote == nil { parts.append(Part()) }
        }
        return parts
    }

    /// The quotes and the commands in quotes that are open at a place (POSIX, Shell Command Language, section 2.2).
    private struct Nesting {
        /// What ends each of them.
        private var ends: [Character] = []
        private var isEscaped = false
        private var isAfterDollar = false

        var isOutside: Bool { ends.isEmpty && !isEscaped }
        /// The outermost quote.
        var quote: Character? { ends.first }

        mutating func pass(_ letter: Character) {
            let isCommand = isAfterDollar && letter == "("
            isAfterDollar = letter == "$" && !isEscaped
            if isEscaped {
                isEscaped = false
            } else if ends.last == letter {
                ends.removeLast()
            } else if ends.last == "'" {
                return
            } else if letter == "\\" {
                isEscaped = true
            } else if letter == "\"" || letter == "'" && ends.last != "\"" {
                ends.append(letter)
            } else if !ends.isEmpty, letter == "`" {
                ends.append("`")
            } else if !ends.isEmpty, isCommand || letter == "(" && ends.last == ")" {
                ends.append(")")
            }
        }
    }
}
