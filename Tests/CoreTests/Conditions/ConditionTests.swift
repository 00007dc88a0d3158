import TestKit
import Testing

@testable import Core

/// What each line of a condition says about each way, and about facts that are missing.
@Suite("Conditions")
struct ConditionTests {
    private enum Answer: String { case yes, no, unknown }

    private func answer(
        _ predicate: Condition.Predicate, over link: Int32 = 2, _ change: (inout ConditionScene) -> Void = { _ in }
    ) -> Answer {
        var scene = ConditionScene()
        scene.reachability = .over([NetworkPath(link: link)])
        change(&scene)
        func isHeld(_ condition: Condition) -> Bool {
            var scene = scene
            scene.rules = [PauseRule(name: "it", when: condition)]
            return !scene.goes
        }
        switch (isHeld(.fact(predicate)), isHeld(.not(.fact(predicate)))) {
        case (true, true): return .unknown
        case (true, false): return .yes
        case (false, true): return .no
        case (false, false):
            Issue.record("a condition and its opposite are both false: \(predicate)")
            return .no
        }
    }

    @Test("a cable is in no Wi-Fi; a Wi-Fi whose name is not reported may be any")
    func ssid() {
        #expect(answer(.ssid(["Home"])) == .no)
        #expect(answer(.ssid(["Home"]), over: 3) == .yes)
        #expect(answer(.ssid(["Cafe", "Home"]), over: 3) == .yes)
        #expect(answer(.ssid(["Cafe"]), over: 3) == .no)
        #expect(answer(.ssid(["Cafe"]), over: 3) { $0.links[2].ssid = nil } == .unknown)
        #expect(answer(.ssid(["Home"])) { $0.reachability = .local } == .no)
    }

    @Test("only a modem roams; one that does not report it may")
    func roaming() {
        #expect(answer(.roaming(true)) == .no && answer(.roaming(false)) == .yes)
        #expect(answer(.roaming(true), over: 4) { $0.isRoaming = true } == .yes)
        #expect(answer(.roaming(true), over: 4) == .no)
        #expect(answer(.roaming(true), over: 4) { $0.isRoaming = nil } == .unknown)
        #expect(answer(.roaming(false)) { $0.reachability = .local } == .yes)
    }

    @Test("the gateway of a link that has not met it yet may be any; a modem's link has none")
    func gateway() throws {
        let router = try #require(ConditionScene.router)
        #expect(answer(.gateway([router])) == .yes)
        #expect(answer(.gateway([router])) { $0.gateway = nil } == .unknown)
        #expect(answer(.gateway([router])) { $0.gateway = HardwareAddress("0c:5b:8f:27:9a:65") } == .no)
        #expect(answer(.gateway([router]), over: 4) == .no)
    }

    @Test("a tunnel is each interface that carries it; without a known carrier it may be any that leads out")
    func tunnel() {
        #expect(answer(.interface(["wg*"]), over: 5) == .yes)
        #expect(answer(.interface(["wwan*"]), over: 5) == .yes)
        #expect(answer(.network(["lte"]), over: 5) == .yes)
        #expect(answer(.interface(["eth0"]), over: 5) == .no)
        #expect(answer(.interface(["eth0"]), over: 5) { $0.carrier = nil } == .unknown)
        #expect(answer(.interface(["eth9"]), over: 5) { $0.carrier = nil } == .no)
    }

    @Test("a destination on the link is in the local network, and bytes that stay here are; a rule by mark may lead on")
    func lan() {
        #expect(answer(.lan(true)) { $0.isOnLink = true } == .yes && answer(.lan(false)) { $0.isOnLink = true } == .no)
        #expect(answer(.lan(true)) == .no && answer(.lan(false)) == .yes)
        #expect(answer(.lan(true)) { $0.isOnLink = nil } == .unknown)
        #expect(answer(.lan(true), over: 4) { $0.isOnLink = true } == .no)
        #expect(answer(.lan(true)) { $0.reachability = .local } == .yes)
        #expect(answer(.lan(true), over: 1) == .yes)
        #expect(answer(.lan(true)) { $0.reachability = .mount(.metered, text: "a folder") } == .unknown)
        for isOnLink in [true, false] {
            #expect(
                answer(.lan(true)) {
                    $0.isOnLink = isOnLink
                    var path = NetworkPath(link: 2)
                    path.others = [4]
                    $0.reachability = .over([path])
                } == .unknown)
        }
    }

    @Test(
        "a machine is hotter than a limit above it, and no longer three degrees below the next one; without a sensor it may be"
    )
    func temperature() {
        func answer(_ temperature: Temperature) -> Answer {
            self.answer(.hotterThan(70)) { $0.temperature = temperature }
        }
        #expect(answer(Temperature(70)) == .no && answer(Temperature(71)) == .yes)
        #expect(answer(Temperature(nil)) == .unknown && answer(.notStated) == .unknown)
        var temperature = Temperature(nil)
        let readings = [70, 71, 70, 68, 67, 70, 71, 90, 68, 67].map { degrees in
            temperature = Temperature(degrees, after: temperature)
            return answer(temperature)
        }
        #expect(readings == [.no, .yes, .yes, .yes, .no, .no, .yes, .yes, .yes, .no])
    }

    @Test("a file is larger, smaller or longer than a limit, and not equal to it; a photo has no length")
    func file() {
        func answer(_ question: FilePredicate, _ file: FileAnswers) -> Answer {
            self.answer(.file(question)) { $0.file = file }
        }
        let video = FileFacts(size: 20, kind: .video, duration: 10_000)
        #expect(answer(.largerThan(20), .file(video)) == .no && answer(.largerThan(19), .file(video)) == .yes)
        #expect(answer(.smallerThan(20), .file(video)) == .no && answer(.smallerThan(21), .file(video)) == .yes)
        #expect(answer(.longerThan(10_000), .file(video)) == .no && answer(.longerThan(9_999), .file(video)) == .yes)
        #expect(answer(.kind([.photo, .video]), .file(video)) == .yes && answer(.kind([.other]), .file(video)) == .no)
        let unread = FileFacts(size: 20, kind: .audio, duration: nil)
        #expect(answer(.longerThan(0), .file(unread)) == .unknown)
        #expect(answer(.longerThan(0), .file(FileFacts(size: 20, kind: .photo, duration: nil))) == .no)
        #expect(answer(.largerThan(0), .noFile) == .no && answer(.kind([.video]), .noFile) == .no)
        for question in [FilePredicate.largerThan(1), .smallerThan(1), .kind([.video]), .longerThan(1)] {
            #expect(answer(question, .known([:])) == .unknown)
        }
        #expect(answer(.largerThan(20), .known([.largerThan(19): true])) == .unknown)
    }

    @Test("a named network is one whose lines all hold, on one interface")
    func network() {
        #expect(answer(.network(["home"]), over: 3) == .yes && answer(.network(["home"])) == .no)
        #expect(answer(.network(["abroad"]), over: 4) == .no)
        #expect(answer(.network(["abroad"]), over: 4) { $0.isRoaming = true } == .yes)
        #expect(answer(.network(["abroad"]), over: 4) { $0.isRoaming = nil } == .unknown)
        #expect(answer(.network(["abroad"])) { $0.isRoaming = nil } == .no)
        #expect(answer(.network(["home", "lte"]), over: 4) == .yes)
        #expect(answer(.network(["lte"])) { $0.reachability = .unseen("no netlink") } == .unknown)
    }

    @Test("an unknown cost is what `metered_unknown` says, and without it unknown")
    func metered() {
        #expect(answer(.metered(true), over: 4) == .yes && answer(.metered(true)) == .no)
        #expect(answer(.metered(true), over: 3) { $0.links[2].ssid = nil } == .unknown)
        let allowed = answer(.metered(true), over: 3) { ($0.links[2].ssid, $0.unknownCost) = (nil, .allow) }
        #expect(allowed == .no)
        let strict = answer(.metered(true), over: 3) { ($0.links[2].ssid, $0.unknownCost) = (nil, .metered) }
        #expect(strict == .yes)
        #expect(answer(.metered(true)) { $0.reachability = .local } == .no)
        #expect(answer(.metered(true)) { $0.reachability = .mount(.metered, text: "a folder") } == .yes)
        #expect(answer(.interface(["eth0"])) { $0.reachability = .mount(.metered, text: "a folder") } == .unknown)
    }

    @Test("without a battery, a machine is not on it and not below any level; a silent battery may be")
    func power() {
        #expect(answer(.onBattery(true)) == .no && answer(.batteryBelow(50)) == .no)
        func battery(_ percent: Int?) -> (inout ConditionScene) -> Void {
            { $0.power = Power(isOnBattery: true, percent: percent, since: $0.now) }
        }
        #expect(answer(.onBattery(true), battery(40)) == .yes && answer(.batteryBelow(50), battery(40)) == .yes)
        #expect(answer(.batteryBelow(40), battery(40)) == .no)
        #expect(answer(.batteryBelow(40), battery(nil)) == .unknown)
    }

    @Test("folders and destinations are those of the upload")
    func classes() {
        #expect(answer(.folder(["garden", "door"])) == .yes && answer(.folder(["garden"])) == .no)
        #expect(answer(.destination(["nas"])) == .yes && answer(.destination(["cloud"])) == .no)
    }

    @Test("a clock that is not set is the hold `clock`, where the time decides")
    func clock() {
        let night = Condition.fact(.between([Window(from: 22 * 60, to: 6 * 60)]))
        var scene = ConditionScene()
        scene.knowsTime = false
        for condition in [night, .not(night)] {
            scene.rules = [PauseRule(name: "night", when: condition)]
            #expect(scene.holds.map(\.kind) == [.clock])
        }
        // The other half of the condition is known to be false.
        scene.rules = [PauseRule(name: "night", when: .all([night, .fact(.interface(["wwan*"]))]))]
        #expect(scene.goes)
    }

    @Test("a hold names its rule, the place and the end; an unknown fact is named with its remedy")
    func words() throws {
        var scene = ConditionScene()
        let night = Condition.fact(.between([Window(from: 22 * 60, to: 6 * 60)]))
        scene.reachability = .over([NetworkPath(link: 4)])
        scene.rules = [
            PauseRule(
                name: "lte-by-night",
                when: .all([.fact(.network(["lte"])), .not(.any([night, .fact(.folder(["garden"]))]))]),
                place: "sluice.yaml:12")
        ]
        let hold = try #require(scene.holds.first)
        #expect(hold.kind == .rule && hold.rule?.name == "lte-by-night" && hold.until == utc("2026-11-25T22:00:00"))
        #expect(
            hold.text
                == "the rule `lte-by-night` of policy (sluice.yaml:12) pauses uploads while the network is lte, and "
                + "not (it is between 22:00-06:00, or the folder is garden)")
        scene.rules = [PauseRule(name: "abroad", when: .fact(.roaming(true)))]
        scene.isRoaming = nil
        let unknown = try #require(scene.holds.first)
        #expect(unknown.until == nil)
        #expect(
            unknown.text
                == "the rule `abroad` of policy pauses uploads while the modem roams; it is unknown whether wwan0 "
                + "roams, and a rule applies then: ModemManager reports it")
    }

    @Test("a route that no rule pauses is taken before the kernel's own, if both are equal")
    func routes() {
        var scene = ConditionScene()
        scene.reachability = .over([NetworkPath(link: 4), NetworkPath(link: 2)])
        scene.rules = [PauseRule(name: "lte", when: .fact(.network(["lte"])))]
        guard case .open(let route) = scene.route else {
            Issue.record("nothing goes: \(scene.route)")
            return
        }
        #expect(route.interface == "eth0")
        scene.rules = [PauseRule(name: "both", when: .fact(.interface(["wwan*", "eth*"])))]
        #expect(scene.holds.map(\.rule?.name) == ["both"])
    }
}
