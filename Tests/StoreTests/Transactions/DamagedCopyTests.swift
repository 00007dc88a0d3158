import Core
import Store
import TestKit
import Testing

/// A staged copy that is missing or damaged, and the uploads that have sent bytes of it.
@Suite("Damaged staged copies")
struct DamagedCopyTests {
    private static func failure(_ code: Failure.Code) -> Failure {
        Failure(.local, code: code, message: "x", at: WallTime(milliseconds: 1), retryable: true)
    }

    /// An asset with an upload to `nas` and one to `cloud`.
    private struct Pair {
        let scene: Scene
        let asset: Int64
        /// To `nas`.
        let finder: String
        /// To `cloud`.
        let other: String
        var store: Store { scene.store }

        init() async throws {
            scene = try await Scene()
            let staged = try await scene.stage(Scene.arrival(Scene.file("a.mp4", size: 1000), to: ["nas", "cloud"]))
            (asset, finder, other) = (staged.asset, staged.uploads[0], staged.uploads[1])
        }

        /// Begins an attempt in which the remote accepts this many bytes.
        func begin(_ id: String, acked: Int64) async throws {
            let destination = id == finder ? "nas" : "cloud"
            #expect(try await store.claim(destination, passingOver: [])?.upload.id == id)
            let checkpoint = Checkpoint(["url": destination, "orphans": "1"])
            try await store.writeHeld { try $0.checkpoints.record(checkpoint, for: id, acked: acked) }
        }

        func end(_ id: String, _ outcome: AttemptOutcome, sent: Int64) async throws {
            let ending = EndedAttempt(id, outcome, sent: sent, lasting: { $1.keeping(["orphans"]) })
            try await store.write { try $0.attempts.finish([ending]) }
        }

        func upload(_ id: String) async throws -> UploadRecord {
            try #require(try await store.read { try $0.uploads.find(id) })
        }

        /// The upload is waiting for a new copy, and will begin at its first byte.
        func expectForgotten(_ id: String, generation: Int = 2) async throws {
            let upload = try await upload(id)
            #expect(upload.state == .staging && upload.generation == generation)
            #expect(upload.acked == 0 && upload.sent == 0)
            #expect(try await store.read { try $0.checkpoints.find(id) } == Checkpoint(["orphans": "1"]))
        }

        func isWaitingForCopy() async throws -> Bool {
            try await store.read { try $0.staging.waiting(limit: 9, except: []).map(\.id) } == [asset]
        }

        func wasted(_ id: String) async throws -> Int64 { try await store.read { try $0.waste.of(id).total } }
    }

    @Test("an interrupted upload of the same asset starts again, since it may have sent damaged bytes")
    func interrupted() async throws {
        let pair = try await Pair()
        try await pair.begin(pair.other, acked: 500)
        try await pair.end(pair.other, .yielded, sent: 600)
        try await pair.begin(pair.finder, acked: 900)
        try await pair.end(pair.finder, .copyLost(Self.failure(.stagedChanged), .changed), sent: 950)
        for id in [pair.finder, pair.other] { try await pair.expectForgotten(id) }
        let removals = try await pair.store.read { try $0.remoteDeletions.all() }
        #expect(Set(removals.compactMap { $0.checkpoint.fields["url"] }) == ["nas", "cloud"])
        #expect(try await pair.wasted(pair.finder) == 950)
        #expect(try await pair.wasted(pair.other) == 600)
        #expect(try await pair.isWaitingForCopy())
        // The source has changed too: the bytes are counted once, and nothing else is removed.
        try await pair.store.write { try $0.staging.unsettle(pair.asset) }
        let changed = Scene.arrival(Scene.file("a.mp4", size: 1200), to: ["nas", "cloud"])
        _ = try await pair.store.write { try $0.arrivals.record([changed]) }
        #expect(try await pair.wasted(pair.finder) == 950)
        let urls = try await pair.store.read { try $0.remoteDeletions.all() }.compactMap { $0.checkpoint.fields["url"] }
        #expect(urls.count == 2)
    }

    @Test("an upload that runs keeps the copy until its attempt has ended, and then starts again")
    func running() async throws {
        let pair = try await Pair()
        try await pair.begin(pair.other, acked: 500)
        try await pair.begin(pair.finder, acked: 900)
        try await pair.end(pair.finder, .copyLost(Self.failure(.stagedChanged), .changed), sent: 900)
        #expect(try await pair.upload(pair.other).state == .uploading)
        #expect(try await !pair.isWaitingForCopy())
        let failure = AttemptOutcome.held(Self.failure(.connectionLost), until: MonotonicTime(nanoseconds: 0))
        try await pair.end(pair.other, failure, sent: 700)
        for id in [pair.finder, pair.other] { try await pair.expectForgotten(id) }
        #expect(try await pair.wasted(pair.other) == 700)
        #expect(try await pair.isWaitingForCopy())
    }

    @Test("two attempts that find the same damage begin one generation each, and one removal")
    func twice() async throws {
        let pair = try await Pair()
        try await pair.begin(pair.other, acked: 500)
        try await pair.begin(pair.finder, acked: 900)
        for id in [pair.finder, pair.other] {
            try await pair.end(id, .copyLost(Self.failure(.stagedChanged), .changed), sent: 900)
        }
        for id in [pair.finder, pair.other] { try await pair.expectForgotten(id) }
        #expect(try await pair.store.read { try $0.remoteDeletions.all() }.count == 2)
        // The new copy is damaged too.
        try await pair.store.write { try $0.staging.record([StagedCopy(asset: pair.asset, sha256: noise(32))]) }
        try await pair.begin(pair.other, acked: 100)
        try await pair.end(pair.other, .yielded, sent: 100)
        try await pair.begin(pair.finder, acked: 900)
        try await pair.end(pair.finder, .copyLost(Self.failure(.stagedChanged), .changed), sent: 900)
        for id in [pair.finder, pair.other] { try await pair.expectForgotten(id, generation: 3) }
    }

    @Test("an upload whose daemon was killed while another had found the damage starts again")
    func killed() async throws {
        let folder = TemporaryFolder()
        let clocks = ManualClocks()
        var ids: [String] = []
        for run in 1...2 {
            let store = try await eventually("the lock of the state has been released") {
                try? await Store.open(folder.path, clocks: clocks, sorting: .newestFirst)
            }
            if run == 2 {
                for id in ids {
                    let upload = try #require(try await store.read { try $0.uploads.find(id) })
                    #expect(upload.state == .staging && upload.acked == 0 && upload.generation == 2)
                }
                continue
            }
            let arrival = Scene.arrival(Scene.file("a"), to: ["nas", "cloud"])
            let outcomes = try await store.write { try $0.arrivals.record([arrival]) }
            guard case .recorded(let asset, let uploads)? = outcomes.first else { throw Scene.Unexpected() }
            ids = uploads
            try await store.write { try $0.staging.record([StagedCopy(asset: asset, sha256: noise(32))]) }
            for (id, destination) in zip(uploads, ["nas", "cloud"]) {
                _ = try await store.claim(destination, passingOver: [])
                try await store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "x"]), for: id, acked: 50) }
            }
            try await store.write {
                try $0.attempts.finish(uploads[0], .copyLost(Self.failure(.stagedChanged), .changed))
            }
        }
    }

    @Test("an upload that had failed starts again when it is retried")
    func failed() async throws {
        let pair = try await Pair()
        try await pair.begin(pair.other, acked: 500)
        try await pair.end(pair.other, .refused(Self.failure(.init(rawValue: "http_403"))), sent: 500)
        try await pair.begin(pair.finder, acked: 900)
        try await pair.end(pair.finder, .copyLost(Self.failure(.stagedChanged), .changed), sent: 900)
        #expect(try await pair.upload(pair.other).generation == 1)
        try await pair.store.write { try $0.staging.record([StagedCopy(asset: pair.asset, sha256: noise(32))]) }
        _ = try await pair.store.write { try $0.transitions.retry(pair.other, fromCopy: true) }
        let upload = try await pair.upload(pair.other)
        #expect(upload.state == .queued && upload.acked == 0 && upload.generation == 2)
    }

    @Test("a copy that is only missing costs no byte: uploads go on where they were", arguments: [false, true])
    func missing(_ isRunning: Bool) async throws {
        let pair = try await Pair()
        try await pair.begin(pair.other, acked: 500)
        if !isRunning { try await pair.end(pair.other, .yielded, sent: 500) }
        try await pair.begin(pair.finder, acked: 900)
        try await pair.end(pair.finder, .copyLost(Self.failure(.copyLost), .missing), sent: 900)
        if isRunning { try await pair.end(pair.other, .yielded, sent: 500) }
        for (id, acked) in [(pair.finder, 900), (pair.other, 500)] as [(String, Int64)] {
            let upload = try await pair.upload(id)
            #expect(upload.state == .staging && upload.acked == acked && upload.generation == 1)
        }
        #expect(try await pair.isWaitingForCopy())
    }
}
