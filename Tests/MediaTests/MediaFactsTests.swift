import Core
import Linux
import TestKit
import Testing

@testable import Media

@Suite("MediaFacts")
struct MediaFactsTests {
    @Test("a model that starts with its make is shown once")
    func camera() {
        #expect(MediaFacts(make: "Acme", model: "ACME 5").camera == "ACME 5")
        #expect(MediaFacts(make: "Acme", model: "Five").camera == "Acme Five")
        #expect(MediaFacts(make: "Acme").camera == "Acme")
        #expect(MediaFacts(model: "Five").camera == "Five")
        #expect(MediaFacts().camera == nil)
    }

    @Test(
        "a length fits into a name",
        arguments: zip([0, 999, 42_000, 185_000, 3_723_999], ["0s", "0s", "42s", "3m05s", "1h02m03s"]))
    func lasting(_ milliseconds: Int64, _ text: String) {
        #expect(MediaFacts(duration: milliseconds).durationText == text)
    }
}
