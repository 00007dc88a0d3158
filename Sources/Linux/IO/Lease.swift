internal import CLinux
package import Core
internal import Glibc

/// Asks the kernel whether anybody has a file open for writing: it grants a read lease only where nobody does
/// (fcntl(2), `F_SETLEASE`).
package enum Lease {
    /// Ignores `SIGIO` in this process. To be called before the first question: the signal of a lease that somebody
    /// breaks would otherwise end the process.
    package static func ignoreSignal() { _ = signal(SIGIO, SIG_IGN) }

    /// Looks at a file while it is certain that nobody writes to it, or says that it is not.
    ///
    /// The lease is held for one look, microseconds: an ordinary program that opens the file meanwhile waits for it,
    /// one that opens with `O_NONBLOCK` is refused once.
    ///
    /// - Returns: `.unknown` where the file cannot be opened, belongs to somebody else (without `CAP_LEASE`), or lies on
    ///   a file system without leases, or with such as say nothing about writers.
    /// - Throws: Only what the look itself throws, among it a name that is gone.
    package static func look(
        at relative: FilePath, in folder: borrowing OpenFolder
    ) throws(SystemError) -> (look: FileLook, writer: OpenWriter) {
        let before = try folder.look(freshAt: relative)
        // Opening a device or FIFO may do things.
        guard before.isRegular else { return (before, .unknown) }
        do {
            let file = try folder.open(relative, for: .reading)
            let path = folder.path.appending(relative)
            return try file.withNumber { number throws(SystemError) in
                let refusal = sluice_read_lease(number, 1) == 0 ? 0 : errno
                defer { if refusal == 0 { _ = sluice_read_lease(number, 0) } }
                // By the descriptor, and again where it was refused: the name may point elsewhere since the first look.
                let look = try FileLook(number: number, named: path)
                return (look, refusal == 0 ? .nobody : refusal == EAGAIN ? refused(number) : .unknown)
            }
        } catch {
            switch error.code {
            // Another process holds a lease of its own, which only a writer's would be in our way.
            case EWOULDBLOCK: return (before, .somebody)
            case EACCES, EPERM: return (before, .unknown)
            default: throw error
            }
        }
    }

    private static func refused(_ file: CInt) -> OpenWriter {
        FileSystemKind.leasesElsewhere(file) ? .unknown : .somebody
    }
}

extension FileLook {
    fileprivate init(number: CInt, named path: FilePath) throws(SystemError) {
        var look = sluice_look()
        try systemCall("statx", on: path.display) { sluice_statx_fresh(number, "", &look) }
        self.init(look)
    }
}
