import Core
import TestKit
import TestTraits
import Testing

@testable import Destinations

@Suite("A service of ApsaraVideo VOD with another clock", .needsPackages, .timeLimit(.minutes(Patience.minutes(5))))
struct ApsaraClockTests {
    @Test("the service's clock counts, for calls and for bytes", arguments: ["acs3", "rpc"])
    func clock(_ calls: String) async throws {
        try await ApsaraEnd.open(.key, ["call_signature": .text(calls)]) { end in
            try await end.server.control("settings", #"{"skew": 7200}"#)
            let recorder = RecordingReporter()
            #expect(try await StagedUpload(3 * ApsaraTests.part).send(to: end, recorder).verifiedBy == "crc64")
            // A correction from the first call applies to all later ones.
            let refused = try await end.server.control("record").ranges(of: "TimeTooSkewed").count
            #expect(refused == 0)
            #expect(recorder.credentials.isEmpty)
        }
    }
}
