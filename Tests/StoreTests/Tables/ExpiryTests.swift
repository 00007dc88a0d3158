import Core
import TestKit
import Testing

@testable import Store

@Suite("Expired uploads")
struct ExpiryTests {
    private static let cam = UploadClass(folder: "cam", destination: "nas")
    private static let day = Duration.seconds(86_400)
    private let oldest = WallTime(milliseconds: 1_790_000_000_000)

    private func expiry(_ days: Int = 7) throws -> Expiry {
        try #require(Expiry(PolicyRules(expiresAfter: Self.day * days)))
    }

    private func aged(_ store: Store, _ days: Int = 7, most: Int = 200) async throws -> (ids: [String], next: WallTime?)
    {
        try await store.read { try $0.lists.expiredUploads(Self.cam, by: try expiry(days), oldest: oldest, most: most) }
    }

    @Test("the oldest are found with the time of the next, and end with a reason; others are not changed")
    func ends() async throws {
        let scene = try await Scene()
        let old = try await scene.stage(Scene.arrival(Scene.file("old"), to: ["nas", "cloud"]))
        guard
            case .recorded(let bare, let copying)? = try await scene.store.write({
                try $0.arrivals.record([Scene.arrival(Scene.file("bare"))])
            })
            .first
        else { throw Scene.Unexpected() }
        scene.clocks.advance(by: Self.day)
        let found = scene.clocks.wall()
        let young = try await scene.stage(Scene.arrival(Scene.file("young")))
        #expect(try await aged(scene.store).ids.isEmpty)
        scene.clocks.advance(by: Self.day * 6)
        let due = try await aged(scene.store)
        #expect(due.ids == [old.uploads[0], copying[0]])
        #expect(due.next == found.advanced(by: Self.day * 7))
        #expect(try await aged(scene.store, most: 1).ids == [old.uploads[0]])
        let seq = await scene.store.seq
        #expect(try await scene.store.write { try $0.transitions.expire(due.ids) }.map(\.upload.id) == due.ids)
        #expect(try await scene.store.read { try $0.uploads.row(old.uploads[0]) }?.isExpired == true)
        #expect(try await scene.store.read { try $0.uploads.find(old.uploads[1]) }?.state == .queued)
        #expect(try await scene.store.read { try $0.uploads.find(young.uploads[0]) }?.state == .queued)
        #expect(try await scene.store.read { try $0.assets.find(bare) }?.state == .dropped, "no upload needs its copy")
        #expect(try await scene.store.read { try $0.failures.of(copying[0]) }.last?.failure.code == .expired)
        let events = try await scene.store.read { try $0.events.list(after: seq, limit: 200) }.filter {
            $0.type == .cancelled
        }
        #expect(events.map(\.detail["reason"]) == ["expired", "expired"])
        #expect(try await aged(scene.store).ids.isEmpty)
        #expect(try await scene.store.write { try $0.transitions.expire(due.ids) }.isEmpty)
    }

    @Test("running and retried uploads are not ended, however old")
    func spared() async throws {
        let scene = try await Scene()
        let one = try await scene.stage(Scene.arrival(Scene.file("one")))
        _ = try await scene.store.claim("nas", passingOver: [])
        scene.clocks.advance(by: Self.day * 8)
        #expect(try await aged(scene.store).ids.isEmpty)
        #expect(try await scene.store.write { try $0.transitions.expire(one.uploads) }.isEmpty)
        try await scene.store.write { try $0.attempts.finish(one.uploads[0], .yielded) }
        #expect(try await aged(scene.store).ids == one.uploads)
        _ = try await scene.store.write { try $0.transitions.expire(one.uploads) }
        _ = try await scene.store.write { try $0.transitions.retry(one.uploads[0], fromCopy: true) }
        #expect(try await aged(scene.store).ids.isEmpty)
        // If a person has cancelled it, it no longer counts as expired.
        _ = try await scene.store.write { try $0.transitions.cancel(one.uploads) }
        #expect(try await scene.store.read { try $0.uploads.row(one.uploads[0]) }?.isExpired == false)
    }

    @Test("an expired upload keeps the source, even if another destination has verified it")
    func keeps() async throws {
        let scene = try await Scene()
        let both = try await scene.stage(Scene.arrival(Scene.file("both"), to: ["nas", "cloud"]))
        let claim = try #require(try await scene.store.claim("cloud", passingOver: []))
        try await scene.store.write {
            try $0.attempts.finish(
                claim.upload.id, .verified(RemoteObject(id: nil, url: nil, verifiedBy: "offset")))
        }
        #expect(try await scene.store.read { try $0.releases.releasable(limit: 10) }.isEmpty)
        scene.clocks.advance(by: Self.day * 8)
        let old = try await aged(scene.store).ids
        _ = try await scene.store.write { try $0.transitions.expire(old) }
        #expect(try await scene.store.read { try $0.releases.releasable(limit: 10) }.map(\.verdict) == [.keepSource])
        _ = try await scene.store.write { try $0.transitions.retry(both.uploads[0], fromCopy: true) }
        _ = try await scene.store.write { try $0.transitions.cancel([both.uploads[0]]) }
        #expect(try await scene.store.read { try $0.releases.releasable(limit: 10) }.map(\.verdict) == [.release])
    }

    @Test(
        "a restart changes nothing; a file found in this run is never older than the run, even if the clock was set")
    func runs() async throws {
        let folder = TemporaryFolder()
        let clocks = ManualClocks()
        var store = try await Store.open(folder.path, clocks: clocks, sorting: .newestFirst)
        let file = Scene.arrival(Scene.file("before"))
        guard case .recorded(_, let before)? = try await store.write({ try $0.arrivals.record([file]) }).first else {
            throw Scene.Unexpected()
        }
        // A slow clock is corrected: no upload is a week old, although it seems so.
        clocks.step(by: Self.day * 8)
        #expect(try await aged(store).ids.isEmpty)
        #expect(try await aged(store).next == clocks.wall().advanced(by: Self.day * 7))
        clocks.advance(by: Self.day * 6)
        await store.close()
        store = try await Store.open(folder.path, clocks: clocks, sorting: .newestFirst)
        let again = Scene.arrival(Scene.file("after"))
        guard case .recorded(_, let after)? = try await store.write({ try $0.arrivals.record([again]) }).first else {
            throw Scene.Unexpected()
        }
        clocks.step(by: Self.day * 30)
        #expect(try await aged(store).ids == before)
        clocks.advance(by: Self.day * 7)
        #expect(try await aged(store).ids == before + after)
        await store.close()
    }

    @Test("a file found under an unset clock counts from the start of the run")
    func unset() async throws {
        let folder = TemporaryFolder()
        let clocks = ManualClocks(wall: WallTime(milliseconds: 5_000))
        var store = try await Store.open(folder.path, clocks: clocks, sorting: .newestFirst)
        let file = Scene.arrival(Scene.file("a"))
        guard case .recorded(_, let ids)? = try await store.write({ try $0.arrivals.record([file]) }).first else {
            throw Scene.Unexpected()
        }
        await store.close()
        clocks.step(by: .milliseconds(1_795_161_600_000))
        store = try await Store.open(folder.path, clocks: clocks, sorting: .newestFirst)
        clocks.advance(by: Self.day * 6)
        #expect(try await aged(store).ids.isEmpty)
        clocks.advance(by: Self.day)
        #expect(try await aged(store).ids == ids)
        await store.close()
    }
}
