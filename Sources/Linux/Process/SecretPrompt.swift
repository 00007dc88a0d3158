internal import Glibc
internal import Synchronization

/// Reads a secret that a person types at the terminal of standard input, without showing it.
package enum SecretPrompt {
    /// How the terminal was before a question that is open now.
    private static let original = Mutex<termios?>(nil)

    package enum Failure: Error { case interrupted, ended }

    /// Reads to the end of the line, on the calling thread. The terminal is as it was when this returns or throws.
    ///
    /// - Parameter ask: Prints the question, once the terminal shows nothing any more.
    /// - Throws: ``Failure/interrupted`` for Ctrl-C, ``Failure/ended`` at the end of the input.
    package static func read(_ ask: () throws -> Void) throws -> String {
        var before = termios()
        try systemCall("tcgetattr", on: "the terminal") { tcgetattr(STDIN_FILENO, &before) }
        var silent = before
        // Signals from the keyboard are read as characters too: one that ended the process would leave the terminal
        // silent.
        silent.c_lflag &= ~tcflag_t(ECHO | ICANON | ISIG)
        let shown = before
        original.withLock { $0 = shown }
        defer { restoreTerminal() }
        try systemCall("tcsetattr", on: "the terminal") { tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent) }
        try ask()
        var typed: [UInt8] = []
        while true {
            var byte: UInt8 = 0
            let got = try systemCall("read", on: "the terminal") { Glibc.read(STDIN_FILENO, &byte, 1) }
            if got == 0 { throw Failure.ended }
            switch byte {
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"): return String(decoding: typed, as: UTF8.self)
            case 0x03: throw Failure.interrupted
            case 0x04 where typed.isEmpty: throw Failure.ended
            case 0x08, 0x7F: _ = typed.popLast()
            case 0x15: typed.removeAll()
            default: typed.append(byte)
            }
        }
    }

    /// Lets the terminal show again what is typed, for a process that ends in the middle of a question.
    package static func restoreTerminal() {
        original.withLock { original in
            guard var before = original else { return }
            _ = tcsetattr(STDIN_FILENO, TCSAFLUSH, &before)
            original = nil
        }
    }
}
