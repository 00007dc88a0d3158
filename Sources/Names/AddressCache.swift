package import Core
internal import Synchronization

/// The addresses of names that were looked up lately, and the traffic of the look-ups that was not charged to a request
/// yet.
package final class AddressCache: Sendable {
    package typealias Resolver = @Sendable (String, NameServers) async throws -> DNSLookup.Answer

    private struct Entry {
        var addresses: [IPAddress] = []
        var foundAt: ContinuousClock.Instant?
        var owed = Spending.none
    }

    private let entries = Mutex<[String: Entry]>([:])
    private let resolve: Resolver
    /// As long as libcurl trusts its own answers.
    private static let timeToLive: Duration = .seconds(60)

    /// - Parameter ask: Finds the addresses of a name.
    package init(resolver ask: @escaping Resolver = DNSLookup.resolve) { self.resolve = ask }

    /// - Parameters:
    ///   - host: A name.
    ///   - isFresh: Asks even if the addresses are known.
    /// - Throws: ``DNSLookup/LookupError``, `CancellationError`, or `SystemError` when the question cannot be sent for
    ///   lack of resources.
    package func addresses(of host: String, _ servers: NameServers, isFresh: Bool = false) async throws -> [IPAddress] {
        if !isFresh {
            let known = entries.withLock { $0[host] }
            if let known, let foundAt = known.foundAt, foundAt.duration(to: .now) < Self.timeToLive {
                return known.addresses
            }
        }
        do {
            let answer = try await resolve(host, servers)
            entries.withLock { entries in
                var entry = entries[host] ?? Entry()
                (entry.addresses, entry.foundAt) = (answer.addresses, .now)
                entry.owed += answer.spent
                entries[host] = entry
            }
            return answer.addresses
        } catch let error as DNSLookup.LookupError {
            entries.withLock { $0[host, default: Entry()].owed += error.spent }
            if case .cancelled = error { throw CancellationError() }
            throw error
        }
    }

    /// The uncharged traffic of look-ups of a name; the caller must charge it.
    package func removeOwed(for host: String) -> Spending {
        entries.withLock { entries in
            defer { entries[host]?.owed = .none }
            return entries[host]?.owed ?? .none
        }
    }

    /// Forgets all names: in another network they may have other addresses.
    package func forget() {
        entries.withLock { entries in for host in entries.keys { entries[host]?.foundAt = nil } }
    }
}
