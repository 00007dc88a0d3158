import Core
import Linux
import Staging
import TestKit
import Testing

@testable import Config
@testable import Daemon
@testable import Store

@Suite("Releaser")
struct ReleaserTests {
    private static let content = noise(10_000)

    @Test("a source on an absent disk is released when the disk is back; its copy does not wait for it")
    func away() async throws {
        let folder = TemporaryFolder()
        let parts = try await Self.parts(in: folder)
        let drop = folder.path.appending("drop")
        let elsewhere = folder.path.appending("elsewhere")
        let path = try folder.write("drop/a.mp4", Self.content)
        let asset = try await Self.complete(path, of: drop, in: parts)
        // Neither the file nor the folder can be seen on the disk any more.
        try Files.rename(drop, to: elsewhere)
        try await Self.release(parts, until: "the copy is gone and the reason is said") {
            let record = try await parts.store.read { try $0.assets.find(asset) }
            return record?.state == .dropped && record?.sourceNote?.contains("is not mounted") == true
        }
        #expect(try FileStatus.ifPresent(at: parts.staging.path(FilePath("\(asset)"))) == nil)
        #expect(try await parts.store.read { try $0.assets.find(asset) }?.sourceState == .releasing)
        #expect(try await parts.store.read { try $0.releases.releasable(limit: 10) }.map(\.asset.id) == [asset])
        try Files.rename(elsewhere, to: drop)
        // As after a restart: nothing in memory defers it.
        try await Self.release(parts, until: "the source is released") {
            try await parts.store.read { try $0.assets.find(asset) }?.sourceState == .released
        }
        #expect(try FileStatus.ifPresent(at: path) == nil)
        #expect(try await parts.store.read { try $0.releases.releasable(limit: 10) }.isEmpty)
    }

    @Test("a source that came back as another version is kept")
    func changed() async throws {
        let folder = TemporaryFolder()
        let parts = try await Self.parts(in: folder)
        let drop = folder.path.appending("drop")
        let path = try folder.write("drop/a.mp4", Self.content)
        let asset = try await Self.complete(path, of: drop, in: parts)
        try Files.rename(drop, to: folder.path.appending("elsewhere"))
        try await Self.release(parts, until: "the copy is gone") {
            try await parts.store.read { try $0.assets.find(asset) }?.state == .dropped
        }
        try folder.write("drop/a.mp4", noise(10_000, seed: 2))
        try await Self.release(parts, until: "the source is judged") {
            try await parts.store.read { try $0.assets.find(asset) }?.sourceState == .kept
        }
        #expect(try Files.read(path, limit: 1 << 20) == noise(10_000, seed: 2))
    }

    @Test("a source that was to be copied again for an upload that was then cancelled is kept, with a reason")
    func undigested() async throws {
        let folder = TemporaryFolder()
        let parts = try await Self.parts(in: folder)
        let path = try folder.write("drop/a.mp4", Self.content)
        let asset = try await Self.complete(
            path, of: folder.path.appending("drop"), in: parts, destinations: ["nas", "web"])
        let uploads = try await parts.store.read { try $0.uploads.of(asset) }
        let web = try #require(uploads.first { $0.destination == "web" }).id
        _ = try await parts.store.write { try $0.transitions.cancel([web]) }
        _ = try await parts.store.write { try $0.transitions.retry(web, fromCopy: false) }
        _ = try await parts.store.write { try $0.transitions.cancel([web]) }
        try await Self.release(parts, until: "the source is judged") {
            try await parts.store.read { try $0.assets.find(asset) }?.sourceState == .kept
        }
        #expect(try await parts.store.read { try $0.assets.find(asset) }?.sourceNote == "its content was not recorded")
        #expect(try await parts.store.read { try $0.releases.releasable(limit: 10) }.isEmpty)
        #expect(try Files.read(path) == Self.content)
    }

    @Test("deferred sources are not read again before their time, however often releases are signalled")
    func putOff() async throws {
        let folder = TemporaryFolder()
        let parts = try await Self.parts(in: folder)
        let drop = folder.path.appending("drop")
        var away: [Int64] = []
        for name: FilePath in ["drop/a.mp4", "drop/b.mp4", "drop/c.mp4"] {
            away.append(try await Self.complete(try folder.write(name, Self.content), of: drop, in: parts))
        }
        try Files.rename(drop, to: folder.path.appending("elsewhere"))
        let running = Task { try await Self.releaser(parts).run() }
        defer { running.cancel() }
        for asset in away {
            try await eventually("the release has been deferred") {
                try await parts.store.read { try $0.assets.find(asset) }?.sourceNote != nil
            }
        }
        let path = try folder.write("other/d.mp4", Self.content)
        let new = try await Self.complete(path, of: folder.path.appending("other"), in: parts)
        _ = await parts.store.statementCosts(.runs)
        parts.signals.release.signal()
        try await eventually("the new source has been released") {
            try await parts.store.read { try $0.assets.find(new) }?.sourceState == .released
        }
        let reads = await parts.store.statementCosts(.runs).filter { $0.key.hasSuffix("WHERE id = ?1 AND due = 1") }
        #expect(reads.values.reduce(0, +) == 1)
    }

    @Test(
        "a file with the source's name on another disk is not taken for a version of it",
        .enabled(if: SmallDisk.isPossible, "mounting takes root: run the tests as root"))
    func otherDisk() async throws {
        let folder = TemporaryFolder()
        let parts = try await Self.parts(in: folder)
        let drop = folder.path.appending("drop")
        let disk = try SmallDisk(at: drop)
        let path = try folder.write("drop/a.mp4", Self.content)
        let asset = try await Self.complete(path, of: drop, in: parts, on: "a card that is not there")
        // The same name, as on each card of a camera.
        try Files.remove(path)
        try folder.write("drop/a.mp4", noise(10_000, seed: 2))
        try await Self.release(parts, until: "the reason is recorded") {
            try await parts.store.read { try $0.assets.find(asset) }?.sourceNote?.contains("is not mounted") == true
        }
        #expect(try await parts.store.read { try $0.assets.find(asset) }?.sourceState == .releasing)
        #expect(try Files.read(path, limit: 1 << 20) == noise(10_000, seed: 2))
        withExtendedLifetime(disk) {}
    }

    @Test("sources of a disk that is away are tried once each, then one for all, and all when it is back")
    func together() async throws {
        let folder = TemporaryFolder()
        let clocks = ManualClocks()
        let parts = try await Self.parts(in: folder, clocks)
        let drop = folder.path.appending("drop")
        let elsewhere = folder.path.appending("elsewhere")
        var away: [Int64] = []
        for number in 0..<300 {
            let path = try folder.write(FilePath("drop/\(number).mp4"), Self.content)
            away.append(try await Self.complete(path, of: drop, in: parts))
        }
        try Files.rename(drop, to: elsewhere)
        let releaser = Self.releaser(parts)
        let running = Task { try await releaser.run() }
        defer { running.cancel() }
        for asset in away {
            try await eventually("the copy is gone and the reason is recorded") {
                let record = try await parts.store.read { try $0.assets.find(asset) }
                return record?.state == .dropped && record?.sourceNote != nil
            }
        }
        func tries() async -> Int {
            await parts.store.statementCosts(.runs).filter { $0.key.hasSuffix("WHERE id = ?1 AND due = 1") }.values
                .reduce(0, +)
        }
        _ = await tries()
        clocks.advance(by: .seconds(60))
        parts.signals.release.signal()
        var count = 0
        try await eventually("the disk has been looked for") {
            count += await tries()
            return count > 0
        }
        // One piece of the list, and no more.
        #expect(count <= 64)
        try Files.rename(elsewhere, to: drop)
        try await releaser.retry(["cam"])
        parts.signals.release.signal()
        for asset in away {
            try await eventually("the source has been released") {
                try await parts.store.read { try $0.assets.find(asset) }?.sourceState == .released
            }
        }
        #expect(try Files.names(in: drop).isEmpty)
    }

    private static func parts(
        in folder: TemporaryFolder, _ clocks: any Clocks = SystemClocks()
    ) async throws -> ComponentParts {
        let staging = StagingArea(folder: folder.path.appending("staging"))
        try staging.prepare()
        let settings = Settings(
            state: folder.path.appending("state"),
            staging: StagingSettings(path: staging.folder, copy: .auto, maxSize: nil, keepFree: 0), folders: [],
            destinations: [],
            policy: PolicySettings(total: 1, perDestination: 1, order: .oldestFirst, retry: Backoff()),
            control: ControlSettings(socket: folder.path.appending("control.sock")))
        return ComponentParts(
            runtime: RuntimeConfiguration(
                settings: settings, staging: staging, destinations: [:], since: clocks.wall()),
            store: try await Store.open(settings.state, clocks: clocks, sorting: .oldestFirst), clocks: clocks,
            log: .silent)
    }

    /// Recorded with `delete`, staged, and its only upload verified.
    private static func complete(
        _ path: FilePath, of root: FilePath, in parts: ComponentParts, on fileSystem: String? = nil,
        destinations: [String] = ["nas"]
    ) async throws -> Int64 {
        let status = try FileStatus(at: path)
        let identity = FileIdentity(
            folder: "cam", relative: path.name, size: status.size, modified: status.modified, inode: status.inode,
            born: nil,
            fileSystem: fileSystem)
        let orders = destinations.map {
            NewAsset.PlannedUpload(
                destination: $0, name: path.name, mediaType: "video/mp4", key: nil, context: [:], metadata: [:])
        }
        let arrival = NewAsset(
            file: SettledFile(
                folder: "cam", root: root, relative: path.name, status: status, identity: identity, settledBy: .lease),
            action: .delete, priority: 0, orders: orders)
        guard case .recorded(let asset, _)? = try await parts.store.write({ try $0.arrivals.record([arrival]) }).first
        else { throw Unexpected() }
        let copied = try parts.staging.copy(
            CopyRequest(SourceFile(path), identity, changed: status.changed), as: FilePath("\(asset)"))
        try parts.staging.publish([copied])
        try await parts.store.write { try $0.staging.record([StagedCopy(asset: asset, sha256: copied.sha256)]) }
        guard let claim = try await parts.store.claim("nas", passingOver: []) else { throw Unexpected() }
        let remote = RemoteObject(id: nil, url: "u", verifiedBy: "offset")
        try await parts.store.write { try $0.attempts.finish(claim.upload.id, .verified(remote)) }
        return asset
    }

    private static func release(_ parts: ComponentParts, until what: String, _ condition: () async throws -> Bool)
        async throws
    {
        let releaser = Self.releaser(parts)
        let running = Task { try await releaser.run() }
        defer { running.cancel() }
        try await eventually(what, holds: condition)
    }

    private static func releaser(_ parts: ComponentParts) -> Releaser {
        parts.releaser(WriterSearch(clocks: parts.context.clocks))
    }

    private struct Unexpected: Error {}
}
