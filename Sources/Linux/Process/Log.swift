package import Core
internal import Glibc

/// The log: one line for each event, to standard error or to `write`.
///
/// A line consists of an event and its fields: `uploaded id=01J… name=a.mp4`. The event is a fixed text that can be
/// searched for; the fields contain the values. Here control characters are escaped and secrets removed, for every
/// line.
package struct Log: Sendable {
    /// The severity, with the numbers of syslog(3).
    package enum Level: Int, Sendable, Comparable, CaseIterable {
        case error = 3
        case warning, notice, info, debug

        package init?(_ name: String) {
            guard let level = Self.allCases.first(where: { $0.name == name }) else { return nil }
            self = level
        }

        package var name: String { "\(self)" }
        package static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }
    }

    /// The form of a line.
    package enum Format: Hashable, Sendable {
        /// For a person at a terminal: local time, no level on normal lines.
        case terminal(colour: Bool)
        /// For journald, which adds the time: each field becomes a field of the journal. Where that is not possible, a
        /// line with `<6>` in front, as in sd-daemon(3).
        case journal
        /// For a file: RFC 3339 in UTC, level, event, fields.
        case plain
        /// One JSON object on each line.
        case json
    }

    /// Values that are `nil` are left out.
    package typealias Fields = KeyValuePairs<String, String?>

    package let level: Level
    private let format: Format
    private let clocks: any Clocks
    private let journal: JournalSocket?
    private let write: @Sendable ([UInt8]) -> Void

    /// - Parameter journal: The socket of journald, for a log in its format.
    package init(
        level: Level = .info, format: Format = .standardError, clocks: any Clocks = SystemClocks(),
        journal: FilePath = JournalSocket.standard,
        write: @escaping @Sendable ([UInt8]) -> Void = Log.writeToStandardError
    ) {
        self.level = level
        self.format = format
        self.clocks = clocks
        self.journal = format == .journal ? JournalSocket(journal) : nil
        self.write = write
    }

    /// A log that discards everything.
    package static let silent = Log(level: .error, format: .plain) { _ in }

    package func error(_ event: String, _ fields: @autoclosure () -> Fields = [:]) { line(.error, event, fields) }
    package func warning(_ event: String, _ fields: @autoclosure () -> Fields = [:]) { line(.warning, event, fields) }
    /// Normal, but worth a second look: a start, a stop, a destination held.
    package func notice(_ event: String, _ fields: @autoclosure () -> Fields = [:]) { line(.notice, event, fields) }
    package func info(_ event: String, _ fields: @autoclosure () -> Fields = [:]) { line(.info, event, fields) }
    /// Free when the level is above: the fields are not even made.
    package func debug(_ event: String, _ fields: @autoclosure () -> Fields = [:]) { line(.debug, event, fields) }

    private func line(_ level: Level, _ event: String, _ fields: () -> Fields) {
        guard level <= self.level else { return }
        let kept = fields().compactMap { field in
            field.value.map { (name: field.key, value: isSecretName(field.key) ? "***" : redacted($0)) }
        }
        if journal?.send(entry(level, redacted(event), kept)) == true { return }
        write(Array((render(level, redacted(event), kept) + "\n").utf8))
    }

    /// The line for a reader, and its fields for a search.
    private func entry(
        _ level: Level, _ event: String, _ fields: [(name: String, value: String)]
    ) -> [(name: String, value: String)] {
        [
            ("MESSAGE", text(event, fields)), ("PRIORITY", "\(level.rawValue)"), ("SYSLOG_IDENTIFIER", "sluice"),
            (JournalSocket.name(of: "event"), event),
        ] + fields.map { (JournalSocket.name(of: $0.name), $0.value) }
    }

    private func render(_ level: Level, _ event: String, _ fields: [(name: String, value: String)]) -> String {
        switch format {
        case .json:
            let all = [("ts", clocks.wall().description), ("level", level.name), ("event", event)] + fields
            return "{" + all.map { "\(jsonString($0.0)):\(jsonString($0.1))" }.joined(separator: ",") + "}"
        case .journal:
            return "<\(level.rawValue)>" + text(event, fields)
        case .plain:
            return "\(clocks.wall()) \(level.name) " + text(event, fields)
        case .terminal(let colour):
            let word =
                switch level {
                case .error: colour ? "\u{1B}[31merror\u{1B}[0m " : "error "
                case .warning: colour ? "\u{1B}[33mwarning\u{1B}[0m " : "warning "
                case .notice, .info: ""
                case .debug: "debug "
                }
            let time = LocalTime(clocks.wall()).clock
            return (colour ? "\u{1B}[2m\(time)\u{1B}[0m " : "\(time) ") + word + text(event, fields)
        }
    }

    private func text(_ event: String, _ fields: [(name: String, value: String)]) -> String {
        ([printable(event)] + fields.map { "\($0.name)=\(quoted(printable($0.value)))" }).joined(separator: " ")
    }

    /// Quoted when a reader could not see where the value ends.
    private func quoted(_ value: String) -> String {
        guard value.isEmpty || value.contains(where: { $0 == " " || $0 == "\"" || $0 == "=" }) else { return value }
        return "\"" + value.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\\\"") + "\""
    }

    /// Writes whole lines with one write(2) each, so that lines of several threads do not mix.
    @Sendable package static func writeToStandardError(_ line: [UInt8]) {
        // A log that cannot be written must not stop the daemon, and the error cannot be reported anywhere.
        _ = line.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}

extension Log.Format {
    /// The format for standard error: journald, a terminal or a file.
    package static var standardError: Log.Format {
        if isJournal(STDERR_FILENO) { return .journal }
        return isatty(STDERR_FILENO) == 1 ? .terminal(colour: getenv("NO_COLOR") == nil) : .plain
    }

    /// `$JOURNAL_STREAM` contains the `device:inode` of the stream that journald reads; after a redirection it differs.
    package static func isJournal(_ number: CInt) -> Bool {
        guard let named = getenv("JOURNAL_STREAM") else { return false }
        var status = stat()
        guard fstat(number, &status) == 0 else { return false }
        return String(cString: named) == "\(status.st_dev):\(status.st_ino)"
    }
}

/// `text` as a JSON string with its quotes. Characters that act on a terminal are escaped too.
package func jsonString(_ text: String) -> String {
    var out = "\""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"": out += "\\\""
        case "\\": out += "\\\\"
        case "\n": out += "\\n"
        default:
            if printable(String(scalar)) == String(scalar) {
                out.unicodeScalars.append(scalar)
            } else {
                for unit in String(scalar).utf16 {
                    out += "\\u" + hexadecimal([UInt8(unit >> 8), UInt8(unit & 0xFF)])
                }
            }
        }
    }
    return out + "\""
}
