import Core
import Testing

@testable import Daemon

@Suite("DestinationTracker")
struct DestinationTrackerTests {
    private let wall = WallTime(milliseconds: 1_000_000)
    private let now = MonotonicTime(nanoseconds: 1_000_000_000)
    private let retry = Backoff(first: .seconds(10), ceiling: .seconds(1000))

    private func fault(_ remedy: Remedy, code: Failure.Code = .noReply, isUp: Bool = false) -> DestinationTracker.Fault
    {
        DestinationTracker.Fault(
            failure: Failure(.local, code: code, message: "no answer", at: wall, retryable: true), remedy: remedy,
            isUp: isUp, retry: retry)
    }

    @Test("a failure holds the destination until the next probe, and is logged once for each code")
    func held() {
        var destinations = DestinationTracker()
        let first = destinations.hold("nas", fault(.holdDestination(after: .seconds(30))), now: wall, monotonic: now)
        #expect(first?.kind == .destination && first?.wait == .seconds(30) && first?.isNew == true)
        let again = destinations.hold("nas", fault(.holdDestination(after: .seconds(30))), now: wall, monotonic: now)
        #expect(again?.isNew == false)
        let other = destinations.hold(
            "nas", fault(.holdDestination(after: .seconds(30)), code: .http(503)), now: wall, monotonic: now)
        #expect(other?.isNew == true)
        #expect(destinations.probes == [now.advanced(by: .seconds(30))])
        destinations.succeeded("nas")
        #expect(destinations.trouble(of: "nas") == nil)
    }

    @Test("the destination is named as the one that set the time of the next attempt only where it did")
    func reasonOfTime() {
        var fault = fault(.holdDestination(after: .seconds(30)))
        #expect(fault.rule(of: "nas", []) == "the destination set the time of the next attempt")
        fault.failure.explainsWait = true
        #expect(fault.rule(of: "nas", []) == nil)
    }

    @Test("a failure of one upload holds no destination")
    func ownFault() {
        var destinations = DestinationTracker()
        #expect(destinations.hold("nas", fault(.retry(after: nil)), now: wall, monotonic: now) == nil)
        #expect(destinations.trouble(of: "nas") == nil)
    }

    @Test("changed settings start a new generation and clear the trouble of that destination only")
    func changed() {
        var destinations = DestinationTracker()
        for name in ["nas", "cloud"] {
            _ = destinations.hold(name, fault(.holdDestination(after: nil)), now: wall, monotonic: now)
        }
        let before = destinations.generation(of: "nas")
        destinations.apply(changed: ["nas"], present: ["nas", "cloud"])
        #expect(destinations.generation(of: "nas") != before)
        #expect(destinations.generation(of: "cloud") == 0)
        #expect(destinations.trouble(of: "nas") == nil)
        #expect(destinations.trouble(of: "cloud") != nil)
    }

    @Test("a refused credential is tried again at once after a reload")
    func refused() {
        var destinations = DestinationTracker()
        _ = destinations.hold("nas", fault(.authenticate), now: wall, monotonic: now)
        _ = destinations.hold("cloud", fault(.holdDestination(after: nil)), now: wall, monotonic: now)
        #expect(!destinations.health(of: "nas").mayProbe(at: now))
        #expect(destinations.reconsiderRefused(at: now) == ["nas"])
        #expect(destinations.health(of: "nas").mayProbe(at: now))
        #expect(!destinations.health(of: "cloud").mayProbe(at: now))
    }

    @Test("uploads that a person wants to be tried are requested while the destination is held, until it works")
    func requested() {
        var destinations = DestinationTracker()
        destinations.request(["a"], at: "nas", now: now)
        #expect(destinations.requested.isEmpty)
        _ = destinations.hold("nas", fault(.authenticate), now: wall, monotonic: now)
        #expect(!destinations.health(of: "nas").mayProbe(at: now))
        destinations.request(["b", "c"], at: "nas", now: now)
        #expect(destinations.health(of: "nas").mayProbe(at: now))
        #expect(destinations.requested.map(\.upload) == ["b", "c"])
        destinations.endRequest(for: "b", at: "nas")
        #expect(destinations.requested.map(\.upload) == ["c"])
        destinations.succeeded("nas")
        _ = destinations.hold("nas", fault(.authenticate), now: wall, monotonic: now)
        #expect(destinations.requested.isEmpty)
    }

    @Test("a full destination is not tried with a requested upload, whose bytes it may have no space for")
    func requestedWhileFull() {
        var destinations = DestinationTracker()
        _ = destinations.hold("nas", fault(.outOfSpace(after: nil)), now: wall, monotonic: now)
        destinations.request(["a"], at: "nas", now: now)
        #expect(destinations.trouble(of: "nas")?.kind == .quota && destinations.requested.isEmpty)
    }
}
