import Core
import Linux
import TestKit
import Testing

@testable import Shell

/// The log of a report, from a journal and from where a process writes.
@Suite("Log of a report")
struct DaemonLogTests {
    private let folder = TemporaryFolder()

    /// - Parameter script: In place of `journalctl`, for /bin/sh.
    private func log(pid: Int32? = nil, journalctl script: String) throws -> DaemonLog {
        try folder.writeProgram("bin/journalctl", script)
        var log = DaemonLog(pid: pid, unit: "sluice.service")
        log.path = "\(folder.path.display)/bin:/usr/bin:/bin"
        log.proc = folder.path.appending("proc")
        return log
    }

    /// A process whose standard error is at a place.
    private func process(writesTo target: FilePath, group: String = "0::/user.slice/session-1.scope") throws {
        try folder.write("proc/77/cgroup", Array((group + "\n").utf8))
        let descriptors = folder.path.appending("proc/77/fd")
        try Files.makeFolders(descriptors)
        try Files.makeLink(descriptors.appending("2"), to: target)
    }

    @Test("without a daemon the journal has the lines of all runs of the unit")
    func ofUnit() async throws {
        let lines = try await log(journalctl: "echo \"asked $*\"").lines()
        #expect(lines.count == 2 && lines[0].contains("sluice.service, all runs"))
        for match in [
            "_SYSTEMD_UNIT=sluice.service", "UNIT=sluice.service", "_SYSTEMD_USER_UNIT=sluice.service", "-n 300",
        ] {
            #expect(lines[1].contains(match), "\(lines)")
        }
        #expect(!lines[1].contains("_PID") && !lines[1].contains("SYSLOG_IDENTIFIER"))
    }

    @Test("a daemon that another unit starts is found by its identifier, and one that systemd started by its unit")
    func otherUnits() async throws {
        let script = "case \"$*\" in *SYSLOG_IDENTIFIER=sluice*|*UNIT=camera.service*) echo found;; esac"
        let all = try await log(journalctl: script).lines()
        #expect(all.last == "found", "\(all)")
        try process(writesTo: "socket:[123]", group: "0::/system.slice/camera.service")
        let lines = try await log(pid: 77, journalctl: script).lines()
        #expect(lines.last == "found" && lines[0].contains("camera.service"), "\(lines)")
    }

    @Test("without a journal it says where a log may be, and why there is none here")
    func nowhere() async throws {
        let empty = try await log(journalctl: "exit 0").lines()
        #expect(
            empty.count == 2 && empty[0].contains("no line of sluice.service") && empty[1].contains("standard error"))
        let broken = try await log(journalctl: "exit 3").lines()
        #expect(broken.count == 2 && broken[0].contains("ended with status 3"), "\(broken)")
    }

    @Test("the end of the file that the running daemon writes is read, also after it was removed by its name")
    func file() async throws {
        let all = (1...1000).map { "line \($0)\n" }.joined()
        try process(writesTo: try folder.write("daemon.log", Array(all.utf8)))
        let lines = try await log(pid: 77, journalctl: "exit 0").lines()
        #expect(lines[0].contains("daemon.log") && lines[1] == "line 701" && lines.contains("line 1000"))
        #expect(lines.last?.contains("no line of sluice.service") == true)
    }

    @Test(
        "a log that goes elsewhere is named",
        arguments: [
            ("pipe:[5]", "goes to a pipe (pid 77)"), ("/dev/pts/3", "the terminal /dev/pts/3"),
            ("/dev/null", "it is discarded"),
        ])
    func elsewhere(target: String, text: String) async throws {
        try process(writesTo: FilePath(target))
        let lines = try await log(pid: 77, journalctl: "exit 0").lines()
        #expect(lines[0].contains(text), "\(lines)")
    }

    @Test("a process that may not be examined is named, with the remedy")
    func hiddenProcess() async throws {
        let lines = try await log(pid: 78, journalctl: "exit 0").lines()
        #expect(lines[0].contains("cannot be seen (pid 78)") && lines[0].contains("as root"), "\(lines)")
    }

    @Test("a long line is cut, and the last lines are kept")
    func long() {
        let text = String(repeating: "x", count: 10_000) + "\nlast\n"
        let lines = DaemonLog.last(text.utf8)
        #expect(lines.count == 2 && lines[0].count == 4001 && lines[1] == "last")
    }
}
