internal import CLinux
internal import Core
internal import Glibc

/// A program that a person uses on this process's terminal, for example an editor.
///
/// It stays in the terminal's foreground group, and has the standard descriptors and the environment of this process.
/// While it runs, an interrupt from the keyboard is for it alone.
package struct TerminalProgram: Sendable {
    /// The program by its absolute path, and its arguments, as bytes.
    package let words: [[UInt8]]

    package init(words: [[UInt8]]) { self.words = words }

    /// Runs it to its end, on the calling thread.
    ///
    /// - Throws: The error when it cannot be started.
    package func run() throws(SystemError) -> Program.Ending {
        let earlier = (signal(SIGINT, SIG_IGN), signal(SIGQUIT, SIG_IGN))
        defer {
            _ = signal(SIGINT, earlier.0)
            _ = signal(SIGQUIT, earlier.1)
        }
        let name = FilePath(bytes: words.first ?? [])
        // What this process ignores and blocks is its own affair, and the program begins without it.
        let pointers = words.map { word in
            (word + [0]).withUnsafeBytes { bytes in
                bytes.baseAddress.flatMap { strdup($0.assumingMemoryBound(to: CChar.self)) }
            }
        }
        defer { for pointer in pointers { free(pointer) } }
        let pid = try systemCall("start", on: name.display) {
            (pointers.map { UnsafePointer($0) } + [nil]).withUnsafeBufferPointer {
                sluice_spawn_on_terminal($0.baseAddress)
            }
        }
        var status: CInt = 0
        try systemCall("waitpid", on: name.display) { waitpid(pid, &status, 0) }
        // wait(2): the low seven bits are the signal, the next byte is the exit status.
        return status & 0x7F != 0 ? .signal(status & 0x7F) : .status(status >> 8 & 0xFF)
    }
}
