import Core
import Linux
import Testing

@testable import Daemon

@Suite("Network monitor")
struct NetworkMonitorTests {
    private func reached(_ reachability: Reachability, _ route: Admission.RouteDecision) -> NetworkMonitor.Reached {
        NetworkMonitor.Reached(reachability: reachability, route: route, since: WallTime(milliseconds: 1))
    }

    private func route(_ interface: String?) -> Admission.Route {
        var route = Admission.Route.any
        route.interface = interface
        return route
    }

    @Test("an inspection requested during another one follows it, once")
    func again() {
        var network = NetworkMonitor()
        #expect(network.beginInspection() == true)
        network.beginRound()
        #expect(network.beginInspection() == false)
        #expect(network.beginInspection() == false)
        #expect(network.endRound() == true)
        network.beginRound()
        #expect(network.endRound() == false)
        #expect(network.beginInspection() == true)
    }

    @Test("improvements that arrive together are inspected together")
    func improvements() {
        var network = NetworkMonitor()
        #expect(network.noteImprovement() == true)
        #expect(network.noteImprovement() == false)
        _ = network.beginInspection()
        #expect(network.noteImprovement() == true)
    }

    @Test("the first route is logged but no change, another route is both, the same route is neither")
    func changes() {
        var network = NetworkMonitor()
        let first = network.record(reached(.any, .open(route("eth0"))), for: "nas")
        #expect(first.isNew && !first.isChange)
        let same = network.record(reached(.local, .open(route("eth0"))), for: "nas")
        #expect(!same.isNew && !same.isChange)
        #expect(network.routes["nas"]?.reachability == .local)
        let other = network.record(reached(.any, .open(route("wwan0"))), for: "nas")
        #expect(other.isNew && other.isChange)
    }

    @Test("the first examination of the networks is no change")
    func firstExamination() {
        var network = NetworkMonitor()
        let hold = Hold(.metered, since: WallTime(milliseconds: 0), text: Admission.notExamined)
        _ = network.record(reached(.unseen(Admission.notExamined), .closed([hold])), for: "nas")
        let first = network.record(reached(.any, .open(route("eth0"))), for: "nas")
        #expect(first.isNew && !first.isChange)
        let failed = network.record(reached(.unseen("no permission"), .closed([hold])), for: "nas")
        #expect(failed.isNew && failed.isChange)
        let again = network.record(reached(.any, .open(route("eth0"))), for: "nas")
        #expect(again.isNew && !again.isChange)
    }

    @Test("an interface that was used and no longer has a route is closed once")
    func unapproved() {
        var network = NetworkMonitor()
        _ = network.record(reached(.any, .open(route("eth0"))), for: "nas")
        network.recordUse("eth0")
        #expect(network.unapproved.isEmpty)
        _ = network.record(reached(.any, .open(route("wlan0"))), for: "nas")
        #expect(network.unapproved == ["eth0"])
        network.close(["eth0"], by: Task {})
        #expect(network.unapproved.isEmpty)
    }

    @Test("lost addresses are those that existed before and no longer exist")
    func addresses() throws {
        var network = NetworkMonitor()
        let (one, two) = (try #require(IPAddress("192.0.2.1")), try #require(IPAddress("192.0.2.2")))
        let none = network.set(addresses: [one, two])
        #expect(none.isEmpty)
        #expect(network.set(addresses: [two]) == [one])
    }

    @Test("an unfinished inspection is repeated soon, but a limited number of times")
    func unfinished() {
        var network = NetworkMonitor()
        var networkState = NetworkState()
        networkState.isUnfinished = true
        var repeated = 0
        while network.finished(networkState).soon, repeated < 1000 { repeated += 1 }
        #expect(repeated == 50)
        networkState.isUnfinished = false
        let calm = network.finished(networkState)
        #expect(!calm.soon)
        networkState.isUnfinished = true
        let soon = network.finished(networkState)
        #expect(soon.soon)
    }
}
