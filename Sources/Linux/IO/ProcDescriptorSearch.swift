internal import CLinux
package import Core
internal import Glibc

/// Searches the descriptors of all processes for one that has a file open for writing (proc_pid_fd(5)), and their
/// memory for a shared writable mapping of it (proc_pid_maps(5)), which outlives its descriptor.
///
/// It sees nothing of another user's process without `CAP_SYS_PTRACE` and `CAP_DAC_READ_SEARCH`, nothing on another
/// machine, and no descriptor in transit through a Unix socket. Where not every process is listed (``ProcVisibility``),
/// finding no writer proves nothing. Used by one thread at a time.
package final class ProcDescriptorSearch {
    package struct Answer {
        package var writer: OpenWriter
        /// Number of processes that could not be examined.
        package var closed: Int
        /// Not every process of the machine is listed.
        package var hidesProcesses = false
    }

    private struct File: Hashable {
        let device: UInt64
        let inode: UInt64
    }

    private let root: FilePath
    private let clocks: any Clocks
    private var snapshotAt: MonotonicTime?
    private var written: Set<File> = []
    /// Inodes that are mapped for writing on a file system whose mappings name another device than its files do
    /// (Btrfs).
    private var mapped: Set<UInt64> = []
    private var closed = 0
    private var isComplete = false
    private var listsAll = false

    /// One walk through all processes answers every question for this long.
    private static let freshness = Duration.milliseconds(250)
    /// The most descriptors that one walk examines.
    private static let maxDescriptors = 200_000

    /// - Parameter root: The folder of the processes; tests use another.
    package init(clocks: any Clocks, root: FilePath = "/proc") {
        self.clocks = clocks
        self.root = root
    }

    /// - Parameter look: The status from before the question.
    package func writer(of status: FileStatus, seen: MonotonicTime) -> Answer {
        // A walk that began before the status says nothing about a writer that came in between.
        if snapshotAt.map({ $0 < seen || clocks.monotonic().since($0) > Self.freshness }) ?? true { walk() }
        if written.contains(File(device: status.device, inode: status.inode)) || mapped.contains(status.inode) {
            return Answer(writer: .present, closed: closed)
        }
        return Answer(
            writer: isComplete && listsAll && closed == 0 ? .unseen : .unknown, closed: closed,
            hidesProcesses: !listsAll)
    }

    private func walk() {
        snapshotAt = clocks.monotonic()
        (written, mapped) = ([], [])
        closed = 0
        (isComplete, listsAll) = (false, false)
        var left = Self.maxDescriptors
        // Without /proc no process is visible, and nothing is concluded.
        guard let processes = try? Files.names(in: root) else { return }
        listsAll = ProcVisibility.listsAll(root)
        for process in processes where process.bytes.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) {
            examine(into: root.appending(process), &left)
            if left <= 0 { return }
        }
        isComplete = true
    }

    private func examine(into process: FilePath, _ left: inout Int) {
        let folder = process.appending("fd")
        var isWithheld = false
        do {
            for name in try Files.names(in: folder) {
                left -= 1
                if left <= 0 { return }
                // It was closed meanwhile, or is no file.
                guard let status = FileStatus.behind(folder.appending(name)), status.isRegular else { continue }
                switch isForWriting(process.appending("fdinfo").appending(name)) {
                case true?: written.insert(File(device: status.device, inode: status.inode))
                case false?: break
                case nil: isWithheld = true
                }
            }
            if isWithheld { closed += 1 }
            noteMappings(try Files.read(process.appending("maps"), limit: Self.longestMaps))
        } catch {
            // A process that has ended has nothing open.
            if !error.isMissing && error.code != ESRCH { closed += 1 }
        }
    }

    /// The largest text of a process's mappings that is read. A process with more counts as not examined.
    private static let longestMaps = 64 << 20

    /// `7f3c9a600000-7f3c9a601000 rw-s 00000000 08:01 1835023    /srv/drop/a.bin`
    private func noteMappings(_ text: [UInt8]) {
        for line in text.split(separator: UInt8(ascii: "\n")) {
            let words = line.split(separator: UInt8(ascii: " "), maxSplits: 5)
            guard words.count >= 5 else { continue }
            let rights = Array(words[1])
            guard rights.count == 4, rights[1] == UInt8(ascii: "w"), rights[3] == UInt8(ascii: "s") else { continue }
            let device = words[3].split(separator: UInt8(ascii: ":")).map {
                UInt32(String(decoding: $0, as: UTF8.self), radix: 16)
            }
            guard device.count == 2, let major = device[0], let minor = device[1],
                let inode = UInt64(String(decoding: words[4], as: UTF8.self))
            else { continue }
            // A file system without a disk of its own may report one device here and another to a caller of stat.
            if major == 0 { mapped.insert(inode) }
            written.insert(File(device: sluice_device_number(major, minor), inode: inode))
        }
    }

    /// `flags: 02100001`: the octal flags of open(2) (proc_pid_fdinfo(5)).
    ///
    /// - Returns: `nil` when it cannot be read how a descriptor was opened.
    private func isForWriting(_ info: FilePath) -> Bool? {
        let text: [UInt8]
        do { text = try Files.read(info, limit: 64 << 10) } catch {
            // It was closed meanwhile, or its process has ended.
            return error.isMissing || error.code == ESRCH ? false : nil
        }
        for line in text.split(separator: UInt8(ascii: "\n")) where line.starts(with: Array("flags:".utf8)) {
            let digits = line.dropFirst(6).filter { $0 >= 0x30 && $0 <= 0x37 }
            guard let flags = CInt(String(decoding: digits, as: UTF8.self), radix: 8) else { return true }
            return flags & O_ACCMODE != O_RDONLY
        }
        return nil
    }
}
