import Core
import TestKit
import Testing

@testable import Linux

@Suite("ModemManager", .serialized, .timeLimit(.minutes(Patience.minutes(2))))
struct ModemManagerTests {
    private static var isPossible: ConditionTrait {
        .enabled("\(PrivateBus.need)") { await PrivateBus.isPossible.value }
    }

    @Test("the interface of a connected modem, and its roaming, are reported with each change", isPossible)
    func roaming() async throws {
        let bus = try await PrivateBus()
        try await bus.start()
        let modems = try await bus.play(.modemManager)
        let listening = try Listening(bus.address)
        try await listening.until("ModemManager runs") { $0.modemManager.isRunning && $0.modemManager.bearers.isEmpty }
        try await modems.runLine("add_modem(0, 'wwan0', 1)")
        let home = try await listening.until("a modem is reported") { $0.modemManager.bearers["wwan0"] != nil }
        #expect(home.bearer("wwan0") == NetworkReport.Bearer(isRoaming: false, operatorCode: "26201"))
        #expect(home.bearer("eth0") == nil)
        let states: [(Int, Bool?)] = [
            (5, true), (6, false), (7, true), (9, false), (10, true), (2, nil), (8, nil), (5, true),
        ]
        for (state, isRoaming) in states {
            try await modems.runLine("registration(0, \(state))")
            try await listening.until("state \(state) is reported") {
                $0.modemManager.bearers["wwan0"]?.isRoaming == isRoaming
            }
        }
        try await modems.runLine("bearer_connected(0, False)")
        try await listening.until("no modem is connected") { $0.modemManager.bearers.isEmpty }
        try await modems.runLine("bearer_connected(0, True)")
        try await listening.until("the modem is connected") { $0.modemManager.bearers["wwan0"]?.isRoaming == true }
        try await modems.runLine("add_modem(1, 'wwan1', 1)")
        try await listening.until("two modems are reported") {
            $0.modemManager.bearers.keys.sorted() == ["wwan0", "wwan1"]
        }
        try await modems.runLine("remove_modem(0)")
        try await listening.until("one modem is reported") { $0.modemManager.bearers.keys.sorted() == ["wwan1"] }
        try await listening.stop()
    }

    @Test(
        "when ModemManager disappears, roaming warns and home grants nothing, until the modem is found again",
        isPossible)
    func vanishing() async throws {
        let bus = try await PrivateBus()
        try await bus.start()
        let modems = try await bus.play(.modemManager)
        try await modems.runLine("add_modem(0, 'wwan0', 5); add_modem(1, 'wwan1', 1)")
        let listening = try Listening(bus.address)
        try await listening.until("two modems are reported") { $0.modemManager.bearers.count == 2 }
        modems.end()
        let gone = try await listening.until("ModemManager no longer runs") { !$0.modemManager.isRunning }
        #expect(gone.bearer("wwan0")?.isRoaming == true)
        #expect(
            gone.bearer("wwan1") == NetworkReport.Bearer(isRoaming: nil, operatorCode: "26201", isCurrent: false))
        // ModemManager has its bus name before it has searched for its modems, whose connections continue meanwhile.
        let again = try await bus.play(.modemManager)
        let back = try await listening.until("ModemManager runs again") { $0.modemManager.isRunning }
        #expect(back.bearer("wwan0")?.isRoaming == true)
        #expect(back.modemManager.bearers.count == 2 && back.bearer("wwan1")?.isRoaming == nil)
        try await again.runLine("add_modem(1, 'wwan1', 0, state=1); add_modem(2, 'wwan2', 1)")
        let looking = try await listening.until("the state of wwan2 is reported") { $0.bearer("wwan2") != nil }
        #expect(looking.bearer("wwan1") != nil && looking.bearer("wwan0")?.isRoaming == true)
        try await again.runLine("modem_state(1, 8)")
        try await listening.until("wwan1 is not connected") { $0.bearer("wwan1") == nil }
        try await again.runLine("add_modem(0, 'wwan0', 1)")
        try await listening.until("wwan0 does not roam") { $0.bearer("wwan0")?.isRoaming == false }
        #expect(listening.report?.modemManager.bearers.keys.sorted() == ["wwan0", "wwan2"])
        try await listening.stop()
    }

    @Test("values of the wrong type are ignored, and missing ones are queried", isPossible)
    func wrongTypes() async throws {
        let bus = try await PrivateBus()
        try await bus.start()
        let modems = try await bus.play(.modemManager)
        try await modems.runLine("add_modem(0, 'wwan0', 1); add_modem(1, 'wwan1', 1)")
        let listening = try Listening(bus.address)
        try await listening.until("two modems are reported") { $0.modemManager.bearers.count == 2 }
        let first = "MODEMS + '/Modem/0'"
        try await modems.runLine("change(\(first), MOBILE, RegistrationState=String('home'), OperatorCode=UInt32(1))")
        try await listening.until("the state of wwan0 is unknown") {
            $0.modemManager.bearers["wwan0"] == NetworkReport.Bearer()
        }
        // The bearers are reported together with the strength of the signal, to which there is no subscription.
        try await modems.runLine("change(\(first), MODEM, Bearers=Paths(['/', '/nowhere']))")
        listening.events.checkAgain()
        try await listening.until("one modem is reported") { $0.modemManager.bearers.keys.sorted() == ["wwan1"] }
        try await modems.runLine("change(MODEMS + '/Bearer/1', BEARER, Connected=String('yes'))")
        listening.events.checkAgain()
        try await listening.until("no modem is reported") { $0.modemManager.bearers.isEmpty }
        try await listening.stop()
    }
}
