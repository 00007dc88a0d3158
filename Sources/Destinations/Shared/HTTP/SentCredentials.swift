internal import Core
internal import Synchronization
internal import Transport

/// The values of credentials that have left this process, with their parts (``SecretParts``).
final class SentCredentials: Sendable {
    /// Values that servers gave for one upload each; the oldest are dropped.
    private let passing = Mutex<[Set<String>]>([])
    /// Credentials of the configuration.
    private let configured = KnownSecrets()
    private static let maxPassing = 128
    private static let minIDLength = 16
    /// Of these every spelling is hidden.
    let addresses = AddressCover()
    var values: [String] { configured.spellings + passing.withLock { $0.flatMap { $0 } } }
    /// Of these a long part is hidden too. Others are addresses, whose beginnings are in many messages.
    var lasting: [String] { configured.spellings }

    func remember(_ value: String) { configured.remember(value) }

    /// Remembers the value of a header.
    func remember(header name: String, _ value: String) { configured.remember(header: name, value) }

    func rememberForNow(_ value: String) { keep(Set(KnownSecrets.spellings(value, isCookie: false))) }

    /// The same for the value of a header.
    func rememberForNow(header name: String, _ value: String) {
        keep(Set(KnownSecrets.spellings(value, isCookie: KnownSecrets.isCookie(header: name))))
    }

    /// Remembers the address of a request, which may give a right to an upload: the whole of it, its path, the id at its
    /// end, and the values of its query.
    ///
    /// - Parameter homes: The configured addresses. Of these only the values of the query are secrets.
    func remember(address text: String, homes: [WebAddress]) {
        let address = WebAddress(text)
        var secrets = (address.query ?? "").split(separator: "&").map { pair in
            String(pair.firstIndex(of: "=").map { pair[pair.index(after: $0)...] } ?? pair)
        }
        if !homes.contains(where: { $0.origin == address.origin && $0.isOfSamePath(as: address) }) {
            secrets += [text, address.path]
            if let query = address.query { secrets.append("\(address.path)?\(query)") }
            // A word of a path is shorter, or has no digit.
            let id = address.path.split(separator: "/").last ?? ""
            if id.utf8.count >= Self.minIDLength, id.utf8.contains(where: \.isDigit) { secrets.append(String(id)) }
        }
        addresses.remember(secrets)
        let decoded = secrets.compactMap { PercentCoding.text(decoding: $0) }
        keep(Set((secrets + decoded).filter { $0.utf8.count >= KnownSecrets.minLength }))
    }

    private func keep(_ values: Set<String>) {
        if values.isEmpty { return }
        passing.withLock { passing in
            // A value that is still in use is among the newest.
            passing.removeAll { $0 == values }
            passing.append(values)
            passing.removeFirst(max(0, passing.count - Self.maxPassing))
        }
    }
}

extension WebAddress {
    /// A slash at the end makes no difference.
    fileprivate func isOfSamePath(as other: WebAddress) -> Bool {
        func bare(_ path: String) -> Substring { path.hasSuffix("/") ? path.dropLast() : path[...] }
        return bare(path) == bare(other.path)
    }
}
