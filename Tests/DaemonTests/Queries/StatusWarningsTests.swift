import API
import Core
import TestKit
import Testing

@testable import Config
@testable import Daemon
@testable import Store
@testable import Watch

@Suite("Warnings of the status")
struct StatusWarningsTests {
    private static func state(_ folder: String, _ path: FilePath, troubles: [String]) -> WatchState {
        var state = WatchState(folder: folder, path: path, condition: .watching)
        state.troubles = troubles
        return state
    }

    @Test("folders with the same path report its troubles once")
    func folders() {
        var more = Self.state("b", "/b", troubles: ["unreadable"])
        more.moreTroubles = 3
        let warnings = StatusWarnings.ofFolders([
            Self.state("a", "/a", troubles: ["broken"]), Self.state("a2", "/a", troubles: ["broken"]), more,
        ])
        #expect(warnings.count == 3)
        #expect(warnings.last?.contains("3 more") == true)
    }

    @Test("uploads to a destination that is not configured are counted by destination")
    func unknownDestinations() {
        let tallies = [
            Tally(folder: "cam", destination: "gone", state: .queued, uploads: 2, bytes: 0),
            Tally(folder: "cam", destination: "gone", state: .staging, uploads: 1, bytes: 0),
            Tally(folder: "cam", destination: "nas", state: .queued, uploads: 5, bytes: 0),
            Tally(folder: "cam", destination: "old", state: .queued, uploads: 0, bytes: 0),
        ]
        let warnings = StatusWarnings.ofUnknownDestinations(tallies, known: ["nas"])
        #expect(warnings.count == 1)
        #expect(warnings.first?.hasPrefix("3 uploads") == true)
    }

    @Test("an absent folder explains the wait of all its files")
    func absence() {
        var state = Self.state("a", "/a", troubles: [])
        #expect([state].absence(of: "a") == nil)
        state.condition = .absent("no disk")
        #expect([state].absence(of: "a")?.contains("no disk") == true)
        #expect([state].absence(of: "b") == nil)
    }
}
