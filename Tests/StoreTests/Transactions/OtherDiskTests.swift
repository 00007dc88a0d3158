import Core
import Linux
import Store
import TestKit
import Testing

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
        "a staged file that comes back is known while its upload or its release is not over", arguments: [false, true])
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
            #expect(try await scene.store.areKnown([again.file.identity]) == [false])
            #expect(try await scene.store.write { try $0.arrivals.record([again]) } == [.known])
            #expect(try await scene.store.areKnown([again.file.identity]) == [true])
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

    @Test("a failed upload does not keep a file that comes back from being recorded")
    func failed() async throws {
        let scene = try await Scene()
        let first = arrival(on: "A", size: 1, stagingMode: .copy)
        guard case .recorded(let asset, _)? = try await scene.store.write({ try $0.arrivals.record([first]) }).first
        else { throw Scene.Unexpected() }
        let failure = Failure(.local, code: .sourceMissing, message: "x", at: scene.clocks.wall(), retryable: false)
        #expect(try await scene.store.write { try $0.staging.fail(asset, failure, isGone: true) })
        try await scene.stage(arrival(on: "B", size: 2, stagingMode: .copy))
        guard case .newVersion? = try await scene.store.write({ try $0.arrivals.record([first]) }).first else {
            throw Scene.Unexpected()
        }
    }

    @Test("the name of a device does not show that a disk is another one")
    func devices() {
        #expect(FileIdentity.areOtherDisks("A", "B"))
        for (one, other) in [("A", "A"), (nil, "A"), ("A", nil), ("vfat:/dev/sda1", "vfat:/dev/sdb1")] {
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
