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

    @Test("servers that refuse `Expect` are stored with the time, and asked again after 30 days")
    func originsWithoutExpect() {
        var facts = StoredFacts()
        let now = WallTime(milliseconds: 1_795_659_060_000)
        let (recent, old) = (now.advanced(by: .seconds(-86_400)), now.advanced(by: .seconds(-31 * 86_400)))
        #expect(facts.learn(["http://a:80"], at: now) == nil, "the stored ones were not read")
        let stored = ["http://a:80": recent, "http://b:80": old, "http://c:80": now.advanced(by: .seconds(1))]
        #expect(facts.recall(originsWithoutExpect: stored, at: now) == ["http://a:80"])
        #expect(facts.knowsOriginsWithoutExpect && facts.learn(["http://a:80"], at: now) == nil)
        let next = facts.learn(["http://a:80", "http://b:80"], at: now)
        #expect(next == ["http://a:80": recent, "http://b:80": now])
        #expect(facts.learn(["http://a:80", "http://b:80"], at: now) == nil)
    }
}
