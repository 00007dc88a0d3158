import API
import Core
import Linux
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Routes to destinations")
struct NetworkInspectionTests {
    @Test(
        "the configured cost of a mounted folder overrides the mount table",
        arguments: [Metered.metered, .unmetered, nil])
    func folder(_ cost: Metered?) throws {
        let folder = TemporaryFolder()
        var inspection = try NetworkInspection(metering: Metering(links: []), gatewaysMatter: false)
        switch (inspection.reachability(folder: folder.path, cost), cost) {
        case (.mount(let found, _), let cost?): #expect(found == cost)
        case (.local, nil): break
        case (let other, _): Issue.record("unexpected reachability and cost: \(other)")
        }
    }
}
