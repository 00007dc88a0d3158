import Core
import Linux
import Synchronization
import TestKit
import Testing

@testable import Destinations

/// The limits that a server announces.
@Suite("Limits of resumable uploads", .timeLimit(.minutes(Patience.minutes(2))))
struct ResumableLimitTests {
    @Test(
        "a file that is too large or too small is refused before anything is created",
        arguments: ["max-size=999", "max-size=0", "min-size=1001", "max-append-size=0"])
    func size(_ limits: String) async throws {
        let scene = try ResumableScene { $0.limits = limits }
        let error = try await scene.journey.failedAttempt()
        #expect(error.remedy == .failUpload && error.failure.code == .maxSizeExceeded)
        #expect(scene.server.all == ["OPTIONS"])
    }

    @Test("a limit that only the answer to the creation names ends the upload there, and is cleaned up")
    func late() async throws {
        let scene = try ResumableScene {
            $0.isAnnounced = false
            $0.limits = "max-size=999"
        }
        let error = try await scene.journey.failedAttempt()
        #expect(error.remedy == .failUpload && error.failure.message.contains("takes at most 999"))
        #expect(scene.server.requests == ["POST ?0", "DELETE"] && scene.server.uploads.isEmpty)
    }

    @Test("a void header is no limit", arguments: ["max-size=999.5", "max-size=1, max-age=?1", "max-size=1,"])
    func void(_ limits: String) async throws {
        let scene = try ResumableScene { $0.limits = limits }
        _ = try await scene.journey.attempt()
        scene.expectArrived()
    }

    @Test("no request exceeds max-append-size, also after a restart where the limit is not named again")
    func maxAppend() async throws {
        let scene = try ResumableScene {
            ($0.limits, $0.maxAppend) = ("max-append-size=300", 300)
            $0.isAnnounced = false
        }
        scene.server.plan("PATCH", .none, .answer(503))
        _ = try await scene.journey.failedAttempt()
        let checkpoint = try #require(scene.journey.ledger.last)
        #expect(checkpoint["max_append"] == "300")
        scene.server.change { $0.namesLimits = false }
        scene.server.forgetRequests()
        let second = try ResumableScene.journey(scene.server, checkpoint: checkpoint)
        _ = try await second.attempt()
        #expect(scene.server.requests == ["HEAD", "PATCH 300 ?0 300", "PATCH 600 ?0 300", "PATCH 900 ?1 100", "HEAD"])
        scene.expectArrived()
    }

    @Test("a request that does not complete the upload carries at least min-append-size; the last one may carry less")
    func minAppend() async throws {
        let scene = try ResumableScene(chunk: 100) { ($0.limits, $0.minAppend) = ("min-append-size=400", 400) }
        _ = try await scene.journey.attempt()
        #expect(
            scene.server.requests
                == ["POST ?0", "PATCH 0 ?0 400", "PATCH 400 ?0 400", "PATCH 800 ?1 200", "HEAD"])
        scene.expectArrived()
        let least = try ResumableScene(chunk: 100) { ($0.limits, $0.minAppend) = ("min-append-size=400", 400) }
        least.server.plan("PATCH", .answer(413))
        let error = try await least.journey.failedAttempt()
        #expect(error.remedy == .failUpload, "a server that refuses its own least size accepts none")
        #expect(least.server.requests == ["POST ?0", "PATCH 0 ?0 400", "HEAD"])
    }

    @Test("the end of an unfinished upload's life is kept in the checkpoint, in ms since 1970")
    func age() async throws {
        let clocks = ManualClocks()
        let scene = try ResumableScene(chunk: 400, clocks: clocks)
        scene.server.change { $0.limits = "max-age=3600" }
        scene.server.plan("PATCH", .none, .answer(503))
        _ = try await scene.journey.failedAttempt()
        #expect(scene.journey.ledger.last?["expires"] == "\(clocks.wall().milliseconds + 3_600_000)")
        // An upload whose time is over is asked for once, and begins again.
        scene.server.plan("HEAD", .forget)
        let object = try await scene.journey.attempt()
        #expect(object.warnings.isEmpty)
        #expect(scene.server.finished == [scene.journey.content])
    }
}
