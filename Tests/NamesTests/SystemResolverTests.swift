import Core
import Testing

@testable import Names

@Suite("Host names")
struct SystemResolverTests {
    @Test("an address resolves to itself, and this machine knows its own name")
    func known() async throws {
        #expect(try await SystemResolver.addresses(of: "192.0.2.7") == [IPAddress("192.0.2.7")].compactMap { $0 })
        #expect(try await SystemResolver.addresses(of: "2001:db8::7").map(\.description) == ["2001:db8::7"])
        let own = try await SystemResolver.addresses(of: "localhost")
        #expect(!own.isEmpty && own.allSatisfy(\.isLoopback))
    }

    /// The name is too long to be sent to any server (RFC 1035, section 2.3.4).
    @Test("an impossible name is unknown, with a reason")
    func unknown() async {
        let name = String(repeating: "a", count: 64) + ".invalid"
        let error = await #expect(throws: SystemResolver.UnknownHostError.self) {
            try await SystemResolver.addresses(of: name)
        }
        #expect(error?.description.hasPrefix(name + ": ") == true)
    }
}
