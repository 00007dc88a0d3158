import Core
import Linux
import TestKit
import Testing

/// The reports of NetworkManager and ModemManager, simulated by python-dbusmock, and the bytes that are sent then.
@Suite(
    "NetworkManager and ModemManager, with the built program",
    .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"),
    .enabled("\(PrivateBus.need)") { await PrivateBus.isPossible.value }, .timeLimit(.minutes(Patience.minutes(4))))
struct ManagerEndToEndTests {
    private func scene(_ policy: [String], rules: String, _ bus: PrivateBus) async throws -> NetworkEndToEndTests.Scene
    {
        let scene = try await NetworkEndToEndTests.Scene(policy, rules: rules)
        try scene.fixture.startDaemon(environment: ["DBUS_SYSTEM_BUS_ADDRESS": bus.address])
        return scene
    }

    @Test(
        "a transfer stops when NetworkManager reports a metered network or disappears, and continues later"
    )
    func networkManager() async throws {
        let bus = try await PrivateBus()
        try await bus.start()
        var manager = try await bus.play(.networkManager)
        try await manager.runLine("add_device('wan0', 4); add_device('lte0', 1)")
        let scene = try await scene(["metered: pause", "bandwidth: 3 MB/s"], rules: "[]", bus)
        try scene.camera.drop(Clip(number: 0, size: 20_000_000, relative: "clip.mp4"))
        try await scene.begun()
        var seen = try await scene.bytes("wan")
        func stops(_ what: String, _ number: Int) async throws {
            let hold = try await scene.waits("clip.mp4", for: "rule")
            seen = try await scene.bytes("wan")
            // Meanwhile another file is found, settles and is copied.
            let name = "other \(number).mp4"
            try scene.camera.drop(Clip(number: number, size: 50_000, relative: FilePath(name)))
            _ = try await scene.waits(name, for: "rule")
            #expect(try await scene.bytes("wan") == seen, "\(what): \(hold.text)")
        }
        func goesOn() async throws {
            try await eventually("the transfer continues") { try await scene.bytes("wan") > seen + 300_000 }
        }
        for (number, value) in [1, 3, 0].enumerated() {
            try await manager.runLine("metered('wan0', UInt32(\(value)))")
            try await stops("metered \(value)", number + 1)
            try await manager.runLine("metered('wan0', UInt32(\(value == 3 ? 2 : 4)))")
            try await goesOn()
        }
        manager.end()
        try await stops("NetworkManager is gone", 4)
        manager = try await bus.play(.networkManager)
        try await manager.runLine("add_device('wan0', 4); add_device('lte0', 1)")
        try await goesOn()
        bus.stop()
        try await stops("the bus is gone", 5)
        try await bus.start()
        manager = try await bus.play(.networkManager)
        try await manager.runLine("add_device('wan0', 2); add_device('lte0', 1)")
        try await scene.arrives()
        #expect(try await scene.bytes("lte") == 0)
        manager.end()
    }

    @Test("`check` suggests the name of a Wi-Fi network in range that is close to a rule's")
    func reach() async throws {
        let bus = try await PrivateBus()
        try await bus.start()
        let manager = try await bus.play(.networkManager)
        try await manager.runLine("add_device('wlan0', 4, kind=2, ip_name='wlan0'); see('wlan0', 1, b'Harbour Guest')")
        let scene = try await scene(
            [], rules: "[{ssid: Harbor Guest, metered: true}, {ssid: Elsewhere, metered: true}]", bus)
        let said = try await eventually("`check` answers") { try await scene.fixture.runVerb("check", ["--running"]) }
        let words = said.split { $0 == " " || $0 == "\n" }.joined(separator: " ")
        #expect(
            words.contains("`networks[0]`: no Wi-Fi `Harbor Guest` is here: did you mean `Harbour Guest`?"), "\(words)")
        #expect(!words.contains("Elsewhere` is here"), "\(words)")
        manager.end()
    }

    @Test("no byte is sent over a roaming modem or while ModemManager is gone; at home uploads continue")
    func modemManager() async throws {
        let bus = try await PrivateBus()
        try await bus.start()
        var modems = try await bus.play(.modemManager)
        try await modems.runLine("add_modem(0, 'lte0', 5)")
        let scene = try await scene([], rules: "[{roaming: true, allowed: false}]", bus)
        try await scene.ip("link", "set", "wan0", "down")
        try scene.camera.drop(Clip(number: 0, size: 300_000, relative: "clip.mp4"))
        let hold = try await scene.waits("clip.mp4", for: "metered")
        #expect(hold.text.contains("{roaming: true, allowed: false} forbids lte0"), "\(hold.text)")
        modems.end()
        modems = try await bus.play(.modemManager)
        // ModemManager is still searching for its modems, and has found this one first.
        try await modems.runLine("add_modem(1, 'other0', 1)")
        try scene.camera.drop(Clip(number: 1, size: 50_000, relative: "other.mp4"))
        _ = try await scene.waits("other.mp4", for: "metered")
        #expect(try await scene.bytes("lte") == 0)
        try await modems.runLine("add_modem(0, 'lte0', 1)")
        try await scene.arrives()
        #expect(try await scene.bytes("wan") == 0)
        modems.end()
    }
}
