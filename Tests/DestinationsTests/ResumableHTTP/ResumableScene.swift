import Core
import Linux
import TestKit
import Testing

@testable import Destinations

/// An upload to a ``ResumableServer``.
struct ResumableScene: Sendable {
    let server: ResumableServer
    let journey: UploadScenario

    static let size = 1000

    init(
        _ options: ResumableServer.Options = ResumableServer.Options(), size: Int = size, chunk: Int64? = nil,
        values: [String: SettingValue] = [:], ledger: CountingReporter = CountingReporter(),
        clocks: any Clocks = SystemClocks()
    ) throws {
        server = try ResumableServer(options)
        journey = try Self.journey(server, size: size, chunk: chunk, values: values, ledger: ledger, clocks: clocks)
    }

    /// - Parameter change: Of the options of the server.
    init(
        size: Int = size, chunk: Int64? = nil, values: [String: SettingValue] = [:],
        ledger: CountingReporter = CountingReporter(), _ change: (inout ResumableServer.Options) -> Void
    ) throws {
        var options = ResumableServer.Options()
        change(&options)
        try self.init(options, size: size, chunk: chunk, values: values, ledger: ledger)
    }

    /// Another process with the same state: the destination has forgotten what it had learned.
    static func journey(
        _ server: ResumableServer, size: Int = size, chunk: Int64? = nil, values: [String: SettingValue] = [:],
        ledger: CountingReporter = CountingReporter(), checkpoint: Checkpoint? = nil,
        clocks: any Clocks = SystemClocks()
    ) throws -> UploadScenario {
        try UploadScenario(
            server.url, size: size, chunk: chunk, values: values, ledger: ledger, checkpoint: checkpoint,
            clocks: clocks, type: "resumable-http")
    }

    /// Expects that the server has exactly this file, once, and that no rule was broken.
    func expectArrived(_ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(server.finished == [journey.content], comment, sourceLocation: sourceLocation)
        #expect(server.violations.isEmpty, "\(server.violations)", sourceLocation: sourceLocation)
    }
}
