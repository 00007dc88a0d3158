import Core
import Glibc
import Linux
import TestKit
import Testing

/// Power cuts: the disks lose all data that was not synced.
///
/// A kill leaves everything in the kernel's cache, so only these tests find a missing sync. One at a time: each keeps
/// both cores of a small machine busy.
@Suite("Power cuts", .serialized, .enabled("\(LoopDisk.need)") { await LoopDisk.isPossible.value })
struct CutTests {
    typealias Variant = PoweredScene.Variant

    // MARK: The tool

    @Test("the test disk keeps synced data and loses unsynced data", arguments: LoopDisk.Kind.allCases)
    func honest(_ kind: LoopDisk.Kind) async throws {
        let disk = try await LoopDisk(kind)
        func write(_ name: FilePath, sync: Bool) throws {
            let path = disk.path.appending(name)
            let file = try Descriptor.open(path, for: .creating)
            try file.write(noise(300_000), named: path)
            if sync { try file.sync(named: path) }
        }
        try write("synced", sync: true)
        try write("renamed", sync: true)
        try write("removed", sync: true)
        try Files.syncFolder(disk.path)
        try write("not synced", sync: false)
        try Files.rename(disk.path.appending("renamed"), to: disk.path.appending("new name"))
        try Files.remove(disk.path.appending("removed"))
        try await disk.cutPower()
        #expect(
            Set(try Files.names(in: disk.path)).subtracting(["lost+found"]) == ["synced", "renamed", "removed"])
        #expect(try Files.read(disk.path.appending("synced")) == noise(300_000))
    }

    // MARK: After each durable step

    /// Every file system is tested with every step; the layouts of disks and the actions for the source take turns, and
    /// `SLOW_TESTS` tests all of them.
    static let stepVariants = LoopDisk.Kind.allCases.flatMap { kind in
        [
            Variant(kind: kind, layout: .apart, source: .delete), Variant(kind: kind, layout: .across, source: .move),
        ]
    }
    static let moreStepVariants = LoopDisk.Kind.allCases.flatMap { kind in
        [
            Variant(kind: kind, layout: .apart, source: .move), Variant(kind: kind, layout: .split, source: .delete),
            Variant(kind: kind, layout: .together, source: .keep),
            Variant(kind: kind, layout: .together, source: .move),
            Variant(kind: kind, layout: .apart, source: .delete, keeping: .inPlace),
            Variant(kind: kind, layout: .across, source: .move, keeping: .inPlace),
            Variant(kind: kind, layout: .apart, source: .delete, keeping: .export),
        ]
    }

    @Test(
        "after each durable step, every file is at the receiver once and complete, no source was released too early",
        .timeLimit(.minutes(Patience.minutes(30))),
        arguments: Tier.sample(stepVariants + (Setting.isThorough ? moreStepVariants : [])))
    func behindSteps(_ variant: Variant) async throws {
        // Nothing is copied for uploads in place.
        let way = CrashSteps.onTheWay.filter { variant.keeping != .inPlace || !["copied", "renamed"].contains($0) }
        var steps = way.map { "\($0):1" } + CrashSteps.receiver.map { "\($0):2" }
        if variant.source != .keep { steps += CrashSteps.release.map { "\($0):1" } }
        if variant.source == .move, variant.layout != .across { steps += CrashSteps.within.map { "\($0):1" } }
        if variant.source == .move, variant.layout == .across { steps += CrashSteps.across.map { "\($0):1" } }
        steps += (Setting.isThorough ? [1, 2, 3, 4, 5, 6, 8, 10, 13] : [3, 6]).map { "committed:\($0)" }
        if !Setting.isThorough {
            // Each of the two variants of a file system takes half of the steps that both can reach.
            let isFirst = variant.source == .delete
            let shared = steps.filter { !CrashSteps.across.contains(String($0.prefix { $0 != ":" })) }
            let half = shared.indices.filter { $0.isMultiple(of: 2) == isFirst }.map { shared[$0] }
            steps = half + steps.filter { !shared.contains($0) }
        }
        try await cut(variant, behind: steps)
    }

    static let folderVariants = LoopDisk.Kind.allCases.map {
        Variant(kind: $0, layout: .apart, source: .delete, target: .directory)
    }
    static let moreFolderVariants = LoopDisk.Kind.allCases.flatMap { kind in
        PoweredScene.Layout.allCases.flatMap { layout in
            [DaemonFixture.Source.move, .keep].map {
                Variant(kind: kind, layout: layout, source: $0, target: .directory)
            }
        }
    }

    /// The disk of the destination loses power alone, the daemon's disks alone, or all of them.
    @Test(
        "after each durable step, every file is in the folder once and complete, and no source was released too early",
        .timeLimit(.minutes(Patience.minutes(30))),
        arguments: folderVariants + (Setting.isThorough ? moreFolderVariants : []))
    func folderBehindSteps(_ variant: Variant) async throws {
        // Steps before the upload do not depend on the destination.
        let own = ["opening", "opened"] + CrashSteps.directory + ["verified", "completed"]
        var steps = own.map { "\($0):1" }
        // Needs a large file, so it comes last, and once in a short run.
        let large = variant.kind == .xfs || Setting.isThorough ? ["accepted:1"] : []
        if Setting.isThorough {
            // In turns, so that each step is tested with each power.
            steps = (0..<3).flatMap { turn in own.map { "\($0):\(turn == 2 ? 2 : 1)" } }
            if variant.source != .keep { steps += CrashSteps.release.map { "\($0):1" } }
            steps += [4, 6, 8].map { "committed:\($0)" }
        }
        try await cut(variant, behind: steps + large)
    }

    private func cut(_ variant: Variant, behind steps: [String]) async throws {
        let scene = try await PoweredScene(variant, seed: 1)
        // The two file systems begin with different powers, so that a short run too tests each step with two.
        let turn = LoopDisk.Kind.allCases.firstIndex(of: variant.kind) ?? 0
        for (number, step) in steps.enumerated() {
            let power = scene.powers[(number + turn) % scene.powers.count]
            do { try await cut(scene, behind: step, power, number) } catch {
                Issue.record(error, "behind \(step), power \(power)")
                return
            }
        }
    }

    private func cut(
        _ scene: PoweredScene, behind step: String, _ power: PoweredScene.Power, _ number: Int
    ) async throws {
        let fixture = scene.fixture
        let isReceiver = step.hasPrefix("receiver")
        let plan = ["SLUICE_TEST_CRASH": step]
        fixture.killDaemon()
        fixture.killReceiver()
        try await scene.startReceiver(environment: isReceiver ? plan : [:])
        let first = scene.camera.clips.count
        let isFolder = scene.variant.target == .directory
        // A folder has a durable point before the end only for a large file.
        let size = isFolder && step.hasPrefix("accepted") ? 65 << 20 : 90_000
        for clip in first..<first + 3 {
            try scene.camera.drop(
                Clip(
                    number: clip, size: (clip == first ? size : 90_000) + clip,
                    relative: FilePath("\(number) \(step)/clip \(clip).mp4")))
        }
        try fixture.startDaemon(environment: isReceiver ? [:] : plan)
        let victim = try #require(isReceiver ? fixture.receiver : fixture.daemon)
        let ending = try await victim.end(within: .seconds(20))
        try #require(ending == .signal(SIGKILL), "\(step) was not reached: \(fixture.lastWords())")
        // A machine whose program is dead loses its disk in any case; the disk of a folder has no program.
        let power = isFolder || power == .all ? power : isReceiver ? .far : .box
        try await scene.cut(power)
        try await scene.start(after: isFolder ? .all : power)
        try await scene.drain()
    }

    @Test(
        "after *staged* the copy suffices: the file arrives even if the source is gone",
        .timeLimit(.minutes(Patience.minutes(3))),
        arguments: LoopDisk.Kind.allCases, [90_000, 3_000_000])
    func copyAlone(_ kind: LoopDisk.Kind, size: Int) async throws {
        // The database is on another disk: its syncs do not bring the copy to the disk.
        let scene = try await PoweredScene(Variant(kind: kind, layout: .split, source: .delete), seed: 1)
        let fixture = scene.fixture
        try await fixture.startReceiver()
        try scene.camera.drop(Clip(number: 0, size: size, relative: "clip.mp4"))
        try fixture.startDaemon(environment: ["SLUICE_TEST_CRASH": "staged"])
        #expect(try await fixture.daemon?.end(within: .seconds(20)) == .signal(SIGKILL), "\(fixture.lastWords())")
        try await scene.cut(.all)
        try Files.remove(fixture.drop.appending("clip.mp4"))
        try await scene.start(after: .all)
        try await scene.drain()
    }

    // MARK: At any moment

    static let randomVariants = LoopDisk.Kind.allCases.flatMap { kind in
        [
            Variant(kind: kind, layout: .apart, source: .delete), Variant(kind: kind, layout: .across, source: .move),
            Variant(kind: kind, layout: .apart, source: .delete, target: .directory),
            Variant(kind: kind, layout: .apart, source: .delete, keeping: kind == .ext4 ? .inPlace : .export),
        ]
    }
    static let isLong = Setting.cuts > 24
    static let moreRandomVariants = LoopDisk.Kind.allCases.flatMap { kind in
        [
            Variant(kind: kind, layout: .together, source: .keep), Variant(kind: kind, layout: .split, source: .move),
            Variant(kind: kind, layout: .across, source: .move, target: .directory),
            Variant(kind: kind, layout: .together, source: .keep, target: .directory),
            Variant(kind: kind, layout: .across, source: .move, keeping: kind == .ext4 ? .export : .inPlace),
        ]
    }

    @Test(
        "at any moment, every file arrives once and complete, and no source was released too early",
        .timeLimit(.minutes(Patience.minutes(60))),
        arguments: Tier.sample(randomVariants + (isLong ? moreRandomVariants : [])))
    func atRandom(_ variant: Variant) async throws {
        let seed = Setting.seed
        var dice = Dice(seed: seed)
        let scene = try await PoweredScene(variant, seed: seed &+ 1)
        let variants = Self.randomVariants.count + (Self.isLong ? Self.moreRandomVariants.count : 0)
        do {
            try await scene.start(after: .all)
            for _ in 0..<max(1, Setting.cuts / variants) {
                try scene.camera.drop(8)
                // The time is random on purpose, so that the kill meets files in any state.
                try await Task.sleep(for: .milliseconds(Int.random(in: 0...1200, using: &dice)))
                let power = scene.powers.randomElement(using: &dice) ?? .all
                try await scene.cut(power)
                try await scene.start(after: power)
            }
            try await scene.drain()
            // One more start, which sees all remaining sources: it must send nothing again.
            #expect(try await scene.fixture.stopDaemon() == .status(0))
            #expect(try Ledger.integrity(of: scene.fixture.state) == ["ok"])
            try scene.fixture.startDaemon()
            try await scene.drain()
        } catch {
            Issue.record(error, "seed \(seed); run again with SLUICE_SEED=\(seed) SLUICE_CUTS=\(Setting.cuts)")
        }
    }
}
