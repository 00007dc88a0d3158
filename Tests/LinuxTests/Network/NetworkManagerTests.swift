import Core
import Glibc
import TestKit
import Testing

@testable import Linux

// Serialized: each test starts programs, and other tests depend on timing.
@Suite("NetworkManager", .serialized, .timeLimit(.minutes(Patience.minutes(2))))
struct NetworkManagerTests {
    private static var isPossible: ConditionTrait {
        .enabled("\(PrivateBus.need)") { await PrivateBus.isPossible.value }
    }

    private func scene() async throws -> (PrivateBus, MockService, Listening) {
        let bus = try await PrivateBus()
        try await bus.start()
        let manager = try await bus.play(.networkManager)
        return (bus, manager, try Listening(bus.address))
    }

    @Test("each of NetworkManager's five metered values of a device is reported", isPossible)
    func opinions() async throws {
        let (bus, manager, listening) = try await scene()
        for metered in NetworkReport.Metered.allCases {
            try await manager.runLine("add_device('eth\(metered.rawValue)', \(metered.rawValue))")
        }
        for metered in NetworkReport.Metered.allCases {
            let report = try await listening.until("eth\(metered.rawValue)", is: metered)
            #expect(report.metered("eth\(metered.rawValue)") == metered)
        }
        #expect(listening.report?.metered("eth9") == .unknown)
        #expect(listening.report?.trouble == nil)
        try await listening.stop()
        withExtendedLifetime(bus) {}
    }

    @Test("a change is reported at once, with or without the new value in the signal", isPossible)
    func change() async throws {
        let (bus, manager, listening) = try await scene()
        try await manager.runLine("add_device('eth0', 4)")
        try await listening.until("eth0", is: .guessedNo)
        try await manager.runLine("metered('eth0', UInt32(1))")
        try await listening.until("eth0", is: .yes)
        try await manager.runLine("change_silently(MANAGER + '/Devices/eth0', DEVICE, Metered=UInt32(2))")
        try await listening.until("eth0", is: .no)
        for _ in 0..<20 {
            try await manager.runLine(
                "metered('eth0', UInt32(1)); metered('eth0', UInt32(2)); metered('eth0', UInt32(3))")
        }
        try await listening.until("eth0", is: .guessedYes)
        try await listening.stop()
        withExtendedLifetime(bus) {}
    }

    @Test("if NetworkManager disappears, its last values warn, and permit nothing", isPossible)
    func restart() async throws {
        let (bus, manager, listening) = try await scene()
        try await manager.runLine("add_device('eth0', 1); add_device('eth1', 2)")
        try await listening.until("eth0", is: .yes)
        try await listening.until("eth1", is: .no)
        manager.end()
        let gone = try await listening.until("NetworkManager no longer runs") { !$0.networkManager.isRunning }
        #expect(gone.metered("eth0") == .yes)
        #expect(gone.metered("eth1") == .unknown)
        #expect(gone.networkManager.connectivity == .unknown)
        #expect(gone.trouble == nil)
        let again = try await bus.play(.networkManager)
        try await again.runLine("add_device('eth1', 2)")
        let back = try await listening.until("eth1", is: .no)
        #expect(back.networkManager.devices["eth0"] == nil)
        try await listening.stop()
    }

    @Test("while NetworkManager starts, values that it has not determined yet stay as before", isPossible)
    func startup() async throws {
        let (bus, manager, listening) = try await scene()
        try await manager.runLine("add_device('eth0', 1); add_device('eth1', 2); add_device('eth2', 4)")
        for (name, metered) in [("eth0", NetworkReport.Metered.yes), ("eth1", .no), ("eth2", .guessedNo)] {
            try await listening.until(name, is: metered)
        }
        try await manager.runLine("change(MANAGER, NM, Startup=dbus.Boolean(True))")
        try await listening.until("NetworkManager starts") { $0.networkManager.isStarting }
        try await manager.runLine("metered('eth0', UInt32(0)); metered('eth1', UInt32(0))")
        let starting = try await listening.until("both devices are still undetermined") {
            [$0.networkManager.devices["eth0"], $0.networkManager.devices["eth1"]].allSatisfy { $0?.isCurrent == false }
        }
        #expect(starting.metered("eth0") == .yes)
        #expect(starting.metered("eth1") == .unknown)
        #expect(starting.metered("eth2") == .guessedNo)
        try await manager.runLine("change(MANAGER, NM, Startup=dbus.Boolean(False))")
        let started = try await listening.until("eth0", is: .unknown)
        #expect(started.networkManager.devices.values.allSatisfy { $0.isCurrent })
        try await listening.stop()
        withExtendedLifetime(bus) {}
    }

    @Test("devices appear and disappear", isPossible)
    func devices() async throws {
        let (bus, manager, listening) = try await scene()
        try await listening.until("NetworkManager runs") { $0.networkManager.isRunning }
        #expect(listening.report?.networkManager.devices == [:])
        try await manager.runLine("add_device('eth0', 4); add_device('usb0', 3)")
        try await listening.until("eth0", is: .guessedNo)
        try await listening.until("usb0", is: .guessedYes)
        try await manager.runLine("remove_device('usb0')")
        try await listening.until("usb0 has disappeared") { $0.networkManager.devices.keys.sorted() == ["eth0"] }
        try await listening.stop()
        withExtendedLifetime(bus) {}
    }

    @Test("a device is identified by the interface that carries its packets", isPossible)
    func names() async throws {
        let (bus, manager, listening) = try await scene()
        try await manager.runLine("add_device('cdc_wdm0', 3, kind=8, ip_name='wwan0')")
        let report = try await listening.until("wwan0", is: .guessedYes)
        #expect(report.networkManager.devices.keys.sorted() == ["wwan0"])
        // Like an Open vSwitch bridge and its interface: the one that counts as metered is used.
        try await manager.runLine("add_device('port', 4, ip_name='ovs0'); add_device('bridge', 1, ip_name='ovs0')")
        try await manager.runLine("add_device('inner', 0, ip_name='ovs0')")
        try await listening.until("ovs0", is: .yes)
        try await listening.stop()
        withExtendedLifetime(bus) {}
    }

    @Test("profile and Wi-Fi network are reported, the network's name as bytes", isPossible)
    func profiles() async throws {
        let (bus, manager, listening) = try await scene()
        try await manager.runLine("add_device('wlan0', 4, kind=2, ip_name='wlan0')")
        try await manager.runLine("connect('wlan0', 1, 'Café', '1b9d'); join('wlan0', 1, b'Caf\\xe9 \\x00 guests')")
        let report = try await listening.until("the Wi-Fi network is reported") {
            $0.networkManager.devices["wlan0"]?.ssid != nil
        }
        let device = try #require(report.networkManager.devices["wlan0"])
        #expect(device.connection == NetworkReport.Connection(id: "Café", uuid: "1b9d"))
        #expect(device.ssid == Array("Caf".utf8) + [0xE9, 0x20, 0] + Array(" guests".utf8))
        try await manager.runLine("join('wlan0', 2, b'home')")
        try await listening.until("the other network is reported") {
            $0.networkManager.devices["wlan0"]?.ssid == Array("home".utf8)
        }
        try await manager.runLine("change(MANAGER + '/Devices/wlan0', DEVICE, ActiveConnection=Path('/'))")
        try await listening.until("the missing profile is reported") {
            $0.networkManager.devices["wlan0"]?.connection == nil
        }
        try await listening.stop()
        withExtendedLifetime(bus) {}
    }

    @Test("names of Wi-Fi networks in range are reported only on request", isPossible)
    func reach() async throws {
        let (bus, manager, plain) = try await scene()
        try await manager.runLine("add_device('wlan0', 4, kind=2, ip_name='wlan0')")
        try await manager.runLine("see('wlan0', 1, b'Harbour Guest'); see('wlan0', 2, b'Home'); see('wlan0', 3, b'')")
        let listening = try Listening(bus.address, listsWiFi: true)
        let report = try await listening.until("both networks in range are reported") {
            $0.networkManager.visibleSSIDs.count == 2
        }
        #expect(report.networkManager.visibleSSIDs == [Array("Harbour Guest".utf8), Array("Home".utf8)])
        #expect(report.networkManager.devices["wlan0"]?.ssid == nil)
        try await plain.until("wlan0", is: .guessedNo)
        #expect(plain.report?.networkManager.visibleSSIDs == [])
        try await listening.stop()
        try await plain.stop()
    }

    @Test("each connectivity state is reported", isPossible)
    func connectivity() async throws {
        let (bus, manager, listening) = try await scene()
        for state in NetworkReport.Connectivity.allCases {
            try await manager.runLine("main.SetConnectivity(UInt32(\(state.rawValue)))")
            try await listening.until("connectivity is \(state)") { $0.networkManager.connectivity == state }
        }
        try await manager.runLine("main.SetConnectivity(UInt32(9))")
        try await listening.until("connectivity is unknown") { $0.networkManager.connectivity == .unknown }
        try await listening.stop()
        withExtendedLifetime(bus) {}
    }

    @Test(
        "irrelevant changes wake no listener: bit rate, signal strength, other services", isPossible)
    func noise() async throws {
        let (bus, manager, listening) = try await scene()
        try await manager.runLine("add_device('wlan0', 4, kind=2); join('wlan0', 1, b'home')")
        let device = "MANAGER + '/Devices/wlan0'"
        try await listening.until("the Wi-Fi network is reported") { $0.networkManager.devices["wlan0"]?.ssid != nil }
        // Earlier messages of the bus arrive before the answer to this change.
        try await manager.runLine("metered('wlan0', UInt32(1))")
        try await listening.until("wlan0", is: .yes)
        let before = try Usage(of: getpid()).switches[listening.thread]
        for rate in 0..<100 {
            try await manager.runLine("change(\(device), WIRELESS, Bitrate=UInt32(\(rate)))")
            try await manager.runLine(
                "change(MANAGER + '/AccessPoint/1', NM + '.AccessPoint', Strength=dbus.Byte(\(rate)))")
        }
        let other = try await bus.play(.modemManager)
        other.end()
        try await manager.runLine("metered('wlan0', UInt32(2))")
        try await listening.until("wlan0", is: .no)
        let after = try Usage(of: getpid()).switches[listening.thread]
        let woken = try #require(after) - (try #require(before))
        // For the other service's start and stop, the device's signals and the answers; 200 signals would be 200
        // wake-ups.
        #expect(woken < 60)
        try await listening.stop()
    }

    @Test("values of the wrong type are ignored, and all others are reported", isPossible)
    func wrongTypes() async throws {
        let (bus, manager, listening) = try await scene()
        try await manager.runLine("add_device('eth0', 1); add_device('eth1', 1); add_device('eth2', 1)")
        try await listening.until("eth2", is: .yes)
        try await manager.runLine("metered('eth0', String('no')); metered('eth1', UInt32(7))")
        try await manager.runLine("change(MANAGER + '/Devices/eth0', DEVICE, ActiveConnection=dbus.Byte(1))")
        try await manager.runLine("change(MANAGER, NM, Connectivity=String('full'))")
        for name in ["eth0", "eth1"] { try await listening.until(name, is: .unknown) }
        try await listening.until("connectivity is unknown") { $0.networkManager.connectivity == .unknown }
        #expect(listening.report?.metered("eth2") == .yes)
        try await manager.runLine("change(MANAGER + '/Devices/eth0', DEVICE, Interface=UInt32(4))")
        try await listening.until("eth0 is no longer reported") { $0.networkManager.devices["eth0"] == nil }
        try await manager.runLine("change(MANAGER, NM, Devices=String('all'))")
        try await listening.until("no device is reported") { $0.networkManager.devices.isEmpty }
        try await manager.runLine("change(MANAGER, NM, Devices=Paths(['/nowhere', MANAGER + '/Devices/eth1']))")
        try await listening.until("eth1", is: .unknown)
        try await listening.stop()
        withExtendedLifetime(bus) {}
    }

    @Test(
        "a service that sends nonsense, refuses or is silent is reported, and queried again until it answers",
        isPossible)
    func nonsense() async throws {
        let bus = try await PrivateBus()
        try await bus.start()
        let service = try await bus.play(.nonsense)
        let answers = [
            "String('metered')", "UInt32(1)", "Paths(['/a'])", "dbus.Array([dbus.Struct((1, 'a'))])",
            "dbus.Dictionary({1: 2}, signature='ii')", "dbus.Dictionary({'Devices': 'a'}, signature='ss')",
        ]
        try await service.runLine("main.said = String('first')")
        let listening = try Listening(bus.address)
        let first = try await listening.until("the nonsense is reported") { $0.networkManager.trouble != nil }
        #expect(first.networkManager.trouble == "its answer is of the wrong type")
        #expect(!first.networkManager.isRunning)
        for answer in answers { try await service.runLine("say(\(answer))") }
        try await service.runLine("say(dbus.DBusException('no', name='org.example.Denied'))")
        try await listening.until("the refusal is reported") {
            $0.networkManager.trouble == "it answers org.example.Denied"
        }
        try await service.runLine("say(dbus.Dictionary({'Connectivity': UInt32(4)}, signature='sv'))")
        let last = try await listening.until("connectivity is full") { $0.networkManager.connectivity == .full }
        #expect(last.networkManager.isRunning && last.networkManager.trouble == nil)
        try await listening.stop()

        try await service.runLine("say(None)")
        let impatient = try Listening(bus.address, timeout: .milliseconds(50))
        let silent = try await impatient.until("the silence is reported") { $0.networkManager.trouble != nil }
        #expect(silent.networkManager.trouble == "it does not answer")
        #expect(silent.trouble == nil)
        try await impatient.stop()
    }
}
