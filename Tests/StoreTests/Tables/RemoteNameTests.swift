import Core
import TestKit
import Testing

@testable import Store

@Suite("Remote names of incomplete uploads")
struct RemoteNameTests {
    private static let failure = Failure(
        .transient, code: .noReply, message: "x", at: WallTime(milliseconds: 1), retryable: true)

    /// An upload under way that has the id `media` at the remote.
    private func named() async throws -> (scene: Scene, id: String) {
        let scene = try await Scene()
        let id = try #require(try await scene.stage(Scene.arrival(Scene.file("a.mp4"))).uploads.first)
        _ = try await scene.store.claim("nas", passingOver: [])
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["id": "x"]), for: id) }
        try await scene.store.recordRemoteName("media", for: id)
        return (scene, id)
    }

    @Test("the name survives a restart, finds the upload, and shows nothing for a verified one")
    func durable() async throws {
        let folder = TemporaryFolder()
        let clocks = ManualClocks()
        var store: Store? = try await Store.open(folder.path, clocks: clocks, sorting: .newestFirst)
        _ = try await store?.write { try $0.arrivals.record([Scene.arrival(Scene.file("a.mp4"))]) }
        let asset = try await store?.read({ try $0.staging.waiting(limit: 1, except: []) }).first
        _ = try await store?.write {
            try $0.staging.record([StagedCopy(asset: try #require(asset).id, sha256: noise(32))])
        }
        let id = try #require(try await store?.claim("nas", passingOver: [])).upload.id
        try await store?.writeHeld { try $0.checkpoints.record(Checkpoint(["id": "x"]), for: id) }
        try await store?.recordRemoteName("media", for: id)
        store = nil
        let again = try await Store.open(folder.path, clocks: clocks, sorting: .newestFirst)
        let upload = try #require(try await again.read { try $0.uploads.find(id) })
        #expect(upload.remoteID == "media" && upload.remote == nil && upload.state == .queued)
        #expect(try await again.read { try $0.uploads.rows(remote: "media") }.map(\.upload.id) == [id])
    }

    @Test("an unchanged name writes nothing")
    func same() async throws {
        let (scene, id) = try await named()
        func writes(_ name: String) async throws -> Int {
            _ = await scene.store.statementCosts(.runs)
            try await scene.store.recordRemoteName(name, for: id)
            return await scene.store.statementCosts(.runs).filter { $0.key.hasPrefix("UPDATE upload") }.values.reduce(
                0, +)
        }
        #expect(try await writes("media") == 0)
        #expect(try await writes("other") == 1)
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.remoteID == "other")
    }

    @Test("the name stays with a failed or cancelled upload, and is part of its end event")
    func ends() async throws {
        for isCancelled in [false, true] {
            let (scene, id) = try await named()
            if isCancelled {
                _ = try await scene.store.write { try $0.transitions.cancel([id]) }
            } else {
                try await scene.store.write { try $0.attempts.finish(id, .refused(Self.failure)) }
            }
            let upload = try #require(try await scene.store.read { try $0.uploads.find(id) })
            #expect(upload.remoteID == "media" && upload.remote == nil)
            let end = try await scene.store.read { try $0.events.list(after: 0, limit: 100) }.last {
                $0.detail["to"] == upload.state.rawValue
            }
            #expect(end?.detail["remote_id"] == "media", "\(upload.state)")
        }
    }

    @Test("a name may have an address, which is shown, finds the upload, and leaves with the name")
    func address() async throws {
        let (scene, id) = try await named()
        try await scene.store.recordRemoteName("/videos/1", at: "https://x.example/1", for: id)
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.remoteURL == "https://x.example/1")
        #expect(
            try await scene.store.read { try $0.uploads.rows(remote: "https://x.example/1") }.map(\.upload.id) == [id])
        #expect(
            try await scene.store.read { try $0.remoteObjects.belongsToAnotherUpload("/videos/1", than: id) } == false)
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["video": "/videos/1"]), for: id) }
        #expect(
            try await scene.store.read { try $0.remoteObjects.belongsToAnotherUpload("/videos/1", than: id) } == false)
        #expect(
            try await scene.store.read { try $0.remoteObjects.belongsToAnotherUpload("/videos/2", than: id) } == false)
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(), for: id) }
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.remoteURL == nil)
    }

    @Test("the reason of a remote wait is the upload's last message, and no failed attempt")
    func waits() async throws {
        let (scene, id) = try await named()
        for number in 1...30 {
            let wait = Failure(
                .transient, code: .remoteWorks, message: "poll \(number)", at: WallTime(milliseconds: 1),
                retryable: true)
            try await scene.store.write {
                try $0.attempts.finish(id, .held(wait, until: MonotonicTime(nanoseconds: 0), isFault: false))
            }
            #expect(try await scene.store.read { try $0.uploads.row(id) }?.failure?.message == "poll \(number)")
            #expect(try await scene.store.read { try $0.failures.of(id) }.isEmpty)
            _ = try await scene.store.claim("nas", passingOver: [])
        }
        try await scene.store.write {
            try $0.attempts.finish(id, .retry(Self.failure, until: MonotonicTime(nanoseconds: 0)))
        }
        #expect(try await scene.store.read { try $0.failures.of(id) }.map(\.failure.code) == [.noReply])
        #expect(try await scene.store.read { try $0.uploads.row(id) }?.upload.attempt == 1)
    }

    @Test("the name is dropped when the upload starts again at the remote")
    func startsOver() async throws {
        let (scene, id) = try await named()
        try await scene.store.writeHeld {
            try $0.checkpoints.renew(Checkpoint(["id": "y"]), for: id, leaving: Checkpoint(["id": "x"]))
        }
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.remoteID == nil)
        try await scene.store.recordRemoteName("second", for: id)
        _ = try await scene.store.write { try $0.transitions.cancel([id]) }
        // Its object there is removed: the next beginning has another name.
        _ = try await scene.store.write { try $0.transitions.retry(id, fromCopy: true) }
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.remoteID == nil)
        _ = try await scene.store.claim("nas", passingOver: [])
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["id": "z"]), for: id) }
        try await scene.store.recordRemoteName("third", for: id)
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(), for: id) }
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.remoteID == nil)
    }

    @Test("a retry that continues from the checkpoint keeps the name")
    func retried() async throws {
        let (scene, id) = try await named()
        try await scene.store.write { try $0.attempts.finish(id, .refused(Self.failure)) }
        _ = try await scene.store.write { try $0.transitions.retry(id, fromCopy: true) }
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.remoteID == "media")
    }

    @Test("the name becomes the id of a completed upload that has none of its own")
    func complete() async throws {
        for (own, shown) in [(nil, "media"), ("own", "own")] as [(String?, String)] {
            let (scene, id) = try await named()
            try await scene.store.write {
                try $0.attempts.finish(id, .verified(RemoteObject(id: own, url: nil, verifiedBy: "offset")))
            }
            let upload = try #require(try await scene.store.read { try $0.uploads.find(id) })
            #expect(upload.remoteID == shown && upload.remote?.id == shown)
            #expect(try await scene.store.read { try $0.uploads.rows(remote: shown) }.map(\.upload.id) == [id])
        }
    }

    @Test("the name is no proof: in a damaged database, an upload with only a name is sent")
    func salvaged() async throws {
        let folder = TemporaryFolder()
        let clocks = ManualClocks()
        do {
            let old = try await Store.open(folder.path.appending("old"), clocks: clocks, sorting: .newestFirst)
            _ = try await old.write { try $0.arrivals.record([Scene.arrival(Scene.file("a.mp4"))]) }
            let asset = try #require(try await old.read { try $0.staging.waiting(limit: 1, except: []) }.first)
            _ = try await old.write { try $0.staging.record([StagedCopy(asset: asset.id, sha256: noise(32))]) }
            let id = try #require(try await old.claim("nas", passingOver: [])).upload.id
            try await old.writeHeld { try $0.checkpoints.record(Checkpoint(["id": "x"]), for: id) }
            try await old.recordRemoteName("media", for: id)
            await old.close()
        }
        let new = try await Store.open(folder.path.appending("new"), clocks: clocks, sorting: .newestFirst)
        _ = try await new.salvage(from: folder.path.appending("old"))
        let evidence = try await new.read { try $0.evidence.find("cam", "a.mp4", "nas") }
        #expect(evidence.map(\.stage) == [.going] && evidence.first?.remote == nil)
    }

    @Test("a renewed credential is an event of its upload, and not of a cancelled one")
    func credential() async throws {
        let (scene, id) = try await named()
        try await scene.store.writeHeld {
            try $0.attempts.record(
                CredentialRenewal(reason: .ending, until: WallTime(milliseconds: 1000)), of: id)
        }
        try await scene.store.writeHeld { try $0.attempts.record(CredentialRenewal(reason: .refused), of: id) }
        let told = try await scene.store.read { try $0.events.list(after: 0, limit: 100) }.filter {
            $0.type == .credential
        }
        #expect(told.map(\.upload) == [id, id])
        #expect(
            told.map(\.detail)
                == [["reason": "ending", "until": "\(WallTime(milliseconds: 1000))"], ["reason": "refused"]])
        _ = try await scene.store.write { try $0.transitions.cancel([id]) }
        await #expect(throws: LeaseLostError.self) {
            try await scene.store.writeHeld { try $0.attempts.record(CredentialRenewal(reason: .ending), of: id) }
        }
        await #expect(throws: LeaseLostError.self) { try await scene.store.recordRemoteName("late", for: id) }
    }
}
