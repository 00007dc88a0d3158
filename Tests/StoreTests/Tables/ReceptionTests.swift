import Core
import Linux
import Store
import TestKit
import Testing

@Suite("Received uploads in the store")
struct ReceptionTests {
    private func arrival(_ name: String, key: String? = nil, to destinations: [String] = ["nas"]) -> NewAsset {
        var arrival = Scene.arrival(Scene.file(name, folder: "-"), to: destinations, key: key)
        arrival.stagingMode = .received
        arrival.file.settledBy = .added
        return arrival
    }

    @Test("an asset is staged and its uploads are queued at creation, under the assigned ids")
    func birth() async throws {
        let scene = try await Scene()
        let (asset, ids) = try await scene.store.write { try $0.receptions.begin(uploads: 2) }
        // A file that arrives meanwhile has another number.
        let other = try await scene.stage(Scene.arrival(Scene.file("other.mp4")))
        #expect(other.asset != asset)
        #expect(try await scene.store.read { try $0.assets.find(asset) } == nil)
        var order = arrival("clip.mp4", to: ["nas", "archive"])
        order.orders[0].url = .creation("http://nas/elsewhere")
        order.orders[1].url = .upload("http://archive/u")
        let sha256 = noise(32)
        let holder = try await scene.store.write { [order] tx in
            try tx.receptions.record(order, as: asset, uploads: ids, sha256: sha256, facts: MediaFacts())
        }
        #expect(holder == nil)
        let born = try #require(try await scene.store.read { try $0.assets.find(asset) })
        #expect(born.state == .staged && born.stagingMode == .received && born.sha256 == sha256)
        for (id, url) in zip(ids, [GivenURL.creation("http://nas/elsewhere"), .upload("http://archive/u")]) {
            let upload = try #require(try await scene.store.read { try $0.uploads.find(id) })
            #expect(upload.state == .queued && upload.asset == asset && upload.url == url)
        }
        #expect(try await scene.store.read { try $0.staging.totalBytes() } == 200)
    }

    @Test("the same name and bytes may be received again, without a change to known files")
    func twice() async throws {
        let scene = try await Scene()
        for _ in 0..<2 {
            let (asset, ids) = try await scene.store.write { try $0.receptions.begin(uploads: 1) }
            #expect(
                try await scene.store.write {
                    try $0.receptions.record(
                        arrival("clip.mp4"), as: asset, uploads: ids, sha256: noise(32), facts: MediaFacts())
                } == nil)
        }
        #expect(try await scene.store.read { try $0.lists.tallies() }.filter { $0.uploads > 0 }.map(\.uploads) == [2])
        scene.clocks.advance(by: .seconds(100 * 86_400))
        #expect(try await scene.store.read { try $0.tombstones.old(limit: 10) }.isEmpty)
    }

    @Test("a key that an ongoing upload took meanwhile is reported, and nothing is recorded")
    func key() async throws {
        let scene = try await Scene()
        let (asset, ids) = try await scene.store.write { try $0.receptions.begin(uploads: 1) }
        let holder = try await scene.stage(Scene.arrival(Scene.file("other.mp4"), key: "k")).uploads[0]
        #expect(
            try await scene.store.write {
                try $0.receptions.record(
                    arrival("clip.mp4", key: "k"), as: asset, uploads: ids, sha256: noise(32), facts: MediaFacts())
            }
                == holder)
        #expect(try await scene.store.read { try $0.assets.find(asset) } == nil)
        #expect(try await scene.store.read { try $0.uploads.find(ids[0]) } == nil)
    }

    @Test("an unfinished reception is known as such until it is swept, also after a restart")
    func begun() async throws {
        let scene = try await Scene()
        let (asset, _) = try await scene.store.write { try $0.receptions.begin(uploads: 1) }
        let (ended, _) = try await scene.store.write { try $0.receptions.begin(uploads: 1) }
        try await scene.store.write { try $0.receptions.end(ended) }
        #expect(try await scene.store.read { try $0.assets.existing([asset, ended, 99]) } == [asset])
        #expect(try await scene.store.read { try $0.assets.owned([asset]) }.isEmpty)
        await scene.store.close()
        let again = try await Store.open(
            scene.folder.path.appending("state"), clocks: scene.clocks, sorting: .newestFirst)
        #expect(try await again.read { try $0.assets.existing([asset]) } == [asset])
        try await again.forgetReceptions()
        #expect(try await again.read { try $0.assets.existing([asset]) }.isEmpty)
        // Its number is not used again.
        #expect(try await again.write { try $0.receptions.begin(uploads: 0) }.asset > ended)
        await again.close()
    }
}
