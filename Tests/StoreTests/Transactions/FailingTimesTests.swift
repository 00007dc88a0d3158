import Core
import TestKit
import Testing

@testable import Store

/// For how long uploads have been failing: which time counts.
@Suite("Time of failing")
struct FailingTimesTests {
    private static let cam = UploadClass(folder: "cam", destination: "nas")

    @Test("waits after failures and attempts count, and a pause adds no more than a wait")
    func spans() {
        var times = FailureDurations()
        times.fail("a", of: Self.cam, at: 0, wait: 60_000)
        #expect(times.elapsed("a", of: Self.cam, at: 60_000) == 60_000)
        // An attempt of an hour.
        times.beginAttempt("a", at: 60_000)
        #expect(times.elapsed("a", of: Self.cam, at: 3_660_000) == 3_660_000)
        times.fail("a", of: Self.cam, at: 3_660_000, wait: 60_000)
        times.endAttempt("a")
        // A night in a pause.
        #expect(times.elapsed("a", of: Self.cam, at: 40_000_000) == 65_000)
        // The command of a person to pause only this one.
        times.skip("a")
        times.beginAttempt("a", at: 40_000_000)
        #expect(times.elapsed("a", of: Self.cam, at: 40_001_000) == 1_000)
    }

    @Test("while others of the same folder are tried and fail, the time counts for an upload that waits for its turn")
    func turns() {
        var times = FailureDurations()
        times.fail("a", of: Self.cam, at: 0, wait: 10_000)
        for number in 1...9 { times.fail("\(number)", of: Self.cam, at: Int64(number) * 10_000, wait: 10_000) }
        #expect(times.elapsed("a", of: Self.cam, at: 100_000) == 100_000)
        let other = UploadClass(folder: "door", destination: "nas")
        times.fail("b", of: other, at: 0, wait: 10_000)
        #expect(times.elapsed("b", of: other, at: 100_000) == 15_000)
    }

    @Test("the end of the permitted time is known where it comes before that of the wait, and not later")
    func ends() {
        var times = FailureDurations()
        #expect(times.time(of: "a", Self.cam, toAdd: 0) == nil)
        times.fail("a", of: Self.cam, at: 0, wait: 900_000)
        #expect(times.time(of: "a", Self.cam, toAdd: 60_000) == 60_000)
        #expect(times.time(of: "a", Self.cam, toAdd: 900_001) == nil)
        // Another upload of the folder fails meanwhile.
        times.fail("b", of: Self.cam, at: 10_000, wait: 900_000)
        #expect(times.time(of: "a", Self.cam, toAdd: 60_000) == 60_000)
        #expect(times.time(of: "b", Self.cam, toAdd: 60_000) == 70_000)
        // A pause after the wait adds nothing.
        times.fail("b", of: Self.cam, at: 5_000_000, wait: 1_000)
        #expect(times.time(of: "a", Self.cam, toAdd: 915_000) == 5_000_000)
        #expect(times.time(of: "a", Self.cam, toAdd: 916_001) == nil)
        times.skip("a")
        #expect(times.time(of: "a", Self.cam, toAdd: 0) == nil)
    }

    private static let failure = Failure(
        .transient, code: .connectionLost, message: "x", at: WallTime(milliseconds: 1), retryable: true)

    @Test("the time survives a kill right after a failure, and a pause does not add to it")
    func stored() async throws {
        let folder = TemporaryFolder()
        let clocks = ManualClocks()
        var id = ""
        func failing(_ store: Store) async throws -> Duration? {
            try await store.read { [id] tx in try tx.failures.failingTime(of: id) }
        }
        for run in 0..<4 {
            let store = try await eventually("the lock of the state has been released") {
                try? await Store.open(folder.path, clocks: clocks, sorting: .newestFirst)
            }
            if run == 0 {
                let outcomes = try await store.write { try $0.arrivals.record([Scene.arrival(Scene.file("a"))]) }
                guard case .recorded(let asset, let ids)? = outcomes.first else { throw Scene.Unexpected() }
                try await store.write { try $0.staging.record([StagedCopy(asset: asset, sha256: noise(32))]) }
                id = ids[0]
                #expect(try await failing(store) == nil)
            }
            // Three failures a run, ten seconds apart, and no stored running time.
            for _ in 0..<3 {
                #expect(try await store.claim("nas", passingOver: [])?.upload.id == id)
                let until = clocks.monotonic().advanced(by: .seconds(10))
                try await store.write { [id] tx in try tx.attempts.finish(id, .held(Self.failure, until: until)) }
                clocks.advance(by: .seconds(10))
            }
            #expect(try await failing(store) == .seconds(20 * run + 30))
            guard run == 3 else { continue }
            clocks.advance(by: .seconds(86_400))
            #expect(try await failing(store) == .seconds(95))
            // Only the first day is over: the upload itself was paused in between.
            try await store.write { [id] tx in try tx.transitions.pause([id], true) }
            #expect(try await failing(store) == .seconds(80))
        }
    }
}
