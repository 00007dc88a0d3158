import API
import Core
import Testing

@testable import Daemon

@Suite("Options of requests for new uploads")
struct RequestChecksTests {
    private static func checks() async throws -> RequestChecks {
        RequestChecks(configuration: try await ComponentScene().parts.runtime)
    }

    @Test("an unknown destination is refused")
    func destination() async throws {
        let checks = try await Self.checks()
        try checks.checkOptions(to: ["nas"], key: nil, context: [:])
        #expect(throws: Refusal.self) { try checks.checkOptions(to: ["nass"], key: nil, context: [:]) }
    }

    @Test("a key has 1 to 1024 bytes", arguments: [(0, false), (1, true), (1024, true), (1025, false)])
    func key(_ length: Int, _ isAccepted: Bool) async throws {
        let checks = try await Self.checks()
        let key = String(repeating: "k", count: length)
        let isRefused = (try? checks.checkOptions(to: [], key: key, context: [:])) == nil
        #expect(isRefused != isAccepted)
    }

    @Test(
        "malformed headers are refused before the destination checks them",
        arguments: [
            ["X Y": "1"], ["X-Y": "a\u{1}"], ["X-Y": " a"], ["X-Y": String(repeating: "a", count: 4097)],
            ["x-y": "1", "X-Y": "2"], Dictionary(uniqueKeysWithValues: (0..<17).map { ("X-\($0)", "1") }),
        ])
    func headers(_ headers: [String: String]) async throws {
        let checks = try await Self.checks()
        #expect {
            try checks.checkRequests(headers, url: nil, for: [])
        } throws: { ($0 as? Refusal)?.code == .badRequest }
    }

    @Test("a destination may refuse a header and an address")
    func objections() async throws {
        let checks = try await Self.checks()
        try checks.checkRequests(["X-Y": "1"], url: nil, for: [])
        #expect(throws: Refusal.self) { try checks.checkRequests(["X-Y": "1"], url: nil, for: ["nas"]) }
        #expect(throws: Refusal.self) { try checks.checkRequests([:], url: "http://a/", for: ["nas"]) }
        #expect(throws: Refusal.self) { try checks.checkRequests([:], url: nil, uploadURL: "http://a/", for: ["nas"]) }
    }

    @Test("the address of an upload that exists is for one destination, and excludes that of a creation")
    func given() async throws {
        let checks = try await Self.checks()
        #expect(try checks.checkRequests([:], url: nil, uploadURL: "http://a/u", for: ["b"]) == .upload("http://a/u"))
        #expect(try checks.checkRequests([:], url: "http://a/u", for: ["b"]) == .creation("http://a/u"))
        for (url, destinations) in [(nil, ["b", "c"]), ("http://a/", ["b"])] {
            #expect {
                try checks.checkRequests([:], url: url, uploadURL: "http://a/secret", for: destinations)
            } throws: {
                guard let refusal = $0 as? Refusal else { return false }
                return refusal.code == .badRequest && !refusal.message.contains("secret")
            }
        }
    }
}
