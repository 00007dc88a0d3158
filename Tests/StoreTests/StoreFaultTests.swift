import Core
import Store
import TestKit
import Testing

@Suite("Store with races and failures")
struct StoreFaultTests {
    @Test("a wait that has ended is no deadline, and does not hide a later one")
    func deadlines() async throws {
        let scene = try await Scene()
        let failure = Failure(.transient, code: .noReply, message: "x", at: scene.clocks.wall(), retryable: true)
        let waits: [Duration] = [.seconds(1), .seconds(100)]
        for (name, wait) in zip(["a", "b"], waits) {
            let upload = try await scene.stage(Scene.arrival(Scene.file(name))).uploads[0]
            _ = try await scene.store.claim("nas", passingOver: [])
            try await scene.store.write {
                try $0.attempts.finish(upload, .held(failure, until: scene.clocks.monotonic().advanced(by: wait)))
            }
        }
        let last = scene.clocks.monotonic().advanced(by: .seconds(100))
        scene.clocks.advance(by: .seconds(2))
        #expect(try await scene.store.read { try $0.waits.next(after: scene.clocks.monotonic()) } == last)
        try await scene.store.write { try $0.waits.end(for: "nas") }
        #expect(try await scene.store.read { try $0.waits.next(after: scene.clocks.monotonic()) } == nil)
        #expect(try await scene.store.claim("nas", passingOver: []) != nil)
        #expect(try await scene.store.claim("nas", passingOver: []) != nil)
    }

    @Test("a retry while the copy is being removed gets a new copy")
    func retriedWhileReleased() async throws {
        let scene = try await Scene()
        let (asset, uploads) = try await scene.stage(Scene.arrival(Scene.file("a")))
        _ = try await scene.store.write { try $0.transitions.cancel(uploads) }
        // The release has removed the copy and not recorded that yet.
        _ = try await scene.store.write { try $0.transitions.retry(uploads[0], fromCopy: true) }
        try await scene.store.write { try $0.releases.finish(asset) }
        _ = try await scene.store.claim("nas", passingOver: [])
        let failure = Failure(.local, code: .copyLost, message: "x", at: scene.clocks.wall(), retryable: true)
        #expect(
            try await scene.store.write { try $0.attempts.finish(uploads[0], .copyLost(failure, .missing)) } == .staging
        )
        #expect(try await scene.store.read { try $0.staging.waiting(limit: 10, except: []) }.map(\.id) == [asset])
    }

    @Test("uploads left running by a killed process are queued again, with an event")
    func leftUnderWay() async throws {
        let folder = TemporaryFolder()
        let clocks = ManualClocks()
        let state = folder.path.appending("state")
        var store: Store? = try await Store.open(state, clocks: clocks, sorting: .newestFirst)
        guard
            case .recorded(let asset, let uploads)? = try await store?.write({
                try $0.arrivals.record([Scene.arrival(Scene.file("a"))])
            }).first
        else { throw Scene.Unexpected() }
        try await store?.write { try $0.staging.record([StagedCopy(asset: asset, sha256: noise(32))]) }
        _ = try await store?.claim("nas", passingOver: [])
        let before = await store?.seq ?? 0
        store = nil
        let next = try await eventually("the lock of the state has been released") {
            do { return try await Store.open(state, clocks: clocks, sorting: .newestFirst) } catch is StateLockedError {
                return nil
            }
        }
        let events = try await next.read { try $0.events.list(after: before, limit: 10) }
        #expect(events.map(\.upload) == [uploads[0]])
        #expect(events.first?.detail["to"] == "queued")
    }

    @Test("several states are listed together, newest first")
    func severalStates() async throws {
        let scene = try await Scene()
        var ids: [String] = []
        for number in 0..<9 {
            let upload = try await scene.stage(Scene.arrival(Scene.file("\(number)"))).uploads[0]
            if number % 3 == 0 { _ = try await scene.store.write { try $0.transitions.cancel([upload]) } }
            if number % 3 == 1 { try await scene.store.write { try $0.transitions.pause([upload], true) } }
            ids.append(upload)
        }
        var filter = UploadFilter()
        filter.states = [.queued, .cancelled]
        filter.limit = 5
        #expect(try await scene.store.rows(filter).map(\.upload.id) == ids.reversed().prefix(5).map(\.self))
        #expect(try await scene.store.read { try $0.uploads.rows(path: "/drop/4") }.map(\.upload.id) == [ids[4]])
    }

    @Test(
        "an unusable database is refused with a remedy",
        arguments: [
            (noise(8192), "backup"), (Array("plain text, and enough of it to be no empty file".utf8), "backup"),
        ])
    func unusable(content: [UInt8], advice: String) async throws {
        let folder = TemporaryFolder()
        try folder.write("sluice.db", content)
        await #expect {
            _ = try await Store.open(folder.path, clocks: ManualClocks(), sorting: .newestFirst)
        } throws: { error in
            (error as? UnusableStateError)?.remedy?.contains(advice) == true
        }
    }
}
