import Core
import Store
import TestKit
import Testing

@Suite("Grouped files in the store")
struct CompanionTests {
    /// A video and its image in one unit, and an unrelated file; the ids of their uploads to `nas`.
    private func scene() async throws -> (scene: Scene, video: String, image: String, stranger: String) {
        let scene = try await Scene()
        var arrivals = ["a.mp4", "a.jpg", "b.mp4"].map { Scene.arrival(Scene.file($0)) }
        for index in 0...1 { arrivals[index].unit = 0 }
        _ = try await scene.store.write { [arrivals] tx in try tx.arrivals.record(arrivals) }
        let assets = try await scene.store.read { try $0.staging.waiting(limit: 3, except: []) }
        _ = try await scene.store.write { tx in
            try tx.staging.record(assets.map { StagedCopy(asset: $0.id, sha256: noise(32)) })
        }
        func id(_ name: String) async throws -> String {
            let asset = try #require(assets.first { $0.path.name.display == name })
            return try #require(try await scene.store.read { try $0.uploads.of(asset.id) }.first).id
        }
        return (scene, try await id("a.mp4"), try await id("a.jpg"), try await id("b.mp4"))
    }

    private static let there = RemoteObject(id: "/videos/1", url: "https://x.example/1", verifiedBy: "offset")

    @Test("grouped files list each other with their remote state, and no other files")
    func told() async throws {
        let (scene, video, image, stranger) = try await scene()
        #expect(try await scene.store.read { try $0.uploads.companions(of: image) }.map(\.state) == [.queued])
        #expect(try await scene.store.read { try $0.uploads.companions(of: stranger) }.isEmpty)
        while let claim = try await scene.store.claim("nas", passingOver: []), claim.upload.id != video {}
        try await scene.store.write { try $0.attempts.finish(video, .verified(Self.there)) }
        let told = try await scene.store.read { try $0.uploads.companions(of: image) }
        #expect(told.map(\.state) == [.completed])
        #expect(told.first?.remote == Self.there)
    }

    @Test("the wait ends when one of the group has ended, and no other wait ends", arguments: [true, false])
    func woken(_ isGood: Bool) async throws {
        let (scene, video, image, stranger) = try await scene()
        let failure = Failure(.transient, code: .noReply, message: "x", at: WallTime(milliseconds: 1), retryable: true)
        for _ in 0..<3 { _ = try await scene.store.claim("nas", passingOver: []) }
        let later = scene.clocks.monotonic().advanced(by: .seconds(300))
        for id in [image, stranger] {
            try await scene.store.write { try $0.attempts.finish(id, .held(failure, until: later)) }
        }
        #expect(try await scene.store.claim("nas", passingOver: []) == nil)
        try await scene.store.write {
            try $0.attempts.finish(video, isGood ? .verified(Self.there) : .refused(failure))
        }
        #expect(try await scene.store.claim("nas", passingOver: [])?.upload.id == image)
        #expect(try await scene.store.claim("nas", passingOver: []) == nil)
    }

    @Test("a file does not wait for one that ended before its wait was recorded", arguments: [true, false])
    func overtaken(_ isGood: Bool) async throws {
        let (scene, video, image, _) = try await scene()
        let failure = Failure(.transient, code: .noReply, message: "x", at: WallTime(milliseconds: 1), retryable: true)
        for _ in 0..<3 { _ = try await scene.store.claim("nas", passingOver: []) }
        let known = try await scene.store.read { try $0.uploads.companions(of: image) }
        try await scene.store.write {
            try $0.attempts.finish(video, isGood ? .verified(Self.there) : .refused(failure))
        }
        let later = scene.clocks.monotonic().advanced(by: .seconds(300))
        try await scene.store.write { try $0.attempts.finish(image, .held(failure, until: later, knowing: known)) }
        #expect(try await scene.store.claim("nas", passingOver: [])?.upload.id == image)
        // Now it knows the state, so it waits.
        let now = try await scene.store.read { try $0.uploads.companions(of: image) }
        try await scene.store.write { try $0.attempts.finish(image, .held(failure, until: later, knowing: now)) }
        #expect(try await scene.store.claim("nas", passingOver: []) == nil)
    }

    @Test("a file knows the result of a group member that left the lists")
    func removed() async throws {
        let (scene, video, image, _) = try await scene()
        while let claim = try await scene.store.claim("nas", passingOver: []), claim.upload.id != video {}
        try await scene.store.write { try $0.attempts.finish(video, .verified(Self.there)) }
        _ = try await scene.store.write { try $0.transitions.dismiss([video], .dismissed) }
        #expect(try await scene.store.read { try $0.uploads.companions(of: image) }.map(\.state) == [.completed])
    }

    @Test("for a reused name, each round lists its own files first, including late ones")
    func rounds() async throws {
        let scene = try await Scene()
        func record(_ names: [(String, Int64)], joins: Bool) async throws {
            var arrivals = names.map { Scene.arrival(Scene.file($0.0, modified: $0.1)) }
            for index in arrivals.indices {
                arrivals[index].unit = 0
                if joins { arrivals[index].joins = "a.mp4" }
            }
            _ = try await scene.store.write { [arrivals] tx in try tx.arrivals.record(arrivals) }
            let assets = try await scene.store.read { try $0.staging.waiting(limit: 9, except: []) }
            _ = try await scene.store.write { tx in
                try tx.staging.record(assets.map { StagedCopy(asset: $0.id, sha256: noise(32)) })
            }
            scene.clocks.advance(by: .seconds(5))
        }
        // The image before its video, in the order of names; then both again, the image late.
        try await record([("a.jpg", 1), ("a.mp4", 2)], joins: false)
        try await record([("a.mp4", 3)], joins: true)
        try await record([("a.jpg", 4)], joins: true)
        var claims: [Claim] = []
        while let claim = try await scene.store.claim("nas", passingOver: []) { claims.append(claim) }
        let videos = claims.filter { $0.upload.name == "a.mp4" }.sorted { $0.asset.id < $1.asset.id }.map(\.upload.id)
        let images = claims.filter { $0.upload.name == "a.jpg" }.sorted { $0.asset.id < $1.asset.id }.map(\.upload.id)
        #expect(videos.count == 2 && images.count == 2)
        for (number, video) in videos.enumerated() {
            try await scene.store.write {
                try $0.attempts.finish(
                    video, .verified(RemoteObject(id: "/videos/\(number)", url: nil, verifiedBy: "offset")))
            }
        }
        for (number, image) in images.enumerated() {
            let first = try await scene.store.read { try $0.uploads.companions(of: image) }.first {
                $0.state == .completed
            }
            #expect(first?.remote?.id == "/videos/\(number)")
        }
    }
}
