import API
import Core
import Linux
import TestKit
import Testing

@testable import Config
@testable import Daemon
@testable import Store
@testable import Watch

@Suite("A state that cannot be written")
struct StateHealthTests {
    @Test("a state that cannot be written is reported once, until a commit succeeds")
    func once() async throws {
        let scene = try await ComponentScene()
        let health = scene.parts.stateHealth
        let error = StoreError(code: 10, message: "disk I/O error", sql: "")
        health.failed(error)
        let hold = try #require(scene.parts.troubles["state"])
        scene.clocks.advance(by: .seconds(5))
        health.failed(error)
        #expect(scene.parts.troubles["state"]?.since == hold.since)
        #expect(scene.parts.troubles.count("state") == 2)
        health.committed()
        #expect(scene.parts.troubles["state"] == nil)
    }

    @Test("only an error of the state shows that it cannot be written")
    func kinds() async throws {
        let health = try await ComponentScene().parts.stateHealth
        health.noteFailure(SystemError(call: "open", subject: "a", code: 13))
        #expect(!health.isFailing)
        health.noteFailure(StoreError(code: 10, message: "disk I/O error", sql: ""))
        #expect(health.isFailing)
        health.committed()
        #expect(!health.isFailing)
    }
}
