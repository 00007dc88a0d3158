import Core
import Linux
import TestKit
import Testing

/// The kernel's packet filter counts the marked packets, independently of both sides.
@Suite(
    "`requests` and `dscp`, with the built program",
    .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"), .timeLimit(.minutes(Patience.minutes(3))))
struct RequestRulesEndToEndTests {
    private typealias Scene = NetworkEndToEndTests.Scene

    @Test("every packet to the destination has the mark, and its requests are spread over time")
    func marked() async throws {
        let scene = try await Scene()
        let roads = scene.roads
        try await blocking { try roads.countMarked("cs1") }
        scene.fixture.destinationKeys = ", chunk_size: 1 MiB, requests: 5/s, dscp: cs1"
        try scene.fixture.startDaemon()
        let clock = ContinuousClock()
        let start = clock.now
        // At least a creation and ten requests with bytes.
        try scene.camera.drop(Clip(number: 0, size: 10 << 20, relative: "clip.mp4"))
        try await scene.arrives()
        #expect(start.duration(to: clock.now) >= .seconds(2))
        let all = try await scene.bytes("wan")
        #expect(all > 10 << 20)
        #expect(try await scene.bytes("wan-marked") == all)
    }

    @Test("after a reload without them, a request that waits goes at once, and the new mark is on its packets")
    func reloaded() async throws {
        let scene = try await Scene()
        let roads = scene.roads
        try await blocking { try roads.countMarked("0x01") }
        scene.fixture.destinationKeys = ", chunk_size: 1 MiB, requests: 1/h"
        try scene.fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 10 << 20, relative: "clip.mp4"))
        // The first request: the file is created there, and the next one would be sent in an hour.
        try await eventually("the first request was sent") { try await scene.bytes("wan") > 200 }
        scene.fixture.destinationKeys = ", chunk_size: 1 MiB, dscp: le"
        try scene.fixture.writeConfiguration()
        _ = try await eventually("the daemon has reloaded") { try await scene.fixture.runVerb("reload") }
        try await scene.arrives()
        // The kept connection has the new mark too.
        #expect(try await scene.bytes("wan-marked") > 10 << 20)
    }
}
