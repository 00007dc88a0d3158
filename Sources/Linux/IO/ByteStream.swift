internal import Core
internal import Glibc

/// Bytes that are read from an open descriptor until its end, for example a pipe. The owner of the descriptor keeps it.
package struct ByteStream: Hashable, Sendable {
    package let number: CInt

    package init(number: CInt) { self.number = number }

    package static let standardInput = ByteStream(number: STDIN_FILENO)

    /// Whether it is a terminal, at which a person types.
    package var isTerminal: Bool { isatty(number) == 1 }

    /// Why it cannot be read, for a person; `nil` where it can.
    package var obstacle: String? {
        if isTerminal { return "is a terminal: pipe the bytes" }
        let mode = fcntl(number, F_GETFL)
        if mode < 0 || mode & O_ACCMODE == O_WRONLY { return "is closed: pipe the bytes" }
        var status = stat()
        return fstat(number, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR ? "is a folder: pipe the bytes" : nil
    }

    /// Whether bytes, the end or an error can be read without waiting.
    package var isReady: Bool {
        var status = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
        return poll(&status, 1, 0) != 0
    }

    /// Whether there are more bytes; takes one of them.
    package var hasMore: Bool {
        if !isReady { return true }
        var byte: UInt8 = 0
        // A stream that cannot be read has not ended either.
        return ((try? withUnsafeMutableBytes(of: &byte) { bytes throws(SystemError) in try read(into: bytes) }) ?? 1)
            > 0
    }

    /// Waits when there are no bytes.
    ///
    /// - Returns: 0 at the end.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
        try systemCall("read", on: "the bytes to send") { Glibc.read(number, buffer.baseAddress, buffer.count) }
    }
}
