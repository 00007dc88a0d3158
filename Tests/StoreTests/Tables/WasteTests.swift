import Core
import Store
import TestKit
import Testing

@Suite("Wasted bytes")
struct WasteTests {
    private static let failure = Failure(
        .transient, code: .connectionLost, message: "x", at: WallTime(milliseconds: 1), retryable: true)
    private static let day = Duration.seconds(86_400)

    private struct Begun {
        let scene: Scene
        let id: String
        var store: Store { scene.store }

        init() async throws {
            scene = try await Scene()
            id = try #require(try await scene.stage(Scene.arrival(Scene.file("a.mp4"))).uploads.first)
        }

        func begin() async throws {
            #expect(try await store.claim("nas", passingOver: [])?.upload.id == id)
            try await store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "x"]), for: id) }
        }

        /// Ends an attempt that had sent this many bytes.
        func end(sent: Int64) async throws {
            let outcome = AttemptOutcome.held(WasteTests.failure, until: MonotonicTime(nanoseconds: 0))
            try await store.write { try $0.attempts.finish([EndedAttempt(id, outcome, sent: sent)]) }
        }

        func waste() async throws -> Waste { try await store.read { try $0.waste.of(id) } }
    }

    @Test("bytes that the remote kept of an interrupted request are not wasted")
    func kept() async throws {
        let one = try await Begun()
        try await one.begin()
        try await one.end(sent: 900)
        #expect(try await one.waste() == Waste(unsettled: 900, startsOver: true))
        try await one.begin()
        try await one.store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "x"]), for: one.id, acked: 850) }
        let waste = try await one.waste()
        #expect(waste.total == 50 && waste.today == 50 && waste.unsettled == 0 && !waste.startsOver)
    }

    @Test("attempts that start at the first byte each time add up, even without a recorded result")
    func startsOver() async throws {
        let one = try await Begun()
        for (number, sent) in [900, 800, 1000].enumerated() {
            try await one.begin()
            try await one.end(sent: Int64(sent))
            let waste = try await one.waste()
            #expect(waste.total == [0, 900, 1700][number] && waste.unsettled == Int64(sent))
        }
        // No connection was made: nothing was sent.
        try await one.begin()
        try await one.end(sent: 0)
        #expect(try await one.waste().total == 1700)
    }

    @Test("bytes that a running attempt sends again are wasted at once, and counted once")
    func again() async throws {
        let one = try await Begun()
        try await one.begin()
        try await one.end(sent: 900)
        try await one.begin()
        try await one.store.write {
            try $0.progress.recordSent(700, of: one.id)
            try $0.progress.recordWaste(300, of: one.id)
        }
        #expect(try await one.waste().total == 1200)
        try await one.end(sent: 500)
        #expect(
            try await one.waste()
                == Waste(total: 1200, today: 1200, since: one.waste().since, unsettled: 500, startsOver: true))
        try await one.begin()
        try await one.store.write { try $0.progress.recordWaste(100, of: one.id) }
        #expect(try await one.waste().total == 1800)
    }

    @Test("bytes sent by a killed daemon are known up to the last note, and counted once")
    func killed() async throws {
        let folder = TemporaryFolder()
        let clocks = ManualClocks()
        var id = ""
        for number in 1...3 {
            let store = try await eventually("the lock of the state has been released") {
                try? await Store.open(folder.path, clocks: clocks, sorting: .newestFirst)
            }
            if number == 1 {
                guard
                    case .recorded(let asset, let ids)? = try await store.write({
                        try $0.arrivals.record([Scene.arrival(Scene.file("a"))])
                    }).first
                else { throw Scene.Unexpected() }
                try await store.write { try $0.staging.record([StagedCopy(asset: asset, sha256: noise(32))]) }
                id = ids[0]
            }
            #expect(try await store.claim("nas", passingOver: [])?.upload.id == id)
            try await store.writeHeld { [id] tx in try tx.checkpoints.record(Checkpoint(["url": "x"]), for: id) }
            let before = Int64(number - 1)
            let left = try await store.read { [id] tx in try tx.waste.of(id) }
            #expect(left.unsettled == (before > 0 ? 900 : 0))
            for sent: Int64 in [300, 900, 600] {
                try await store.write { [id] tx in try tx.progress.recordSent(sent, of: id) }
            }
            let waste = try await store.read { [id] tx in try tx.waste.of(id) }
            #expect(waste.total == 900 * before && waste.unsettled == 0)
            guard number == 3 else { continue }
            try await store.write { [id] tx in
                try tx.attempts.finish([
                    EndedAttempt(id, .held(Self.failure, until: MonotonicTime(nanoseconds: 0)), sent: 950)
                ])
            }
            let held = try await store.read { [id] tx in try tx.waste.of(id) }
            #expect(
                held == Waste(total: 1800, today: 1800, since: waste.since, unsettled: 950, startsOver: true))
        }
    }

    @Test("parts in progress beside an arriving one are not wasted; abandoned ones are, once")
    func sideBySide() async throws {
        let one = try await Begun()
        try await one.begin()
        try await one.store.write { try $0.progress.recordSent(900, of: one.id) }
        try await one.store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "x"]), for: one.id, acked: 300) }
        #expect(try await one.waste() == Waste())
        try await one.store.write { try $0.progress.recordSent(950, of: one.id) }
        try await one.store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "x"]), for: one.id, acked: 200) }
        #expect(try await one.waste().total == 100)
        try await one.store.write { try $0.progress.recordSent(950, of: one.id) }
        try await one.store.writeHeld { try $0.checkpoints.renew(Checkpoint(["url": "y"]), for: one.id, leaving: nil) }
        #expect(try await one.waste().total == 1050)
        try await one.end(sent: 0)
        #expect(
            try await one.waste() == Waste(total: 1050, today: 1050, since: one.scene.clocks.wall(), startsOver: true))
    }

    @Test("bytes of an upload that starts again are wasted, and so are bytes that a remote takes back")
    func renewed() async throws {
        let one = try await Begun()
        try await one.begin()
        try await one.store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "x"]), for: one.id, acked: 500) }
        try await one.end(sent: 600)
        try await one.begin()
        try await one.store.writeHeld { try $0.checkpoints.renew(Checkpoint(["url": "y"]), for: one.id, leaving: nil) }
        #expect(try await one.waste().total == 600)
        try await one.store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "y"]), for: one.id, acked: 300) }
        try await one.store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "y"]), for: one.id, acked: 100) }
        #expect(try await one.waste().total == 800)
    }

    @Test("a day counts the notes within it, and a clock set back by more clears it")
    func days() async throws {
        let one = try await Begun()
        let clocks = one.scene.clocks
        for _ in 0..<2 {
            try await one.begin()
            try await one.end(sent: 1000)
        }
        let since = clocks.wall()
        #expect(try await one.waste().since == since)
        clocks.advance(by: .seconds(3600))
        try await one.begin()
        try await one.end(sent: 1000)
        #expect(
            try await one.waste() == Waste(total: 2000, today: 2000, since: since, unsettled: 1000, startsOver: true))
        clocks.advance(by: Self.day - .seconds(3600))
        #expect(try await one.waste().today == 1000)
        try await one.begin()
        try await one.end(sent: 1000)
        let third = try await one.waste()
        #expect(third.total == 3000 && third.today == 2000)
        clocks.advance(by: Self.day + Self.day)
        #expect(try await one.waste().today == 0)
        try await one.begin()
        try await one.end(sent: 1000)
        let late = try await one.waste()
        #expect(late.total == 4000 && late.today == 1000)
    }

    @Test("wasted bytes are shown with a completed upload if there are many, and leave with it")
    func told() async throws {
        let one = try await Begun()
        for _ in 0..<2 {
            try await one.begin()
            try await one.end(sent: 2_000_000)
        }
        try await one.begin()
        try await one.store.write {
            try $0.attempts.finish([
                EndedAttempt(
                    one.id, .verified(RemoteObject(id: nil, url: nil, verifiedBy: "offset")), sent: 2_000_000)
            ])
        }
        let warnings = try await one.store.read { try $0.uploads.find(one.id) }?.remote?.warnings
        #expect(warnings == ["4000000 bytes were sent in vain before: the remote did not keep them"])
    }

    @Test("an upload fails since its first failure, until bytes are accepted or it is retried by command")
    func failing() async throws {
        let one = try await Begun()
        func since() async throws -> Int64? { try await one.store.read { try $0.uploads.find(one.id) }?.failingSince }
        try await one.begin()
        #expect(try await since() == nil)
        try await one.end(sent: 10)
        let first = try #require(try await since())
        one.scene.clocks.advance(by: .seconds(50))
        try await one.begin()
        try await one.end(sent: 10)
        #expect(try await since() == first && one.store.currentRunTime == first + 50_000)
        try await one.begin()
        try await one.store.writeHeld { try $0.checkpoints.record(Checkpoint(["url": "x"]), for: one.id, acked: 10) }
        #expect(try await since() == nil)
        try await one.store.write { try $0.attempts.finish(one.id, .refused(Self.failure)) }
        #expect(try await since() != nil)
        _ = try await one.store.write { try $0.transitions.retry(one.id, fromCopy: true) }
        #expect(try await since() == nil)
    }

    @Test("only bytes beyond the furthest point of the generation end a failure and reset the attempts")
    func furthest() async throws {
        let one = try await Begun()
        func upload() async throws -> UploadRecord {
            try #require(try await one.store.read { try $0.uploads.find(one.id) })
        }
        let refusal = AttemptOutcome.retry(Self.failure, until: MonotonicTime(nanoseconds: 0))
        func attempt(reaching acked: Int64) async throws {
            try await one.begin()
            try await one.store.writeHeld {
                try $0.checkpoints.record(Checkpoint(["url": "x"]), for: one.id, acked: acked)
            }
            // The remote loses the upload each time.
            try await one.store.writeHeld {
                try $0.checkpoints.renew(Checkpoint(["url": "y"]), for: one.id, leaving: nil)
            }
            try await one.store.write { try $0.attempts.finish(one.id, refusal) }
        }
        for (number, acked) in [500, 400, 500, 100].enumerated() {
            try await attempt(reaching: Int64(acked))
            let upload = try await upload()
            #expect(upload.attempt == number + 1 && upload.furthest == 500 && upload.failingSince != nil)
        }
        let recoveries = try await one.store.read { try $0.events.list(after: 0, limit: 100) }.count {
            $0.type == .recovered
        }
        #expect(recoveries == 0)
        try await attempt(reaching: 501)
        #expect(try await upload().attempt == 1)
        try await one.begin()
        try await one.store.write { try $0.attempts.finish(one.id, .refused(Self.failure)) }
        _ = try await one.store.write { try $0.transitions.retry(one.id, fromCopy: true) }
        #expect(try await upload().furthest == 0)
    }

    @Test(
        "running time is stored at a stop to the second, so that long failures end even with runs under a minute"
    )
    func runs() async throws {
        let (folder, clocks) = (TemporaryFolder(), ManualClocks())
        var ran: Int64 = 0
        for _ in 0..<5 {
            let store = try await Store.open(folder.path, clocks: clocks, sorting: .newestFirst)
            #expect(store.currentRunTime == ran)
            clocks.advance(by: .seconds(20))
            ran += 20_000
            try await store.write { try $0.settings.storeRunTime() }
            await store.close()
            // No attempt runs meanwhile.
            clocks.advance(by: .seconds(3600))
        }
    }
}
