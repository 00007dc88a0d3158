import API
import Store
import TestKit
import Testing

@testable import Config
@testable import Core
@testable import Daemon

@Suite("Metrics of one moment, without a daemon")
struct MetricsPartsTests {
    private let clocks = ManualClocks()

    private func number(_ view: MetricsView, _ metric: Metric, _ labels: String...) -> Int64? {
        guard case .whole(let number)? = view.numbers[metric]?[labels] else { return nil }
        return number
    }

    @Test("the uploads of held classes are added up by destination and hold")
    func held() throws {
        let now = try PolicySnapshot.given(clocks) { _ in
        } facts: { facts in
            facts.pauses.replace([PauseRecord(scope: .all, name: "", since: clocks.wall(), until: nil)])
        }
        var view = MetricsView()
        view.enter(
            now.held(
                [
                    (UploadClass(folder: "cam", destination: "nas"), 2),
                    (UploadClass(folder: "door", destination: "nas"), 3),
                ], standby: [:]))
        #expect(number(view, .held, "nas", "global") == 5)
    }

    @Test("uploads that rules hold are added up by rule, and an end is shown if the time ends it for all")
    func rules() {
        let end = clocks.wall().advanced(by: .seconds(60))
        func hold(_ name: String, until: WallTime?, _ facts: [String] = []) -> Hold {
            Hold(
                .rule, since: clocks.wall(), until: until,
                rule: HoldingRule(name: name, place: "sluice.yaml:12", facts: facts, isFixed: false), text: "")
        }
        func held(_ folder: String, _ count: Int, _ rules: [Hold]) -> HeldUploads {
            HeldUploads(
                upload: UploadClass(folder: folder, destination: "nas"), count: count, hold: rules[0], rules: rules)
        }
        var view = MetricsView()
        view.enter([
            held("cam", 2, [hold("night", until: end), hold("lte", until: end, ["network", "lan"])]),
            held(
                "door", 3,
                [hold("night", until: end.advanced(by: .seconds(5))), hold("lte", until: nil, ["network", "lan"])]),
        ])
        #expect(number(view, .ruleHeld, "nas", "night", "sluice.yaml", "12", "") == 5)
        #expect(number(view, .ruleHeld, "nas", "lte", "sluice.yaml", "12", "network,lan") == 5)
        let last = Double(end.milliseconds + 5000) / 1000
        #expect(view.numbers[.ruleHoldEnd] == [["nas", "night", "sluice.yaml", "12"]: .real(last)])
    }

    @Test("a destination shows whether it is open, its free space, and the cost of a known route")
    func destinations() throws {
        let route = Admission.Route(
            interface: "wwan0", cost: .metered, countsAsMetered: true, ledger: .metered, reason: "", remedy: nil)
        let now = try PolicySnapshot.given(clocks) { _ in
        } facts: { facts in
            _ = facts.network.record(
                NetworkMonitor.Reached(reachability: .local, route: .open(route), since: clocks.wall()), for: "nas")
            facts.destinations.capacityAnswered(
                "nas", RemoteSpace(free: 10), underWay: [], now: clocks.wall(), monotonic: clocks.monotonic(),
                lasting: .seconds(60))
        }
        var view = MetricsView()
        view.enterDestinations(now)
        #expect(number(view, .destinationOpen, "nas") == 1)
        #expect(number(view, .remoteFree, "nas") == 10)
        #expect(number(view, .metered, "nas", "wwan0") == 1)
        view = MetricsView()
        view.enterDestinations(try PolicySnapshot.given(clocks))
        #expect(view.numbers[.metered] == nil && view.numbers[.remoteFree] == nil)
    }

    @Test("the notices of a hook count as held only while some wait")
    func hooks() {
        var queue = HookQueue(Hook(name: "h", target: .command(CommandHook(["/x"]))))
        let hold = Hold(.backoff, since: clocks.wall(), text: "it failed")
        var view = MetricsView()
        view.enter(queue, hold)
        #expect(number(view, .hookWaiting, "h") == 0)
        #expect(view.numbers[.hookHeld] == nil && view.numbers[.hookOldest] == nil)
        queue.add([
            .init(
                seq: 1, at: clocks.wall(), upload: nil, tries: 0, queuedAt: clocks.monotonic(),
                due: clocks.monotonic())
        ])
        view.enter(queue, hold)
        #expect(number(view, .hookWaiting, "h") == 1)
        #expect(number(view, .hookHeld, "h", "backoff") == 1)
        #expect(view.numbers[.hookOldest]?.count == 1)
    }
}
