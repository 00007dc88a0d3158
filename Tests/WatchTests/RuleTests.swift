import Core
import Glibc
import Linux
import TestKit
import Testing
import Watch

/// The files that a folder takes, and their waits.
@Suite("Watching by the rules of a folder", .timeLimit(.minutes(Patience.minutes(2))))
struct RuleTests {
    let folder = TemporaryFolder()
    let scene = Scene()
    var watched: FilePath { folder.path.appending("in") }

    init() throws { try Files.makeFolders(watched) }

    func rule(_ change: (inout WatchRule) -> Void = { _ in }) -> WatchRule {
        var rule = WatchRule(name: "cam", path: watched)
        change(&rule)
        return rule
    }

    // MARK: - Ignore files

    @Test("an ignore file applies to its directory and below, to existing and new files, and is never taken")
    func ignored() async throws {
        try folder.write("in/.sluiceignore", Array("*.log\n/only-here.mp4\nproxy/\n".utf8))
        try folder.write("in/day/.sluiceignore", Array("!keep.log\n*.jpg\n".utf8))
        @Sendable func fill(_ run: String) throws {
            for name in [
                "a.mp4", "a.log", "only-here.mp4", "proxy/b.mp4", "day/keep.log", "day/x.jpg", "day/only-here.mp4",
                "day/deep/c.mp4", "day/deep/d.jpg", "day/proxy/e.mp4",
            ] { try folder.write(FilePath("in/\(run)\(name)"), [1]) }
        }
        try fill("")
        try await scene.watch([rule { $0.include = ["*", ".*"] }]) { _ in
            let first = ["a.mp4", "day/keep.log", "day/only-here.mp4", "day/deep/c.mp4"]
            try await scene.settled(first)
            // The same by events. In their directory no pattern is bound to the top.
            try fill("late/")
            try folder.write("in/last.mp4", [1])
            try await scene.settled(
                first + [
                    "late/a.mp4", "late/only-here.mp4", "late/day/only-here.mp4", "late/day/x.jpg",
                    "late/day/deep/c.mp4", "late/day/deep/d.jpg", "last.mp4",
                ])
        }
    }

    @Test("a changed ignore file applies at once, in both directions")
    func ignoreChanges() async throws {
        try folder.write("in/.sluiceignore", Array("*.jpg\n".utf8))
        try folder.write("in/day/a.jpg", [1])
        try folder.write("in/day/a.mp4", [1])
        try await scene.watch([rule()]) { _ in
            try await scene.settled("day/a.mp4")
            try folder.write("in/new", Array("*.mp4\n".utf8))
            try Files.rename(watched.appending("new"), to: watched.appending(".sluiceignore"))
            // `new` may have settled before it got its other name.
            try await scene.wait("the first picture has settled") { $0.settled.contains { $0.relative == "day/a.jpg" } }
            try folder.write("in/day/b.mp4", [1])
            try folder.write("in/day/b.jpg", [1])
            try await scene.wait("the second picture has settled") {
                $0.settled.contains { $0.relative == "day/b.jpg" }
            }
            #expect(!scene.names.contains("day/b.mp4"))
            try Files.remove(watched.appending(".sluiceignore"))
            try await scene.wait("the film has settled") { $0.settled.contains { $0.relative == "day/b.mp4" } }
        }
    }

    @Test("an ignore file that cannot be read closes its directory, which is reported once")
    func unreadableIgnore() async throws {
        try Files.makeFolders(watched.appending("day/.sluiceignore"))
        try folder.write("in/day/x/a.mp4", [1])
        try folder.write("in/b.mp4", [1])
        try await scene.watch([rule()]) { watcher in
            try await scene.settled("b.mp4")
            try folder.write("in/day/c.mp4", [1])
            watcher.rescan()
            try folder.write("in/d.mp4", [1])
            try await scene.settled("b.mp4", "d.mp4")
            #expect(scene.reports.log.filter { $0.contains("cannot read") }.count == 1)
            #expect(
                watcher.states()[0].troubles.first?.contains("day/.sluiceignore (it is not a regular file)") == true)
            #expect(rmdir(watched.appending("day/.sluiceignore").display) == 0)
            try await scene.settled("b.mp4", "d.mp4", "day/c.mp4", "day/x/a.mp4")
            try await eventually("the folder has no troubles") { watcher.states()[0].troubles.isEmpty ? true : nil }
        }
    }

    @Test("the reason why an ignore file cannot be read is explained, also before the start")
    func obstacles() throws {
        try Files.makeFolders(watched)
        let file = watched.appending(".sluiceignore")
        #expect(FolderSurvey.obstacle(in: SourceFolders()[watched]) == nil)
        #expect(makeLink(to: "elsewhere", at: file))
        #expect(FolderSurvey.obstacle(in: SourceFolders()[watched])?.contains("(it is a symbolic link") == true)
        try Files.remove(file)
        #expect(mkfifo(file.display, 0o600) == 0)
        #expect(FolderSurvey.obstacle(in: SourceFolders()[watched])?.contains("(it is not a regular file)") == true)
        try Files.remove(file)
        try folder.write("in/.sluiceignore", [UInt8](repeating: 35, count: 65_537))
        #expect(FolderSurvey.obstacle(in: SourceFolders()[watched])?.contains("(it has more than 64 KiB)") == true)
    }

    @Test("a survey of the folders finds the files that the watcher would take, and no others")
    func survey() throws {
        try folder.write("in/.sluiceignore", Array("*.log\nproxy/\n".utf8))
        for name in ["a.mp4", "a.mp4.ok", "b.mp4", "x.log", "x.log.ok", "proxy/c.mp4", "proxy/c.mp4.ok", "d.mp4.ok"] {
            try folder.write(FilePath("in/\(name)"), [1])
        }
        try folder.write("in/large.mp4", noise(100))
        try folder.write("in/large.mp4.ok", [])
        let rule = rule {
            $0.marker = MarkerName("{name}.ok")
            $0.limits = FileLimits(maxSize: 50)
        }
        var survey = FolderSurvey(rules: [rule], in: SourceFolders(), clocks: SystemClocks())
        var names: [String] = []
        while let piece = survey.next() { names += piece.files.map(\.relative.display) }
        #expect(names == ["a.mp4"])
        var away = FolderSurvey(
            rules: [self.rule { $0.requirement = FolderRequirement(file: ".here") }], in: SourceFolders(),
            clocks: SystemClocks())
        let piece = away.next()
        #expect(piece?.isFolderAway == true)
        #expect(piece?.files.isEmpty == true)
    }

    // MARK: - Sizes and ages

    @Test("sizes are checked when a file is finished, and a skipped file is taken once it fits")
    func sizes() async throws {
        try folder.write("in/old-small", noise(9))
        try folder.write("in/old-good", noise(10))
        try await scene.watch([rule { $0.limits = FileLimits(minSize: 10, maxSize: 20) }]) { watcher in
            try folder.write("in/small", noise(9))
            try folder.write("in/large", noise(21))
            // Larger than the limit while it is written, and of a valid size in the end.
            let path = watched.appending("cut")
            let file = try Descriptor.open(path, for: .creating)
            try file.write(noise(100), named: path)
            try await eventually("the watcher has found the file") {
                watcher.settlingFiles().contains { $0.path == path }
            }
            try file.setSize(15, named: path)
            try file.close(named: path)
            try await scene.settled("old-good", "cut")
            try await scene.wait("both files are reported as skipped") {
                $0.log.filter { $0.contains("skipped: ") }.count == 2
            }
            #expect(scene.reports.log.contains { $0.contains("/small: it has 9 B, less than min_size") })
            try folder.write("in/small", noise(12))
            try await scene.settled("old-good", "cut", "small")
        }
    }

    @Test("two folders on one path are distinguished by size, also when a file grows from one into the other")
    func bySize() async throws {
        try folder.write("in/small", noise(10))
        try folder.write("in/large", noise(1000))
        let rules = [
            rule { $0.limits = FileLimits(maxSize: 100) },
            rule {
                $0.name = "films"
                $0.limits = FileLimits(minSize: 100)
            },
        ]
        try await scene.watch(rules) { watcher in
            try await scene.settled("small", "large")
            let path = watched.appending("growing")
            let file = try Descriptor.open(path, for: .creating)
            try file.write(noise(50), named: path)
            try await eventually("the watcher has found the file") {
                watcher.settlingFiles().contains { $0.path == path }
            }
            try file.write(noise(500), named: path)
            try file.close(named: path)
            try folder.write("in/late", noise(20))
            try await scene.settled("small", "large", "growing", "late")
            let folders = Dictionary(
                scene.reports.settled.map { ($0.relative.display, $0.folder) }, uniquingKeysWith: { $1 })
            #expect(folders == ["small": "cam", "large": "films", "growing": "films", "late": "cam"])
            func standing(_ name: FilePath) -> PathEvaluation {
                PathEvaluation.of(
                    watched.appending(name), rules: rules, in: SourceFolders(), now: SystemClocks().wall())
            }
            #expect(standing("large") == .accepted(folder: "films"))
            #expect(standing("small") == .accepted(folder: "cam"))
        }
    }

    @Test("existing files are skipped, and files that are too recent wait for their age, by either clock")
    func ages() async throws {
        @Sendable func setTime(_ path: FilePath, _ secondsAgo: Int64) throws {
            let file = try Descriptor.open(path, for: .updating)
            let now = SystemClocks().wall().milliseconds / 1000
            try file.setModified((now - secondsAgo) * 1_000_000_000, named: path)
        }
        try setTime(try folder.write("in/ancient", [1]), 100_000)
        try setTime(try folder.write("in/old", [1]), 5_000)
        try setTime(try folder.write("in/future", [1]), -100_000)
        let limits = FileLimits(minAge: .seconds(3600), maxAge: .seconds(50_000))
        try await scene.watch([rule { $0.limits = limits }]) { watcher in
            let path = try folder.write("in/young", [1])
            try await eventually("the file waits for its minimum age") {
                watcher.settlingFiles().contains { $0.path == path && $0.reason == .age }
            }
            try await scene.settled("old")
            // Another limit applies at once, also to files that already wait.
            watcher.change([rule { $0.limits = FileLimits(minAge: .milliseconds(50), maxAge: .seconds(50_000)) }])
            try await scene.settled("old", "future", "young")
            let moved = try folder.write("out/ancient too", [1])
            try setTime(moved, 100_000)
            try Files.rename(moved, to: watched.appending("ancient too"))
            try await scene.wait("the old file is reported as skipped") {
                $0.log.contains { $0.contains("longer ago than max_age") }
            }
            #expect(scene.names.count == 3)
        }
    }

    // MARK: - Markers

    @Test(
        "a file waits for its marker, which may come before, after, by rename, or exist at start",
        arguments: ["{name}.done", ".{name}.ok", "{stem}.md5"])
    func markers(_ pattern: String) async throws {
        let marker = try #require(MarkerName(pattern))
        @Sendable func mark(_ name: FilePath) -> FilePath { FilePath("in").appending(marker.marker(of: name)) }
        try folder.write("in/old.mp4", noise(10))
        try folder.write(mark("old.mp4"), [])
        try folder.write("in/lonely.mp4", noise(10))
        try await scene.watch([rule { $0.marker = marker }]) { watcher in
            try await scene.settled("old.mp4")
            #expect(scene.reports.settled.first?.settledBy == .marker)
            try folder.write(mark("first.mp4"), [])
            try folder.write("in/first.mp4", noise(10))
            try folder.write("in/second.mp4", noise(10))
            try await eventually("both files without a marker wait for it") {
                watcher.settlingFiles().filter { if case .marker = $0.reason { true } else { false } }.count == 2
            }
            try await scene.settled("old.mp4", "first.mp4")
            try folder.write("marker", [])
            try Files.rename(folder.path.appending("marker"), to: folder.path.appending(mark("second.mp4")))
            try await scene.settled("old.mp4", "first.mp4", "second.mp4")
            try folder.write(mark("lonely.mp4"), [])
            try await scene.settled("old.mp4", "first.mp4", "second.mp4", "lonely.mp4")
        }
    }

    @Test("many files without their markers delay no other file", arguments: ["{name}.ok", "{stem}.ok"])
    func manyWithoutMarker(_ pattern: String) async throws {
        var pace = WatchLimits.quick
        pace.candidates = 80
        for number in 0..<150 { try folder.write(FilePath("in/m/\(number).mp4"), [1]) }
        let waiting = rule {
            $0.include = ["m/*"]
            $0.marker = MarkerName(pattern)
        }
        var other = WatchRule(name: "other", path: watched)
        other.exclude = ["m/*"]
        let scene = scene
        try await scene.watch([waiting, other], pace: pace) { _ in
            for number in 0..<100 { try folder.write(FilePath("in/o/\(number).mp4"), [1]) }
            try await scene.wait("100 files of the other folder have settled") {
                $0.settled.filter { $0.folder == "other" }.count == 100
            }
            #expect(scene.reports.settled.count == 100)
            let marker = try #require(MarkerName(pattern))
            for number in 0..<150 {
                try folder.write(FilePath("in/m").appending(marker.marker(of: FilePath("\(number).mp4"))), [])
            }
            try await scene.wait("all 250 files have settled") { $0.settled.count == 250 }
        }
    }

    // MARK: - Files that do not settle

    @Test("a file that does not settle is logged once, shown with its rate, and logged again for another reason")
    func overdue() async throws {
        let path = watched.appending("long.mp4")
        let marked = rule {
            $0.reportAfter = .milliseconds(300)
            $0.marker = MarkerName("{name}.ok")
        }
        try await scene.watch([marked]) { watcher in
            let file = try Descriptor.open(path, for: .creating)
            try await eventually("the file is overdue, and its rate is known") {
                try file.write(noise(1000), named: path)
                return watcher.settlingFiles().contains {
                    $0.path == path && $0.isOverdue && $0.reason == .writer && ($0.rate ?? 0) > 0
                }
            }
            let said = scene.reports.log.filter { $0.contains("long.mp4 has not settled for") }
            #expect(said.count == 1)
            #expect(said.first?.contains("another process has it open for writing") == true)
            try file.close(named: path)
            try await scene.wait("the missing marker is reported") {
                $0.log.contains { $0.contains("its marker long.mp4.ok does not exist yet") }
            }
            #expect(scene.reports.log.filter { $0.contains("has not settled") }.count == 2)
            try folder.write("in/long.mp4.ok", [])
            try await scene.settled("long.mp4")
        }
    }
}
