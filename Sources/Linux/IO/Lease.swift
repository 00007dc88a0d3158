internal import CLinux
package import Core
internal import Glibc

/// Uses the kernel to find out whether a process has a file open for writing: it grants a read lease only if there is
/// none (fcntl(2), `F_SETLEASE`).
package enum Lease {
    /// Ignores `SIGIO` in this process. Must be called before the first lease: otherwise the signal of a broken lease
    /// would end the process.
    package static func ignoreSignal() { _ = signal(SIGIO, SIG_IGN) }

    /// Reads a file's status while it is certain that no process writes to it, or reports that this is not certain.
    ///
    /// The lease is held for one status call, some microseconds: an ordinary program that opens the file meanwhile
    /// waits for it, and one that opens with `O_NONBLOCK` is refused once.
    ///
    /// - Returns: `.unknown` where the file cannot be opened, belongs to another user (without `CAP_LEASE`), or is on a
    ///   file system without leases or with leases that say nothing about writers.
    /// - Throws: Only errors of the status call, including a missing name.
    package static func status(
        at relative: FilePath, in folder: borrowing OpenFolder
    ) throws(SystemError) -> (status: FileStatus, writer: OpenWriter) {
        let before = try folder.status(freshAt: relative)
        // Opening a device or FIFO may have effects.
        guard before.isRegular else { return (before, .unknown) }
        do {
            let file = try folder.open(relative, for: .reading)
            let path = folder.path.appending(relative)
            return try file.withNumber { number throws(SystemError) in
                let refusal = sluice_read_lease(number, 1) == 0 ? 0 : errno
                defer { if refusal == 0 { _ = sluice_read_lease(number, 0) } }
                // By the descriptor, and again where the lease was refused: the name may lead elsewhere since the first
                // status.
                let status = try FileStatus(number: number, named: path)
                return (status, refusal == 0 ? .absent : refusal == EAGAIN ? refused(number) : .unknown)
            }
        } catch {
            switch error.code {
            // Another process holds a lease of its own. Only a writer's lease would conflict with ours.
            case EWOULDBLOCK: return (before, .present)
            case EACCES, EPERM: return (before, .unknown)
            default: throw error
            }
        }
    }

    private static func refused(_ file: CInt) -> OpenWriter {
        FileSystemKind.leasesElsewhere(file) ? .unknown : .present
    }
}

extension FileStatus {
    fileprivate init(number: CInt, named path: FilePath) throws(SystemError) {
        var status = sluice_look()
        try systemCall("statx", on: path.display) { sluice_statx_fresh(number, "", &status) }
        self.init(status)
    }
}
