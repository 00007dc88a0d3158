import Core
import Linux
import Staging
import Store
import Synchronization
import TestKit
import Testing

@testable import Config
@testable import Daemon

/// Recorded files, and a stager that has not begun.
private struct Scene {
    let folder = TemporaryFolder()
    let parts: ComponentParts
    /// The lines of the log.
    let said = Lines()

    init(cap: Int64? = nil) async throws {
        let root = folder.path
        let clocks = SystemClocks()
        let staging = StagingArea(folder: root.appending("staging"))
        try staging.prepare()
        let settings = Settings(
            state: root.appending("state"),
            staging: StagingSettings(path: staging.folder, copy: .auto, maxSize: cap, keepFree: 0), folders: [],
            destinations: [],
            policy: PolicySettings(total: 1, perDestination: 1, order: .oldestFirst, retry: Backoff()),
            control: ControlSettings(socket: root.appending("control.sock")))
        parts = ComponentParts(
            runtime: RuntimeConfiguration(
                settings: settings, staging: staging, destinations: [:], since: clocks.wall()),
            store: try await Store.open(settings.state, clocks: clocks, sorting: .oldestFirst), clocks: clocks,
            log: Log(level: .info, format: .plain) { [said] line in
                said.content.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
            })
    }

    final class Lines: Sendable {
        let content = Mutex<[String]>([])
    }

    /// - Parameter fileSystem: The recorded file system of the file; `nil` for unknown.
    func record(
        _ name: String, size: Int, fileSystem: String? = nil, stagingMode: StagingMode = .copy
    ) async throws -> (path: FilePath, upload: String) {
        let path = try folder.write(FilePath("drop/" + name), noise(size))
        let status = try FileStatus(at: path)
        let file = SettledFile(
            folder: "cam", root: folder.path.appending("drop"), relative: FilePath(name), status: status,
            identity: FileIdentity(
                folder: "cam", relative: FilePath(name), size: status.size, modified: status.modified,
                inode: status.inode,
                born: nil, fileSystem: fileSystem), settledBy: .lease)
        let order = NewAsset.PlannedUpload(
            destination: "nas", name: FilePath(name), mediaType: "video/mp4", key: nil, context: [:], metadata: [:])
        let outcome = try await parts.store.write {
            try $0.arrivals.record([
                NewAsset(file: file, action: .keep, priority: 0, orders: [order], stagingMode: stagingMode)
            ])
        }
        guard case .recorded(_, let uploads)? = outcome.first, let upload = uploads.first else { throw Unexpected() }
        return (path, upload)
    }

    func stage(until what: String, _ condition: () async throws -> Bool) async throws {
        let stager = parts.stager()
        let running = Task { try await stager.run() }
        defer { running.cancel() }
        try await eventually(what, holds: condition)
    }

    func state(_ upload: String) async throws -> UploadState? {
        try await parts.store.read { try $0.uploads.find(upload) }?.state
    }

    struct Unexpected: Error {}
}

@Suite("Stager")
struct StagerTests {
    @Test("a file that can never fit fails with its name and delays no other file")
    func tooLarge() async throws {
        let scene = try await Scene(cap: 10_000)
        let large = try await scene.record("large", size: 10_001)
        let small = try await scene.record("small", size: 10_000)
        try await scene.stage(until: "the small one is staged") { try await scene.state(small.upload) == .queued }
        #expect(try await scene.state(large.upload) == .failed)
    }

    @Test(
        "a full staging folder is reported once, whatever fits meanwhile, and files in place need no space"
    )
    func shortage() async throws {
        let scene = try await Scene(cap: 10_000)
        let first = try await scene.record("first", size: 6_000)
        let second = try await scene.record("second", size: 6_000)
        let third = try await scene.record("third", size: 6_000)
        let here = try await scene.record("here", size: 50_000, stagingMode: .inPlace)
        let stager = scene.parts.stager()
        let running = Task { try await stager.run() }
        defer { running.cancel() }
        for (done, next) in [(first, second), (second, third)] {
            try await eventually("one file is staged, and the next one waits") {
                let isStaged = try await scene.state(done.upload) == .queued
                return isStaged
                    && scene.parts.troubles["staging"]?.text.contains("\(next.path.display), which is next") == true
            }
            try await eventually("the file that needs no space is queued") {
                try await scene.state(here.upload) == .queued
            }
            // Does what the release does after the upload has arrived.
            let asset = try #require(try await scene.parts.store.read { try $0.uploads.find(done.upload) }?.asset)
            try scene.parts.staging.remove(FilePath("\(asset)"))
            _ = try await scene.parts.store.write { try $0.transitions.cancel([done.upload]) }
            try await scene.parts.store.write { try $0.releases.finish([(asset, .kept)]) }
            scene.parts.signals.staging.signal()
        }
        try await eventually("the last file is staged") {
            try await scene.state(third.upload) == .queued && scene.parts.troubles["staging"] == nil
        }
        let lines = scene.said.content.withLock { $0.filter { $0.contains("staging ") } }
        #expect(lines.count == 2, "\(lines)")
    }

    @Test("only the first of several waiting files is named")
    func first() async throws {
        let scene = try await Scene(cap: 10_000)
        let first = try await scene.record("first", size: 6_000)
        let second = try await scene.record("second", size: 6_000)
        for number in 0..<5 { _ = try await scene.record("later-\(number)", size: 6_000) }
        let stager = scene.parts.stager()
        let running = Task { try await stager.run() }
        defer { running.cancel() }
        try await eventually("the first file is staged") { try await scene.state(first.upload) == .queued }
        for round in 0..<300 {
            scene.parts.signals.staging.signal()
            try await eventually("all workers are idle") {
                let rings = scene.parts.signals.rest.signalCount
                let isAtRest = await stager.isAtRest
                return isAtRest && scene.parts.signals.staging.isWaiting
                    && scene.parts.signals.rest.signalCount == rings
            }
            let text = try #require(scene.parts.troubles["staging"]?.text)
            try #require(text.contains("\(second.path.display), which is next"), "round \(round): \(text)")
        }
    }

    @Test("a full staging folder is not reported again for each file that needs no space")
    func shortOnce() async throws {
        let scene = try await Scene(cap: 10_000)
        _ = try await scene.record("first", size: 6_000)
        _ = try await scene.record("second", size: 6_000)
        let stager = scene.parts.stager()
        let running = Task { try await stager.run() }
        defer { running.cancel() }
        try await eventually("the lack of staging space is reported") { scene.parts.troubles["staging"] != nil }
        for number in 0..<100 {
            let here = try await scene.record("here-\(number)", size: 10, stagingMode: .inPlace)
            scene.parts.signals.staging.signal()
            if number % 10 == 9 {
                try await eventually("the file that needs no space is queued") {
                    try await scene.state(here.upload) == .queued
                }
            }
        }
        let lines = scene.said.content.withLock { $0.filter { $0.contains("staging ") } }
        #expect(lines.count == 1, "\(lines)")
    }

    @Test("a source on a removed disk waits with the reason, and a deleted source fails")
    func away() async throws {
        let scene = try await Scene()
        let away = try await scene.record("away", size: 10, fileSystem: "a card that is not there")
        let removed = try await scene.record("removed", size: 10)
        for path in [away.path, removed.path] { try Files.remove(path) }
        let asset = try #require(try await scene.parts.store.read { try $0.uploads.find(away.upload) }?.asset)
        try await scene.stage(until: "both were tried") {
            let isFailed = try await scene.state(removed.upload) == .failed
            return isFailed && scene.parts.stagingHolds[asset]?.kind == .absent
        }
        #expect(try await scene.state(away.upload) == .staging)
    }

    @Test("of many files on a removed disk few are looked for, all wait with the reason, and other disks are copied")
    func manyAway() async throws {
        let scene = try await Scene()
        var away: [Int64] = []
        for number in 0..<300 {
            let file = try await scene.record("away-\(number)", size: 10, fileSystem: "a card that is not there")
            let asset = try await scene.parts.store.read { try $0.uploads.find(file.upload) }?.asset
            away.append(try #require(asset))
            try Files.remove(file.path)
        }
        let there = try await scene.record("there", size: 10)
        try await scene.stage(until: "all were judged") {
            let isQueued = try await scene.state(there.upload) == .queued
            return isQueued && away.allSatisfy { scene.parts.stagingHolds[$0]?.kind == .absent }
        }
        // Each file that is looked for by itself has a time of its own.
        #expect(Set(away.map { scene.parts.stagingHolds[$0]?.until }).count == 1)
    }

    @Test("of many files whose command for exports is missing few are tried, and all wait with the reason")
    func manyWithoutCommand() async throws {
        let scene = try await Scene()
        var assets: [Int64] = []
        for number in 0..<300 {
            let file = try await scene.record("\(number)", size: 10, stagingMode: .export)
            let asset = try await scene.parts.store.read { try $0.uploads.find(file.upload) }?.asset
            assets.append(try #require(asset))
        }
        try await scene.stage(until: "all wait") {
            assets.allSatisfy { scene.parts.stagingHolds[$0]?.text.contains("no longer configured") == true }
        }
        #expect(Set(assets.map { scene.parts.stagingHolds[$0]?.until }).count == 1)
    }

    @Test("a file that is recorded while its disk is away, and the others of the disk wait, waits too")
    func lateAway() async throws {
        let scene = try await Scene()
        func record(_ name: String) async throws -> Int64 {
            let file = try await scene.record(name, size: 10, fileSystem: "a card that is not there")
            try Files.remove(file.path)
            return try #require(try await scene.parts.store.read { try $0.uploads.find(file.upload) }?.asset)
        }
        let first = try await record("first")
        let stager = scene.parts.stager()
        let running = Task { try await stager.run() }
        defer { running.cancel() }
        try await eventually("the first waits") { scene.parts.stagingHolds[first] != nil }
        let until = scene.parts.stagingHolds[first]?.until
        let second = try await record("second")
        scene.parts.signals.staging.signal()
        try await eventually("the second waits") { scene.parts.stagingHolds[second]?.kind == .absent }
        #expect(scene.parts.stagingHolds[first]?.until == until)
    }

    @Test("a deleted staging folder is created again")
    func folderRemoved() async throws {
        let scene = try await Scene()
        let file = try await scene.record("a", size: 10)
        try Files.rename(scene.parts.staging.folder, to: scene.folder.path.appending("elsewhere"))
        try await scene.stage(until: "it is staged") { try await scene.state(file.upload) == .queued }
        #expect(scene.parts.troubles["staging"] == nil)
    }
}
