import Core
import Testing

@Suite("IPAddress")
struct IPAddressTests {
    @Test(
        "addresses are parsed in all usual forms, and printed in the short one",
        arguments: [
            ("192.0.2.1", "192.0.2.1"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"),
            ("::", "::"), ("::1", "::1"), ("1::", "1::"), ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
            ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"), ("fe80::02fc:ff:fe00:1", "fe80::2fc:ff:fe00:1"),
            ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"), ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"),
            // Packets to such an address go to the IPv4 one.
            ("::ffff:192.0.2.1", "192.0.2.1"), ("::FFFF:c000:0201", "192.0.2.1"),
        ])
    func reads(_ text: String, _ shown: String) throws {
        let address = try #require(IPAddress(text))
        #expect(address.description == shown)
        #expect(IPAddress(shown) == address)
        #expect(IPAddress(address.bytes) == address)
    }

    @Test(
        "other texts are no address",
        arguments: [
            "", ".", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.", "1.2.3.-4", "1.2.3. 4", ":", ":::", "1:",
            ":1",
            "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "12345::", "g::", "::1.2.3",
            "1.2.3.4::", "1:2:3:4:5:6:7:1.2.3.4", "fe80::1%eth0", "[::1]", "localhost",
        ])
    func refuses(_ text: String) { #expect(IPAddress(text) == nil) }

    @Test("an address has 4 bytes or 16", arguments: [0, 1, 3, 5, 15, 17, 32])
    func length(_ count: Int) { #expect(IPAddress([UInt8](repeating: 1, count: count)) == nil) }

    @Test(
        "a network contains the addresses with its prefix",
        arguments: [
            ("192.168.42.0/24", "192.168.42.255", true), ("192.168.42.0/24", "192.168.43.0", false),
            ("172.20.10.0/28", "172.20.10.15", true), ("172.20.10.0/28", "172.20.10.16", false),
            ("10.1.2.3/8", "10.255.0.0", true), ("0.0.0.0/0", "203.0.113.1", true), ("0.0.0.0/0", "::1", false),
            ("192.0.2.7", "192.0.2.7", true), ("192.0.2.7", "192.0.2.6", false), ("fd00::/7", "fc12::1", true),
            ("fd00::/8", "fe00::1", false), ("::/0", "2001:db8::1", true), ("::/0", "192.0.2.1", false),
            ("2001:db8::1/128", "2001:db8::1", true), ("2001:db8::1/127", "2001:db8::2", false),
        ])
    func network(_ network: String, _ address: String, _ holds: Bool) throws {
        #expect(try #require(IPSubnet(network)).contains(try #require(IPAddress(address))) == holds)
    }

    @Test(
        "an invalid network is refused",
        arguments: [
            "", "/", "/8", "1.2.3.4/", "1.2.3.4/33", "1.2.3.4/-1", "1.2.3.4/+1", "1.2.3.4/8/8", "::/129", "::/1000",
        ])
    func noNetwork(_ text: String) { #expect(IPSubnet(text) == nil) }

    @Test("link-local addresses are recognised")
    func linkLocal() throws {
        for (text, isLocal) in [
            ("169.254.1.1", true), ("169.253.1.1", false), ("fe80::1", true), ("febf::1", true), ("fec0::1", false),
        ] {
            #expect(try #require(IPAddress(text)).isLinkLocal == isLocal, "\(text)")
        }
    }

    @Test("hardware addresses are pairs of digits with colons or hyphens")
    func hardware() throws {
        let address = try #require(HardwareAddress("02-FC-00-00-00-01"))
        #expect(address.description == "02:fc:00:00:00:01")
        #expect(HardwareAddress("02:fc:00:00:00:01") == address)
        #expect(address.isMadeUp)
        #expect(try !#require(HardwareAddress("0c:5b:8f:27:9a:64")).isMadeUp)
        for wrong in [
            "", "02", "02:fc:00:00:00", "02:fc:00:00:00:0g", "2:fc:0:0:0:1", "02fc00000001", "02:fc-00:00:00:01",
        ] {
            #expect(HardwareAddress(wrong) == nil, "\(wrong)")
        }
        #expect(HardwareAddress([UInt8]()) == nil)
    }
}
