import Core
import Testing

@testable import Linux

@Suite("The file of hosts")
struct HostsFileTests {
    @Test("each name of a line has its address; comments, strange lines and case are as in hosts(5)")
    func parsing() {
        let found = HostsFile.parse(
            """
            127.0.0.1\tlocalhost
            127.0.1.1  MyBox.example mybox # this machine
            # 192.0.2.1 commented
            10.9.0.1 gate
            10.9.0.2 gate
            ::1 ip6-localhost ip6-loopback
            nonsense gate
            192.0.2.9
            """)
        #expect(found["mybox"]?.map(\.description) == ["127.0.1.1"])
        #expect(found["mybox.example"]?.map(\.description) == ["127.0.1.1"])
        #expect(found["gate"]?.map(\.description) == ["10.9.0.1", "10.9.0.2"])
        #expect(found["ip6-loopback"]?.map(\.description) == ["::1"])
        #expect(found["commented"] == nil && found["this"] == nil)
    }
}
