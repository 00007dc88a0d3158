package import Core

/// A problem in a configuration file: an error, or a warning.
///
/// Printed as `FILE:LINE:COLUMN: KEY: problem and expected value`, then the line and a caret under the place.
package struct ConfigProblem: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Severity: Hashable, Sendable { case error, warning }

    package var severity: Severity
    package var file: FilePath
    /// Counted from 1; `nil` when the problem is about the whole file.
    package var line: Int?
    /// Counted from 1, in characters.
    package var column: Int?
    /// For example `folders[0].settle.quiet_for`; empty when it is about no key.
    package var key: String
    /// The problem, the expected value, and what to do. Contains no secret.
    package var text: String
    /// The line and a caret, with secrets covered.
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

/// All errors of a configuration, in the order of the files. Never empty.
package struct ConfigErrors: Error, Hashable, Sendable, CustomStringConvertible {
    /// Paths of a configuration with mistakes, for diagnosis alone.
    package struct Places: Hashable, Sendable {
        package var state, staging, socket: FilePath
        package var folders: [Folder]

        package struct Folder: Hashable, Sendable {
            package var name: String
            package var path: FilePath
        }
    }

    package var problems: [ConfigProblem]
    /// As far as they could be read; `nil` where the text is no YAML.
    package var places: Places?

    package var description: String { problems.map(\.description).joined(separator: "\n") }
}

/// Collects the problems while files are read, so that a person sees all of them at once.
///
/// Not `Sendable`: lives as long as one call of the loader.
final class ProblemCollector {
    private(set) var errors: [ConfigProblem] = []
    private(set) var warnings: [ConfigProblem] = []
    var sources: [SourceText] = []
    private var seen: Set<String> = []
    /// Errors that were not kept: a file with more mistakes than `maxProblems` is probably the wrong file.
    private var dropped = 0
    private static let maxProblems = 1000

    /// - Parameter text: Computed only when it will be kept: suggestions take time to find.
    func error(_ text: @autoclosure () -> String, at place: ConfigLocation?, key: String = "", in file: FilePath = "") {
        guard errors.count < Self.maxProblems else {
            dropped += 1
            return
        }
        add(.error, text(), at: place, key: key, in: file)
    }

    func warning(_ text: @autoclosure () -> String, at place: ConfigLocation?, key: String = "", in file: FilePath = "")
    {
        guard warnings.count < Self.maxProblems else { return }
        add(.warning, text(), at: place, key: key, in: file)
    }

    /// - Parameter destination: The path of the destination.
    func report(_ objection: SettingObjection, at place: ConfigLocation, of destination: String) {
        let key = "\(destination).\(objection.key)"
        if objection.isWarning {
            warning(objection.problem, at: place, key: key)
        } else {
            error(objection.problem, at: place, key: key)
        }
    }

    /// Whether no message may repeat what is at a place, since it may be a secret.
    func hides(_ place: ConfigLocation) -> Bool { sources[place.file].covers(line: place.line, column: place.column) }

    /// What messages say in place of it.
    static let hidden = "what is written here is not shown, since it may be a secret"

    /// The path of an entry of a mapping; the mapping's own, where the key itself may be a secret.
    func path(of entry: Node.Entry, in path: String) -> String {
        if hides(entry.place) { return path }
        let key = withoutAddressSecrets(entry.key)
        return path.isEmpty ? key : "\(path).\(key)"
    }

    /// The place that a rule of the configuration names: `sluice.yaml:12`.
    func location(of place: String) -> ConfigLocation? {
        guard let colon = place.lastIndex(of: ":"), let line = Int(place[place.index(after: colon)...]),
            let file = sources.firstIndex(where: { $0.file.name.display == place[..<colon] })
        else { return nil }
        return ConfigLocation(file: file, line: line, column: 1)
    }

    private func add(
        _ severity: ConfigProblem.Severity, _ text: String, at place: ConfigLocation?, key: String, in file: FilePath
    ) {
        let source = place.map { sources[$0.file] }
        // libyaml reports a missing end on a line that does not exist.
        let place = place.map { place in
            let inside = sources[place.file].inside(line: place.line, column: place.column)
            return ConfigLocation(file: place.file, line: inside.line, column: inside.column)
        }
        // Both quote the file, which may contain characters that act on a terminal. Escaping here covers every message.
        let text = printable(text)
        let problem = ConfigProblem(
            severity: severity, file: source?.file ?? file, line: place?.line, column: place?.column,
            key: printable(key), text: text,
            excerpt: place.flatMap { source?.excerpt(line: $0.line, column: $0.column) })
        // An alias is read once for each use, with another key; its mistake is reported once.
        guard seen.insert("\(problem.place) \(severity) \(text)").inserted else { return }
        if severity == .error { errors.append(problem) } else { warnings.append(problem) }
    }

    /// The place in the form for people.
    func name(of place: ConfigLocation) -> String {
        "\(sources[place.file].file.display):\(place.line):\(place.column)"
    }

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

/// A text from the file in a message: in backticks, on one line, not too long, without secrets of an address.
func quoted(_ text: String) -> String {
    let safe = withoutAddressSecrets(text)
    let shown = FilePath(safe.count > 60 ? safe.prefix(59) + "…" : safe).display
    return "`\(shown)`"
}

/// `; did you mean …?` where a known word is similar, otherwise `; FALLBACK`: by default, all known words.
func suggestion(for written: String, among known: [String], else fallback: String? = nil) -> String {
    if let near = nearest(to: written, among: known) { return "; did you mean `\(near)`?" }
    return "; " + (fallback ?? (known.isEmpty ? "there is none" : "there are: \(known.joined(separator: ", "))"))
}

/// A similar word, or the only one that begins like this.
func nearest(to written: String, among known: [String]) -> String? {
    if let near = closest(to: written, among: known) { return near }
    let longer = known.filter { $0.hasPrefix(written) }
    return written.count > 2 && longer.count == 1 ? longer[0] : nil
}
