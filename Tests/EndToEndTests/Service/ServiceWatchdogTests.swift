import Core
import Glibc
import Linux
import TestKit
import Testing

/// The program with a socket of the test's own in place of systemd's.
@Suite("Service watchdog, with the built program", .timeLimit(.minutes(Patience.minutes(2))))
struct ServiceWatchdogTests {
    /// Waits for the next `WATCHDOG=1`.
    private func awaitReport(_ supervisor: Supervisor) async throws {
        try await eventually("the daemon reports that it works", within: .seconds(30)) {
            while let message = supervisor.next() { if message == "WATCHDOG=1" { return true } }
            return false
        }
    }

    private func awaitReady(_ supervisor: Supervisor) async throws {
        // A slow start asks for more time before.
        try await eventually("the daemon is ready") {
            while let message = supervisor.next() { if message.hasPrefix("READY=1\n") { return true } }
            return false
        }
    }

    private func environment(_ socket: FilePath, process: String? = nil) -> [String: String] {
        var variables = ["NOTIFY_SOCKET": socket.display, "WATCHDOG_USEC": "400000"]
        variables["WATCHDOG_PID"] = process
        return variables
    }

    /// Starts a daemon without work: no server is there.
    ///
    /// - Parameter process: The process that the watchdog is meant for; `nil`: any.
    private func begin(process: String? = nil) throws -> (DaemonFixture, Supervisor) {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.destination = "http://127.0.0.1:1/"
        let socket = fixture.folder.path.appending("notify")
        let supervisor = Supervisor(socket)
        try fixture.startDaemon(environment: environment(socket, process: process))
        return (fixture, supervisor)
    }

    @Test("a daemon without work reports after READY=1 that it works, again and again, and not when it stops")
    func works() async throws {
        let (fixture, supervisor) = try begin()
        try await awaitReady(supervisor)
        for _ in 0..<4 { try await awaitReport(supervisor) }
        #expect(try await fixture.stopDaemon() == .status(0))
        var last: [String] = []
        while let message = supervisor.next() { last.append(message) }
        #expect(last.last == "STOPPING=1", "\(last)")
    }

    @Test("a watchdog that is meant for another process gets no reports")
    func otherProcess() async throws {
        let (fixture, supervisor) = try begin(process: "1")
        try await eventually("the daemon is ready") { supervisor.next()?.hasPrefix("READY=1\n") == true }
        // Twice the time of the watchdog is enough for several reports.
        try await Alarms.shared.sleep(for: .milliseconds(800))
        #expect(try await fixture.stopDaemon() == .status(0))
        while let message = supervisor.next() { #expect(message != "WATCHDOG=1") }
    }

    @Test(
        "a database that hangs ends the reports, and they go on when it answers",
        .enabled(Comment(rawValue: LoopDisk.need)) { await LoopDisk.isPossible.value })
    func hangingDatabase() async throws {
        let disk = try await LoopDisk(.ext4)
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary(), places: ["state": disk.path])
        let socket = fixture.folder.path.appending("notify")
        let supervisor = Supervisor(socket)
        try await fixture.startReceiver()
        try fixture.startDaemon(environment: environment(socket))
        try await awaitReady(supervisor)
        try await awaitReport(supervisor)
        try await disk.freeze()
        // A pause is stored. A dropped file would not do: its copy may be what hangs first.
        let pause = try Child(
            fixture.binary, ["pause", "--config", fixture.config.display],
            output: fixture.folder.path.appending("pause.out"), errors: fixture.folder.path.appending("pause.err"))
        defer { pause.end(with: SIGKILL) }  // before the fixture's folder is removed
        do {
            try await eventually("the reports end", within: .seconds(30), every: .milliseconds(50)) {
                while supervisor.next() != nil {}
                // Three times as long as the time of the watchdog.
                try await Alarms.shared.sleep(for: .milliseconds(1200))
                return supervisor.next() == nil
            }
            try await eventually("the log names the database: \(fixture.lastWords())") {
                while supervisor.next() != nil {}
                return try fixture.daemon?.standardError().contains("does not answer")
            }
        } catch {
            try await disk.thaw()
            throw error
        }
        try await disk.thaw()
        try await awaitReport(supervisor)
        #expect(fixture.lastWords().contains("database"))
        #expect(try await fixture.stopDaemon() == .status(0))
    }
}
