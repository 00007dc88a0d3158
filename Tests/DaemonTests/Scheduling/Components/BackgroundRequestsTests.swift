import Core
import Synchronization
import Testing

@testable import Daemon

@Suite("Requests besides transfers")
struct BackgroundRequestsTests {
    private func hold(_ text: String) -> Hold { Hold(.metered, since: WallTime(milliseconds: 1), text: text) }

    private func request(
        _ account: String, _ purpose: RequestPurpose = .removal
    ) -> BackgroundRequests.BackgroundRequest {
        BackgroundRequests.BackgroundRequest(account: account, purpose: purpose, route: .local, stop: {})
    }

    @Test("a request that policy forbids is stopped once, and its end reports the reason")
    func forbidden() throws {
        var requests = BackgroundRequests()
        let (first, second) = (requests.begin(request("nas")), requests.begin(request("hook door", .notice(.policy))))
        let stopped = requests.forbid { $0.account == "nas" ? hold("costs") : nil }
        #expect(stopped.map(\.account) == ["nas"])
        #expect(stopped.first?.hold?.text == "costs")
        let again = requests.forbid { $0.account == "nas" ? hold("costs") : nil }
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
        ])
    func stopped(_ purpose: RequestPurpose, waits: Bool) {
        var requests = BackgroundRequests()
        let number = requests.begin(request("nas", purpose))
        _ = requests.forbid { _ in hold("paused") }
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
        requests.open { _ in false }
        #expect(requests.closed == ["nas"])
        #expect(requests.takeChanges() == [])
        requests.open { $0 == "nas" }
        #expect(requests.closed.isEmpty)
        #expect(requests.takeChanges() == [.removals, .notices])
        requests.open { _ in true }
        #expect(requests.takeChanges() == [])
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
