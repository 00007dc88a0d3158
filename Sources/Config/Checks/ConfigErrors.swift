package import Core

/// One thing in a configuration file that a person should know: an error, or a warning.
///
/// Printed as `FILE:LINE:COLUMN: KEY: what is wrong and what was expected`, then the line and a caret under the place.
package struct ConfigProblem: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Severity: Hashable, Sendable { case error, warning }

    package var severity: Severity
    package var file: FilePath
    /// From 1; `nil` when it is about the whole file.
    package var line: Int?
    /// From 1, in characters.
    package var column: Int?
    /// Like `folders[0].settle.quiet_for`; empty when it is about no key.
    package var key: String
    /// What is wrong, what was expected, and what to do. Holds no secret.
    package var text: String
    /// The line and a caret, secrets covered.
    package var excerpt: String?

    /// `FILE:LINE:COLUMN`, as compilers and editors write it.
    package var place: String {
        guard let line, let column else { return file.display }
        return "\(file.display):\(line):\(column)"
    }

    package var description: String {
        "\(place): " + (severity == .warning ? "warning: " : "") + (key.isEmpty ? "" : "\(key): ") + text
            + (excerpt.map { "\n" + $0 } ?? "")
    }
}

/// Everything that is wrong with a configuration, in the order of the files. Never empty.
package struct ConfigErrors: Error, Hashable, Sendable, CustomStringConvertible {
    package var problems: [ConfigProblem]

    package var description: String { problems.map(\.description).joined(separator: "\n") }
}

/// Collects what is found while files are read, so that a person sees every mistake at once.
///
/// Not `Sendable`: lives as long as one call of the loader.
final class Findings {
    private(set) var errors: [ConfigProblem] = []
    private(set) var warnings: [ConfigProblem] = []
    var sources: [SourceText] = []
    private var seen: Set<String> = []
    /// Errors that were not kept: a file with more mistakes than `most` is not the file that somebody meant.
    private var dropped = 0
    private static let most = 1000

    /// - Parameter text: Made only when there is room for it: near words take time to find.
    func error(_ text: @autoclosure () -> String, at place: Place?, key: String = "", in file: FilePath = "") {
        guard errors.count < Self.most else {
            dropped += 1
            return
        }
        add(.error, text(), at: place, key: key, in: file)
    }

    func warning(_ text: @autoclosure () -> String, at place: Place?, key: String = "", in file: FilePath = "") {
        guard warnings.count < Self.most else { return }
        add(.warning, text(), at: place, key: key, in: file)
    }

    private func add(
        _ severity: ConfigProblem.Severity, _ text: String, at place: Place?, key: String, in file: FilePath
    ) {
        let source = place.map { sources[$0.file] }
        // libyaml puts what is missing at the end on a line that is not there.
        let place = place.map { place in
            let inside = sources[place.file].inside(line: place.line, column: place.column)
            return Place(file: place.file, line: inside.line, column: inside.column)
        }
        // Both quote what somebody wrote, which may hold what acts on a terminal; here none is forgotten.
        let text = printable(text)
        let problem = ConfigProblem(
            severity: severity, file: source?.file ?? file, line: place?.line, column: place?.column,
            key: printable(key), text: text,
            excerpt: place.flatMap { source?.excerpt(line: $0.line, column: $0.column) })
        // What an alias stands for is read once for each use, under another key; its mistake is one mistake.
        guard seen.insert("\(problem.place) \(severity) \(text)").inserted else { return }
        if severity == .error { errors.append(problem) } else { warnings.append(problem) }
    }

    /// The place as a person writes it.
    func name(of place: Place) -> String { "\(sources[place.file].file.display):\(place.line):\(place.column)" }

    /// All errors in the order of the files; `nil` when there is none.
    var failure: ConfigErrors? {
        guard !errors.isEmpty else { return nil }
        var problems = inOrder(errors)
        if dropped > 0, var last = problems.last {
            last.text += " (and \(dropped) more problems, which are not shown)"
            problems[problems.count - 1] = last
        }
        return ConfigErrors(problems: problems)
    }

    var warningsInOrder: [ConfigProblem] { inOrder(warnings) }

    private func inOrder(_ problems: [ConfigProblem]) -> [ConfigProblem] {
        var order: [FilePath: Int] = [:]
        for (number, source) in sources.enumerated() where order[source.file] == nil { order[source.file] = number }
        func rank(_ problem: ConfigProblem) -> (Int, Int, Int) {
            (order[problem.file] ?? -1, problem.line ?? 0, problem.column ?? 0)
        }
        return problems.enumerated().sorted { a, b in
            let (left, right) = (rank(a.element), rank(b.element))
            return left == right ? a.offset < b.offset : left < right
        }.map(\.element)
    }
}

/// Somebody's words in a message: in backticks, on one line, not too long.
func quoted(_ text: String) -> String {
    let shown = FilePath(text.count > 60 ? text.prefix(59) + "…" : text).display
    return "`\(shown)`"
}

/// `; did you mean …?` where a known word is near, else `; FALLBACK`.
func suggestion(for written: String, among known: [String], else fallback: String) -> String {
    nearest(to: written, among: known).map { "; did you mean `\($0)`?" } ?? "; \(fallback)"
}

/// A word that is near, or the only one that begins like this.
func nearest(to written: String, among known: [String]) -> String? {
    if let near = closest(to: written, among: known) { return near }
    let longer = known.filter { $0.hasPrefix(written) }
    return written.count > 2 && longer.count == 1 ? longer[0] : nil
}
