import Core
import Linux
import Synchronization
import TestKit
import Testing

@testable import Watch

/// Changes of the folders during the watch.
@Suite("Changing the watched folders", .timeLimit(.minutes(Patience.minutes(2))))
struct ChangeTests {
    let folder = TemporaryFolder()
    let scene = Scene()

    private func rule(_ name: String, _ path: String, include: [String] = [], recursive: Bool = true) throws
        -> WatchRule
    {
        let path = folder.path.appending(FilePath(path))
        try Files.makeFolders(path)
        return WatchRule(name: name, path: path, recursive: recursive, include: include)
    }

    private func folders(_ watcher: Watcher, are names: [String]) async throws {
        try await eventually("the watched folders are \(names)") { watcher.states().map(\.folder) == names }
    }

    @Test("first scans that end while one is being recorded are reported together")
    func scannedTogether() async throws {
        let rules = try (0..<50).map { try rule("f\($0)", "f\($0)") }
        let watcher = Watcher(rules: rules, clocks: SystemClocks(), isKnown: { $0.map { _ in false } }, log: { _ in })
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let told = Mutex([[String]]())
        let running = Task {
            try await watcher.run(
                onSettled: { _ in },
                onScanned: { folders in
                    told.withLock { $0.append(folders) }
                    for await _ in gate {}
                })
        }
        defer { running.cancel() }
        try await eventually("all folders are scanned") { watcher.states().allSatisfy { $0.condition == .watching } }
        open.finish()
        try await eventually("all first scans have been reported") { told.withLock { $0.joined().count } == 50 }
        #expect(told.withLock { $0.count } <= 2)
        #expect(Set(told.withLock { $0.joined() }) == Set(rules.map(\.name)))
    }

    @Test("each folder has one owner after a change, even if mounts are checked at the same moment")
    func changeAndMounts() async throws {
        let (a, b) = (try rule("a", "a"), try rule("b", "b"))
        let threads = WatchThreads(rules: [a], skipping: []) { _ in Mailbox(states: []) }
        let looks = Atomic(0)
        let isOver = Atomic(false)
        async let mounts: Void = onLongThread(named: "mounts") {
            while !isOver.load(ordering: .relaxed) {
                _ = threads.reassign()
                looks.wrappingAdd(1, ordering: .relaxed)
            }
        }
        defer { isOver.store(true, ordering: .relaxed) }
        for number in 0..<100 {
            let rules = number % 2 == 0 ? [a, b] : [a]
            _ = threads.change(rules, skipping: [])
            // The scan that was running is over.
            let before = looks.load(ordering: .relaxed)
            try await eventually("the mounts have been checked") { looks.load(ordering: .relaxed) >= before + 1 }
            let members = threads.members
            for member in members { _ = member.mailbox.removeOrders() }
            try #require(members.reduce(into: Set()) { $0.formUnion($1.folderPaths) } == Set(rules.map(\.path)))
        }
        isOver.store(true, ordering: .relaxed)
        try await mounts
    }

    @Test("files in a new folder are found, and new files in a removed folder are not")
    func comeAndGo() async throws {
        let (a, b) = (try rule("a", "a"), try rule("b", "b"))
        try folder.write("b/early", [1])
        try await scene.watch([a]) { watcher in
            watcher.change([a, b])
            try await scene.settled("early")
            watcher.change([b])
            try await folders(watcher, are: ["b"])
            try folder.write("a/late", [1])
            try folder.write("b/late b", [1])
            try await scene.settled("early", "late b")
            #expect(scene.reports.settled.map(\.folder) == ["b", "b"])
            // Back again: files from the time between are found by its first scan.
            watcher.change([b, a])
            try await scene.settled("early", "late b", "late")
        }
    }

    @Test("an unchanged folder is not scanned again, and its files continue to settle")
    func untouched() async throws {
        var pace = WatchLimits.quick
        // No file settles before the test permits it.
        pace.quiet.closed = .seconds(3600)
        let (a, b) = (try rule("a", "a"), try rule("b", "b"))
        let old = (0..<20).map { "old \($0)" }
        for name in old { try folder.write(FilePath("a").appending(FilePath(name)), [1]) }
        try await scene.watch([a], pace: pace) { watcher in
            try folder.write("a/new", [1])
            try await eventually("the new file settles") {
                watcher.settlingFiles().contains { $0.path.name == "new" }
            }
            try await scene.settled(old)
            let since = watcher.settlingFiles().first { $0.path.name == "new" }?.since
            let asked = scene.reports.asked
            for _ in 0..<10 {
                watcher.change([a, b])
                watcher.change([b, a])
            }
            try await scene.wait("the first scan of b has ended") { $0.scanned.contains("b") }
            try await folders(watcher, are: ["b", "a"])
            #expect(watcher.settlingFiles().first { $0.path.name == "new" }?.since == since)
            #expect(scene.reports.asked == asked)
            #expect(scene.reports.scanned.filter { $0 == "a" }.count == 1)
        }
    }

    @Test("changed patterns apply at once, to settling and to existing files")
    func patterns() async throws {
        let before = try rule("a", "a", include: ["*.mp4"])
        try folder.write("a/1.txt", [1])
        try await scene.watch([before]) { watcher in
            try folder.write("a/1.mp4", [1])
            try await scene.settled("1.mp4")
            watcher.change([try rule("a", "a", include: ["*.txt"])])
            try await scene.settled("1.mp4", "1.txt")
            try folder.write("a/2.mp4", [1])
            try folder.write("a/2.txt", [1])
            try await scene.settled("1.mp4", "1.txt", "2.txt")
        }
    }

    @Test("a folder inside another takes its files from it, and gives them back")
    func nested() async throws {
        let outer = try rule("outer", "a")
        let inner = try rule("inner", "a/in")
        try await scene.watch([outer]) { watcher in
            watcher.change([inner, outer])
            try await folders(watcher, are: ["inner", "outer"])
            try folder.write("a/in/1", [1])
            try await scene.wait("the first file has settled") { $0.settled.map(\.folder) == ["inner"] }
            watcher.change([outer])
            try await folders(watcher, are: ["outer"])
            try folder.write("a/in/2", [1])
            // The old file is found again under its other name, as after a restart; the new one comes once.
            try await scene.wait("three files have settled") {
                $0.settled.map { "\($0.folder) \($0.relative.display)" }.sorted() == [
                    "inner 1", "outer in/1", "outer in/2",
                ]
            }
        }
    }

    @Test("no file is missed or reported twice, however often folders change while files arrive")
    func storm() async throws {
        let (a, b, c) = (try rule("a", "a"), try rule("b", "b"), try rule("c", "a/deep", recursive: false))
        var wanted: [String] = []
        for number in 0..<60 { wanted.append("\(number)") }
        let names = wanted
        try await scene.watch([a]) { watcher in
            for number in names.indices {
                try folder.write(FilePath("a/\(names[number])"), [1])
                let lists = [[a], [a, b], [a, b, c], [b, a], [c, a], [a, c, b]]
                watcher.change(lists[number % lists.count])
            }
            watcher.change([a])
            try await scene.settled(names)
            #expect(Set(scene.reports.settled.map(\.folder)) == ["a"])
        }
    }

    @Test("existing files of a new folder are skipped if configured, those of other folders are not")
    func skipping() async throws {
        let (a, b) = (try rule("a", "a"), try rule("b", "b"))
        try folder.write("b/old", [1])
        try await scene.watch([a]) { watcher in
            watcher.change([a, b], skipExisting: ["b"])
            try await scene.wait("the old file has been skipped") { $0.skipped.map(\.relative.display) == ["old"] }
            try folder.write("b/new", [1])
            try await scene.settled("new")
        }
    }
}
