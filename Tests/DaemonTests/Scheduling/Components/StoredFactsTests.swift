import Core
import Testing

@testable import Daemon

@Suite("StoredFacts")
struct StoredFactsTests {
    private let now = MonotonicTime(nanoseconds: 1_000_000_000)

    @Test("a request size is read once for each generation, and stored where it differs")
    func requestSizes() {
        var facts = StoredFacts()
        #expect(!facts.knowsRequestSize(of: "nas", generation: 0))
        facts.set(requestSize: nil, of: "nas", generation: 0)
        #expect(facts.knowsRequestSize(of: "nas", generation: 0))
        #expect(facts.shouldStore(requestSize: nil, of: "nas") == false)
        #expect(!facts.knowsRequestSize(of: "nas", generation: 1))
    }

    @Test("a speed is stored at most once a minute, and where it changed by more than a tenth")
    func speeds() {
        var facts = StoredFacts()
        #expect(facts.shouldStore(speed: 1000, of: "nas", at: now) == true)
        #expect(facts.shouldStore(speed: 2000, of: "nas", at: now.advanced(by: .seconds(59))) == false)
        #expect(facts.shouldStore(speed: 1050, of: "nas", at: now.advanced(by: .seconds(61))) == false)
        #expect(facts.shouldStore(speed: 2000, of: "nas", at: now.advanced(by: .seconds(61))) == true)
    }
}
