import Core
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

@Suite("Notify")
struct NotifyTests {
    @Test("a reload starts with the time and ends with ready")
    func reload() throws {
        let folder = TemporaryFolder()
        let path = folder.path.appending("notify")
        let supervisor = Supervisor(path)
        let notify = Notify(socket: path.display)
        notify.reloading()
        notify.reloaded()
        let lines = try #require(supervisor.next()).split(separator: "\n")
        #expect(lines.first == "RELOADING=1")
        // The time is that of CLOCK_MONOTONIC, which starts with the machine, and not the wall clock.
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let told = lines.last.flatMap { $0.hasPrefix("MONOTONIC_USEC=") ? Int64($0.dropFirst(15)) : nil }
        #expect((1...Int64(now.tv_sec + 1) * 1_000_000).contains(told ?? 0))
        #expect(supervisor.next() == "READY=1")
    }

    @Test("the supervisor gets lines of KEY=value")
    func tells() {
        let folder = TemporaryFolder()
        let path = folder.path.appending("notify")
        let supervisor = Supervisor(path)
        let notify = Notify(socket: path.display)
        #expect(notify.isEnabled)
        notify.ready("watching 2 folders")
        notify.status("a\nREADY=0")
        notify.stopping()
        #expect(supervisor.next() == "READY=1\nSTATUS=watching 2 folders")
        // A text cannot begin a second line.
        #expect(supervisor.next() == "STATUS=a\\x0aREADY=0")
        #expect(supervisor.next() == "STOPPING=1")
    }

    @Test("without a supervisor nothing is sent", arguments: [nil, "", "vsock:2:1", "/nowhere/at/all", "relative"])
    func noSupervisor(_ socket: String?) {
        let notify = Notify(socket: socket)
        notify.ready("x")
        #expect(notify.isEnabled == (socket == "/nowhere/at/all"))
    }

    @Test(
        "the watchdog is for the process that the service manager names, and for any without a name",
        arguments: [
            ("2000000", nil, Duration.seconds(2)), ("2000000", "\(getpid())", .seconds(2)), ("2000000", "1", nil),
            (nil, nil, nil), ("0", nil, nil), ("-1", nil, nil), ("soon", nil, nil), ("", nil, nil),
        ] as [(String?, String?, Duration?)])
    func watchdog(_ time: String?, _ process: String?, _ expected: Duration?) throws {
        let folder = TemporaryFolder()
        let path = folder.path.appending("notify")
        let supervisor = Supervisor(path)
        let notify = Notify(socket: path.display, watchdogTime: time, watchdogProcess: process)
        #expect(notify.watchdogTimeout == expected)
        #expect(Notify(socket: nil, watchdogTime: time, watchdogProcess: process).watchdogTimeout == nil)
        notify.watchdog()
        #expect(supervisor.next() == "WATCHDOG=1")
    }

    @Test("a start that works gets more time, one that hangs gets none")
    func startExtension() async throws {
        let folder = TemporaryFolder()
        let path = folder.path.appending("notify")
        let supervisor = Supervisor(path)
        typealias Work = StartExtension.Work
        // The work at the start, and at each look.
        let works = Mutex([
            Work(cpu: .seconds(1), blocks: 5), Work(cpu: .seconds(2), blocks: 5), Work(cpu: .seconds(2), blocks: 5),
            Work(cpu: .seconds(2) + .milliseconds(1), blocks: 6),
        ])
        let notify = Notify(socket: path.display, watchdogTime: "8000000")
        let pauses = Mutex<[Duration]>([])
        await StartExtension(
            notify, work: { works.withLock { $0.removeFirst() } },
            sleep: { pause in
                pauses.withLock { $0.append(pause) }
                if works.withLock({ $0.isEmpty }) { throw CancellationError() }
            }
        ).run("starting")
        for _ in 0..<2 {
            #expect(supervisor.next() == "EXTEND_TIMEOUT_USEC=60000000\nSTATUS=starting")
            #expect(supervisor.next() == "WATCHDOG=1")
        }
        #expect(supervisor.next() == nil)
        #expect(pauses.withLock { $0 } == Array(repeating: .seconds(4), count: 4))
    }

    @Test("a supervisor that reads nothing does not hold up the reports", .timeLimit(.minutes(1)))
    func fullQueue() {
        let folder = TemporaryFolder()
        let path = folder.path.appending("notify")
        let supervisor = Supervisor(path)
        let notify = Notify(socket: path.display)
        // More than any queue of datagrams holds (net.unix.max_dgram_qlen).
        for _ in 0..<2000 {
            notify.watchdog()
            notify.status("working")
        }
        #expect(supervisor.next() == "WATCHDOG=1")
    }
}
