import Core
import TestKit
import Testing

@testable import Daemon

@Suite("A look at the ways")
struct NetworkLookTests {
    @Test(
        "what a person says of the way to a folder counts, whatever the table of mounts says",
        arguments: [Metered.metered, .unmetered, nil])
    func folder(_ cost: Metered?) throws {
        let folder = TemporaryFolder()
        var look = try NetworkLook(metering: Metering(links: []), gatewaysMatter: false)
        switch (look.reach(folder: folder.path, cost), cost) {
        case (.mount(let found, _), let cost?): #expect(found == cost)
        case (.local, nil): break
        case (let other, _): Issue.record("\(other)")
        }
    }
}
