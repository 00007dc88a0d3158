import Core
import Synchronization
import Testing

@testable import Names

@Suite("Address cache")
struct AddressCacheTests {
    private let address = IPAddress("192.0.2.7")

    @Test("a name is resolved once, charged once, and resolved again on another network")
    func known() async throws {
        let asked = Atomic(0)
        let addresses = [try #require(address)]
        let book = AddressCache { _, _ in
            _ = asked.add(1, ordering: .relaxed)
            return DNSLookup.Answer(addresses: addresses, spent: Spending(bytes: 150, received: 240))
        }
        for _ in 1...3 { #expect(try await book.addresses(of: "a.test", NameServers()) == addresses) }
        #expect(asked.load(ordering: .relaxed) == 1)
        #expect(book.removeOwed(for: "a.test") == Spending(bytes: 150, received: 240))
        #expect(book.removeOwed(for: "a.test") == .none)
        book.forget()
        _ = try await book.addresses(of: "a.test", NameServers())
        _ = try await book.addresses(of: "a.test", NameServers(), isFresh: true)
        #expect(asked.load(ordering: .relaxed) == 3)
        #expect(book.removeOwed(for: "a.test") == Spending(bytes: 300, received: 480))
    }

    @Test("failed queries are charged too")
    func inVain() async throws {
        let book = AddressCache { _, _ in throw DNSLookup.LookupError.unknown("nobody knows", Spending(bytes: 90)) }
        await #expect(throws: DNSLookup.LookupError.self) { try await book.addresses(of: "a.test", NameServers()) }
        #expect(book.removeOwed(for: "a.test") == Spending(bytes: 90))
    }

    @Test("interrupted queries are charged too")
    func brokenOff() async throws {
        let book = AddressCache { _, _ in throw DNSLookup.LookupError.cancelled(Spending(bytes: 90)) }
        await #expect(throws: CancellationError.self) { try await book.addresses(of: "a.test", NameServers()) }
        #expect(book.removeOwed(for: "a.test") == Spending(bytes: 90))
    }
}
