import Core
import Glibc
import Linux
import TestKit
import Testing

@Suite("Idle processes")
struct IdleTests {
    @Test(
        "neither daemon nor receiver wakes or writes, with 1,000 folders watched",
        .timeLimit(.minutes(Patience.minutes(2))))
    func sleeps() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        for number in 0..<1000 { try Files.makeFolders(fixture.drop.appending(FilePath("day \(number)"))) }
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let reader = try await eventually("a client reads the events", every: .milliseconds(50)) { () -> Child? in
            guard try await fixture.status() != nil else { return nil }
            return try Child(
                fixture.binary, ["events", "--config", fixture.config.display],
                output: fixture.folder.path.appending("events.out"),
                errors: fixture.folder.path.appending("events.err"))
        }
        for number in 0..<20 {
            try camera.drop(Clip(number: number, size: 50_000, relative: FilePath("day \(number * 40)/\(number).mp4")))
        }
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait()
        try await outcome.check()
        let (heard, trouble) = (try reader.standardOutput(), try reader.standardError())
        #expect(heard.contains("completed"), "\(trouble)")
        reader.end(with: SIGKILL)

        // Other tests mount disks meanwhile, which wakes a program that watches folders.
        let mounts = try MountEvents()
        for process in [fixture.daemon, fixture.receiver] {
            let pid = try #require(process).pid
            // The work after the last uploads is over when nothing happens for three seconds.
            var before = try Usage(of: pid)
            try await eventually("process \(pid) sleeps", within: .seconds(60), every: .seconds(3)) {
                let now = try Usage(of: pid)
                defer { before = now }
                var woken = now.switches.filter { before.switches[$0.key] != $0.value }.map(\.key)
                if Setting.isInstrumented {
                    // A sanitizer's own thread, which wakes up ten times a second, has the same name as the main one.
                    woken = woken.filter { $0 == pid || Self.name(of: $0, in: pid) != "sluice" }
                }
                if mounts.hasChanged() {
                    woken = woken.filter { Self.name(of: $0, in: pid) != "sluice-watch" }
                }
                let isQuiet = woken.isEmpty && now.writtenBytes == before.writtenBytes
                // Memory that the work needed was given back, which is the last action. A sanitizer keeps it.
                return isQuiet && (now.resident < now.residentPeak || Setting.isInstrumented)
            }
            // libdispatch's threads, which would wake again with the next sleep, have other names.
            let threads = before.switches.keys.map { Self.name(of: $0, in: pid) }
            #expect(threads.contains("task") && !threads.contains { $0.contains("qos") }, "\(threads)")
        }
    }

    private static func name(of thread: Int32, in pid: Int32) -> String {
        // A thread that ended meanwhile has no name.
        let line = (try? Files.read(FilePath("/proc/\(pid)/task/\(thread)/comm"), limit: 64)) ?? []
        return String(String(decoding: line, as: UTF8.self).dropLast())
    }
}
