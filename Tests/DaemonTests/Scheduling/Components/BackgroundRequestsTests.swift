import Core
import Linux
import Synchronization
import Testing

@testable import Daemon

@Suite("Requests besides transfers")
struct BackgroundRequestsTests {
    private func hold(_ text: String) -> Hold { Hold(.metered, since: WallTime(milliseconds: 1), text: text) }

    private func paused(_ account: String) -> Result<AppliedRules, RequestHeldError> {
        account == "nas" ? .failure(RequestHeldError(hold: hold("costs"))) : .success(AppliedRules())
    }

    private func request(
        _ account: String, _ purpose: RequestPurpose = .removal
    ) -> BackgroundRequests.BackgroundRequest {
        BackgroundRequests.BackgroundRequest(account: account, purpose: purpose, route: .local, stop: {})
    }

    @Test("a request that policy forbids is stopped once, and its end reports the reason")
    func forbidden() throws {
        var requests = BackgroundRequests()
        let (first, second) = (requests.begin(request("nas")), requests.begin(request("hook door", .notice(.policy))))
        let stopped = requests.forbid { paused($0.account) }
        #expect(stopped.map(\.account) == ["nas"])
        #expect(stopped.first?.hold?.text == "costs")
        let again = requests.forbid { paused($0.account) }
        #expect(again.isEmpty)
        #expect(requests.end(first)?.text == "costs")
        #expect(requests.end(second) == nil)
        #expect(requests.end(second) == nil)
    }

    @Test(
        "a stopped removal or notice waits for its place to open; a question or a command does not",
        arguments: [
            (RequestPurpose.removal, true), (.notice(.policy), true), (.notice(.any), false),
            (.space(files: [FileClass(folder: "cam", mask: .unknown)]), false), (.command(.policy), false),
            (.connection(place: "nas port 80", folder: nil), false), (.program(folder: nil), true),
        ])
    func stopped(_ purpose: RequestPurpose, waits: Bool) {
        var requests = BackgroundRequests()
        let number = requests.begin(request("nas", purpose))
        _ = requests.forbid { _ in .failure(RequestHeldError(hold: hold("paused"))) }
        _ = requests.end(number)
        #expect(requests.closed == (waits ? ["nas"] : []))
        // It may be allowed again since it was stopped, so the scheduler has to decide once more.
        #expect(requests.takeChanges() == (waits ? [.scheduling] : []))
    }

    @Test("a closed place is logged once, and opens once")
    func closed() {
        var requests = BackgroundRequests()
        #expect(requests.close("nas") == true)
        #expect(requests.close("nas") == false)
        requests.open { _, _ in false }
        #expect(requests.closed == ["nas"])
        #expect(requests.takeChanges() == [])
        requests.open { account, _ in account == "nas" }
        #expect(requests.closed.isEmpty)
        #expect(requests.takeChanges() == [.removals, .notices])
        requests.open { _, _ in true }
        #expect(requests.takeChanges() == [])
    }

    @Test("an export that may run again wakes the copies")
    func exports() {
        var requests = BackgroundRequests()
        _ = requests.close("export cam", for: .program(folder: "cam"))
        requests.open { _, _ in true }
        #expect(requests.takeChanges() == [.removals, .notices, .exports])
    }

    @Test("the rules that apply now reach the requests that may continue, and no other one")
    func rules() {
        var requests = BackgroundRequests()
        _ = requests.begin(request("nas", .connection(place: "nas port 80", folder: nil)))
        _ = requests.begin(request("hook door", .connection(place: "door port 80", folder: nil)))
        var applied: [String] = []
        let stopped = requests.forbid({ paused($0.account) }, { applied.append($1.account) })
        #expect(stopped.map(\.account) == ["nas"] && applied == ["hook door"])
    }

    @Test("who waits for stopped connections waits until each has ended, and for no other request")
    func ended() async {
        var requests = BackgroundRequests()
        let gate = AsyncSignal()
        let order = Mutex<[String]>([])
        for (account, purpose) in [
            ("nas", RequestPurpose.connection(place: "nas port 80", folder: nil)), ("nas", .removal),
            ("hook door", .connection(place: "door port 80", folder: nil)),
        ] {
            var one = request(account, purpose)
            one.ended = {
                await gate.wait()
                order.withLock { $0.append("\(account) \(purpose.isConnection)") }
            }
            _ = requests.begin(one)
        }
        _ = requests.forbid { paused($0.account) }
        let waiting = Task { [requests] in await requests.connectionsStopped() }
        gate.signal()
        await waiting.value
        #expect(order.withLock { $0 } == ["nas true"])
    }

    @Test("a place is open as soon as what waited there is sent")
    func sent() {
        var requests = BackgroundRequests()
        _ = requests.close("nas")
        _ = requests.begin(request("nas", .space(files: [FileClass(folder: "cam", mask: .unknown)])))
        #expect(requests.closed == ["nas"])
        _ = requests.begin(request("nas"))
        #expect(requests.closed.isEmpty)
    }
}
