import Core
import Glibc
import Linux
import TestKit
import Testing

/// Stops and starts of the daemon: by a signal, at once, and much later.
@Suite("Life cycle of the daemon")
struct StartStopTests {
    @Test(
        "200 days later a kept source is neither staged nor uploaded again", .timeLimit(.minutes(Patience.minutes(3))))
    func muchLater() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try await fixture.startReceiver()
        try fixture.startDaemon()
        for number in 0..<5 {
            try camera.drop(Clip(number: number, size: 50_000, relative: FilePath("old \(number).mp4")))
        }
        try await Outcome(fixture: fixture, clips: camera.clips).wait()
        #expect(try await fixture.stopDaemon() == .status(0))

        try fixture.startDaemon(environment: ["SLUICE_TEST_CLOCK": "\(200 * 86_400)"])
        // A new file that arrives shows that the scan is over and the whole path works.
        try camera.drop(Clip(number: 5, size: 50_000, relative: "new.mp4"))
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait()
        #expect(try outcome.problems() == [])
        // The history may have forgotten the old ones by now; the test is that none of them was uploaded again.
        let status = try #require(try await fixture.status())
        #expect(status.counts.completed <= camera.clips.count)
        #expect(status.counts.failed == 0)
    }

    @Test(
        "SIGTERM during an upload stops the daemon soon, and the next start continues",
        .timeLimit(.minutes(Patience.minutes(3))))
    func leaves() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try camera.drop(Clip(number: 1, size: 48 << 20, relative: "large.mp4"))
        try await eventually("the receiver has bytes of the large file", within: .seconds(30)) {
            try Outcome.files(in: fixture.received, hidden: true).contains {
                try FileStatus.ifPresent(at: fixture.received.appending($0)).map { $0.size > 0 } ?? false
            }
        }
        // The daemon allows itself 1.5 s for a stop; on a loaded machine that can take several.
        #expect(try await fixture.stopDaemon(within: .seconds(5)) == .status(0), "\(fixture.lastWords())")
        try fixture.startDaemon()
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait()
        try await outcome.check()
    }

    @Test(
        "SIGTERM stops the daemon even if its log is no longer read", .timeLimit(.minutes(Patience.minutes(1))))
    func unreadLog() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        try fixture.writeConfiguration()
        let log = fixture.folder.path.appending("log")
        try #require(mkfifo(log.display, 0o600) == 0)
        let reader = open(log.display, O_RDWR | O_NONBLOCK)
        try #require(reader >= 0)
        defer { close(reader) }
        let line = [UInt8](repeating: 0x78, count: 4096)
        while write(reader, line, line.count) > 0 {}
        while write(reader, line, 1) > 0 {}
        try #require(errno == EAGAIN)
        let daemon = try Child(
            fixture.binary, ["run", "--config", fixture.config.display],
            output: fixture.folder.path.appending("out"), errors: log)
        // The daemon blocks in the write of its first log line.
        try await eventually("the daemon blocks in its write to the log") {
            try Files.names(in: FilePath("/proc/\(daemon.pid)/task")).contains { thread in
                // A thread may end during the inspection.
                let call = try? Files.read(FilePath("/proc/\(daemon.pid)/task/\(thread.display)/syscall"), limit: 256)
                // write(2) to 2, by the numbers of x86-64 and arm64.
                let text = call.map { String(decoding: $0, as: UTF8.self) } ?? ""
                return text.hasPrefix("1 0x2 ") || text.hasPrefix("64 0x2 ")
            }
        }
        daemon.send(SIGTERM)
        #expect(try await daemon.end(within: .seconds(20)) == .status(0))
    }

    @Test("a second daemon on the same state folder is refused", .timeLimit(.minutes(Patience.minutes(1))))
    func alone() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await eventually("the daemon answers", every: .milliseconds(50)) { try await fixture.status() != nil }
        let second = try Child(
            Setting.binary(), ["run", "--config", fixture.config.display],
            output: fixture.folder.path.appending("2.out"),
            errors: fixture.folder.path.appending("2.err"))
        // sysexits.h: EX_TEMPFAIL, the state is locked.
        #expect(try await second.end(within: .seconds(20)) == .status(75))
        #expect(fixture.daemon?.ended == nil)
    }
}
