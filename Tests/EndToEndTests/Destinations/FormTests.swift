import Core
import Glibc
import Linux
import TestKit
import Testing

/// The daemon with a server for chunked forms: killed after each step and at random moments, and under a quota.
@Suite("Chunked form as destination", .serialized, .timeLimit(.minutes(Patience.minutes(5))))
struct FormTests {
    /// A form with tokens, and one that can be queried for each block.
    static let presets = ["breakpoint", "resumable"]
    private static let block: Int64 = 30_000

    private struct Site {
        let fixture: DaemonFixture
        let server: FormServer
        let camera: Camera
    }

    private func site(_ preset: String, seed: UInt64 = 1, keys: String = "") throws -> Site {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        var options = FormServer.Options()
        options.block = Self.block
        let server = try FormServer(preset, into: fixture.received, options)
        fixture.uploadTo = ["forms"]
        fixture.moreDestinations = [
            "forms: {type: chunked-form, url: \"\(server.url)\", preset: \(preset), block: {size: \(Self.block) B}\(keys)}"
        ]
        return Site(fixture: fixture, server: server, camera: Camera(fixture, dice: Dice(seed: seed)))
    }

    /// Waits until the server has exactly the clips, each once, and no file of them is left on this side.
    private func settle(_ site: Site) async throws {
        let (fixture, clips) = (site.fixture, site.camera.clips)
        do {
            try await eventually("the server has \(clips.count) files", within: .seconds(120), every: .milliseconds(50))
            {
                try fixture.daemon?.requireRunning()
                guard let status = try await fixture.status() else { return false }
                guard !status.starting, status.counts.ongoing == 0 else { return false }
                return try Outcome.files(in: fixture.drop, hidden: true).isEmpty
                    && Outcome.files(in: fixture.staging, hidden: true).isEmpty
            }
        } catch let overdue as Overdue {
            Issue.record(overdue, "\(fixture.lastWords())")
            throw overdue
        }
        let names = try Outcome.files(in: fixture.received, hidden: false)
        #expect(names.count == clips.count && Set(names) == Set(clips.map(\.relative)))
        for clip in clips {
            #expect(try Files.read(fixture.received.appending(clip.relative), limit: 1 << 30) == clip.content)
        }
        #expect(site.server.refused.isEmpty, "\(site.server.refused)")
        #expect(try await fixture.status()?.counts.completed == clips.count)
    }

    static let steps =
        [
            "claimed:1", "opening:1", "opening:2", "opened:1", "opened:2", "opened:3", "opened:7", "part-answered:1",
            "part-answered:4", "part-answered:9", "accepted:1", "accepted:4", "accepted:10", "parts-completed:1",
            "parts-completed:3", "verified:1", "completed:1", "release-done:1",
        ]

    @Test(
        "killed at a step, the next start continues: each file is there once and complete",
        arguments: Tier.sample(presets), Tier.sample(steps))
    func killed(_ preset: String, behind step: String) async throws {
        let site = try site(preset)
        for number in 0..<4 {
            try site.camera.drop(Clip(number: number, size: 100_000, relative: FilePath("clip \(number).mp4")))
        }
        try site.fixture.startDaemon(environment: ["SLUICE_TEST_CRASH": step])
        let ending = try await #require(site.fixture.daemon).end(within: .seconds(30))
        try #require(ending == .signal(SIGKILL), "\(step) was not reached: \(site.fixture.lastWords())")
        try site.fixture.startDaemon()
        try await settle(site)
    }

    @Test("killed at any moment with parallel blocks, each file is there once and complete", arguments: presets)
    func killedAnywhere(_ preset: String) async throws {
        let seed = Setting.seed
        var dice = Dice(seed: seed)
        let site = try site(preset, seed: seed, keys: ", parallel_blocks: 3")
        site.server.set { $0.readPause = 300 }
        try site.fixture.startDaemon()
        do {
            for round in 0..<max(1, Setting.kills / 5) {
                for number in 0..<4 {
                    let size = Int.random(in: 1...400_000, using: &dice)
                    try site.camera.drop(
                        Clip(number: 4 * round + number, size: size, relative: FilePath("\(round) \(number).mp4")))
                }
                // The time is random on purpose, so that the kill meets files in any state.
                try await Task.sleep(for: .milliseconds(Int.random(in: 0...900, using: &dice)))
                site.fixture.killDaemon()
                try site.fixture.startDaemon()
            }
            try await settle(site)
        } catch {
            Issue.record(error, "seed \(seed); run again with SLUICE_SEED=\(seed) SLUICE_KILLS=\(Setting.kills)")
        }
    }

    @Test(
        "parallel blocks together stay within one quota, and acknowledged blocks are not sent again",
        arguments: [1, 4])
    func quota(_ parallel: Int) async throws {
        let site = try site(
            "breakpoint", keys: ", parallel_blocks: \(parallel), quotas: [{per: month, bytes: 1 MB}]")
        site.server.set { $0.readPause = 300 }
        try site.camera.drop(Clip(number: 1, size: 3_000_000, relative: "large.mp4"))
        try site.fixture.startDaemon()
        try await eventually("the quota holds the upload", within: .seconds(60), every: .milliseconds(50)) {
            try site.fixture.daemon?.requireRunning()
            // Before its first block it may wait for a moment for the bytes that its own attempt has reserved.
            guard site.server.requests.count > 5 else { return false }
            return try await site.fixture.runVerb("why", ["large.mp4", "--json"])?.contains("quota") == true
        }
        let sent = try #require(
            try await site.fixture.runVerb("quota", ["forms", "--json"])?.split(separator: "\"used\":").last.flatMap {
                Int64($0.prefix { $0.isNumber })
            })
        #expect(site.server.received <= 1_000_000 && site.server.received > 500_000, "\(site.server.received) B came")
        // A connection that is broken off is charged for three more segments, which may never be seen; on loopback they
        // are long.
        #expect(sent <= 1_000_000 + Int64(parallel) * 3 * (64 << 10), "\(sent) B")
        #expect(site.server.maxConcurrent == 1 || site.server.maxConcurrent <= parallel)
        #expect(try Outcome.files(in: site.fixture.received, hidden: false).isEmpty)
        #expect(try await site.fixture.runVerb("allow", ["large.mp4", "--quota", "--for", "1h"]) != nil)
        try await settle(site)
        let blocks = site.server.requests.filter { $0.hasPrefix("block") }
        // The blocks that were in flight at each of a few stops.
        #expect(blocks.count <= 100 + 4 * parallel, "\(blocks.count) blocks for 100")
    }

    @Test(
        "remains of a cancelled upload are removed if the server supports it, and later if the first try failed",
        arguments: presets, [[], [500]])
    func cancelled(_ preset: String, failing: [Int]) async throws {
        let name = preset == "breakpoint" ? "{token}" : "{id}"
        let site = try site(preset, keys: ", abort: {url: /abort, fields: {id: \"\(name)\"}}")
        // The transfer takes some seconds, so that it is cancelled in between.
        site.server.set {
            $0.readPause = 100_000 * UInt32(Patience.factor)
            $0.aborts = failing
        }
        try site.camera.drop(Clip(number: 1, size: 1_000_000, relative: "clip.mp4"))
        try site.fixture.startDaemon()
        try await eventually("the upload is in progress", within: .seconds(30), every: .milliseconds(20)) {
            site.server.requests.contains("block 1")
        }
        _ = try await eventually("the upload is cancelled", within: .seconds(10)) {
            try await site.fixture.runVerb("cancel", ["clip.mp4"])
        }
        site.server.set { $0.readPause = 0 }
        try await eventually("the server has removed the remains", within: .seconds(30), every: .milliseconds(50)) {
            try site.server.requests.count { $0 == "abort" } > failing.count
                && Outcome.files(in: site.fixture.received, hidden: true).isEmpty
        }
        try await eventually("`show` reports the deletion", within: .seconds(10), every: .milliseconds(50)) {
            try await site.fixture.runVerb("show", ["clip.mp4"])?.contains("deletion done") == true
        }
        #expect(!site.server.requests.contains("block 33"))
    }

    @Test("unremoved remains of a cancelled upload are reported, also by a daemon that was killed")
    func cancelledInVain() async throws {
        let site = try site("resumable", keys: ", abort: {url: /abort, fields: {id: \"{id}\"}}")
        site.server.set {
            $0.readPause = 100_000 * UInt32(Patience.factor)
            $0.aborts = Array(repeating: 503, count: 1000)
        }
        try site.camera.drop(Clip(number: 1, size: 1_000_000, relative: "clip.mp4"))
        try site.fixture.startDaemon()
        try await eventually("the upload is in progress", within: .seconds(30), every: .milliseconds(20)) {
            site.server.requests.contains("block 1")
        }
        _ = try await eventually("the upload is cancelled", within: .seconds(10)) {
            try await site.fixture.runVerb("cancel", ["clip.mp4"])
        }
        site.server.set { $0.readPause = 0 }
        try await eventually(
            "the removal has been tried without success", within: .seconds(30), every: .milliseconds(50)
        ) {
            site.server.requests.contains("abort")
        }
        // Otherwise the block in flight would be stored after the removal.
        try await eventually("the server has no request in progress", within: .seconds(10)) {
            site.server.underWay == 0
        }
        #expect(try await site.fixture.runVerb("show", ["clip.mp4"])?.contains("deletion pending") == true)
        site.fixture.killDaemon()
        site.server.set { $0.aborts = [] }
        try site.fixture.startDaemon()
        try await eventually("the server has removed the remains", within: .seconds(30), every: .milliseconds(50)) {
            try Outcome.files(in: site.fixture.received, hidden: true).isEmpty
        }
        try await eventually("`show` reports the deletion", within: .seconds(10), every: .milliseconds(50)) {
            try await site.fixture.runVerb("show", ["clip.mp4"])?.contains("deletion done") == true
        }
    }
}
