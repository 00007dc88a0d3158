internal import Glibc
internal import Synchronization

/// The terminal of standard input while a program takes each key as it is pressed.
///
/// Signals from the keyboard are read as characters too: one that stopped or ended the process would leave the terminal
/// as it is here.
package final class RawTerminal: Sendable {
    /// How the terminal was before; `nil` once it is so again.
    private let original: Mutex<termios?>

    /// Whether standard input is a terminal.
    package static var isHere: Bool { isatty(STDIN_FILENO) == 1 }

    package init() throws(SystemError) {
        original = Mutex(nil)
        try enter()
    }

    private func enter() throws(SystemError) {
        var before = termios()
        try systemCall("tcgetattr", on: "the terminal") { tcgetattr(STDIN_FILENO, &before) }
        original.withLock { $0 = before }
        var raw = Self.raw(before)
        try systemCall("tcsetattr", on: "the terminal") { tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) }
    }

    private static func raw(_ before: termios) -> termios {
        var raw = before
        raw.c_lflag &= ~tcflag_t(ECHO | ICANON | ISIG | IEXTEN)
        raw.c_iflag &= ~tcflag_t(IXON | ICRNL)
        return raw
    }

    /// The bytes of the keys that were pressed, on the calling thread.
    ///
    /// - Returns: None when no key was pressed within `milliseconds`; `nil` at the end of the input.
    package func read(within milliseconds: CInt) throws(SystemError) -> [UInt8]? {
        var ready = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        guard poll(&ready, 1, milliseconds) > 0 else { return [] }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = try systemCall("read", on: "the terminal") { Glibc.read(STDIN_FILENO, &bytes, bytes.count) }
        return count == 0 ? nil : Array(bytes.prefix(count))
    }

    /// Makes the terminal what it was before.
    package func restore() {
        original.withLock { original in
            guard var before = original else { return }
            _ = tcsetattr(STDIN_FILENO, TCSAFLUSH, &before)
            original = nil
        }
    }

    /// Stops the process with the terminal as it was before. Returns when the shell continues it, with each key as it is
    /// pressed again.
    package func suspend() throws(SystemError) {
        restore()
        Signals.Signal.suspend.obey()
        try enter()
    }

    /// Takes each key as it is pressed again, after the process was stopped without ``suspend()`` and a shell has set the
    /// terminal to its own needs.
    package func resume() {
        original.withLock { original in
            guard let before = original else { return }
            var raw = Self.raw(before)
            // Keys that were pressed since count.
            _ = tcsetattr(STDIN_FILENO, TCSANOW, &raw)
        }
    }

    deinit { restore() }
}
