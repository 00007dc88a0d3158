import Testing

@testable import Core

@Suite("Rules without a matching network")
struct MisspeltNetworkTests {
    private func texts(_ rules: NetworkRule..., here names: NetworkNames) -> [String] {
        names.suspectedTypos(in: [(place: "policy", rules: rules)]).map { "\($0.number) \($0.text)" }
    }

    private func meant(_ interface: String, here names: String...) -> String? {
        let found = texts(NetworkRule(interface: interface), here: NetworkNames(interfaces: names))
        return found.first.flatMap { $0.split(separator: "`").dropFirst(2).last { $0 != "?" }.map { String($0) } }
    }

    @Test("rules without a matching network are reported with a suggestion and their place")
    func told() {
        let names = NetworkNames(
            interfaces: ["lo", "eth0", "wlp3s0"], ssids: ["Harbour Guest"],
            gateways: [HardwareAddress("0c:5b:8f:27:9a:64")].compactMap(\.self))
        #expect(
            texts(
                NetworkRule(interface: "eth0"), NetworkRule(interface: "wpl3s0"), NetworkRule(ssid: "harbour guest"),
                NetworkRule(gateway: HardwareAddress("0c:5b:8f:27:9a:46")), here: names) == [
                    "1 no interface `wpl3s0` is here: did you mean `wlp3s0`?",
                    "2 no Wi-Fi `harbour guest` is here: did you mean `Harbour Guest`?",
                    "3 no gateway `0c:5b:8f:27:9a:46` is here: did you mean `0c:5b:8f:27:9a:64`?",
                ])
    }

    @Test("a name one or two typos from an interface, or of the kernel's scheme, gets a suggestion")
    func interfaces() {
        #expect(meant("eht0", here: "lo", "eth0") == "eth0")
        #expect(meant("enp2s0", here: "enp3s0") == "enp3s0")
        #expect(meant("wlan0 ", here: "wlan0") == "wlan0")
        #expect(meant("wlna*", here: "wlan0") == "wlan*")
        #expect(meant("wwan", here: "lo", "wwan0") == "wwan0", "the kernel numbers them")
        #expect(meant("lan", here: "lan0") == nil, "lan is a port of a switch")
        #expect(meant("wlan0", here: "lo", "enp3s0", "wlp3s0") == "wlp3s0")
        #expect(meant("eth0", here: "enp3s0", "enx0c5b8f279a64") == nil, "two candidates are ambiguous")
        #expect(meant("wlan0", here: "wlan1", "wlp3s0") == nil, "the kernel's names are in use")
    }

    @Test(
        "a name of a missing interface gets no suggestion",
        arguments: [
            ["eth1", "eth0"], ["wwan0", "wlan0"], ["wwan*", "wlan0"], ["usb0", "eth0"], ["wwp3s0", "wlp3s0"],
            ["enx0c5b8f279a65", "enx0c5b8f279a64"], ["wg0", "lo"], ["ppp0", "tap0"], ["Eth0", "eth0"],
            ["wl*", "wlp3s0"],
            ["garage", "eth0"], ["[w]lan0", "wlan1"],
        ])
    func notThere(_ names: [String]) { #expect(meant(names[0], here: names[1]) == nil) }

    @Test("a name like that of a correct rule gets no suggestion")
    func named() {
        let names = NetworkNames(interfaces: ["lanes0"], ssids: ["Garden House"])
        #expect(texts(NetworkRule(interface: "lane0"), NetworkRule(interface: "lanes0"), here: names).isEmpty)
        #expect(texts(NetworkRule(ssid: "Garden Horse"), NetworkRule(ssid: "Garden House"), here: names).isEmpty)
    }

    @Test("a name like a Wi-Fi by typos, case or spaces gets a suggestion, not by a number or a band")
    func wifi() {
        func isTold(_ written: String, here: String) -> Bool {
            !texts(NetworkRule(ssid: written), here: NetworkNames(ssids: [here])).isEmpty
        }
        #expect(isTold("Harbor Guest", here: "Harbour Guest"))
        #expect(isTold("HarbourGuest", here: "Harbour Guest"))
        #expect(isTold("home", here: "Home"))
        #expect(!isTold("Home", here: "Home"))
        #expect(!isTold("Box 7490", here: "Box 7590"))
        #expect(!isTold("MyHomeNet5G", here: "MyHomeNet"))
        #expect(!isTold("Cafe", here: "Cave 2"))
        #expect(!isTold("Office", here: "Home"))
        // Names that vendors assign, and that neighbours have too.
        #expect(!isTold("FRITZ!Box 7590 AB", here: "FRITZ!Box 7590 CD"))
        #expect(!isTold("Livebox-A3B0", here: "Livebox-A3C0"))
        #expect(!isTold("Vodafone-X7K2", here: "Vodafone-X7Q2"))
        #expect(isTold("Livebok-A3B0", here: "Livebox-A3B0"))
    }
}
