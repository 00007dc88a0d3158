internal import Core
internal import Glibc

/// The resources that this process uses now.
package struct ProcessUsage: Hashable, Sendable {
    /// Processor time of user and system together (getrusage(2)).
    package let cpu: Duration
    /// Blocks that it has read from disks or written to them.
    package let blocks: Int
    /// Bytes in memory; `nil` if `/proc` does not report it.
    package let resident: Int64?
    package let openFiles: Int?
    /// When the limit is reached, no file can be opened any more.
    package let openFileLimit: UInt64

    package init() {
        var usage = rusage()
        // Cannot fail: the address is ours.
        getrusage(RUSAGE_SELF.rawValue, &usage)
        cpu =
            .seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + .microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)
        blocks = usage.ru_inblock + usage.ru_oublock
        // proc_pid_statm(5): the second number is the resident memory, in pages.
        let statm = (try? Files.read("/proc/self/statm", limit: 4096)) ?? []  // a missing number is acceptable
        let pages = String(decoding: statm, as: UTF8.self).split(separator: " ").dropFirst().first
        resident = pages.flatMap { Int64($0) }.map { $0 * Int64(getpagesize()) }
        // Without the descriptor that reads them.
        openFiles = (try? Files.names(in: "/proc/self/fd")).map { max(0, $0.count - 2) }
        openFileLimit = Machine.openFileLimit.now
    }
}
