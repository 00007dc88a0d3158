import Core
import Store
import Testing

@testable import Daemon

@Suite("Temporary exceptions")
struct OverrideSetTests {
    private let start = WallTime(milliseconds: 1_000_000)
    private var end: WallTime { start.advanced(by: .seconds(60)) }
    private var within: WallTime { start.advanced(by: .seconds(30)) }

    private func record(
        _ kind: OverrideRecord.Kind, _ scope: OverrideRecord.Scope = .all, _ name: String = ""
    ) -> OverrideRecord {
        OverrideRecord(scope: scope, name: name, kind: kind, since: start, until: end, who: "root")
    }

    @Test("an exception lasts from its start to its end, even if the clock is set back")
    func period() {
        var overrides = OverrideSet()
        overrides.replace([record(.exemption(.metered), .folder, "cam")])
        #expect(overrides.exemptions(.folder, "cam", at: start) == [.metered])
        #expect(overrides.exemptions(.folder, "cam", at: start.advanced(by: .milliseconds(-1))).isEmpty)
        #expect(overrides.exemptions(.folder, "cam", at: end).isEmpty)
        #expect(overrides.exemptions(.folder, "door", at: within).isEmpty)
        #expect(overrides.expired(at: within).isEmpty)
        #expect(overrides.expired(at: end).count == 1)
        #expect(overrides.ends == [end])
    }

    @Test("uploads with exemptions are listed with all of them")
    func uploads() throws {
        var overrides = OverrideSet()
        overrides.replace([
            record(.exemption(.metered), .upload, "a"), record(.exemption(.quota), .upload, "a"),
            record(.exemption(.window), .folder, "cam"),
        ])
        let uploads = overrides.exemptUploads(at: within)
        #expect(uploads.map(\.id) == ["a"])
        #expect(uploads.first?.exemptions == [.metered, .quota])
        _ = overrides.takeChanges()
        overrides.end(ofUploads: ["cam"])
        #expect(overrides.takeChanges() == [])
        overrides.end(ofUploads: ["a"])
        #expect(overrides.takeChanges() == [.policy, .scheduling])
        #expect(overrides.records.map(\.name) == ["cam"])
    }

    @Test("the smallest limit counts, and a limit of zero is a pause until its end")
    func limits() {
        var overrides = OverrideSet()
        overrides.replace([record(.rate(1000)), record(.rate(500))])
        #expect(overrides.rateLimit(at: within) == 500)
        #expect(overrides.globalStop(at: within) == nil)
        overrides.replace([record(.rate(0))])
        #expect(overrides.globalStop(at: within) == Admission.Pause(since: start, until: end))
        #expect(overrides.globalStop(at: end) == nil)
    }
}
