import Core
import Linux
import TestKit
import Testing

@testable import Store

@Suite("Retention of lists")
struct RetentionTests {
    private static let day = Duration.seconds(86_400)
    private static let refused = Failure(
        .permanent, code: .http(422), message: "no", at: WallTime(milliseconds: 0), retryable: false)

    /// An upload that ended in the given way.
    private func end(
        _ scene: Scene, _ name: String, _ outcome: AttemptOutcome, sha256: [UInt8] = noise(32),
        action: SourceAction = .delete
    ) async throws -> (asset: Int64, id: String) {
        let (asset, uploads) = try await scene.stage(
            Scene.arrival(Scene.file(name), action: action), sha256: sha256)
        _ = try await scene.store.claim("nas", passingOver: [])
        try await scene.store.write { try $0.attempts.finish(uploads[0], outcome) }
        return (asset, uploads[0])
    }

    private static let sent = AttemptOutcome.verified(RemoteObject(id: "v1", url: "http://nas/v/1", verifiedBy: "x"))

    private func retired(
        _ scene: Scene, _ list: UploadState, _ time: Duration?, most: Int? = nil
    ) async throws -> (ids: [String], next: Duration?) {
        let found = try await scene.store.read {
            try $0.lists.uploadsToDismiss(list, by: .init(time: time, most: most), most: 100)
        }
        return (found.ids.map { "\($0.id) \($0.reason)" }, found.next)
    }

    @Test("age counts running time only: a clock set from 1970 ages nothing")
    func running() async throws {
        let scene = try await Scene()
        let one = try await end(scene, "one", Self.sent)
        scene.clocks.step(by: Self.day * 20_000)
        #expect(try await retired(scene, .completed, Self.day) == ([], Self.day))
        scene.clocks.advance(by: .seconds(10) - .milliseconds(1))
        #expect(try await retired(scene, .completed, .seconds(10)) == ([], .milliseconds(1)))
        scene.clocks.advance(by: .milliseconds(1))
        #expect(try await retired(scene, .completed, .seconds(10)) == (["\(one.id) expired"], nil))
        #expect(try await retired(scene, .completed, nil) == ([], nil))
        #expect(try await retired(scene, .failed, .seconds(10)) == ([], nil))
    }

    @Test("time between two runs does not count, and the time of a run is stored when it ends")
    func restart() async throws {
        let scene = try await Scene()
        let one = try await end(scene, "one", Self.sent)
        scene.clocks.advance(by: Self.day)
        await scene.store.close()
        scene.clocks.advance(by: Self.day * 30)
        let again = try await Store.open(
            scene.folder.path.appending("state"), clocks: scene.clocks, sorting: .newestFirst)
        let limits = ListRetention.Limits(time: Self.day * 2)
        #expect(
            try await again.read { try $0.lists.uploadsToDismiss(.completed, by: limits, most: 9) }.next == Self.day)
        scene.clocks.advance(by: Self.day)
        #expect(
            try await again.read { try $0.lists.uploadsToDismiss(.completed, by: limits, most: 9) }.ids.map(\.id) == [
                one.id
            ])
        await again.close()
    }

    @Test("the time of a killed run counts up to its last other write")
    func killed() async throws {
        let scene = try await Scene()
        let one = try await end(scene, "one", Self.sent)
        scene.clocks.advance(by: Self.day)
        try await scene.store.testWrite()
        scene.clocks.advance(by: Self.day)
        // As in a kill: nothing is written.
        await scene.store.closeFiles()
        let copy = scene.folder.path.appending("copy")
        try Files.makeFolders(copy)
        for name in try Files.names(in: scene.folder.path.appending("state")) where name != "lock" {
            try Files.publish(
                copy.appending(name), try Files.read(scene.folder.path.appending("state").appending(name)), mode: 0o600)
        }
        let again = try await Store.open(copy, clocks: scene.clocks, sorting: .newestFirst)
        let found = try await again.read {
            try $0.lists.uploadsToDismiss(.completed, by: .init(time: Self.day * 2), most: 9)
        }
        #expect(found.ids.isEmpty && found.next == Self.day)
        #expect(try await again.read { try $0.uploads.find(one.id) }?.ranAt != nil)
        await again.close()
    }

    @Test("a list over its length loses the oldest, and one over length and age each upload once")
    func capped() async throws {
        let scene = try await Scene()
        var ids: [String] = []
        for number in 0..<5 {
            ids.append(try await end(scene, "\(number)", .refused(Self.refused)).id)
            scene.clocks.advance(by: .seconds(60))
        }
        #expect(
            try await retired(scene, .failed, Self.day, most: 3)
                == (["\(ids[0]) capped", "\(ids[1]) capped"], Self.day - .seconds(180)))
        #expect(
            try await retired(scene, .failed, .seconds(300), most: 3).ids
                == ["\(ids[0]) expired", "\(ids[1]) capped"])
        let states = try await scene.store.write { [ids] tx in
            (try tx.transitions.dismiss(ids, .capped), try tx.transitions.dismiss([ids[0], "none"], .dismissed))
        }
        #expect(states.0 == Array(repeating: .removed, count: 5))
        #expect(states.1 == [.removed, nil])
        let events = try await scene.store.read { try $0.events.list(after: 0, limit: 500) }.filter {
            $0.type == .removed
        }
        #expect(events.map(\.upload) == ids)
        #expect(events.allSatisfy { $0.detail == ["list": "failed", "reason": "capped"] })
    }

    @Test("ongoing uploads leave no list, and cancelled ones stay until their remote data is removed")
    func stays() async throws {
        let scene = try await Scene()
        let (_, uploads) = try await scene.stage(Scene.arrival(Scene.file("one")))
        #expect(try await scene.store.write { try $0.transitions.dismiss(uploads, .flushed) } == [.queued])
        _ = try await scene.store.claim("nas", passingOver: [])
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "x"]), for: uploads[0]) }
        #expect(try await scene.store.write { try $0.transitions.dismiss(uploads, .flushed) } == [.uploading])
        _ = try await scene.store.write { try $0.transitions.cancel(uploads) }
        scene.clocks.advance(by: Self.day)
        #expect(try await retired(scene, .cancelled, .seconds(1)) == ([], nil))
        let deletion = try #require(try await scene.store.read { try $0.remoteDeletions.all() }.first)
        try await scene.store.write { try $0.remoteDeletions.finish(deletion, .done) }
        #expect(try await retired(scene, .cancelled, .seconds(1)).ids == ["\(uploads[0]) expired"])
    }

    @Test(
        "a failed removal after cancel is shown on the upload that is sent again",
        arguments: [RemoteDeletion.Result.done, .unsupported],
        [true, false])
    func leftByCancel(_ result: RemoteDeletion.Result, _ isLate: Bool) async throws {
        let scene = try await Scene()
        let (_, uploads) = try await scene.stage(Scene.arrival(Scene.file("one")))
        _ = try await scene.store.claim("nas", passingOver: [])
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "x"]), for: uploads[0]) }
        _ = try await scene.store.write { try $0.transitions.cancel(uploads) }
        let deletion = try #require(try await scene.store.read { try $0.remoteDeletions.all() }.first)
        if !isLate { try await scene.store.write { try $0.remoteDeletions.finish(deletion, result) } }
        _ = try await scene.store.write { try $0.transitions.retry(uploads[0], fromCopy: true) }
        if isLate { try await scene.store.write { try $0.remoteDeletions.finish(deletion, result) } }
        let claim = try #require(try await scene.store.claim("nas", passingOver: []))
        try await scene.store.write { try $0.attempts.finish(claim.upload.id, Self.sent) }
        let warnings = try await scene.store.read { try $0.uploads.find(uploads[0]) }?.remote?.warnings ?? []
        #expect(warnings.contains { $0.contains("cancelled before") } == (result != .done))
    }

    @Test("the source of a dismissed failed upload is never deleted, even if another destination has it")
    func dismissed() async throws {
        let scene = try await Scene()
        let (asset, uploads) = try await scene.stage(Scene.arrival(Scene.file("one"), to: ["nas", "cloud"]))
        for (name, outcome) in [("nas", AttemptOutcome.refused(Self.refused)), ("cloud", Self.sent)] {
            let claim = try #require(try await scene.store.claim(name, passingOver: []))
            try await scene.store.write { try $0.attempts.finish(claim.upload.id, outcome) }
        }
        #expect(try await scene.store.read { try $0.releases.releasable(limit: 9) }.isEmpty)
        _ = try await scene.store.write { try $0.transitions.dismiss(uploads, .dismissed) }
        let found = try await scene.store.read { try $0.releases.releasable(limit: 9) }
        #expect(found.map(\.asset.id) == [asset] && found.map(\.verdict) == [.keepSource])
        // The upload has begun again and was sent, so nothing keeps the source.
        let failed = try #require(try await scene.store.read { try $0.uploads.of(asset) }.first { $0.ended == .failed })
        #expect(try await scene.store.write { try $0.transitions.retry(failed.id, fromCopy: true) } == .removed)
        _ = try await scene.store.claim("nas", passingOver: [])
        try await scene.store.write { try $0.attempts.finish(failed.id, Self.sent) }
        #expect(try await scene.store.read { try $0.releases.releasable(limit: 9) }.map(\.verdict) == [.release])
    }

    @Test("a failed upload keeps its remote data, so that a retry from the history resumes")
    func goesOn() async throws {
        let scene = try await Scene()
        let (_, uploads) = try await scene.stage(Scene.arrival(Scene.file("one")))
        _ = try await scene.store.claim("nas", passingOver: [])
        try await scene.store.writeHeld {
            try $0.checkpoints.record(Checkpoint(["url": "x"]), for: uploads[0], acked: 60)
        }
        try await scene.store.write { try $0.attempts.finish(uploads[0], .refused(Self.refused)) }
        _ = try await scene.store.write { try $0.transitions.dismiss(uploads, .expired) }
        #expect(try await scene.store.write { try $0.transitions.retry(uploads[0], fromCopy: true) } == .removed)
        let claim = try #require(try await scene.store.claim("nas", passingOver: []))
        #expect(claim.checkpoint?.fields == ["url": "x"] && claim.upload.acked == 60 && claim.upload.generation == 2)
        #expect(claim.upload.ended == nil && claim.upload.ranAt == nil)
        #expect(claim.upload.context == ["camera": "door"])
    }

    @Test(
        "after its time in the history only the fact remains that the content was sent, while its file exists"
    )
    func forgotten() async throws {
        let scene = try await Scene()
        let one = try await end(scene, "one", Self.sent, sha256: noise(32, seed: 1))
        let two = try await end(scene, "two", .refused(Self.refused), sha256: noise(32, seed: 2))
        _ = try await scene.store.write { try $0.transitions.dismiss([one.id, two.id], .flushed) }
        func forget(_ time: Duration) async throws -> Duration? {
            try await scene.store.forget(after: time, from: nil, most: 50).next
        }
        // The release has not finished with them.
        scene.clocks.advance(by: Self.day * 90)
        _ = try await forget(Self.day)
        #expect(try await scene.store.read { try $0.uploads.find(one.id) } != nil)
        try await scene.store.write { try $0.releases.finish(one.asset, .released) }
        try await scene.store.write { try $0.releases.finish(two.asset, .kept, note: "") }
        #expect(try await forget(Self.day * 91) == Self.day)
        #expect(try await forget(Self.day * 90) == nil)
        for (asset, id) in [one, two] {
            #expect(try await scene.store.read { try $0.uploads.find(id) } == nil)
            #expect(try await scene.store.read { try $0.assets.find(asset) } == nil)
        }
        // The same content at the same path is not sent again: its tombstone exists.
        let again = try await scene.stage(
            Scene.arrival(Scene.file("one", modified: 5_000)), sha256: noise(32, seed: 1))
        #expect(try await scene.store.read { try $0.uploads.find(again.uploads[0]) }?.state == .completed)
        // Without the file and its tombstone, nothing is known of it any more.
        _ = try await scene.store.write { try $0.transitions.dismiss(again.uploads, .flushed) }
        try await scene.store.write { try $0.releases.finish(again.asset, .released) }
        scene.clocks.advance(by: Self.day * 91)
        _ = try await forget(Self.day * 90)
        try await scene.store.write { try $0.tombstones.prune(renewed: [], gone: [Scene.file("one").identity]) }
        let last = try await scene.stage(
            Scene.arrival(Scene.file("one", modified: 6_000)), sha256: noise(32, seed: 1))
        #expect(try await scene.store.read { try $0.uploads.find(last.uploads[0]) }?.state == .queued)
    }

    @Test("an upload whose source is to be deleted later is known until then")
    func kept() async throws {
        let scene = try await Scene()
        let one = try await end(scene, "one", Self.sent, action: .keep)
        _ = try await scene.store.write { try $0.transitions.dismiss([one.id], .expired) }
        try await scene.store.write { try $0.releases.finish(one.asset, .kept) }
        scene.clocks.advance(by: Self.day)
        _ = try await scene.store.forget(after: Self.day, from: nil, keepingSourcesOf: ["cam"], most: 50)
        #expect(try await scene.store.read { try $0.uploads.find(one.id) } != nil)
        #expect(
            try await scene.store.read { try $0.keptSources.oldest(in: "cam", limit: 1) }.map(\.asset) == [one.asset])
        _ = try await scene.store.forget(after: Self.day, from: nil, most: 50)
        #expect(try await scene.store.read { try $0.assets.find(one.asset) } == nil)
    }

    @Test("remote data of a dropped failed upload is removed as well")
    func leftovers() async throws {
        let scene = try await Scene()
        let (asset, uploads) = try await scene.stage(Scene.arrival(Scene.file("one")))
        _ = try await scene.store.claim("nas", passingOver: [])
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "x"]), for: uploads[0]) }
        try await scene.store.write { try $0.attempts.finish(uploads[0], .refused(Self.refused)) }
        _ = try await scene.store.write { try $0.transitions.dismiss(uploads, .expired) }
        try await scene.store.write { try $0.releases.finish(asset, .kept, note: "") }
        scene.clocks.advance(by: Self.day)
        _ = try await scene.store.forget(after: Self.day, from: nil, most: 50)
        #expect(try await scene.store.read { try $0.remoteDeletions.all() }.map(\.checkpoint.fields) == [["url": "x"]])
        #expect(try await scene.store.read { try $0.uploads.find(uploads[0]) } == nil)
    }

    @Test("an upload is found by its remote name through an index, in any list")
    func remote() async throws {
        let scene = try await Scene()
        let one = try await end(scene, "one", Self.sent)
        for name in ["v1", "http://nas/v/1"] {
            #expect(try await scene.store.read { try $0.uploads.rows(remote: name) }.map(\.upload.id) == [one.id])
        }
        #expect(try await scene.store.read { try $0.uploads.rows(remote: "v2") }.isEmpty)
        _ = try await scene.store.write { try $0.transitions.dismiss([one.id], .flushed) }
        #expect(try await scene.store.read { try $0.uploads.rows(remote: "v1") }.map(\.upload.id) == [one.id])
        for (sql, steps) in try await scene.store.plans() where sql.contains("json_extract") {
            #expect(steps.allSatisfy { !$0.contains("SCAN") }, "\(sql): \(steps)")
        }
    }
}
