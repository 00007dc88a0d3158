/// The commands of a line for a shell, as far as their words can be told apart without running it.
struct ShellLine {
    struct Command {
        /// With their quotes; between quotes a word has blanks.
        var words: [String] = []
        /// What follows each word.
        var separators: [String] = []
    }

    let commands: [Command]

    init(_ line: String) {
        var commands: [Command] = []
        var command = Command()
        var (word, separator) = ("", "")
        var quote: Character?
        var isEscaped = false
        func finish() {
            command.words.append(word)
            command.separators.append(separator)
            // After these another program begins.
            if separator.contains(where: { ";|&()`\n\r\r\n".contains($0) }) {
                commands.append(command)
                command = Command()
            }
            (word, separator) = ("", "")
        }
        for letter in line {
            let isInWord = isEscaped || quote != nil || !(letter.isWhitespace || ";|&()<>`".contains(letter))
            if isInWord, !separator.isEmpty { finish() }
            if isInWord { word.append(letter) } else { separator.append(letter) }
            if isEscaped {
                isEscaped = false
            } else if letter == "\\", quote != "'" {
                isEscaped = true
            } else if letter == "'" || letter == "\"" {
                if quote == nil { quote = letter } else if quote == letter { quote = nil }
            }
        }
        finish()
        if !command.words.isEmpty { commands.append(command) }
        self.commands = commands
    }
}
