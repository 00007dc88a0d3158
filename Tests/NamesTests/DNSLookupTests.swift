import Core
import Testing

@testable import Names

@Suite("DNS queries")
struct DNSLookupTests {
    @Test("without a permitted server only files are used, and the message names the servers")
    func forbidden() async throws {
        let server = try #require(IPAddress("192.0.2.53"))
        let error = await #expect(throws: DNSLookup.LookupError.self) {
            try await DNSLookup.resolve("nas.example.test", NameServers(forbidden: [server]))
        }
        #expect(
            error
                == .notAllowed(
                    "nas.example.test cannot be looked up: no allowed network leads to the DNS server 192.0.2.53"))
        let own = try await DNSLookup.resolve("localhost", NameServers(forbidden: [server]))
        #expect(own.addresses.allSatisfy { $0.isLoopback } && !own.addresses.isEmpty && own.spent == .none)
    }

    @Test("a query to a local resolver counts as four, answered or not")
    func local() async throws {
        let known = try await DNSLookup.resolve("localhost", NameServers(hasLocal: true))
        #expect(known.spent.bytes == 4 * Int64(9 + 77))
        let error = await #expect(throws: DNSLookup.LookupError.self) {
            try await DNSLookup.resolve("no such name", NameServers(hasLocal: true))
        }
        #expect(error?.spent.bytes == 4 * Int64(12 + 77))
    }
}
