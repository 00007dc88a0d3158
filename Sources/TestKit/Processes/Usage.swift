internal import Core
package import Linux

/// The kernel's counters for a process (proc(5)).
package struct Usage: Hashable, Sendable {
    /// How often each thread gave up a core and got it back, by thread number: a wake-up changes one of them.
    package var switches: [Int32: Int64]
    /// Bytes of disk writes that it caused.
    package var writtenBytes: Int64
    /// Resident now, and the most ever, in bytes.
    package var resident: Int64
    package var residentPeak: Int64

    /// - Throws: `SystemError` when the process is gone.
    package init(of pid: Int32) throws(SystemError) {
        let folder = FilePath("/proc/\(pid)")
        switches = [:]
        for thread in try Files.names(in: folder.appending("task")) {
            guard let number = Int32("\(thread.display)") else { continue }
            do {
                let fields = try Self.fields(of: folder.appending("task").appending(thread).appending("status"))
                switches[number] =
                    (fields["voluntary_ctxt_switches"] ?? 0) + (fields["nonvoluntary_ctxt_switches"] ?? 0)
            } catch  where error.code == 2 || error.code == 3 {
                // ENOENT, ESRCH: the thread ended during the read.
            }
        }
        writtenBytes = try Self.fields(of: folder.appending("io"))["write_bytes"] ?? 0
        let status = try Self.fields(of: folder.appending("status"))
        resident = (status["VmRSS"] ?? 0) * 1024
        residentPeak = (status["VmHWM"] ?? 0) * 1024
    }

    private static func fields(of file: FilePath) throws(SystemError) -> [String: Int64] {
        var found: [String: Int64] = [:]
        for line in String(decoding: try Files.read(file, limit: 1 << 20), as: UTF8.self).split(separator: "\n") {
            let words = line.split(whereSeparator: { $0 == ":" || $0 == "\t" || $0 == " " })
            if words.count >= 2, let value = Int64(words[1]) { found[String(words[0])] = value }
        }
        return found
    }
}
