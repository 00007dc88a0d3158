import Core

/// A manual page that is being written, in the macros of man(7).
struct Page {
    /// Bytes of a line of text: mandoc's lint complains of lines above 80.
    private static let width = 72
    private var lines: [String] = []

    /// - Parameters:
    ///   - section: Of the manual: 1 or 5.
    ///   - date: `2026-11-27`.
    init(_ title: String, section: Int, date: String, heading: String) {
        lines = [
            ".\\\" Made by `make man` from the tables of the program. Do not edit it.",
            ".TH \(title) \(section) \"\(date)\" \"sluice \(sluiceVersion)\" \"\(heading)\"",
        ]
    }

    /// The text of the whole page.
    var text: String { lines.joined(separator: "\n") + "\n" }

    /// The section NAME: programs such as apropos(1) read it.
    mutating func name(_ word: String, _ purpose: String) {
        section("Name")
        lines.append("\(escaped(word)) \\- \(escaped(purpose))")
    }

    mutating func section(_ title: String) { lines.append(".SH \(title.uppercased())") }
    mutating func part(_ title: String) { lines.append(".SS \(escaped(title))") }

    /// A paragraph. Words between backquotes are bold.
    mutating func paragraph(_ text: String) { lines += [".PP"] + filled(text) }

    /// The first text after a heading, which needs no distance from it.
    mutating func text(_ text: String) { lines += filled(text) }

    /// A word and its meaning.
    mutating func item(_ word: String, _ meaning: String) {
        lines += [".TP", "\\fB\(escaped(word, isLiteral: true))\\fR"] + filled(meaning)
    }

    /// Lines that are shown as they are.
    mutating func example(_ text: [String]) {
        lines += [".PP", ".EX"] + text.map { "    " + escaped($0, isLiteral: true) } + [".EE"]
    }

    /// A line of a synopsis.
    mutating func usage(_ forms: [String]) {
        lines.append(".nf")
        for form in forms { lines.append("\\fB\(escaped(form, isLiteral: true))\\fR") }
        lines.append(".fi")
    }

    private func filled(_ text: String) -> [String] {
        var (lines, line) = ([String](), "")
        for word in marked(text).split(separator: " ") {
            if !line.isEmpty && line.utf8.count + 1 + word.utf8.count > Self.width {
                lines.append(line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        lines.append(line)
        // At the start of a line these two begin a command.
        return lines.map { $0.hasPrefix(".") || $0.hasPrefix("'") ? "\\&" + $0 : $0 }
    }

    /// Every second piece is between two backquotes.
    private func marked(_ text: String) -> String {
        text.split(separator: "`", omittingEmptySubsequences: false).enumerated().map { number, piece in
            number % 2 == 0 ? escaped(String(piece)) : "\\fB\(escaped(String(piece), isLiteral: true))\\fR"
        }.joined()
    }

    /// - Parameter isLiteral: Whether every hyphen is one that people type. In other text only options have such.
    private func escaped(_ text: String, isLiteral: Bool = false) -> String {
        var out = ""
        var isOption = false
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": out += "\\e"
            case "-":
                isOption = isOption || out.isEmpty || out.hasSuffix(" ") || out.hasSuffix("(")
                out += isLiteral || isOption ? "\\-" : "-"
            case "'" where isLiteral: out += "\\(aq"
            case "~": out += "\\(ti"
            case "^": out += "\\(ha"
            case "`": out += "\\(ga"
            case _ where !scalar.isASCII: out += "\\[u\(hexadecimal(scalar.value))]"
            default:
                if scalar == " " { isOption = false }
                out.unicodeScalars.append(scalar)
            }
        }
        return out
    }

    /// At least four upper-case digits, as groff_char(7) asks for.
    private func hexadecimal(_ value: UInt32) -> String {
        let digits = String(value, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}
