import Core
import Dispatch
import Glibc
import Linux
import Synchronization
import TestKit
import Testing
import Watch

/// Whole folders: unusual names, several rules, folders that appear and vanish, limits.
@Suite("Watcher and folders", .timeLimit(.minutes(Patience.minutes(2))))
struct FolderTests {
    let folder = TemporaryFolder()
    let scene = Scene()
    var watched: FilePath { folder.path.appending("in") }

    init() throws { try Files.makeFolders(watched) }

    func rule(_ name: String = "cam", at path: FilePath = "in") -> WatchRule {
        WatchRule(name: name, path: folder.path.appending(path))
    }

    static let hostile: [FilePath] = [
        "new\nline.mp4", FilePath(bytes: [0xFF, 0xFE, 0x2E, 0x6D]), FilePath(String(repeating: "n", count: 255)),
        "-rf", "--", "%s%n%00", "a%2Fb", "x...", "a b", "u\u{308}.mp4", "\u{FC}.mp4", "*", "x..", "\u{1B}[2J",
    ]

    @Test("names are bytes, at the start and in events")
    func hostileNames() async throws {
        for name in Self.hostile { try folder.write(FilePath("in/before").appending(name), [1]) }
        try await scene.watch([rule()]) { _ in
            for name in Self.hostile { try folder.write(FilePath("in").appending(name).appending(name), [1]) }
            let count = 2 * Self.hostile.count
            try await scene.wait("\(count) files have settled") { $0.settled.count == count }
            let expected = Self.hostile.map { FilePath("before").appending($0) } + Self.hostile.map { $0.appending($0) }
            #expect(Set(scene.reports.settled.map(\.relative)) == Set(expected))
        }
    }

    @Test("links, FIFOs, sockets and temporary names are skipped")
    func special() async throws {
        try folder.write("out/target.mp4", [1])
        @Sendable func make(_ name: String) throws {
            try Files.makeFolders(watched.appending(FilePath(name)))
            let base = watched.appending(FilePath(name))
            #expect(base.appending("pipe").withCString { mkfifo($0, 0o600) } == 0)
            for (from, to) in [
                ("../../out/target.mp4", "file"), ("../../out", "folder"), ("..", "loop"), ("x", "none"),
            ] {
                #expect(
                    from.withCString { from in base.appending(FilePath(to)).withCString { symlink(from, $0) } } == 0)
            }
            #expect(base.appending("socket").withCString { mknod($0, S_IFSOCK | 0o600, 0) } == 0)
            // The device `/dev/null`; only root may make one.
            if getuid() == 0 {
                #expect(base.appending("device").withCString { mknod($0, S_IFCHR | 0o600, 1 << 8 | 3) } == 0)
            }
            for (from, to) in [("self", "self"), ("one", "two"), ("two", "one")] {
                #expect(makeLink(to: FilePath(from), at: base.appending(FilePath(to))))
            }
            try folder.write(FilePath("in/\(name)/a.mp4.part"), [1])
            try folder.write(FilePath("in/\(name)/.sluice-release-1"), [1])
            try folder.write(FilePath("in/\(name)/@eaDir/thumb.jpg"), [1])
        }
        try make("before")
        try await scene.watch([rule()]) { watcher in
            try make("after")
            try folder.write("in/last.mp4", [1])
            try await scene.settled("last.mp4")
            watcher.rescan()
            try folder.write("in/before/z.mp4", [1])
            try await scene.settled("last.mp4", "before/z.mp4")
            #expect(watcher.settlingFiles().allSatisfy { ["last.mp4", "z.mp4"].contains($0.path.name) })
        }
    }

    @Test("a download counts from its rename on")
    func download() async throws {
        try await scene.watch([rule()]) { _ in
            let path = try folder.write("in/a.mp4.part", [1])
            try folder.write("in/b.mp4", [1])
            try await scene.settled("b.mp4")
            try Files.rename(path, to: watched.appending("a.mp4"))
            try await scene.settled("a.mp4", "b.mp4")
        }
    }

    @Test("the first matching rule gets the file, also with nested folders")
    func rules() async throws {
        var video = rule("video")
        video.include = ["*.mp4"]
        var top = rule("top")
        top.recursive = false
        let inner = rule("inner", at: "in/x")
        let rest = rule("rest")
        try Files.makeFolders(watched.appending("x/y"))
        try await scene.watch([video, top, inner, rest]) { _ in
            for name in ["a.mp4", "a.txt", "x/a.mp4", "x/a.txt", "x/y/b.txt", "z/c.txt"] {
                try folder.write(FilePath("in/\(name)"), [1])
            }
            try await scene.wait("6 files have settled") { $0.settled.count >= 6 }
            let taken = scene.reports.settled.map { "\($0.folder):\($0.relative.display)" }.sorted()
            #expect(
                taken == ["inner:a.txt", "inner:y/b.txt", "rest:z/c.txt", "top:a.txt", "video:a.mp4", "video:x/a.mp4"])
        }
    }

    @Test("a missing folder is absent, and watched when it appears")
    func absent() async throws {
        try await scene.watch([rule(), rule("card", at: "card")], absent: ["card"]) { watcher in
            try await state(watcher, 1) { if case .absent = $0 { true } else { false } }
            try folder.write("staged/DCIM/a.mp4", [1])
            try Files.rename(folder.path.appending("staged"), to: folder.path.appending("card"))
            try await scene.settled("DCIM/a.mp4")
            try folder.write("card/DCIM/b.mp4", [1])
            try await scene.settled("DCIM/a.mp4", "DCIM/b.mp4")
            try await state(watcher, 1) { $0 == .watching }
        }
    }

    @Test("a folder that is replaced by another of its name is watched again")
    func replaced() async throws {
        try await scene.watch([rule()]) { watcher in
            try Files.rename(watched, to: folder.path.appending("away"))
            try await state(watcher, 0) { if case .absent = $0 { true } else { false } }
            try folder.write("away/not-ours.mp4", [1])
            try folder.write("in/x/a.mp4", [1])
            try await scene.settled("x/a.mp4")
            try folder.write("in/b.mp4", [1])
            try await scene.settled("b.mp4", "x/a.mp4")
        }
    }

    func state(_ watcher: Watcher, _ index: Int, _ isIt: (WatchState.Condition) -> Bool) async throws {
        try await eventually("the folder has the expected state") { isIt(watcher.states()[index].condition) }
    }

    @Test("directories beyond the watch limit are scanned periodically, which is reported once")
    func watchLimit() async throws {
        for name in 0..<10 { try Files.makeFolders(watched.appending(FilePath("d\(name)"))) }
        var pace = WatchLimits.quick
        pace.watches = 4
        try await scene.watch([rule()], pace: pace) { watcher in
            for name in 0..<10 { try folder.write(FilePath("in/d\(name)/deeper/a.mp4"), [1]) }
            try await scene.settled((0..<10).map { "d\($0)/deeper/a.mp4" })
            #expect(scene.reports.log.count == 1)
            #expect(scene.reports.log.first?.contains("fs.inotify.max_user_watches") == true)
            #expect(watcher.states()[0].unwatched > 0)
        }
    }

    @Test("a directory whose path is too long for the kernel is reported once; others are watched")
    func tooLong() async throws {
        // Each of the two moves has paths that the kernel accepts; together they make one that it does not.
        let part = String(repeating: "d", count: 200)
        let left = 4_000 - watched.bytes.count
        let deep = FilePath(repeatElement(part, count: left / 201).joined(separator: "/"))
        let short = folder.path.appending("short")
        let below = FilePath(repeatElement(part, count: 3).joined(separator: "/"))
        try Files.makeFolders(watched.appending(deep.parent))
        try folder.write(FilePath("short/\(part)").appending(below).appending("a"), [1])
        try Files.rename(short.appending(FilePath(part)), to: watched.appending(deep))
        defer { #expect(throws: Never.self) { try Files.rename(watched.appending(deep), to: short.appending("gone")) } }
        try await scene.watch([rule()]) { watcher in
            try await scene.wait("the long name is reported") { $0.log.contains { $0.contains("File name too long") } }
            watcher.rescan()
            try folder.write("in/a.mp4", [1])
            try await scene.settled("a.mp4")
            watcher.rescan()
            try folder.write("in/b.mp4", [1])
            try await scene.settled("a.mp4", "b.mp4")
            #expect(scene.reports.log.count == 1)
        }
    }

    @Test("a directory that cannot be opened is reported once; others are watched")
    func unreadable() async throws {
        // A tree that is deeper than the maximum length of a path, which stops root too. It is joined from two.
        func tower(_ name: String) -> FilePath {
            FilePath(repeatElement(String(repeating: name, count: 200), count: 12).joined(separator: "/"))
        }
        let lower = watched.appending(tower("d"))
        let upper = folder.path.appending(tower("e").components[0])
        try Files.makeFolders(lower)
        try folder.write(tower("e").appending("a.mp4"), [1])
        try await scene.watch([rule()]) { watcher in
            let target = lower.appending(upper.name)
            try Files.rename(upper, to: target)
            defer { #expect(throws: Never.self) { try Files.rename(target, to: upper) } }
            try await scene.wait("a warning is logged") { !$0.log.isEmpty }
            watcher.rescan()
            try folder.write("in/b.mp4", [1])
            try await scene.settled("b.mp4")
            watcher.rescan()
            try folder.write("in/c.mp4", [1])
            try await scene.settled("b.mp4", "c.mp4")
            #expect(scene.reports.log.count == 1)
            #expect(scene.reports.log.first?.contains("cannot open a directory") == true)
        }
    }

    /// `nil` where the queue is too long to be filled in a test.
    static let queue: Int? = {
        let text = (try? Files.read("/proc/sys/fs/inotify/max_queued_events")).map {
            String(decoding: $0, as: UTF8.self)
        }
        return text.flatMap { Int($0.dropLast()) }.flatMap { $0 <= 65_536 ? $0 : nil }
    }()

    @Test("after the kernel lost events, every file is found", .enabled(if: queue != nil))
    func overflow() async throws {
        // Two events for each file.
        let count = try #require(Self.queue) / 2 + 500
        // The watching thread is blocked in its log while more events occur than the kernel keeps.
        let gate = Gate()
        try Files.makeFolders(folder.path.appending("card"))
        try await scene.watch(
            [rule(), rule("card", at: "card")], onLog: { if $0.contains("card is available again") { gate.pass() } }
        ) { watcher in
            try Files.makeFolders(folder.path.appending("gone"))
            try Files.rename(folder.path.appending("card"), to: folder.path.appending("gone/card"))
            try await state(watcher, 1) { if case .absent = $0 { true } else { false } }
            gate.shut()
            try Files.makeFolders(folder.path.appending("card"))
            try await eventually("the watching thread is blocked") { gate.hasArrived }
            for name in 0..<count { try folder.write(FilePath("in/f\(name)"), [1]) }
            gate.open()
            try await scene.wait("\(count) files have settled") { $0.settled.count >= count }
            #expect(Set(scene.reports.settled.map(\.relative)).count == count)
            #expect(watcher.overflows() > 0)
            #expect(scene.reports.log.filter { $0.contains("lost events") }.count == 1)
        }
    }
}

extension FolderTests {
    @Test("at most one batch is delivered at a time, and the next waits until it is confirmed")
    func batches() async throws {
        var pace = WatchLimits.quick
        pace.batch = 50
        pace.candidates = 200
        let taking = Mutex(0)
        for name in 0..<700 { try folder.write(FilePath("in/old/f\(name)"), [1]) }
        try await scene.watch(
            [rule()], pace: pace,
            onSettled: {
                taking.withLock {
                    $0 += 1
                    #expect($0 == 1)
                }
                await Task.yield()
                taking.withLock { $0 -= 1 }
            }
        ) { watcher in
            for name in 0..<700 { try folder.write(FilePath("in/new/f\(name)"), [1]) }
            try await scene.wait("1400 files have settled") { $0.settled.count >= 1_400 }
            let reports = scene.reports
            #expect(reports.settled.count == 1_400)
            #expect(reports.batches.allSatisfy { (1...50).contains($0) })
        }
    }

    @Test("an error thrown by the daemon ends the watcher and is passed on")
    func thrown() async throws {
        struct Full: Error {}
        try folder.write("in/a.mp4", [1])
        let watcher = Watcher(
            rules: [rule()], pace: .quick, clocks: SystemClocks(), isKnown: { $0.map { _ in false } }, log: { _ in })
        await #expect(throws: Full.self) { try await watcher.run(onSettled: { _ in throw Full() }) }
    }
}

/// Blocks the watching thread on request.
private final class Gate: Sendable {
    private let isShut = Mutex(false)
    private let arrived = Mutex(false)
    private let opened = DispatchSemaphore(value: 0)

    func shut() { isShut.withLock { $0 = true } }
    func open() { opened.signal() }
    var hasArrived: Bool { arrived.withLock { $0 } }

    func pass() {
        guard isShut.withLock({ $0 }) else { return }
        arrived.withLock { $0 = true }
        opened.wait()
    }
}
