import Core
import Testing

@testable import Config

@Suite("`requests` and `dscp` of a destination")
struct RequestKeysTests {
    private func text(_ keys: String, type: String = "tus", _ address: String = "url: \"https://nas.example/\"")
        -> String
    {
        """
        version: 1
        destinations:
          nas: {type: \(type), \(address), \(keys)}
        """
    }

    @Test("are read and printed")
    func values() throws {
        let policy = try #require(try read(text("requests: 100/min, dscp: CS1")).settings.destinations.first).policy
        #expect(policy.requests == RequestRate(count: 100, per: .minute))
        #expect(policy.trafficClass?.codePoint == 8)
        #expect(policy.requests?.written == "100/min" && policy.trafficClass?.written == "cs1")
    }

    @Test(
        "a mistake names the place, the problem and the remedy",
        arguments: [
            (
                "requests: 5",
                "a.yaml:3:59: destinations.nas.requests: takes a number of requests and a time, like `5/s`"
            ),
            ("requests: 5/d", "`d` is not a unit; there are: s, min, h"),
            ("requests: 0/s", "takes a number of requests from 1 to 9999999, not `0`"),
            ("requests: 1.5/s", "takes a number of requests from 1 to 9999999, not `1.5`"),
            ("dscp: cs8", "takes a code point, like `cs1` or `le`, or a number from 0 to 63, not `cs8`"),
            ("dscp: 64", "takes a code point"),
        ])
    func mistakes(_ keys: String, _ message: String) {
        let answer = objections(to: text(keys))
        #expect(answer.contains(message), "\(answer)")
    }

    @Test("are a mistake for a directory", arguments: ["requests: 5/s", "dscp: cs1"])
    func directory(_ keys: String) {
        let answer = objections(to: text(keys, type: "directory", "path: /srv/archive"))
        #expect(answer.contains("files are copied to a `directory` without any; take it out"), "\(answer)")
    }
}
