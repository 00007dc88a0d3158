import API
import Core
import Linux
import TestKit
import Testing

@testable import Daemon

@Suite("Check with the groups of the service")
struct ServiceGroupsTests {
    private func unit(_ text: String) throws -> ServiceUnit {
        let folder = TemporaryFolder()
        try folder.write("sluice.service", Array("[Service]\n\(text)\n".utf8))
        return try #require(ServiceUnit("sluice.service", in: [folder.path]))
    }

    @Test("the check reports missing groups only to the service's user")
    func lacking() throws {
        let service = try unit("User=4242\nGroup=4242\nSupplementaryGroups=5001 5002")
        let found = try #require(ServiceGroups.finding(service, user: 4242, groups: [4242, 5001]))
        #expect(found.verdict == .warning)
        #expect(found.detail.hasPrefix("this check runs without the group `5002` of sluice.service"), "\(found)")
        #expect(found.detail.contains("`sudo setpriv --reuid=4242 --regid=4242 --groups=4242,5001,5002 sluice check`"))
        #expect(ServiceGroups.finding(service, user: 4242, groups: [4242, 5001, 5002]) == nil)
        #expect(ServiceGroups.finding(service, user: 1, groups: []) == nil)
        #expect(ServiceGroups.finding(nil, user: 4242, groups: []) == nil)
        #expect(ServiceGroups.finding(try unit("Group=1"), user: 0, groups: []) == nil)
    }
}
