import Core
import Testing

/// An interface with the changes of a row of a table.
private func link(_ name: String, _ index: Int32 = 2, _ change: (inout NetworkLink) -> Void = { _ in }) -> NetworkLink {
    var link = NetworkLink(index: index, name: name)
    link.hasDevice = true
    change(&link)
    return link
}

private func made(
    _ kind: String, _ name: String, _ index: Int32, on lower: [Int32] = [],
    _ change: (inout NetworkLink) -> Void = { _ in }
) -> NetworkLink {
    var link = NetworkLink(index: index, name: name)
    link.kind = kind
    link.lower = lower
    change(&link)
    return link
}

private func subnet(_ text: String) -> IPSubnet? { IPSubnet(text) }
private let modem = link("wwan0", 9) {
    $0.deviceType = "wwan"; $0.leadsOut = true; $0.medium = .bare
}
private let wire = link("eth0", 2) { $0.leadsOut = true }
private let wifi = link("wlan0", 3) {
    $0.isWireless = true; $0.leadsOut = true
}

extension Metering {
    fileprivate func of(_ index: Int32, gateway: String? = nil) -> Judgement {
        judgement(of: NetworkPath(link: index, gateway: gateway.flatMap { HardwareAddress($0) }))
    }
}

@Suite("Cost of an interface by itself")
struct GuessTests {
    struct Row: CustomTestStringConvertible, Sendable {
        let link: NetworkLink
        let metered: Metered
        let reason: String
        var testDescription: String { reason }
        init(_ link: NetworkLink, _ metered: Metered, _ reason: String) {
            self.link = link
            self.metered = metered
            self.reason = reason
        }
    }

    private static func usb(_ name: String, _ driver: String, mac: String, at address: String? = nil) -> NetworkLink {
        link(name) {
            $0.isOnUSB = true
            $0.driver = driver
            $0.hardwareAddress = HardwareAddress(mac)
            $0.addresses = [address.flatMap { IPSubnet($0) }].compactMap { $0 }
        }
    }
    private static let makers = "0c:5b:8f:27:9a:64"

    static let rows = [
        Row(link("lo") { $0.medium = .loopback }, .unmetered, "lo does not leave this machine"),
        Row(link("eth0") { $0.driver = "virtio_net" }, .unmetered, "eth0 is wired"),
        Row(usb("enx0", "r8152", mac: makers), .unmetered, "enx0 is wired"),
        // Without /sys and without an answer from its driver, Wi-Fi would look the same.
        Row(
            link("eth0") { $0.hasDevice = false }, .unknown,
            "eth0 is of a kind whose cost is unknown"),
        Row(link("wwx1") { $0.deviceType = "wwan" }, .metered, "wwx1 is a modem (DEVTYPE wwan)"),
        Row(link("eth1") { $0.driver = "cdc_mbim" }, .metered, "eth1 is a modem (driver cdc_mbim)"),
        Row(link("eth1") { $0.driver = "huawei_cdc_ncm" }, .metered, "eth1 is a modem (driver huawei_cdc_ncm)"),
        Row(link("wwan7"), .metered, "wwan7 is a modem (by its name)"),
        Row(made("wwan", "m0", 2), .metered, "m0 is a modem (kind wwan)"),
        Row(made("rmnet", "r0", 2, on: [9]), .metered, "r0 is a modem (kind rmnet)"),
        Row(made("ppp", "dsl", 2) { $0.medium = .ppp }, .metered, "dsl is a dialled connection: a modem, or DSL"),
        Row(link("bnep0"), .metered, "bnep0 goes through a phone over Bluetooth"),
        Row(link("enx1") { $0.deviceType = "bluetooth" }, .metered, "enx1 goes through a phone over Bluetooth"),
        // Phones and adapters have the same drivers; a second sign is needed.
        Row(
            usb("enx1", "cdc_ncm", mac: makers), .unknown,
            "enx1 is a phone on USB or an adapter (driver cdc_ncm), and it is unknown which"),
        Row(
            usb("enx1", "rndis_host", mac: makers), .unknown,
            "enx1 is a phone on USB or an adapter (driver rndis_host), and it is unknown which"),
        Row(
            usb("enx1", "cdc_ether", mac: makers, at: "192.168.42.129/24"), .metered,
            "enx1 is a phone on USB (driver cdc_ether, address 192.168.42.129/24)"),
        Row(
            usb("enx1", "cdc_ncm", mac: "0e:11:22:33:44:55"), .metered,
            "enx1 is a phone on USB (driver cdc_ncm, locally administered address 0e:11:22:33:44:55)"),
        Row(usb("usb0", "cdc_eem", mac: makers), .metered, "usb0 is a phone on USB (driver cdc_eem, by its name)"),
        Row(usb("eth1", "ipheth", mac: makers), .metered, "eth1 is a phone on USB (driver ipheth)"),
        // On a wired interface such addresses belong to a local network.
        Row(link("eth0") { $0.addresses = [subnet("172.20.10.3/28")].compactMap { $0 } }, .unmetered, "eth0 is wired"),
        Row(link("eth0") { $0.addresses = [subnet("192.168.43.3/24")].compactMap { $0 } }, .unmetered, "eth0 is wired"),
        Row(
            link("wlan0") {
                $0.isWireless = true; $0.addresses = [subnet("172.20.10.3/28")].compactMap { $0 }
            }, .metered,
            "wlan0 is in a phone's hotspot (address 172.20.10.3/28)"),
        Row(
            link("wlan0") {
                $0.isWireless = true; $0.addresses = [subnet("192.168.43.7/24")].compactMap { $0 }
            }, .metered,
            "wlan0 is in a phone's hotspot (address 192.168.43.7/24)"),
        Row(
            link("wlan0") {
                $0.isWireless = true; $0.addresses = [subnet("172.20.10.3/24")].compactMap { $0 }
            }, .unknown,
            "wlan0 is Wi-Fi, and the network behind it is unknown"),
        Row(
            link("wlan0") {
                $0.isWireless = true; $0.driver = "brcmfmac"
            }, .unknown,
            "wlan0 is Wi-Fi, and the network behind it is unknown"),
        Row(
            made("veth", "eth0", 2), .unknown, "eth0 leads into a container or out of one, and it is unknown where to"),
        Row(made("wireguard", "wg0", 2), .unknown, "wg0 is a tunnel, and it is unknown what carries it"),
        Row(
            made("bridge", "br0", 2), .unknown,
            "br0 is made by software (bridge), and it is unknown what carries it"),
        Row(link("ib0") { $0.medium = .other(32) }, .unknown, "ib0 is of a kind whose cost is unknown"),
    ]

    @Test("the cost of a link that no setting and no service states is judged by its kind and name", arguments: rows)
    func follows(_ row: Row) {
        let judgement = Metering(links: [row.link]).of(row.link.index)
        #expect(judgement.metered == row.metered)
        #expect(judgement.reason == "\(row.metered.rawValue): \(row.reason)")
        #expect(judgement.source == .guess)
        let wanted = row.metered == .unmetered
        // A rule about the interface would apply to every Wi-Fi that it ever joins.
        #expect(
            judgement.remedy
                == (row.link.isWireless ? nil : "- {interface: \"\(row.link.name)\", metered: \(wanted)}"))
        #expect(judgement.forbidden == nil)
        #expect(judgement.links == [row.link.index])
    }
}

@Suite("Sources of a network's cost")
struct PrecedenceTests {
    private let rule = NetworkRule(interface: "wwan*", isMetered: false)

    @Test("a rule precedes NetworkManager, that ModemManager, and that the interface itself")
    func order() {
        var inputs = Metering(
            links: [link("wwan0") { $0.deviceType = "wwan" }], rules: [rule], managed: ["wwan0": .guessYes],
            modems: ["wwan0": ModemBearer(isRoaming: true)])
        #expect(inputs.of(2).metered == .unmetered)
        #expect(inputs.of(2).source == .rule)
        #expect(inputs.of(2).reason == #"unmetered: the rule {interface: "wwan*", metered: false} says so about wwan0"#)
        #expect(inputs.of(2).remedy == #"- {interface: "wwan*", metered: true}"#)
        inputs.rules = []
        #expect(inputs.of(2).reason == "metered: NetworkManager guessed it (device wwan0)")
        #expect(inputs.of(2).remedy == #"- {interface: "wwan0", metered: false}"#)
        #expect(inputs.of(2).isRoaming, "roaming counts with any source")
        inputs.managed = ["wwan0": .unknown]
        #expect(inputs.of(2).reason == "metered: ModemManager says that wwan0 belongs to a modem, which is roaming")
        #expect(inputs.of(2).source == .modemManager)
        inputs.modems = ["wwan0": ModemBearer(isRoaming: nil)]
        #expect(inputs.of(2).reason == "metered: ModemManager says that wwan0 belongs to a modem")
        #expect(!inputs.of(2).isRoaming)
        inputs.modems = [:]
        #expect(inputs.of(2).reason == "metered: wwan0 is a modem (DEVTYPE wwan)")
    }

    @Test(
        "an unknown roaming state counts as roaming for a rule that forbids or meters, and not for one that permits"
    )
    func roamingUnknown() {
        let modem = link("wwan0") { $0.deviceType = "wwan" }
        let wire = link("eth0") { $0.hasDevice = true }
        func status(_ rule: NetworkRule, _ bearer: ModemBearer?, at link: NetworkLink) -> Metering.Judgement {
            Metering(links: [link], rules: [rule], modems: bearer.map { [link.name: $0] } ?? [:]).of(2)
        }
        let forbids = NetworkRule(isRoaming: true, isAllowed: false)
        let unknown = "the rule {roaming: true, allowed: false} forbids wwan0, and it is unknown whether it roams"
        #expect(status(forbids, nil, at: modem).forbidden == unknown)
        #expect(status(forbids, ModemBearer(isRoaming: nil), at: modem).forbidden == unknown)
        #expect(
            status(forbids, ModemBearer(isRoaming: nil), at: wire).forbidden != nil,
            "ModemManager reports the interface as a modem")
        #expect(
            status(forbids, ModemBearer(isRoaming: true), at: modem).forbidden
                == "the rule {roaming: true, allowed: false} forbids wwan0")
        #expect(status(forbids, ModemBearer(isRoaming: false), at: modem).forbidden == nil)
        #expect(status(forbids, nil, at: wire).forbidden == nil)
        let permits = NetworkRule(isRoaming: false, isMetered: false)
        #expect(status(permits, ModemBearer(isRoaming: false), at: modem).metered == .unmetered)
        #expect(status(permits, ModemBearer(isRoaming: nil), at: modem).metered == .metered)
        #expect(
            status(NetworkRule(isRoaming: true, isMetered: true), ModemBearer(isRoaming: nil), at: wire).metered
                == .metered)
    }

    @Test(
        "NetworkManager's five values are mapped",
        arguments: [
            (.unknown, .unmetered, "unmetered: eth0 is wired"),
            (.yes, .metered, "metered: NetworkManager says so (device eth0)"),
            (.no, .unmetered, "unmetered: NetworkManager says so (device eth0)"),
            (.guessYes, .metered, "metered: NetworkManager guessed it (device eth0)"),
            (.guessNo, .unmetered, "unmetered: NetworkManager guessed it (device eth0)"),
        ] as [(NetworkManagerMetered, Metered, String)])
    func manager(_ value: NetworkManagerMetered, _ metered: Metered, _ reason: String) {
        let judgement = Metering(links: [wire], managed: ["eth0": value]).of(2)
        #expect(judgement.metered == metered)
        #expect(judgement.reason == reason)
        #expect(judgement.source == (value == .unknown ? .guess : .networkManager))
    }

    @Test("a guess that a tunnel or bridge is unmetered is ignored, because it is a default for unknown types")
    func guessOfVirtual() {
        for over in [made("wireguard", "v0", 5), made("bridge", "v0", 5, on: [9])] {
            var inputs = Metering(links: [modem, over], managed: ["v0": .guessNo])
            #expect(inputs.of(5).metered == .metered, "\(over.kind ?? "")")
            inputs.managed = ["v0": .no]
            #expect(inputs.of(5).metered == .unmetered, "a configured value counts")
            inputs.managed = ["v0": .guessYes]
            #expect(inputs.of(5).source == .networkManager)
        }
        let container = Metering(links: [made("veth", "eth0", 5)], managed: ["eth0": .guessNo])
        #expect(container.of(5).reason == "unmetered: NetworkManager guessed it (device eth0)")
    }

    @Test("the first matching rule decides, for cost and for permission each")
    func firstRule() {
        let rules = [
            NetworkRule(interface: "eth*", isAllowed: false), NetworkRule(interface: "eth1", isMetered: false),
            NetworkRule(interface: "*", isMetered: true, isAllowed: true),
        ]
        let inputs = Metering(links: [wire, link("eth1", 4), wifi], rules: rules)
        #expect(inputs.of(2).metered == .metered)
        #expect(inputs.of(2).forbidden == #"the rule {interface: "eth*", allowed: false} forbids eth0"#)
        #expect(inputs.of(4).metered == .unmetered)
        #expect(inputs.of(4).forbidden != nil)
        #expect(inputs.of(3).metered == .metered)
        #expect(inputs.of(3).forbidden == nil)
        #expect(inputs.of(3).remedy == #"- {interface: "*", metered: false, allowed: true}"#)
    }

    @Test("a rule matches if each of its conditions does")
    func conditions() throws {
        var home = wifi
        home.ssid = Array("Café".utf8)
        home.addresses = [try #require(subnet("192.168.7.5/24")), try #require(subnet("fd00:7::5/64"))]
        func says(_ rule: NetworkRule, gateway: String? = "02:00:00:00:00:01") -> Bool {
            var rule = rule
            rule.isMetered = false
            return Metering(links: [home], rules: [rule]).of(3, gateway: gateway).source == .rule
        }
        let router = HardwareAddress("02:00:00:00:00:01")
        #expect(says(NetworkRule()))
        #expect(says(NetworkRule(ssid: "Café")))
        #expect(!says(NetworkRule(ssid: "café")))
        #expect(!says(NetworkRule(ssid: "")))
        #expect(says(NetworkRule(gateway: router)))
        #expect(!says(NetworkRule(gateway: router), gateway: "02:00:00:00:00:02"))
        #expect(!says(NetworkRule(gateway: router), gateway: nil))
        #expect(says(NetworkRule(subnet: subnet("192.168.0.0/16"))))
        #expect(says(NetworkRule(subnet: subnet("fd00:7::/32"))))
        #expect(!says(NetworkRule(subnet: subnet("192.168.8.0/24"))))
        #expect(says(NetworkRule(interface: "wlan?", ssid: "Café", gateway: router, subnet: subnet("fd00::/8"))))
        #expect(!says(NetworkRule(interface: "eth?", ssid: "Café", gateway: router, subnet: subnet("fd00::/8"))))
    }

    @Test("a rule is printed as YAML reads it, whatever its names contain")
    func yaml() {
        let rule = NetworkRule(
            interface: #"a"\*"#, ssid: "two\nlines\u{202E}", gateway: HardwareAddress("02:00:00:00:00:01"),
            subnet: subnet("10.0.0.0/8"), isMetered: true, isAllowed: false)
        #expect(
            rule.yaml == #"{interface: "a\"\\*", ssid: "two\U0000000alines\U0000202e", "#
                + #"gateway: "02:00:00:00:00:01", subnet: "10.0.0.0/8", metered: true, allowed: false}"#)
    }

    @Test("a suggested rule for a Wi-Fi names the Wi-Fi or its gateway, and never the whole interface")
    func remedyOfWiFi() {
        var here = wifi
        func remedy(gateway: String? = nil, _ managed: NetworkManagerMetered = .unknown) -> String? {
            let vlan = made("vlan", "wlan0.5", 7, on: [3])
            let inputs = Metering(links: [here, vlan], managed: ["wlan0": managed])
            #expect(
                inputs.of(7, gateway: gateway).remedy == inputs.of(3, gateway: gateway).remedy,
                "a VLAN depends on its Wi-Fi")
            return inputs.of(3, gateway: gateway).remedy
        }
        #expect(remedy() == nil)
        #expect(remedy(gateway: "02:00:00:00:00:01") == #"- {gateway: "02:00:00:00:00:01", metered: false}"#)
        here.ssid = Array("Café Süd".utf8)
        #expect(remedy(gateway: "02:00:00:00:00:01") == #"- {ssid: "Café Süd", metered: false}"#)
        #expect(remedy(.guessYes) == #"- {ssid: "Café Süd", metered: false}"#)
        #expect(remedy(.guessNo) == #"- {ssid: "Café Süd", metered: true}"#)
        for name in [[0xFF, 0x41], Array("a\u{7}b".utf8), []] as [[UInt8]] {
            here.ssid = name
            #expect(remedy() == nil, "no configuration can name it: \(name)")
        }
    }

    @Test("a missing interface is unknown")
    func absent() {
        let judgement = Metering(links: [wire], rules: [NetworkRule(isMetered: false)]).of(7)
        #expect(judgement.metered == .unknown)
        #expect(judgement.reason == "unknown: interface number 7 is not there")
        #expect(judgement.remedy == nil)
    }
}
