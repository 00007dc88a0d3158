import Core
import Linux
import TestKit
import Testing

@testable import Destinations

/// Queries for media whose bytes have all arrived.
@Suite("apsara-vod: checks of arrived files", .timeLimit(.minutes(Patience.minutes(5))))
struct ApsaraMediumQueryTests {
    @Test("a check without an answer holds nothing, and `verify_timeout` continues over it")
    func noWord() async throws {
        let clocks = ManualClocks(wall: SystemClocks().wall())
        try await ApsaraEnd.open(.key, ["verify_timeout": .duration(.seconds(600))], clocks: clocks) { end in
            try await end.server.control(
                "faults",
                #"[{"do": "error", "status": 500, "code": "InternalError", "times": 2, "match": {"operation": "GetVideoInfo"}}]"#
            )
            let (staged, recorder) = (try StagedUpload(3000, removesSource: true), RecordingReporter())
            let early = try await staged.failure(to: end, recorder)
            #expect(early.failure.code == .remoteWorks, "\(early)")
            guard case .pending = early.remedy else { throw early }
            clocks.advance(by: .seconds(700))
            let late = try await staged.failure(to: end, recorder)
            #expect(late.failure.code == .verifyTimeout, "\(late)")
            guard case .pending = late.remedy else { throw late }
        }
    }

    @Test(
        "a cancel at the end reports that nothing was removed if the object is complete",
        arguments: [ApsaraEnd.Authorization.key, .service], [100, 3 * ApsaraTests.part])
    func cancelled(_ way: ApsaraEnd.Authorization, _ size: Int) async throws {
        try await ApsaraEnd.open(way) { end in
            let operation = size == 100 ? "PutObject" : "CompleteMultipartUpload"
            try await end.server.control(
                "faults", #"[{"do": "lose_answer", "match": {"operation": "\#(operation)"}}]"#)
            let (staged, recorder) = (try StagedUpload(size), RecordingReporter())
            _ = try await staged.failure(to: end, recorder)
            var checkpoint = try #require(recorder.last)
            #expect(try await end.destination.discard(checkpoint) == false)
            let isThere = try await end.objects.values.contains(staged.content)
            #expect(isThere)
            // Long afterwards, when the credential has expired.
            checkpoint["grant_until"] = "1"
            #expect(try await end.again().discard(checkpoint) == false)
        }
    }
}
