import Core
import Linux
import TestKit
import Testing

@testable import Store

/// Two disks take turns at one place, as the cards of a camera do, and their files have the same names.
@Suite("Files of another disk with the same path")
struct OtherDiskTests {
    private func arrival(
        _ name: String = "a", on disk: String, size: Int64, stagingMode: StagingMode = .inPlace
    ) -> NewAsset {
        var file = Scene.file(name, size: size)
        file.identity.fileSystem = disk
        var arrival = Scene.arrival(file)
        arrival.stagingMode = stagingMode
        return arrival
    }

    @Test(
        "a staged file that comes back is known, whether its upload is over or not", arguments: [false, true])
    func back(isSent: Bool) async throws {
        let scene = try await Scene()
        let first = try await scene.stage(arrival(on: "A", size: 1, stagingMode: .copy))
        let other = try await scene.stage(arrival(on: "B", size: 2, stagingMode: .copy))
        #expect(other.asset != first.asset)
        if isSent {
            for _ in 0..<2 {
                let claim = try #require(try await scene.store.claim("nas", passingOver: []))
                let remote = RemoteObject(id: nil, url: "u", verifiedBy: "offset")
                try await scene.store.write { try $0.attempts.finish(claim.upload.id, .verified(remote)) }
            }
        }
        for disk in [("A", Int64(1)), ("B", 2), ("A", 1)] {
            let again = arrival(on: disk.0, size: disk.1, stagingMode: .copy)
            #expect(try await scene.store.areKnown([again.file.identity]) == [true])
            #expect(try await scene.store.write { try $0.arrivals.record([again]) } == [.known])
        }
        let row = try await scene.store.read { try $0.uploads.row(first.uploads[0]) }
        let asset = try #require(row?.asset)
        #expect(try await scene.store.read { try $0.assets.hasNewerVersion(asset) } == false)
    }

    @Test("a file that waits to be copied keeps its record while another disk is there, and is known when it is back")
    func waiting() async throws {
        let scene = try await Scene()
        let first = arrival(on: "A", size: 1, stagingMode: .copy)
        guard
            case .recorded(let asset, let uploads)? = try await scene.store.write({ try $0.arrivals.record([first]) })
                .first
        else { throw Scene.Unexpected() }
        let other = try await scene.stage(arrival(on: "B", size: 2, stagingMode: .copy))
        #expect(other.asset != asset)
        #expect(try await scene.store.read { try $0.assets.find(asset) }?.size == 1)
        #expect(try await scene.store.write { try $0.arrivals.record([first]) } == [.known])
        #expect(try await scene.store.areKnown([first.file.identity]) == [true])
        #expect(try await scene.store.read { try $0.uploads.find(uploads[0]) }?.state == .staging)
    }

    @Test("another disk's file ends no upload in place; a new version on the same disk ends those of the earlier one")
    func inPlace() async throws {
        let scene = try await Scene()
        let first = try await scene.stage(arrival(on: "A", size: 1))
        let other = try await scene.stage(arrival(on: "B", size: 2))
        #expect(try await scene.store.read { try $0.uploads.find(first.uploads[0]) }?.state == .queued)
        let back = arrival(on: "A", size: 1)
        #expect(try await scene.store.write { try $0.arrivals.record([back]) } == [.known])
        try await scene.stage(arrival(on: "A", size: 3))
        #expect(try await scene.store.read { try $0.uploads.find(first.uploads[0]) }?.state == .cancelled)
        #expect(try await scene.store.read { try $0.uploads.find(other.uploads[0]) }?.state == .queued)
    }

    @Test("a file that was gone before its copy is recorded if it comes back, and is no new version of another disk's")
    func failed() async throws {
        let scene = try await Scene()
        let first = arrival(on: "A", size: 1, stagingMode: .copy)
        guard case .recorded(let asset, _)? = try await scene.store.write({ try $0.arrivals.record([first]) }).first
        else { throw Scene.Unexpected() }
        let failure = Failure(.local, code: .sourceMissing, message: "x", at: scene.clocks.wall(), retryable: false)
        #expect(try await scene.store.write { try $0.staging.fail(asset, failure, isGone: true) })
        try await scene.stage(arrival(on: "B", size: 2, stagingMode: .copy))
        guard case .recorded? = try await scene.store.write({ try $0.arrivals.record([first]) }).first else {
            throw Scene.Unexpected()
        }
    }

    @Test("a file stays known when another disk's file takes its path, also if that file is then gone before its copy")
    func gone() async throws {
        let scene = try await Scene()
        let first = arrival(on: "A", size: 1, stagingMode: .copy)
        try await scene.stage(first)
        let other = arrival(on: "B", size: 2, stagingMode: .copy)
        guard case .recorded(let asset, _)? = try await scene.store.write({ try $0.arrivals.record([other]) }).first
        else { throw Scene.Unexpected() }
        let failure = Failure(.local, code: .sourceMissing, message: "x", at: scene.clocks.wall(), retryable: false)
        #expect(try await scene.store.write { try $0.staging.fail(asset, failure, isGone: true) })
        #expect(try await scene.store.areKnown([first, other].map(\.file.identity)) == [true, false])
        #expect(try await scene.store.write { try $0.arrivals.record([first]) } == [.known])
    }

    @Test("files that were skipped or cancelled stay so when another disk's files have had their paths")
    func cancelled() async throws {
        let scene = try await Scene()
        let skipped = arrival("s", on: "A", size: 1, stagingMode: .copy)
        try await scene.store.write { try $0.tombstones.skip([skipped.file.identity]) }
        let cancelled = arrival("c", on: "A", size: 1, stagingMode: .copy)
        let uploads = try await scene.stage(cancelled).uploads
        _ = try await scene.store.write { try $0.transitions.cancel(uploads) }
        for name in ["s", "c"] { try await scene.stage(arrival(name, on: "B", size: 2, stagingMode: .copy)) }
        for arrival in [skipped, cancelled] {
            #expect(try await scene.store.areKnown([arrival.file.identity]) == [true])
            #expect(try await scene.store.write { try $0.arrivals.record([arrival]) } == [.known])
        }
        // A person may add a file that was skipped.
        var added = skipped
        added.file.settledBy = .added
        guard case .recorded? = try await scene.store.write({ [added] in try $0.arrivals.record([added]) }).first else {
            throw Scene.Unexpected()
        }
        let known = try await scene.store.read {
            try $0.tombstones.knownFile(
                "cam", "s", preferring: (skipped.file.identity.size, skipped.file.identity.modified))
        }
        #expect(known?.wasRecorded == true)
    }

    @Test("a new version on one disk replaces that disk's version alone")
    func version() async throws {
        let scene = try await Scene()
        let (first, other) = (arrival(on: "A", size: 1), arrival(on: "B", size: 2))
        try await scene.stage(first)
        try await scene.stage(other)
        let newer = arrival(on: "A", size: 3)
        guard case .newVersion(let asset, _)? = try await scene.store.write({ try $0.arrivals.record([newer]) }).first
        else { throw Scene.Unexpected() }
        #expect(
            try await scene.store.areKnown([first, other, newer].map(\.file.identity)) == [false, true, true])
        // What changed under the record of a disk's file concerns that disk's file alone.
        try await scene.stage(arrival(on: "B", size: 4))
        try await scene.store.write { try $0.tombstones.remove(asset) }
        #expect(
            try await scene.store.areKnown([newer, arrival(on: "B", size: 4)].map(\.file.identity)) == [false, true])
    }

    @Test("a query finds files of several disks in any order, and renews the tombstones that are a week old")
    func query() async throws {
        let scene = try await Scene()
        let disks = ["A", "B", "C"]
        let names = (0..<40).map { "f\($0)" }
        for (size, disk) in disks.enumerated() {
            for name in names { try await scene.stage(arrival(name, on: disk, size: Int64(size + 1))) }
        }
        let all = disks.enumerated().flatMap { disk in
            names.map { arrival($0, on: disk.element, size: Int64(disk.offset + 1)).file.identity }
        }
        let changed = all.map {
            var identity = $0
            identity.size += 10
            return identity
        }
        #expect(try await scene.store.areKnown(all.shuffled()).allSatisfy { $0 })
        #expect(try await scene.store.areKnown(changed.shuffled()).allSatisfy { !$0 })
        scene.clocks.step(by: .seconds(100 * 86_400))
        #expect(try await scene.store.read { try $0.tombstones.old(limit: 1000) }.count == all.count)
        #expect(try await scene.store.areKnown(all).allSatisfy { $0 })
        #expect(try await scene.store.read { try $0.tombstones.old(limit: 1000) }.isEmpty)
    }

    @Test("the records of a displaced file go when it is gone, and those of the other disk's file stay")
    func pruned() async throws {
        let scene = try await Scene()
        let (first, other) = (arrival(on: "A", size: 1), arrival(on: "B", size: 2))
        for arrival in [first, other] { try await scene.stage(arrival) }
        try await scene.store.write { try $0.tombstones.prune(renewed: [], gone: [first.file.identity]) }
        #expect(try await scene.store.areKnown([first, other].map(\.file.identity)) == [false, true])
        try await scene.stage(first)
        try await scene.store.write { try $0.tombstones.prune(renewed: [], gone: [first.file.identity]) }
        #expect(try await scene.store.areKnown([first, other].map(\.file.identity)) == [false, true])
    }

    @Test("a path keeps the tombstones of the thirty other disks seen last")
    func limit() async throws {
        let scene = try await Scene()
        let all = (0..<40).map { arrival(on: "D\($0)", size: Int64($0 + 1)) }
        for arrival in all {
            try await scene.stage(arrival)
            scene.clocks.step(by: .seconds(1))
        }
        let known = try await scene.store.areKnown(all.map(\.file.identity))
        #expect(known == all.indices.map { $0 >= 9 })
    }

    @Test("a disk that has the name of a device for once takes no other disk's tombstones, and its files stay known")
    func device() async throws {
        let scene = try await Scene()
        let (first, other) = (arrival(on: "A", size: 1), arrival(on: "B", size: 2))
        for arrival in [first, other] { try await scene.stage(arrival) }
        let unnamed = arrival(on: "vfat:/dev/sdb1", size: 1)
        #expect(try await scene.store.areKnown([unnamed.file.identity]) == [true])
        #expect(try await scene.store.write { try $0.arrivals.record([unnamed]) } == [.known])
        try await scene.stage(arrival(on: "vfat:/dev/sdb1", size: 3))
        #expect(try await scene.store.areKnown([first, other].map(\.file.identity)) == [true, true])
    }

    @Test("a sidecar joins the file of its own disk")
    func unit() async throws {
        let scene = try await Scene()
        let first = try await scene.stage(arrival("a.mp4", on: "A", size: 1, stagingMode: .copy))
        let other = try await scene.stage(arrival("a.mp4", on: "B", size: 2, stagingMode: .copy))
        var sidecar = arrival("a.srt", on: "A", size: 3, stagingMode: .copy)
        (sidecar.unit, sidecar.joins) = (0, "a.mp4")
        try await scene.stage(sidecar)
        func mates(_ asset: Int64) async throws -> [Int64] {
            try await scene.store.read { try $0.uploads.mates(of: asset) }
        }
        #expect(try await mates(first.asset).count == 1)
        #expect(try await mates(other.asset).isEmpty)
        let path: FilePath = "/drop/a.mp4"
        #expect(
            try await scene.store.read { try $0.uploads.rows(path: path, on: "A") }.map(\.upload.id) == first.uploads)
        #expect(try await scene.store.read { try $0.uploads.rows(path: path) }.map(\.upload.id) == other.uploads)
    }

    @Test("skipped files are evidence for a rebuild, also of an earlier program's database", arguments: [true, false])
    func evidence(isEarlier: Bool) async throws {
        let folder = TemporaryFolder()
        let old = folder.path.appending("old")
        do {
            let store = try await Store.open(old, clocks: ManualClocks(), sorting: .newestFirst)
            for disk in ["A", "B"] {
                let file = arrival(on: disk, size: disk == "A" ? 1 : 2).file
                try await store.write { try $0.tombstones.skip([file.identity]) }
            }
            await store.close()
        }
        if isEarlier {
            try Connection(path: old.appending(StateFiles.database)).execute("DROP TABLE displaced_tombstone")
        }
        let new = try await Store.open(folder.path.appending("new"), clocks: ManualClocks(), sorting: .newestFirst)
        let (rows, isWhole) = try await new.salvage(from: old)
        #expect(rows == (isEarlier ? 1 : 2) && isWhole)
        let evidence = try await new.read { try $0.evidence.find("cam", "a", "") }
        #expect(evidence.map(\.size).sorted() == (isEarlier ? [2] : [1, 2]))
    }

    @Test("the name of a device does not show that a disk is another one")
    func devices() {
        #expect(FileIdentity.areOtherDisks("A", "B"))
        for (one, other) in [
            ("A", "A"), (nil, "A"), ("A", nil), ("A", "vfat:/dev/sda1"), ("vfat:/dev/sda1", "vfat:/dev/sdb1"),
        ] {
            #expect(!FileIdentity.areOtherDisks(one, other))
        }
    }

    @Test("uploads in place wait for their disk, except those with waits of their own, and go when that is ended")
    func wait() async throws {
        let scene = try await Scene()
        let names = ["a", "b", "c", "d"]
        var uploads: [String] = []
        for name in names {
            uploads += try await scene.stage(
                arrival(name, on: name == "d" ? "B" : "A", size: 1, stagingMode: name == "c" ? .copy : .inPlace)
            ).uploads
        }
        let ids = uploads
        let row = try await scene.store.read { try $0.uploads.row(ids[0]) }
        let asset = try #require(row?.asset)
        let now = scene.clocks.monotonic()
        let (own, end, later) = (
            now.advanced(by: .seconds(60)), now.advanced(by: .seconds(100)), now.advanced(by: .seconds(200))
        )
        func waits() async throws -> [MonotonicTime?] {
            try await scene.store.read { tx in try ids.map { try tx.uploads.find($0)?.backoffUntil } }
        }
        try await scene.store.write { try $0.waits.set([ids[1]: own]) }
        #expect(
            try await scene.store.write { try $0.waits.waitForDisk(of: asset, until: end, before: nil) } == [asset.id])
        #expect(try await waits() == [end, own, nil, nil])
        #expect(
            try await scene.store.write { try $0.waits.waitForDisk(of: asset, until: end, before: end) }.isEmpty)
        scene.clocks.advance(by: .seconds(70))
        #expect(
            try await scene.store.write { try $0.waits.waitForDisk(of: asset, until: later, before: end) }.count == 2)
        #expect(try await waits() == [later, later, nil, nil])
        try await scene.store.write { try $0.waits.end(until: end) }
        #expect(try await waits() == [later, later, nil, nil])
        try await scene.store.write { try $0.waits.end(until: later) }
        #expect(try await waits() == [nil, nil, nil, nil])
    }
}
