import Core
import Store
import Synchronization
import TestKit
import Testing

@Suite("Store over time")
struct StoreOverTimeTests {
    @Test("with skipped duplicates, one of two uploads with the same content runs, and the other is skipped")
    func duplicatesUnderWay() async throws {
        let scene = try await Scene(sorting: .oldestFirst)
        let sha256 = noise(32)
        let first = try await scene.stage(Scene.arrival(Scene.file("a", size: 4096, modified: 1)), sha256: sha256)
        let twin = try await scene.stage(Scene.arrival(Scene.file("b", size: 4096, modified: 2)), sha256: sha256)
        let other = try await scene.stage(
            Scene.arrival(Scene.file("c", size: 4096, modified: 3)), sha256: noise(32, seed: 9))
        let repeats = Mutex<[Int64]>([])
        func claim(_ paused: [String] = []) async throws -> String? {
            try await scene.store.claim(
                "nas", passingOver: paused, skippingDuplicatesOf: ["cam", "door"],
                onRepeat: { asset in repeats.withLock { $0.append(asset.id) } })?.upload.id
        }
        #expect(try await claim(["door"]) == first.uploads[0])
        #expect(try await claim() == other.uploads[0])
        #expect(try await claim() == nil)
        // The first upload has to wait, so the duplicate may run.
        try await scene.store.write { try $0.attempts.finish(first.uploads[0], .yielded) }
        try await scene.store.write { try $0.transitions.pause([first.uploads[0]], true) }
        #expect(try await claim(["door"]) == twin.uploads[0])
        try await scene.store.write { try $0.transitions.pause([first.uploads[0]], false) }
        #expect(try await claim() == nil)
        try await scene.store.write {
            try $0.attempts.finish(twin.uploads[0], .verified(RemoteObject(id: nil, url: "u", verifiedBy: "offset")))
        }
        #expect(try await claim() == nil)
        #expect(try await scene.store.read { try $0.uploads.find(first.uploads[0]) }?.state == .completed)
        #expect(try await scene.store.read { try $0.assets.find(first.asset) }?.action == .leave)
        #expect(repeats.withLock { $0 } == [first.asset])
    }

    @Test("a duplicate that has started continues, because the remote may already have its object")
    func duplicatesBegun() async throws {
        let scene = try await Scene(sorting: .oldestFirst)
        let sha256 = noise(32)
        let first = try await scene.stage(Scene.arrival(Scene.file("a", size: 4096, modified: 1)), sha256: sha256)
        let twin = try await scene.stage(Scene.arrival(Scene.file("b", size: 4096, modified: 2)), sha256: sha256)
        for id in [first.uploads[0], twin.uploads[0]] { #expect(try await claim(scene) == id) }
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "u"]), for: first.uploads[0]) }
        try await scene.store.write { try $0.attempts.finish(first.uploads[0], .yielded) }
        try await scene.store.write {
            try $0.attempts.finish(twin.uploads[0], .verified(RemoteObject(id: nil, url: "v", verifiedBy: "offset")))
        }
        #expect(try await claim(scene, skipping: ["cam"]) == first.uploads[0])
    }

    @Test("with skipped duplicates, an upload waits for its started duplicate, whatever holds that one")
    func waitsForBegun() async throws {
        let scene = try await Scene(sorting: .oldestFirst)
        let sha256 = noise(32)
        let first = try await scene.stage(Scene.arrival(Scene.file("a", size: 4096, modified: 1)), sha256: sha256)
        #expect(try await claim(scene, skipping: ["cam"]) == first.uploads[0])
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "u"]), for: first.uploads[0]) }
        let failure = Failure(
            .transient, code: .connectionLost, message: "reset", at: WallTime(milliseconds: 1), retryable: true)
        let until = scene.clocks.monotonic().advanced(by: .seconds(60))
        try await scene.store.write { try $0.attempts.finish(first.uploads[0], .retry(failure, until: until)) }
        let twin = try await scene.stage(Scene.arrival(Scene.file("b", size: 4096, modified: 2)), sha256: sha256)
        let other = try await scene.stage(
            Scene.arrival(Scene.file("c", size: 4096, modified: 3)), sha256: noise(32, seed: 9))
        #expect(try await claim(scene, skipping: ["cam"]) == other.uploads[0])
        #expect(try await claim(scene, skipping: ["cam"]) == nil)
        let waiting = try #require(try await scene.store.read { try $0.uploads.find(twin.uploads[0]) })
        #expect(
            try await scene.store.read { try $0.uploads.duplicate(waiting, sha256: sha256) }?.id == first.uploads[0])
        // A folder that does not skip duplicates does not wait.
        try await scene.store.write { try $0.waits.end(for: "nas") }
        #expect(try await claim(scene, skipping: ["cam"]) == first.uploads[0])
        #expect(
            try await scene.store.read { try $0.uploads.duplicate(waiting, sha256: sha256) }?.id == first.uploads[0])
        try await scene.store.write {
            try $0.attempts.finish(
                first.uploads[0], .verified(RemoteObject(id: nil, url: "u", verifiedBy: "offset")))
        }
        #expect(try await claim(scene, skipping: ["cam"]) == nil)
        let skipped = try #require(try await scene.store.read { try $0.uploads.find(twin.uploads[0]) })
        #expect(skipped.state == .completed)
        #expect(skipped.remote?.warnings.first?.contains("as a of folder cam at ") == true)
    }

    @Test("an upload whose duplicate failed or was cancelled runs itself", arguments: [true, false])
    func twinIsOver(_ isFailed: Bool) async throws {
        let scene = try await Scene(sorting: .oldestFirst)
        let sha256 = noise(32)
        let first = try await scene.stage(Scene.arrival(Scene.file("a", size: 4096, modified: 1)), sha256: sha256)
        let twin = try await scene.stage(Scene.arrival(Scene.file("b", size: 4096, modified: 2)), sha256: sha256)
        #expect(try await claim(scene, skipping: ["cam"]) == first.uploads[0])
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "u"]), for: first.uploads[0]) }
        #expect(try await claim(scene, skipping: ["cam"]) == nil)
        if isFailed {
            let failure = Failure(
                .permanent, code: .http(422), message: "no", at: WallTime(milliseconds: 1), retryable: false)
            try await scene.store.write { try $0.attempts.finish(first.uploads[0], .refused(failure)) }
        } else {
            _ = try await scene.store.write { try $0.transitions.cancel([first.uploads[0]]) }
        }
        #expect(try await claim(scene, skipping: ["cam"]) == twin.uploads[0])
    }

    private func claim(_ scene: Scene, skipping: [String] = []) async throws -> String? {
        try await scene.store.claim("nas", passingOver: [], skippingDuplicatesOf: skipping)?.upload.id
    }

    @Test("another version of a recorded path is distinguished from a new file and from a skipped one")
    func versions() async throws {
        let scene = try await Scene()
        func outcome(_ name: String, _ modified: Int64, again: Bool = false) async throws -> String {
            let arrival = Scene.arrival(Scene.file(name, modified: modified), again: again)
            return switch try await scene.store.write({ try $0.arrivals.record([arrival]) }).first {
            case .recorded(let asset, _)?:
                try await told("new", asset)
            case .newVersion(let asset, _)?:
                try await told("version", asset)
            default: "none"
            }
        }
        func told(_ word: String, _ asset: Int64) async throws -> String {
            try await scene.store.write { try $0.staging.record([StagedCopy(asset: asset, sha256: noise(32))]) }
            return word
        }
        #expect(try await outcome("a", 1) == "new")
        #expect(try await outcome("a", 2) == "version")
        #expect(try await outcome("a", 2, again: true) == "new")
        try await scene.store.write { try $0.tombstones.skip([Scene.file("b", modified: 1).identity]) }
        #expect(try await outcome("b", 2) == "new")
    }

    @Test("a file refused for its size stays known, a deleted one does not", arguments: [true, false])
    func refused(_ isGone: Bool) async throws {
        let scene = try await Scene()
        let file = Scene.file("a")
        guard
            case .recorded(let asset, let uploads)? = try await scene.store.write({
                try $0.arrivals.record([Scene.arrival(file)])
            }).first
        else {
            throw Scene.Unexpected()
        }
        let failure = Failure(.local, code: .noReply, message: "x", at: scene.clocks.wall(), retryable: false)
        try await scene.store.write { try $0.staging.fail(asset, failure, isGone: isGone) }
        #expect(try await scene.store.read { try $0.uploads.find(uploads[0]) }?.state == .failed)
        #expect(try await scene.store.areKnown([file.identity]) == [!isGone])
    }

    @Test("after two hundred days a tombstone is old but kept until its source is checked")
    func tombstones() async throws {
        let scene = try await Scene()
        let file = Scene.file("a")
        try await scene.stage(Scene.arrival(file))
        scene.clocks.step(by: .seconds(200 * 86_400))
        #expect(try await scene.store.read { try $0.tombstones.old(limit: 10) }.map(\.relative) == ["a"])
        #expect(try await scene.store.areKnown([file.identity]) == [true])
        // A scan has seen the file, so its tombstone is young again.
        #expect(try await scene.store.read { try $0.tombstones.old(limit: 10) }.isEmpty)
        try await scene.store.write { try $0.tombstones.prune(renewed: [], gone: [file.identity]) }
        #expect(try await scene.store.areKnown([file.identity]) == [false])
    }

    @Test("a key of an ongoing upload can be used once")
    func keys() async throws {
        let scene = try await Scene()
        let (_, uploads) = try await scene.stage(Scene.arrival(Scene.file("a"), key: "k"))
        #expect(
            try await scene.store.write { try $0.arrivals.record([Scene.arrival(Scene.file("b"), key: "k")]) } == [
                .keyTaken(uploads[0])
            ])
        _ = try await scene.store.write { try $0.transitions.cancel(uploads) }
        guard
            case .recorded? = try await scene.store.write({
                try $0.arrivals.record([Scene.arrival(Scene.file("b"), key: "k")])
            }).first
        else {
            throw Scene.Unexpected()
        }
    }

    @Test("upload ids never go backwards, even if the clock does")
    func ids() async throws {
        let scene = try await Scene()
        var ids: [String] = []
        for number in 0..<20 {
            if number == 10 { scene.clocks.step(by: .seconds(-86_400)) }
            ids += try await scene.stage(Scene.arrival(Scene.file("f\(number)"))).uploads
        }
        #expect(ids == ids.sorted())
        #expect(Set(ids).count == 20)
    }
}
