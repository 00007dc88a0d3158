import Core
import Glibc
import Linux
import TestKit
import Testing
import Watch

/// Disks that appear and vanish.
@Suite("Watching mounts", .serialized, .timeLimit(.minutes(Patience.minutes(3))))
struct MountTests {
    let folder = TemporaryFolder()
    let scene = Scene()
    var watched: FilePath { folder.path.appending("in") }

    init() throws { try Files.makeFolders(watched) }

    func rule(_ name: String = "cam", at path: FilePath = "in", _ requirement: FolderRequirement = FolderRequirement())
        -> WatchRule
    {
        var rule = WatchRule(name: name, path: folder.path.appending(path))
        rule.requirement = requirement
        return rule
    }

    /// With long intervals, so that only mount events can be the reason that a change is seen in time.
    private static var patient: WatchLimits {
        var pace = WatchLimits.quick
        pace.absent = .seconds(3600)
        return pace
    }

    func state(_ watcher: Watcher, _ isIt: (WatchState.Condition) -> Bool) async throws {
        try await eventually("the folder has the expected state") { isIt(watcher.states()[0].condition) }
    }

    private static func isAbsent(_ condition: WatchState.Condition) -> Bool {
        if case .absent = condition { true } else { false }
    }

    @Test("without its required file a folder is absent: it is not read, and counts at once when the file is back")
    func requiredFile() async throws {
        try folder.write("in/a.mp4", [1])
        try await scene.watch([rule("cam", FolderRequirement(file: ".sluice-here"))], absent: ["cam"]) { watcher in
            try await state(watcher, Self.isAbsent)
            #expect(watcher.settlingFiles().isEmpty)
            try folder.write("in/b.mp4", [1])
            try folder.write("in/.sluice-here", [])
            try await scene.settled("a.mp4", "b.mp4")
            try Files.remove(watched.appending(".sluice-here"))
            try await state(watcher, Self.isAbsent)
            try folder.write("in/c.mp4", [1])
            watcher.rescan()
            try await scene.wait("the missing marker has been reported twice") {
                $0.log.count { $0.contains(".sluice-here is missing") } == 2
            }
            #expect(scene.names == ["a.mp4", "b.mp4"])
            try folder.write("in/.sluice-here", [])
            try await scene.settled("a.mp4", "b.mp4", "c.mp4")
        }
    }

    @Test("a disk mounted over the folder comes, goes and comes back", .enabled(if: SmallDisk.isPossible))
    func mountedOver() async throws {
        try await scene.watch([rule()], pace: Self.patient) { watcher in
            try folder.write("in/under.mp4", [1])
            try await scene.settled("under.mp4")
            do {
                let disk = try SmallDisk(at: watched)
                try folder.write("in/day/on.mp4", [1])
                try await scene.settled("under.mp4", "day/on.mp4")
                try folder.write("in/day/later.mp4", [1])
                try await scene.settled("under.mp4", "day/on.mp4", "day/later.mp4")
                withExtendedLifetime(disk) {}
            }
            // Unmounted: the folder underneath shows again, and is watched.
            try folder.write("in/again.mp4", [1])
            try await scene.settled("under.mp4", "day/on.mp4", "day/later.mp4", "again.mp4")
            #expect(watcher.states()[0].condition == .watching || watcher.states()[0].condition == .scanning)
        }
    }

    @Test(
        "the folder of a disk is absent while the disk is not mounted, whatever is in its place",
        .enabled(if: SmallDisk.isPossible))
    func requiredMount() async throws {
        try folder.write("in/not-ours.mp4", [1])
        let rules = [rule("cam", FolderRequirement(mount: watched))]
        try await scene.watch(rules, pace: Self.patient, absent: ["cam"]) { watcher in
            try await state(watcher, Self.isAbsent)
            for round in 1...2 {
                do {
                    let disk = try SmallDisk(at: watched)
                    try folder.write(FilePath("in/\(round).mp4"), [1])
                    try await scene.wait("round \(round): the file has settled") { $0.settled.count == round }
                    withExtendedLifetime(disk) {}
                }
                try await state(watcher, Self.isAbsent)
            }
            #expect(scene.names == ["1.mp4", "2.mp4"])
        }
    }

    @Test("a disk below the folder is noticed when it is mounted and unmounted", .enabled(if: SmallDisk.isPossible))
    func mountedBelow() async throws {
        try Files.makeFolders(watched.appending("cards/sd"))
        try folder.write("in/cards/sd/under.mp4", [1])
        try await scene.watch([rule()], pace: Self.patient) { _ in
            try await scene.settled("cards/sd/under.mp4")
            do {
                let disk = try SmallDisk(at: watched.appending("cards/sd"))
                try folder.write("in/cards/sd/DCIM/on.mp4", [1])
                try await scene.settled("cards/sd/under.mp4", "cards/sd/DCIM/on.mp4")
                withExtendedLifetime(disk) {}
            }
            try folder.write("in/cards/sd/again.mp4", [1])
            try await scene.settled("cards/sd/under.mp4", "cards/sd/DCIM/on.mp4", "cards/sd/again.mp4")
        }
    }

    @Test(
        "disks mounted in another order with other device numbers report no file twice",
        .enabled("\(LoopDisk.need)") { await LoopDisk.isPossible.value }, arguments: [LoopDisk.Kind.ext4, .xfs, .btrfs])
    func otherOrder(_ kind: LoopDisk.Kind) async throws {
        let disks = [try await LoopDisk(kind), try await LoopDisk(kind)]
        let rules = disks.indices.map { WatchRule(name: "disk\($0)", path: disks[$0].path) }
        for disk in disks {
            for name in ["a.mp4", "day/b.mp4"] {
                let path = disk.path.appending(FilePath(name))
                try Files.makeFolders(path.parent)
                let file = try Descriptor.open(path, for: .creating)
                try file.write(noise(1000), named: path)
                try file.close(named: path)
            }
        }
        let before = try disks.map { try FileStatus(at: $0.path).device }
        let first = Scene()
        try await first.watch(rules) { watcher in
            try await first.wait("all four files have settled") { $0.settled.count == 4 }
            // During the watch: every disk is unmounted, and mounted again in the other order.
            for disk in disks { try await disk.unmount() }
            for disk in disks.reversed() { try await disk.mount() }
            let path = disks[0].path.appending("new.mp4")
            let file = try Descriptor.open(path, for: .creating)
            try file.close(named: path)
            try await first.wait("the new file has settled") { $0.settled.contains { $0.path == path } }
            try await eventually("all folders have been scanned again") {
                watcher.isAtRest || watcher.states().allSatisfy { $0.condition == .watching && $0.settling == 0 }
            }
            #expect(first.reports.settled.count == 5, "\(first.reports.settled.map(\.identity))")
        }
        // The same over a restart.
        for disk in disks { try await disk.unmount() }
        for disk in disks { try await disk.mount() }
        for disk in disks.reversed() { try await disk.unmount() }
        for disk in disks.reversed() { try await disk.mount() }
        // Other programs take and release loop devices meanwhile, and may have taken the old ones.
        var others: [LoopDisk] = []
        while kind != .btrfs, others.count < 5, try disks.map({ try FileStatus(at: $0.path).device }) == before {
            for disk in disks { try await disk.unmount() }
            others.append(try await LoopDisk(kind))
            for disk in disks.reversed() { try await disk.mount() }
        }
        let after = try disks.map { try FileStatus(at: $0.path).device }
        if kind != .btrfs { #expect(after != before) }
        let second = Scene()
        let known = first.reports.known
        second.note { $0.known = known }
        try await second.watch(rules) { _ in
            let path = disks[1].path.appending("last.mp4")
            let file = try Descriptor.open(path, for: .creating)
            try file.close(named: path)
            try await second.settled("last.mp4")
            try await second.wait("each old file has been asked about") { $0.asked >= 6 }
        }
    }

    // MARK: - Servers that do not answer

    @Test(
        "an unresponsive server delays only its own folders, and is reported",
        .enabled(if: DeadDisk.isPossible))
    func deadServer() async throws {
        let dead = try DeadDisk(at: folder.path.appending("nas"))
        var pace = WatchLimits.quick
        pace.timeout = .milliseconds(100 * Patience.factor)
        let rules = [rule(), rule("nas", at: "nas/cam")]
        try await scene.watch(rules, pace: pace, absent: ["nas"]) { watcher in
            try folder.write("in/a.mp4", [1])
            try await scene.settled("a.mp4")
            try await eventually("the folder is reported as not responding") {
                if case .failed(let text) = watcher.states()[1].condition {
                    text.contains("has not responded")
                } else {
                    false
                }
            }
            try await scene.wait("the missing response is reported") {
                $0.log.contains { $0.contains("has not responded") }
            }
            // A folder that does not respond does not prevent the state at rest either.
            try await eventually("all folders are at rest") { watcher.isAtRest }
            watcher.change([rules[0], rules[1], rule("more", at: "more")])
            try folder.write("more/b.mp4", [1])
            try await scene.settled("a.mp4", "b.mp4")
            dead.release()
            try await scene.wait("the response is reported") { $0.log.contains { $0.contains("responds again") } }
            try folder.write("nas/cam/c.mp4", [1])
            try await scene.settled("a.mp4", "b.mp4", "c.mp4")
            #expect(scene.reports.log.count { $0.contains("has not responded") } == 1)
        }
    }

    @Test("stopping the watcher does not wait for an unreachable server", .enabled(if: DeadDisk.isPossible))
    func stopWithDeadServer() async throws {
        let dead = try DeadDisk(at: folder.path.appending("in/nas"))
        try await scene.watch([rule("all"), rule("other", at: "other")], absent: ["all", "other"]) { _ in
            try folder.write("other/a.mp4", [1])
            try await scene.settled("a.mp4")
        }
        withExtendedLifetime(dead) {}
    }
}
