import Core
import TestKit
import Testing

@testable import Store

@Suite("Notices of hooks and answers before uploads")
struct NoticeTests {
    private func notice(_ hook: String, _ seq: Int64, upload: String? = nil) -> (record: NoticeRecord, body: String) {
        (
            NoticeRecord(key: .init(hook: hook, seq: seq), at: WallTime(milliseconds: seq * 1000), upload: upload),
            "{\"seq\":\(seq)}"
        )
    }

    @Test("a new hook starts at its given position, and a removed one loses its waiting notices")
    func kept() async throws {
        let scene = try await Scene()
        let store = scene.store
        #expect(try await store.write { try $0.notices.keepHooks([], from: 5) } == 0)
        try await store.write { try $0.notices.keepHooks(["a", "b"], from: 5) }
        #expect(try await store.read { try $0.notices.hookMarks() } == ["a": 5, "b": 5])
        try await store.write {
            try $0.notices.queue([notice("a", 6), notice("b", 6)], dropping: [], marks: ["a": 6, "b": 6])
        }
        #expect(try await store.write { try $0.notices.keepHooks(["a", "c"], from: 9) } == 1)
        #expect(try await store.read { try $0.notices.hookMarks() } == ["a": 6, "c": 9])
        #expect(try await store.read { try $0.notices.all() }.map(\.key) == [.init(hook: "a", seq: 6)])
        // A hook that comes back begins again.
        try await store.write { try $0.notices.keepHooks(["a", "b", "c"], from: 12) }
        #expect(try await store.read { try $0.notices.hookMarks() }["b"] == 12)
    }

    @Test("waiting notices are stored once, in order, with drops and position, and never go back")
    func queued() async throws {
        let scene = try await Scene()
        let store = scene.store
        try await store.write { try $0.notices.keepHooks(["a"], from: 0) }
        try await store.write {
            try $0.notices.queue([notice("a", 2, upload: "u"), notice("a", 1)], dropping: [], marks: ["a": 2])
        }
        try await store.write {
            try $0.notices.queue(
                [notice("a", 2), notice("a", 3)], dropping: [.init(hook: "a", seq: 1)], marks: ["a": 1])
        }
        try await store.write { try $0.notices.queue([notice("gone", 4)], dropping: [], marks: ["gone": 4]) }
        #expect(try await store.read { try $0.notices.hookMarks() } == ["a": 2])
        #expect(try await store.read { try $0.notices.all() }.map(\.key.seq) == [2, 3])
        #expect(try await store.read { try $0.notices.all() }.first?.upload == "u")
        #expect(try await store.read { try $0.notices.body(of: .init(hook: "a", seq: 2)) } == "{\"seq\":2}")
        var failed = notice("a", 2).record
        (failed.tries, failed.waited) = (3, .seconds(70))
        try await store.write { [failed] tx in try tx.notices.recordFailure(failed) }
        let first = try #require(try await store.read { try $0.notices.all() }.first)
        #expect((first.tries, first.waited) == (3, .seconds(70)))
        try await store.write { try $0.notices.remove([.init(hook: "a", seq: 2), .init(hook: "a", seq: 9)]) }
        #expect(try await store.read { try $0.notices.all() }.map(\.key.seq) == [3])
        #expect(try await store.read { try $0.notices.body(of: .init(hook: "a", seq: 2)) } == nil)
    }

    @Test(
        "a permitted upload keeps permission and changes until it starts again; one cancelled meanwhile does not run"
    )
    func approved() async throws {
        let scene = try await Scene()
        let staged = try await scene.stage(Scene.arrival(Scene.file("one"), to: ["nas", "cloud"]))
        let (id, other) = (staged.uploads[0], staged.uploads[1])
        _ = try await scene.store.claim("nas", passingOver: [])
        let upload = try await scene.store.write {
            try $0.uploads.approve(
                id, .init(name: "b/c.mp4", metadata: ["title": "x"], context: ["who": "hook"]))
        }
        #expect(upload.isApproved)
        #expect((upload.name, upload.metadata["title"], upload.context["who"]) == ("b/c.mp4", "x", "hook"))
        try await scene.store.write { try $0.attempts.finish(id, .yielded) }
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.isApproved == true)
        _ = try await scene.store.write { try $0.transitions.cancel([id]) }
        await #expect(throws: LeaseLostError.self) {
            try await scene.store.write { try $0.uploads.approve(id, .init()) }
        }
        _ = try await scene.store.write { try $0.transitions.retry(id, fromCopy: true) }
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.isApproved == false)
        #expect(try await scene.store.read { try $0.uploads.find(other) }?.isApproved == false)
    }

    @Test(
        "a skipped upload ends with its reason and keeps the source; retried and cancelled it is like any other"
    )
    func skipped() async throws {
        let scene = try await Scene()
        let id = try await scene.stage(Scene.arrival(Scene.file("one"))).uploads[0]
        _ = try await scene.store.claim("nas", passingOver: [])
        let failure = Failure(
            .local, code: .skipped, message: "no", at: scene.clocks.wall(), retryable: false)
        #expect(try await scene.store.write { try $0.attempts.finish(id, .skipped(failure)) } == .cancelled)
        let row = try #require(try await scene.store.read { try $0.uploads.row(id) })
        #expect(row.isSkipped && !row.isExpired)
        #expect(row.failure?.message == "no")
        #expect(row.upload.remoteDelete == "none")
        _ = try await scene.store.write { try $0.transitions.retry(id, fromCopy: true) }
        #expect(try await scene.store.read { try $0.uploads.row(id) }?.isSkipped == false)
        _ = try await scene.store.write { try $0.transitions.cancel([id]) }
        #expect(try await scene.store.read { try $0.uploads.row(id) }?.isSkipped == false)
    }
}
