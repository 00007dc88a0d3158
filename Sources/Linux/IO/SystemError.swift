internal import Glibc

/// The error of a system call: the call, its subject, and the reason.
///
/// Printed as `rename /cache/ab12.part: No space left on device (errno 28)`.
package struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    package let call: String
    /// The path or descriptor of the call, for the reader of a log. Already safe to print.
    package let subject: String
    /// The value of `errno`, as in errno(3).
    package let code: CInt
    /// Details that the kernel's message for the code does not contain, and what to do.
    package let detail: String?

    package init(call: String, subject: String, code: CInt, detail: String? = nil) {
        self.call = call
        self.subject = subject
        self.code = code
        self.detail = detail
    }

    /// A configured folder is another directory than the intended one (``SourceFolder/open()``).
    package var isOfAnotherFolder: Bool { code == ESTALE && detail != nil }

    /// ENOENT or ENOTDIR: the name does not exist.
    package var isMissing: Bool { code == ENOENT || code == ENOTDIR }
    /// ENOSPC or EDQUOT.
    package var isFull: Bool { code == ENOSPC || code == EDQUOT }
    /// The file system, or a limit of this process (`LimitFSIZE=`), allows no file of that size.
    package var isOfFileSize: Bool { code == EFBIG }
    /// EACCES or EPERM.
    package var isDenied: Bool { code == EACCES || code == EPERM }
    /// Refused regardless of permissions: a sticky folder, or a file or folder that is immutable or append-only.
    package var isNotPermitted: Bool { code == EPERM }
    package var isReadOnly: Bool { code == EROFS }
    package var exists: Bool { code == EEXIST }
    /// The path or a name in it is longer than the kernel allows.
    package var isTooLong: Bool { code == ENAMETOOLONG }
    /// EFBIG: there is more than the reader accepts.
    package var isTooLarge: Bool { code == EFBIG }
    /// EINVAL, ENXIO or EISDIR from a read: it is a folder, a socket, a FIFO, a device.
    package var isOfWrongKind: Bool { code == EINVAL || code == ENXIO || code == EISDIR }
    package var crossesFileSystems: Bool { code == EXDEV }

    /// The kernel's message for the code, or its replacement.
    package var reason: String { detail ?? String(cString: strerror(code)) }
    package var description: String {
        detail.map { "\(subject): \($0)" } ?? "\(call) \(subject): \(reason) (errno \(code))"
    }
}

/// Runs a system call that reports failure as -1, again if a signal interrupted it.
///
/// - Parameters:
///   - call: The name in section 2 of the manual.
///   - subject: Built only on failure, so that success costs nothing.
/// - Throws: ``SystemError`` with the `errno` of the last attempt.
/// - Warning: Not for `close(2)`: on Linux the descriptor is gone even after EINTR, and a second close may hit a
///   descriptor that another thread has just opened.
@discardableResult
package func systemCall<R: FixedWidthInteger>(
    _ call: StaticString, on subject: @autoclosure () -> String, _ body: () -> R
) throws(SystemError) -> R {
    while true {
        let result = body()
        if result != -1 { return result }
        let code = errno  // right after the call: even building a string may change it
        if code != EINTR { throw SystemError(call: "\(call)", subject: subject(), code: code) }
    }
}
