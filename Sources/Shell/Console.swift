internal import Core
internal import Glibc
internal import Linux
internal import Synchronization

/// The output of a verb, and its properties. Tests use their own.
package struct Console: Sendable {
    /// Whether it is a terminal: tables fit the width, and progress may be redrawn.
    package var isTerminal: Bool
    /// The current columns and rows of the terminal.
    private var measure: @Sendable () -> (width: Int, height: Int)
    /// Current columns: a person may change the size of the window.
    package var width: Int { measure().width }
    /// Current rows; unlimited without a terminal.
    package var height: Int { measure().height }
    package var colour: Bool
    package var environment: @Sendable (String) -> String?
    private let write: @Sendable (_ bytes: [UInt8], _ isError: Bool) -> Bool
    /// The reason why a write failed; `nil` while all succeeded, or when the reader has gone.
    let failure: @Sendable () -> String?

    package init(
        isTerminal: Bool, size: @escaping @Sendable () -> (width: Int, height: Int), colour: Bool,
        environment: @escaping @Sendable (String) -> String?,
        failure: @escaping @Sendable () -> String? = { nil },
        write: @escaping @Sendable (_ bytes: [UInt8], _ isError: Bool) -> Bool
    ) {
        self.isTerminal = isTerminal
        measure = size
        self.colour = colour
        self.environment = environment
        self.failure = failure
        self.write = write
    }

    /// Thrown when the reader has closed the output (`sluice events | head`), which is no error but the end; or when a
    /// write failed.
    package struct ClosedError: Error {}

    /// A line for a reader. On a terminal nothing in it acts but our own styles.
    package func line(_ text: String = "") throws(ClosedError) { try raw((isTerminal ? harmless(text) : text) + "\n") }
    package func raw(_ text: String) throws(ClosedError) {
        guard write(Array(text.utf8), false) else { throw ClosedError() }
    }
    package func error(_ text: String) { _ = write(Array((harmless(text) + "\n").utf8), true) }

    /// A line on a terminal that the next one overwrites; an empty text removes it.
    package func progress(_ text: String) { _ = write(Array("\r\u{1B}[K\(harmless(text))".utf8), true) }

    package enum Style: String, CaseIterable {
        case bold = "1", dim = "2", red = "31", green = "32", yellow = "33", cyan = "36", reverse = "7"
    }

    package func styled(_ text: String, _ style: Style?) -> String {
        guard colour, let style else { return text }
        return "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m"
    }
}

/// `text` with every character that acts on a terminal written as `\xHH`, but for our own styles, tabs and ends of lines.
///
/// The last step before a terminal, as `redacted` is before a log: a daemon of another version, or a server behind it,
/// may send a text that was not made safe.
func harmless(_ text: String) -> String {
    guard printable(text) != text else { return text }
    func plain(_ piece: Substring) -> String {
        piece.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            line.split(separator: "\t", omittingEmptySubsequences: false).map { printable(String($0)) }
                .joined(separator: "\t")
        }.joined(separator: "\n")
    }
    let styles = Console.Style.allCases.map { "[\($0.rawValue)m" } + ["[0m"]
    let pieces = text.split(separator: "\u{1B}", omittingEmptySubsequences: false)
    return pieces.dropFirst().reduce(plain(pieces.first ?? "")) { done, piece in
        guard let style = styles.first(where: { piece.hasPrefix($0) }) else {
            return done + printable("\u{1B}") + plain(piece)
        }
        return done + "\u{1B}" + style + plain(piece.dropFirst(style.count))
    }
}

extension Console {
    /// Standard output and error of this process.
    package static var standard: Console {
        let environment: @Sendable (String) -> String? = { name in getenv(name).map { String(cString: $0) } }
        let isTerminal = isatty(STDOUT_FILENO) == 1
        let trouble = Atomic<CInt>(0)
        let isJournal = Log.Format.isJournal(STDERR_FILENO)
        return Console(
            isTerminal: isTerminal, size: { size(environment) },
            colour: isTerminal && (environment("NO_COLOR") ?? "").isEmpty && !isDumb(environment),
            environment: environment,
            failure: {
                let code = trouble.load(ordering: .relaxed)
                return code == 0 ? nil : String(cString: strerror(code))
            }
        ) { bytes, isError in
            let bytes = isError && isJournal ? journalErrors(bytes) : bytes
            var done = 0
            while done < bytes.count {
                let wrote = bytes.withUnsafeBytes {
                    Glibc.write(
                        isError ? STDERR_FILENO : STDOUT_FILENO, $0.baseAddress?.advanced(by: done), $0.count - done)
                }
                if wrote < 0 {
                    if errno == EINTR { continue }
                    if errno != EPIPE, !isError { trouble.store(errno, ordering: .relaxed) }
                    return false
                }
                done += wrote
            }
            return true
        }
    }

    /// With the priority of an error before each line (sd-daemon(3)): `journalctl -p err` shows why the service did not
    /// start.
    package static func journalErrors(_ bytes: [UInt8]) -> [UInt8] {
        Array(bytes.split(separator: UInt8(ascii: "\n")).map { Array("<3>".utf8) + $0 + [UInt8(ascii: "\n")] }.joined())
    }

    /// Whether the terminal takes no escape sequences, or none is known that it takes (term(7)).
    var isDumb: Bool { Self.isDumb(environment) }

    private static func isDumb(_ environment: (String) -> String?) -> Bool {
        ["", "dumb"].contains(environment("TERM") ?? "")
    }

    private static func size(_ environment: (String) -> String?) -> (width: Int, height: Int) {
        var size = winsize()
        let isTerminal = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0
        return self.size(reported: isTerminal ? (Int(size.ws_col), Int(size.ws_row)) : nil, environment)
    }

    /// The size that the terminal reports: variables that a shell has exported do not follow the window. A serial line
    /// reports 0 of both: then `$COLUMNS` and `$LINES` count, or else it has the size of a VT100.
    ///
    /// - Parameter reported: Columns and rows; `nil` without a terminal, which has 100 columns and any number of rows.
    static func size(
        reported: (width: Int, height: Int)?, _ environment: (String) -> String?
    ) -> (width: Int, height: Int) {
        func named(_ name: String) -> Int? { environment(name).flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil } }
        func known(_ count: Int) -> Int? { count > 0 ? count : nil }
        guard let reported else { return (named("COLUMNS") ?? 100, .max) }
        return (
            known(reported.width) ?? named("COLUMNS") ?? 80, known(reported.height) ?? named("LINES") ?? 24
        )
    }
}
