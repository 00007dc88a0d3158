internal import CLinux
package import Core
internal import Synchronization

/// Determines whether a process has a file open for writing. Implemented by ``WriterSearch``; tests have their own.
package protocol WriterDetecting: Sendable {
    /// Reads a file's status and searches for writers.
    ///
    /// - Throws: Only errors of the status call, including a missing name.
    func findWriter(
        _ relative: FilePath, in folder: borrowing OpenFolder
    ) throws(SystemError) -> (status: FileStatus, answer: WriterSearch.Answer)
}

/// Finds out by every available means whether a process has a file open for writing, and says when that cannot be
/// known.
///
/// May be used by any number of threads.
package final class WriterSearch: WriterDetecting {
    package enum Answer: Hashable, Sendable {
        /// No process on this machine, and the file cannot be reached from elsewhere.
        case absent
        case present
        case unknown(Doubt)
    }

    /// The reason why it cannot be known.
    package enum Doubt: Hashable, Sendable {
        /// The file is on a file system to which other machines or programs write as well, without this kernel
        /// noticing.
        case elsewhere
        /// The kernel grants no lease on it (it belongs to another user, and this process has no `CAP_LEASE`), and the
        /// open files of some processes are not visible.
        case notReported
    }

    private let processes: Mutex<ProcDescriptorSearch>
    private let clocks: any Clocks

    package init(clocks: any Clocks) {
        self.clocks = clocks
        processes = Mutex(ProcDescriptorSearch(clocks: clocks))
    }

    /// A granted lease, and a walk through all processes that finds no writer, count only on file systems of this
    /// machine alone (``FileSystemKind/hidesWriters(_:)``). A writer that is found counts everywhere.
    package func findWriter(
        _ relative: FilePath, in folder: borrowing OpenFolder
    ) throws(SystemError) -> (status: FileStatus, answer: Answer) {
        let (status, writer) = try Lease.status(at: relative, in: folder)
        if writer == .present { return (status, .present) }
        let isElsewhere =
            relative.parent.isEmpty ? Self.mayHideWriters(folder) : Self.isElsewhere(relative.parent, in: folder)
        if writer == .absent, !isElsewhere { return (status, .absent) }
        let now = clocks.monotonic()
        switch processes.withLock({ $0.writer(of: status, seen: now).writer }) {
        case .present: return (status, .present)
        case .unseen, .absent: return (status, isElsewhere ? .unknown(.elsewhere) : .absent)
        case .unknown: return (status, .unknown(isElsewhere ? .elsewhere : .notReported))
        }
    }

    /// Whether a folder is on a file system whose changes this kernel does not see completely, or does not report:
    /// overlay is one.
    package static func mayHideWriters(_ folder: borrowing OpenFolder) -> Bool { FileSystemKind.hidesWriters(folder) }

    private static func isElsewhere(_ relative: FilePath, in folder: borrowing OpenFolder) -> Bool {
        // A folder that cannot be opened (it may be entered but not listed) does not tell its file system: then the
        // file's own answer counts.
        guard let folder = try? folder.folder(relative) else { return false }
        return mayHideWriters(folder)
    }
}

/// How many of this machine's processes a `/proc` shows (proc(5), pid_namespaces(7)).
package enum ProcVisibility {
    /// `PROC_PID_INIT_INO` and `PROC_USER_INIT_INO` of the kernel: the namespaces of the machine itself.
    private static let firstPIDs: FilePath = "pid:[4026531836]"
    private static let firstUsers: FilePath = "user:[4026531837]"

    /// Whether every process of the machine is listed there. In a container those of the host are not; with
    /// `hidepid=invisible` (systemd's `ProtectProc=invisible`) those of other users are not.
    ///
    /// - Parameter process: The process that makes the check.
    package static func listsAll(
        _ root: FilePath = "/proc", for process: FilePath = "/proc/self", mounts: [UInt8]? = nil
    ) -> Bool {
        let own = process.appending("ns")
        guard Files.linkTarget(own.appending("pid")) == firstPIDs,
            let table = mounts ?? (try? Files.read(process.appending("mountinfo"), limit: 16 << 20)),
            // Of two mounts at one point the later one covers the earlier.
            let mount = Mount.parse(table).last(where: { $0.point == root }), mount.type == "proc"
        else { return false }
        let hides = mount.options.contains { option in
            guard option.hasPrefix("hidepid=") else { return false }
            // With `noaccess` they are listed, and a failed attempt shows which must not be examined.
            return !["0", "off", "1", "noaccess"].contains(option.dropFirst("hidepid=".count))
        }
        if !hides { return true }
        return ProcessRights(process)?.has(.ptrace) == true
            && Files.linkTarget(own.appending("user")) == firstUsers
    }
}

/// The rights of a process (proc_pid_status(5)).
package struct ProcessRights: Sendable {
    /// Its effective user.
    private let user: UInt32
    private let capabilities: UInt64
    private let process: FilePath

    /// - Parameter process: Its place in `/proc`.
    /// - Returns: `nil` if it is not reported, or the process is gone.
    package init?(_ process: FilePath = "/proc/self") {
        guard let status = try? Files.read(process.appending("status"), limit: 64 << 10) else { return nil }
        var (user, capabilities): (UInt32?, UInt64?)
        for line in String(decoding: status, as: UTF8.self).split(separator: "\n") {
            let words = line.split { $0 == "\t" || $0 == " " }
            switch words.first {
            case "Uid:" where words.count > 2: user = UInt32(words[2])
            case "CapEff:" where words.count > 1: capabilities = UInt64(words[1], radix: 16)
            default: break
            }
        }
        guard let user, let capabilities else { return nil }
        (self.user, self.capabilities, self.process) = (user, capabilities, process)
    }

    package func has(_ capability: Machine.Capability) -> Bool { capabilities & (1 << capability.rawValue) != 0 }

    /// Whether it can find out which processes have files of other users open.
    package var seesOthersOpenFiles: Bool { has(.lease) || mayExamineOthers && ProcVisibility.listsAll(for: process) }

    /// Whether it may examine the processes of other users. `CAP_SYS_PTRACE` allows following a descriptor; listing
    /// them also needs `CAP_DAC_READ_SEARCH`, since only the owner may read the folder.
    package var mayExamineOthers: Bool { has(.ptrace) && has(.readEverything) }

    /// Whether a folder belongs to its user, and no other may create files in it: then the files are its own, and the
    /// kernel answers for them.
    package func owns(_ folder: FilePath) -> Bool {
        var status = sluice_look()
        guard folder.withCString({ sluice_statx_following($0, &status) }) == 0 else { return false }
        return status.owner == user && status.mode & 0o022 == 0
    }
}
