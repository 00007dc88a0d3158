import Core
import Synchronization
import Testing

@testable import Daemon

@Suite("Requests besides transfers")
struct BackgroundRequestsTests {
    private func hold(_ text: String) -> Hold { Hold(.metered, since: WallTime(milliseconds: 1), text: text) }

    @Test("a request that policy forbids is stopped once, and its end reports the reason")
    func forbidden() throws {
        var requests = BackgroundRequests()
        let (first, second) = (requests.begin("nas", stop: {}), requests.begin("hook door", stop: {}))
        let stopped = requests.forbid { $0 == "nas" ? hold("costs") : nil }
        #expect(stopped.map(\.account) == ["nas"])
        #expect(stopped.first?.hold?.text == "costs")
        let again = requests.forbid { $0 == "nas" ? hold("costs") : nil }
        #expect(again.isEmpty)
        #expect(requests.end(first)?.text == "costs")
        #expect(requests.end(second) == nil)
        #expect(requests.end(second) == nil)
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
}
