import Core
import TestKit
import Testing

@testable import Store

@Suite("Assets with a new version")
struct RenewedVersionTests {
    @Test("partial remote data of a replaced version is removed")
    func renewedBehindPart() async throws {
        let scene = try await Scene()
        let (asset, uploads) = try await scene.stage(Scene.arrival(Scene.file("a")))
        let claim = try #require(try await scene.store.claim("nas", passingOver: []))
        try await scene.store.writeHeld {
            try $0.checkpoints.record(Checkpoint(["url": "u/1"]), for: claim.upload.id, acked: 50)
        }
        let failure = Failure(.local, code: .copyLost, message: "x", at: scene.clocks.wall(), retryable: true)
        try await scene.store.write { try $0.attempts.finish(claim.upload.id, .copyLost(failure, .missing)) }
        try await scene.store.write { try $0.staging.unsettle(asset) }
        #expect(
            try await scene.store.write { try $0.arrivals.record([Scene.arrival(Scene.file("a", size: 200))]) } == [
                .renewed(asset: asset)
            ])
        let removals = try await scene.store.read { try $0.remoteDeletions.all() }
        #expect(removals.map(\.checkpoint.fields) == [["url": "u/1"]])
        #expect(removals.map(\.isEarlier) == [true])
        let upload = try #require(try await scene.store.read { try $0.uploads.find(uploads[0]) })
        // Names that are made from the id differ now.
        #expect((upload.generation, upload.acked, upload.isBegun) == (2, 0, false))
        try await scene.store.write { try $0.staging.record([StagedCopy(asset: asset, sha256: noise(32))]) }
        #expect(try await scene.store.claim("nas", passingOver: [])?.checkpoint == nil)
    }

    @Test("what `before_upload` approved for a replaced version is asked again for the new one")
    func approved() async throws {
        let scene = try await Scene()
        let (asset, uploads) = try await scene.stage(Scene.arrival(Scene.file("a")))
        let id = try #require(try await scene.store.claim("nas", passingOver: [])).upload.id
        #expect(try await scene.store.write { try $0.uploads.approve(id, .init()) }.isApproved)
        let failure = Failure(.local, code: .copyLost, message: "x", at: scene.clocks.wall(), retryable: true)
        try await scene.store.write { try $0.attempts.finish(id, .copyLost(failure, .missing)) }
        try await scene.store.write { try $0.staging.unsettle(asset) }
        // The same version is still approved.
        #expect(try await scene.store.read { try $0.uploads.find(uploads[0]) }?.isApproved == true)
        let newer = Scene.arrival(Scene.file("a", size: 200))
        #expect(try await scene.store.write { try $0.arrivals.record([newer]) } == [.renewed(asset: asset)])
        #expect(try await scene.store.read { try $0.uploads.find(uploads[0]) }?.isApproved == false)
    }

    private static let both = ["nas", "web"]
    private static let older = Scene.arrival(Scene.file("a"), to: both)
    private static let newer = Scene.arrival(Scene.file("a", size: 200), to: both)

    /// The newer version, found or added by a person.
    private static func arrival(to destinations: [String], isAdded: Bool, size: Int64 = 200) -> NewAsset {
        var arrival = Scene.arrival(Scene.file("a", size: size), to: destinations)
        if isAdded { arrival.file.settledBy = .added }
        return arrival
    }

    /// A staged version of which `nas` has ended in this way, and `web` was cancelled and tried again from the source.
    private func retried(_ scene: Scene, nas end: UploadState) async throws -> (asset: Int64, uploads: [String]) {
        let (asset, uploads) = try await scene.stage(Self.older)
        if end == .completed {
            _ = try #require(try await scene.store.claim("nas", passingOver: []))
            let remote = RemoteObject(id: nil, url: "u", verifiedBy: "offset")
            try await scene.store.write { try $0.attempts.finish(uploads[0], .verified(remote)) }
        } else {
            _ = try await scene.store.write { try $0.transitions.cancel([uploads[0]]) }
        }
        _ = try await scene.store.write { try $0.transitions.cancel([uploads[1]]) }
        #expect(try await scene.store.write { try $0.transitions.retry(uploads[1], fromCopy: false) } == .cancelled)
        return (asset, uploads)
    }

    /// A file that waits to be copied for the first time.
    private func recorded(_ scene: Scene, _ arrival: NewAsset) async throws -> (asset: Int64, uploads: [String]) {
        let outcome = try await scene.store.write { try $0.arrivals.record([arrival]) }.first
        guard case .recorded(let asset, let uploads)? = outcome else { throw Scene.Unexpected() }
        return (asset, uploads)
    }

    private func states(_ scene: Scene, _ uploads: [String]) async throws -> [UploadState?] {
        try await scene.store.read { tx in try uploads.map { try tx.uploads.find($0)?.state } }
    }

    @Test(
        "a new version goes to all destinations if one of them has, or was to have, the earlier one",
        arguments: [UploadState.completed, .cancelled])
    func received(nas: UploadState) async throws {
        let scene = try await Scene()
        let (asset, uploads) = try await retried(scene, nas: nas)
        // The same version is copied for the upload that waits.
        #expect(try await scene.store.write { try $0.arrivals.record([Self.older]) } == [.known])
        let outcome = try await scene.store.write { try $0.arrivals.record([Self.newer]) }.first
        guard case .newVersion(let second, let ids)? = outcome else { throw Scene.Unexpected() }
        #expect(second != asset && ids.count == 2)
        #expect(try await scene.store.read { try $0.assets.find(asset) }?.state == .dropped)
        #expect(try await states(scene, uploads) == [nas, .cancelled])
        let failure = try await scene.store.read { try $0.failures.of(uploads[1]) }.last?.failure
        #expect(failure?.message == "/drop/a changed before it was copied: the newer version has uploads of its own")
        #expect(try await scene.store.write { try $0.arrivals.record([Self.newer]) } == [.known])
    }

    @Test("an upload that was cancelled before the first copy stays cancelled when the file is still written to")
    func cancelled() async throws {
        let scene = try await Scene()
        let (asset, uploads) = try await recorded(scene, Self.older)
        _ = try await scene.store.write { try $0.transitions.cancel([uploads[1]]) }
        #expect(try await scene.store.write { try $0.arrivals.record([Self.newer]) } == [.renewed(asset: asset)])
        #expect(try await states(scene, uploads) == [.staging, .cancelled])
    }

    @Test(
        "a changed file has the destinations of its new version, and no others", arguments: [["web"], ["nas", "web"]])
    func routes(_ destinations: [String]) async throws {
        let scene = try await Scene()
        let first = Scene.arrival(Scene.file("a"), to: ["nas"])
        let (_, uploads) = try await recorded(scene, first)
        let next = Self.arrival(to: destinations, isAdded: false)
        let outcome = try await scene.store.write { try $0.arrivals.record([next]) }.first
        guard case .newVersion(let second, let ids)? = outcome else { throw Scene.Unexpected() }
        #expect(ids.count == destinations.count)
        #expect(try await states(scene, uploads) == [.cancelled])
        #expect(try await scene.store.read { try $0.uploads.of(second) }.map(\.destination).sorted() == destinations)
    }

    @Test("what a person adds is refused while the file waits to be copied for others, and takes nothing from them")
    func added() async throws {
        let scene = try await Scene()
        let (asset, uploads) = try await retried(scene, nas: .completed)
        for destinations in [["nas"], ["web"], ["s3"]] {
            let next = Self.arrival(to: destinations, isAdded: true)
            #expect(
                try await scene.store.write { try $0.arrivals.record([next]) } == [.copyAwaited(uploads[1])])
        }
        #expect(try await states(scene, uploads) == [.completed, .staging])
        #expect(try await scene.store.read { try $0.assets.find(asset) }?.size == 100)
    }

    @Test("a file that a person added, and that changes before its copy, goes where the person said")
    func addedBefore() async throws {
        let scene = try await Scene()
        let first = Self.arrival(to: ["s3"], isAdded: true, size: 100)
        let (asset, _) = try await recorded(scene, first)
        #expect(try await scene.store.write { try $0.arrivals.record([Self.newer]) } == [.renewed(asset: asset)])
        let all = try await scene.store.read { try $0.uploads.of(asset) }
        #expect(all.map(\.destination) == ["s3"] && all.first?.size == 200)
        let again = Self.arrival(to: ["s3"], isAdded: true)
        #expect(try await scene.store.write { try $0.arrivals.record([again]) } == [.known])
    }

    @Test("a version that is not the newest of its path any more is never renewed")
    func order() async throws {
        let scene = try await Scene()
        let (asset, uploads) = try await scene.stage(Self.older)
        _ = try await scene.store.write { try $0.transitions.cancel(uploads) }
        try await scene.stage(Self.newer)
        for id in uploads { _ = try await scene.store.write { try $0.transitions.retry(id, fromCopy: false) } }
        let third = Scene.arrival(Scene.file("a", size: 300), to: Self.both)
        let outcome = try await scene.store.write { try $0.arrivals.record([third]) }.first
        guard case .newVersion(let newest, _)? = outcome else { throw Scene.Unexpected() }
        #expect(newest > asset)
        #expect(try await states(scene, uploads) == [.cancelled, .cancelled])
        let record = try await scene.store.read { try $0.assets.find(asset) }
        #expect(record?.sourceNote == "a newer version replaced it")
        #expect(try await scene.store.read { try $0.releases.dueAssets(limit: 10, after: 0) } == [])
    }

    @Test("a file that grows beyond what any destination takes ends what waits for it", arguments: [true, false])
    func skipped(isUnsettled: Bool) async throws {
        let scene = try await Scene()
        let (asset, uploads) = try await recorded(scene, Self.older)
        if isUnsettled { try await scene.store.write { try $0.staging.unsettle(asset) } }
        try await scene.store.write { try $0.tombstones.skip([Self.newer.file.identity]) }
        #expect(try await states(scene, uploads) == [.cancelled, .cancelled])
        #expect(try await scene.store.read { try $0.assets.find(asset) }?.state == .dropped)
        #expect(try await scene.store.areKnown([Self.newer.file.identity]) == [true])
    }

    @Test("an asset settles again though its version was recorded once more meanwhile")
    func twin() async throws {
        let scene = try await Scene()
        let (asset, uploads) = try await scene.stage(Self.older)
        _ = try await scene.store.write { try $0.transitions.cancel(uploads) }
        try await scene.stage(Scene.arrival(Scene.file("a"), to: Self.both, again: true))
        _ = try await scene.store.write { try $0.transitions.retry(uploads[0], fromCopy: false) }
        try await scene.store.write { try $0.staging.unsettle(asset) }
        #expect(try await scene.store.areKnown([Self.older.file.identity]) == [false])
        #expect(try await scene.store.write { try $0.arrivals.record([Self.older]) } == [.renewed(asset: asset)])
        #expect(try await scene.store.areKnown([Self.older.file.identity]) == [true])
    }

    @Test("a new version takes the place of the earlier one in its group, which is not reported before")
    func group() async throws {
        let scene = try await Scene()
        func arrival(_ name: FilePath, size: Int64, to destinations: [String]) -> NewAsset {
            var arrival = Scene.arrival(Scene.file(name, size: size), to: destinations)
            (arrival.unit, arrival.group) = (0, "card")
            return arrival
        }
        let (first, second) = (arrival("card/a", size: 1, to: ["nas"]), arrival("card/b", size: 2, to: ["nas"]))
        let outcomes = try await scene.store.write { try $0.arrivals.record([first, second]) }
        let assets = outcomes.compactMap(\.asset)
        try await scene.store.write { try $0.staging.record([StagedCopy(asset: assets[0], sha256: noise(32))]) }
        let claim = try #require(try await scene.store.claim("nas", passingOver: []))
        let remote = RemoteObject(id: nil, url: "u", verifiedBy: "offset")
        try await scene.store.write { try $0.attempts.finish(claim.upload.id, .verified(remote)) }
        var changed = arrival("card/b", size: 3, to: ["nas", "web"])
        changed.joins = "card/a"
        let newer = changed
        guard
            case .newVersion(let asset, _)? = try await scene.store.write({ try $0.arrivals.record([newer]) }).first
        else { throw Scene.Unexpected() }
        #expect(
            try await scene.store.read { try $0.events.list(after: 0, limit: 100) }.allSatisfy {
                $0.type != .groupEnded
            })
        #expect(try await scene.store.read { try $0.releases.dueAssets(limit: 10, after: 0) } == [])
        let units = try await scene.store.read { tx in
            try [assets[0], asset].map { try tx.assets.unit(of: $0)?.number }
        }
        #expect(units == [assets[0], assets[0]])
    }

    @Test("a file that waits goes on by its folder's rules after a person has added it as well")
    func addedToo() async throws {
        let scene = try await Scene()
        let (asset, _) = try await recorded(scene, Self.older)
        let added = Self.arrival(to: ["web"], isAdded: true)
        #expect(try await scene.store.write { try $0.arrivals.record([added]) } == [.renewed(asset: asset)])
        #expect(try await scene.store.read { try $0.assets.find(asset) }?.settledBy == .lease)
    }

    @Test("an earlier version that is to be copied again, and is replaced by a recorded one, ends")
    func replaced() async throws {
        let scene = try await Scene()
        let (asset, uploads) = try await scene.stage(Self.older)
        _ = try await scene.store.write { try $0.transitions.cancel(uploads) }
        try await scene.stage(Self.newer)
        _ = try await scene.store.write { try $0.transitions.retry(uploads[1], fromCopy: false) }
        try await scene.store.write { try $0.staging.unsettle(asset) }
        #expect(try await states(scene, uploads) == [.cancelled, .cancelled])
        #expect(try await scene.store.read { try $0.assets.find(asset) }?.state == .dropped)
        #expect(try await scene.store.areKnown([Self.newer, Self.older].map(\.file.identity)) == [true, false])
    }
}
