import Core
import Glibc
import Linux
import TestKit
import Testing
import Watch

/// Folders without events.
@Suite("Polling", .timeLimit(.minutes(Patience.minutes(2))))
struct PollingTests {
    let folder = TemporaryFolder()
    let scene = Scene()
    var watched: FilePath { folder.path.appending("in") }

    init() throws { try Files.makeFolders(watched) }

    func rule(_ name: String = "cam", at path: FilePath = "in") -> WatchRule {
        var rule = WatchRule(name: name, path: folder.path.appending(path))
        rule.watching = .poll
        return rule
    }

    @Test("files, directories, renames and growth are found without any event")
    func everything() async throws {
        try Files.makeFolders(watched.appending("old/deep"))
        try await scene.watch([rule()]) { watcher in
            // The states are a fifth of a second old at most.
            try await eventually("the folder is polled") { watcher.states()[0].polled >= 1 }
            #expect(watcher.states()[0].unwatched == 0)
            try folder.write("in/a.mp4", [1])
            try folder.write("in/old/deep/b.mp4", [1])
            try folder.write("in/new/deeper/still/c.mp4", [1])
            try await scene.settled("a.mp4", "old/deep/b.mp4", "new/deeper/still/c.mp4")
            // A second version of a known file, and a file that is being written.
            let path = watched.appending("slow.mp4")
            let file = try Descriptor.open(path, for: .creating)
            try await eventually("the watcher has noticed the writer") {
                watcher.settlingFiles().contains { $0.path == path && $0.isBusy }
            }
            try file.write(noise(100), named: path)
            try file.close(named: path)
            try folder.write("in/a.mp4", [1, 2])
            try await scene.wait("both files have settled") { $0.settled.count == 5 }
            #expect(scene.reports.settled.allSatisfy { $0.settledBy == .quiet })
            #expect(scene.reports.settled.first { $0.relative == "slow.mp4" }?.status.size == 100)
        }
    }

    @Test("an idle folder is scanned less and less often, and often again after a change")
    func pace() async throws {
        var pace = WatchLimits.quick
        pace.poll = .milliseconds(10)
        pace.pollMost = .seconds(3600)
        try folder.write("in/known", [1])
        let clock = ContinuousClock()
        let start = clock.now
        // Each poll asks about the one file that is not recorded.
        try await scene.watch([rule()], pace: pace, known: { $0.relative == "known" ? true : nil }) { _ in
            try await eventually("the folder has been scanned eight times") { scene.reports.asked >= 8 }
            // 10 ms, and twice as long each time: the eighth poll comes after a second at least, and not after a tenth
            // of one.
            #expect(start.duration(to: clock.now) > .seconds(1))
        }
    }

    @Test("a folder that changes its watch mode misses no file and reports none twice")
    func change() async throws {
        try await scene.watch([rule()]) { watcher in
            try folder.write("in/1.mp4", [1])
            try await scene.settled("1.mp4")
            var events = rule()
            events.watching = .auto
            watcher.change([events])
            try folder.write("in/2.mp4", [1])
            try await eventually("the folder is watched by events") { watcher.states().first?.polled == 0 }
            try folder.write("in/3.mp4", [1])
            try await scene.settled("1.mp4", "2.mp4", "3.mp4")
            watcher.change([rule()])
            try folder.write("in/4.mp4", [1])
            try await scene.settled("1.mp4", "2.mp4", "3.mp4", "4.mp4")
        }
    }

    @Test("removal of a required file is noticed by polling")
    func required() async throws {
        var rule = rule()
        rule.requirement = FolderRequirement(file: ".here")
        try folder.write("in/.here", [])
        try await scene.watch([rule]) { watcher in
            try folder.write("in/1.mp4", [1])
            try await scene.settled("1.mp4")
            try Files.remove(watched.appending(".here"))
            try await eventually("the folder is absent") {
                if case .absent = watcher.states()[0].condition { true } else { false }
            }
        }
    }

    @Test("without any watch everything is polled, and the remedy is reported once")
    func noWatch() async throws {
        var pace = WatchLimits.quick
        pace.watches = 0
        var rule = rule()
        rule.watching = .auto
        try await scene.watch([rule], pace: pace) { watcher in
            try folder.write("in/x/a.mp4", [1])
            try await scene.settled("x/a.mp4")
            #expect(scene.reports.log.count { $0.contains("sysctl fs.inotify.max_user_watches=") } == 1)
            #expect(watcher.states()[0].unwatched == watcher.states()[0].polled)
        }
    }
}
