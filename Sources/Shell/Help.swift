// Help is made from the table of verbs, so that it always matches the parser.

extension Verb {
    /// The output of `sluice VERB --help`.
    func help(width: Int) -> String {
        var parts = [usageLines, wrapped(sentence, width: width)]
        parts += details.map { wrapped($0, width: width) }
        if case .uploads = operandHint {
            parts.append(wrapped("`sluice help` explains ID, KEY and PATH.", width: width))
        }
        parts.append("Options:\n" + twoColumns(options.map { ($0.written, $0.explanation) }, width))
        let shown = examples.map { "  \($0.command)\n" + wrapped($0.does, width: width, indent: 6) }
        parts.append("Examples:\n" + shown.joined(separator: "\n"))
        return parts.joined(separator: "\n\n") + "\n"
    }

    /// Its summary as a sentence.
    package var sentence: String { summary.prefix(1).uppercased() + summary.dropFirst() + "." }

    /// `sluice add [OPTION...] PATH...`, and each other form.
    package var usageForms: [String] {
        let required = options.filter(\.isRequired).map(\.written)
        let forms =
            usages.isEmpty
            ? [(required + ["[OPTION...]"] + (operands.isEmpty ? [] : [operands])).joined(separator: " ")] : usages
        return forms.map { "sluice \(name) \($0)" }
    }

    /// `usage: sluice add [OPTION...] PATH...`, and a line for each other form.
    private var usageLines: String {
        usageForms.enumerated().map { ($0 == 0 ? "usage: " : "       ") + $1 }.joined(separator: "\n")
    }
}

extension Option {
    /// `--limit N`.
    package var written: String { "--" + name + (value.map { " \($0)" } ?? "") }

    /// Its summary, and the rules for its use.
    package var explanation: String {
        summary + (isRequired ? " (required)" : "") + (repeats ? "; may be repeated" : "")
    }
}

extension Shell {
    /// The program in two sentences.
    package static let purpose =
        "Sluice watches folders and uploads each finished file. It never loses a file, never uploads one twice without "
        + "a warning, and never sends what your policy forbids."

    /// Words that the help of many verbs uses.
    package static let sharedWords: [(word: String, meaning: String)] = [
        ("hold", "the reason why an upload may not run now, often with the time when it ends; `sluice why` shows it"),
        ("ID", "names an upload by its id, or by the beginning of its id, from 6 characters on"),
        ("KEY", "names an upload by its key, from `add --key` or from `key` of its folder"),
        ("PATH", "names an upload by the path of its file, or by the end of that path if only one file has it"),
    ]
}

/// The output of `sluice help`.
func generalHelp(_ verbs: [Verb], width: Int) -> String {
    let statuses = ExitCode.allCases.map { ("\($0.rawValue)", $0.meaning) }
    return [
        "usage: sluice VERB [OPTION...] [ARGUMENT...]",
        wrapped(Shell.purpose, width: width),
        "Verbs:\n" + twoColumns(verbs.map { ($0.name, $0.summary) }, width),
        "`sluice VERB --help` shows the options of a verb, with examples.",
        "Words in the help of the verbs:\n" + twoColumns(Shell.sharedWords, width),
        "Exit status:\n" + twoColumns(statuses, width),
    ].joined(separator: "\n\n") + "\n"
}

/// `a, b and c`.
func enumerated(_ words: [String], _ conjunction: String) -> String {
    guard let last = words.last, words.count > 1 else { return words.joined() }
    return "\(words.dropLast().joined(separator: ", ")) \(conjunction) \(last)"
}

/// Two columns: a word, and its meaning, wrapped.
func twoColumns(_ rows: [(word: String, meaning: String)], _ width: Int) -> String {
    // On a narrow screen the meaning goes below the word.
    let column = width < 60 ? 6 : min(26, (rows.map { displayWidth($0.word) }.max() ?? 0) + 4)
    return rows.map { row in
        let lines = wrapped(row.meaning, width: width, indent: column).split(separator: "\n")
        let word = "  " + row.word
        guard displayWidth(word) + 2 <= column, let first = lines.first else {
            return ([word[...]] + lines).joined(separator: "\n")
        }
        let head = filled(word, to: column) + first.drop { $0 == " " }
        return ([head[...]] + lines.dropFirst()).joined(separator: "\n")
    }.joined(separator: "\n")
}

/// `text` in lines of at most `width` columns, broken at spaces, each after `indent` spaces.
func wrapped(_ text: String, width: Int, indent: Int = 0) -> String {
    let columns = max(20, min(width, 100) - indent)
    var lines: [String] = []
    var line = ""
    for word in text.split(separator: " ") {
        if !line.isEmpty && displayWidth(line) + 1 + displayWidth(String(word)) > columns {
            lines.append(line)
            line = ""
        }
        line += (line.isEmpty ? "" : " ") + word
    }
    lines.append(line)
    return lines.map { String(repeating: " ", count: indent) + $0 }.joined(separator: "\n")
}
