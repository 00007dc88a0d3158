import Core
import Store
import TestKit
import Testing

@Suite("Groups that are reported as one")
struct GroupTests {
    private static let there = RemoteObject(id: nil, url: nil, verifiedBy: "offset")

    /// Files of one group and one of no group, all staged; the ids of their uploads to `nas`.
    private func scene(
        _ names: [String], joining leader: FilePath? = nil, in existing: Scene? = nil
    ) async throws -> (scene: Scene, ids: [String]) {
        let scene = if let existing { existing } else { try await Scene() }
        let arrivals = names.map { name in
            var arrival = Scene.arrival(Scene.file(name))
            if name.hasPrefix("card/") { (arrival.unit, arrival.group, arrival.joins) = (0, "card", leader) }
            return arrival
        }
        _ = try await scene.store.write { tx in try tx.arrivals.record(arrivals) }
        let assets = try await scene.store.read { try $0.staging.waiting(limit: 100, except: []) }
        _ = try await scene.store.write { tx in
            try tx.staging.record(assets.map { StagedCopy(asset: $0.id, sha256: noise(32)) })
        }
        var ids: [String] = []
        for name in names {
            let asset = try #require(assets.first { $0.path.relative.display == name })
            ids.append(try #require(try await scene.store.read { try $0.uploads.of(asset.id) }.first).id)
        }
        return (scene, ids)
    }

    private func reports(_ scene: Scene) async throws -> [[EventField: String]] {
        try await scene.store.read { try $0.events.list(after: 0, limit: 1_000) }.filter { $0.type == .groupEnded }.map
        {
            Dictionary(
                $0.detail.compactMap { name, value in EventField(rawValue: name).map { ($0, value) } },
                uniquingKeysWith: { $1 })
        }
    }

    private func claimAll(_ scene: Scene) async throws {
        while try await scene.store.claim("nas", passingOver: []) != nil {}
    }

    @Test("a group is reported once, by the upload that ends last, and a lone file never")
    func once() async throws {
        let (scene, ids) = try await scene(["card/a.mp4", "card/sub/b.mp4", "card/c.mp4", "lone.mp4"])
        try await claimAll(scene)
        for (number, id) in ids.enumerated().reversed() {
            try await scene.store.write { try $0.attempts.finish(id, .verified(Self.there)) }
            #expect(try await reports(scene).count == (number == 0 ? 1 : 0))
        }
        let report = try #require(try await reports(scene).first)
        #expect(report[.name] == "card" && report[.files] == "3" && report[.verified] == "3")
        #expect(report[.result] == "verified" && report[.folder] == "cam")
    }

    @Test("a file that failed or was cancelled makes its group incomplete; a retry ends it once more")
    func incomplete() async throws {
        let (scene, ids) = try await scene(["card/a.mp4", "card/b.mp4", "card/c.mp4"])
        try await claimAll(scene)
        let failure = Failure(.transient, code: .noReply, message: "x", at: WallTime(milliseconds: 1), retryable: false)
        try await scene.store.write {
            try $0.attempts.finish(ids[0], .verified(Self.there))
            _ = try $0.transitions.cancel([ids[2]])
        }
        #expect(try await reports(scene).isEmpty)
        try await scene.store.write { _ = try $0.attempts.finish(ids[1], .refused(failure)) }
        #expect(try await reports(scene).map { $0[.verified] } == ["1"])
        #expect(try await reports(scene).first?[.result] == "incomplete")
        _ = try await scene.store.write { try $0.transitions.retry(ids[1], fromCopy: true) }
        try await claimAll(scene)
        try await scene.store.write { _ = try $0.attempts.finish(ids[1], .verified(Self.there)) }
        #expect(try await reports(scene).map { $0[.verified] } == ["1", "2"])
    }

    @Test("a file joins its group while that is on its way; after its end it begins a new one")
    func joins() async throws {
        let (scene, ids) = try await scene(["card/a.mp4"])
        let (_, second) = try await self.scene(["card/b.mp4"], joining: "card/a.mp4", in: scene)
        try await claimAll(scene)
        for id in ids + second {
            try await scene.store.write { try $0.attempts.finish(id, .verified(Self.there)) }
        }
        let (_, late) = try await self.scene(["card/c.mp4"], joining: "card/a.mp4", in: scene)
        try await claimAll(scene)
        try await scene.store.write { try $0.attempts.finish(late[0], .verified(Self.there)) }
        #expect(try await reports(scene).map { $0[.files] } == ["2", "1"])
    }

    @Test("files of a group with other stems are no companions")
    func companions() async throws {
        let (scene, ids) = try await scene(["card/a.mp4", "card/a.jpg", "card/a2.mp4", "card/sub/a.mp4", "card/b.mp4"])
        let companions = try await scene.store.read { tx in try ids.map { try tx.uploads.companions(of: $0).count } }
        #expect(companions == [1, 1, 0, 0, 0])
    }
}
