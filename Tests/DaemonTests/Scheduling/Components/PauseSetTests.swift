import Core
import Store
import Testing

@testable import Daemon

@Suite("Pauses")
struct PauseSetTests {
    private let now = WallTime(milliseconds: 1_000_000)

    private func pause(_ scope: PauseRecord.Scope, _ name: String, until: WallTime? = nil) -> PauseRecord {
        PauseRecord(scope: scope, name: name, since: now, until: until)
    }

    @Test("a pause holds its own scope, and a pause of everything holds all")
    func places() {
        var pauses = PauseSet()
        pauses.replace([pause(.folder, "cam")])
        #expect(pauses.pause(.folder, "cam") != nil)
        #expect(pauses.pause(.folder, "door") == nil)
        #expect(pauses.pause(.all, "") == nil)
        #expect(pauses.holds(folder: "cam", destination: "nas"))
        #expect(!pauses.holds(folder: "door", destination: "nas"))
        pauses.replace([pause(.all, "")])
        #expect(pauses.holds(folder: "door", destination: "nas"))
    }

    @Test("a pause whose scope only a newer program knows holds everything")
    func unknownScope() {
        var pauses = PauseSet()
        pauses.replace([pause(PauseRecord.Scope(rawValue: "camera"), "7")])
        #expect(pauses.pause(.all, "") != nil)
    }

    @Test("a draining pause holds new uploads and stops no running transfer, until it is changed")
    func draining() {
        var pauses = PauseSet()
        let place = PauseScope(scope: .destination, name: "nas")
        pauses.drain([place])
        pauses.replace([pause(.destination, "nas"), pause(.folder, "cam")])
        #expect(pauses.pause(.destination, "nas") != nil)
        #expect(pauses.cutting.pause(.destination, "nas") == nil)
        #expect(pauses.cutting.pause(.folder, "cam") != nil)
        pauses.stopDraining([place])
        #expect(pauses.cutting.pause(.destination, "nas") != nil)
    }

    @Test("a pause ends at its end time and not before, and one without an end never ends")
    func ends() {
        var pauses = PauseSet()
        let end = now.advanced(by: .seconds(60))
        pauses.replace([pause(.folder, "cam", until: end), pause(.all, "")])
        #expect(pauses.expired(at: end.advanced(by: .milliseconds(-1))).isEmpty)
        #expect(pauses.expired(at: end).map(\.name) == ["cam"])
        #expect(pauses.ends == [end])
    }
}
