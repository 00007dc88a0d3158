import Core
import Linux
import TestKit
import Testing
import Transport

@testable import Config
@testable import Daemon

@Suite("Requests to one destination, without a daemon")
struct RequestRulesTests {
    private static func policy(_ rate: RequestRate?, _ mark: String? = nil) -> PolicyOverrides {
        var policy = PolicyOverrides()
        policy.requests = rate
        policy.trafficClass = mark.flatMap { TrafficClass($0) }
        return policy
    }

    @Test("requests of several transfers together keep to the rate, and are marked")
    func together() async throws {
        let rules = RequestRules(clocks: SystemClocks())
        rules.set(Self.policy(RequestRate(count: 50, per: .second), "le"))
        let clock = ContinuousClock()
        let start = clock.now
        try await withThrowingTaskGroup { group in
            for _ in 0..<11 {
                group.addTask {
                    var request = Request("GET", "http://nas.example/")
                    try await rules.prepare(&request)
                    #expect(request.trafficClass?.codePoint == 1)
                }
            }
            try await group.waitForAll()
        }
        #expect(start.duration(to: clock.now) >= .milliseconds(200))
    }

    @Test("a request that waits goes when the limit is taken away, and one that is stopped never")
    func changes() async throws {
        let rules = RequestRules(clocks: SystemClocks())
        rules.set(Self.policy(RequestRate(count: 1, per: .hour)))
        var first = Request("GET", "http://nas.example/")
        try await rules.prepare(&first)
        let stopped = Task {
            var request = Request("GET", "http://nas.example/")
            try await rules.prepare(&request)
        }
        let waiting = Task {
            var request = Request("GET", "http://nas.example/")
            try await rules.prepare(&request)
        }
        stopped.cancel()
        await #expect(throws: TransportError.self) { try await stopped.value }
        rules.set(Self.policy(nil))
        try await waiting.value
    }
}
