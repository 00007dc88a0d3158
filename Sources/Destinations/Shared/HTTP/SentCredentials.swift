internal import Core
internal import Synchronization
internal import Transport

/// The values of credentials that have left this process, with their parts (``SecretParts``).
final class SentCredentials: Sendable {
    private struct Known {
        /// Credentials of the configuration. Each request adds the present ones; a command may make a new one every
        /// hour.
        var lasting: [Credential] = []
        /// Values that servers gave for one upload each; the oldest are dropped.
        var passing: [Set<String>] = []
    }

    private struct Credential {
        let value: String
        let spellings: [String]
    }

    private static let maxLasting = 128
    private static let maxPassing = 128
    /// Shorter values and parts are not hidden: they may be words of any message. (bytes)
    private static let minLength = 8
    private static let minIDLength = 16
    private let known = Mutex(Known())
    /// Of these every spelling is hidden.
    let addresses = AddressCover()
    var values: [String] { known.withLock { known in known.lasting.flatMap { $0.spellings } + known.passing.joined() } }
    /// Of these a long part is hidden too. Others are addresses, whose beginnings are in many messages.
    var lasting: [String] { known.withLock { known in known.lasting.flatMap { $0.spellings } } }

    func remember(_ value: String) { keep(value, isCookie: false) }

    /// Remembers the value of a header.
    func remember(header name: String, _ value: String) { keep(value, isCookie: Self.isCookie(name)) }

    private func keep(_ value: String, isCookie: Bool) {
        known.withLock { known in
            // A value that is still in use stays among the newest.
            if known.lasting.suffix(Self.maxLasting / 2).contains(where: { $0.value == value }) { return }
            let spellings = Self.spellings(value, isCookie: isCookie)
            known.lasting.removeAll { $0.value == value }
            if !spellings.isEmpty { known.lasting.append(Credential(value: value, spellings: spellings)) }
            known.lasting.removeFirst(max(0, known.lasting.count - Self.maxLasting))
        }
    }

    func rememberForNow(_ value: String) { keep(passing: Set(Self.spellings(value, isCookie: false))) }

    /// The same for the value of a header.
    func rememberForNow(header name: String, _ value: String) {
        keep(passing: Set(Self.spellings(value, isCookie: Self.isCookie(name))))
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
        keep(passing: Set((secrets + decoded).filter { $0.utf8.count >= Self.minLength }))
    }

    private func keep(passing values: Set<String>) {
        if values.isEmpty { return }
        known.withLock { known in
            // A value that is still in use is among the newest.
            known.passing.removeAll { $0 == values }
            known.passing.append(values)
            known.passing.removeFirst(max(0, known.passing.count - Self.maxPassing))
        }
    }

    private static func isCookie(_ header: String) -> Bool { header.lowercased() == "cookie" }

    private static func spellings(_ value: String, isCookie: Bool) -> [String] {
        SecretParts.of(value, isCookie: isCookie).filter { $0.utf8.count >= minLength }.flatMap { part in
            // Base 64 without padding also matches the padded form.
            let coded = base64(Array(part.utf8)).replacing("=", with: "")
            let inAddresses = coded.replacing("+", with: "-").replacing("/", with: "_")
            return [part, coded] + (inAddresses == coded ? [] : [inAddresses])
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
