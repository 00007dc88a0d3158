internal import Synchronization

/// Values of secrets that this process has read, to hide them in texts that others wrote: a server may quote a token, and
/// a program may print its environment.
package final class KnownSecrets: Sendable {
    private struct Value {
        let text: String
        let spellings: [String]
    }

    /// Each request adds the present values; a command may make a new one every hour. The oldest are dropped.
    private static let maxValues = 256
    /// Shorter values and parts are not hidden: they may be words of any message. (bytes)
    package static let minLength = 8
    private let known = Mutex<[Value]>([])

    package init() {}

    /// The values with their parts (``SecretParts``), each also in base 64.
    package var spellings: [String] { known.withLock { known in known.flatMap { $0.spellings } } }

    package func remember(_ value: String) { keep(value, isCookie: false) }

    /// Remembers the value of a header.
    package func remember(header name: String, _ value: String) {
        keep(value, isCookie: Self.isCookie(header: name))
    }

    private func keep(_ value: String, isCookie: Bool) {
        known.withLock { known in
            // A value that is still in use stays among the newest.
            if known.suffix(Self.maxValues / 2).contains(where: { $0.text == value }) { return }
            let spellings = Self.spellings(value, isCookie: isCookie)
            known.removeAll { $0.text == value }
            if !spellings.isEmpty { known.append(Value(text: value, spellings: spellings)) }
            known.removeFirst(max(0, known.count - Self.maxValues))
        }
    }

    /// Returns `text` with every value, and every long part of one, replaced by `***`, in any encoding
    /// (``SecretEncoding``).
    package func cover(_ text: String) -> String {
        let spellings = spellings
        if spellings.isEmpty { return text }
        let covered = SecretEncoding.cover(spellings, cut: spellings, in: Array(text.utf8))
        return String(decoding: covered, as: UTF8.self)
    }

    package static func isCookie(header name: String) -> Bool { name.lowercased() == "cookie" }

    package static func spellings(_ value: String, isCookie: Bool) -> [String] {
        SecretParts.of(value, isCookie: isCookie).filter { $0.utf8.count >= minLength }.flatMap { part in
            [part] + inBase64(Array(part.utf8))
        }
    }

    /// The characters of base 64 that depend on the secret alone, wherever it begins in a longer text that was coded, such
    /// as `user:password`; with both alphabets of RFC 4648. Without padding they also match the padded form.
    private static func inBase64(_ secret: [UInt8]) -> [String] {
        var forms = [base64(secret).replacing("=", with: "")]
        for before in 0..<3 {
            let bits = 8 * (before + secret.count)
            let whole = base64(Array(repeating: 0, count: before) + secret).prefix(bits / 6)
            forms.append(String(whole.dropFirst((8 * before + 5) / 6)))
        }
        forms += forms.map { $0.replacing("+", with: "-").replacing("/", with: "_") }
        return Array(Set(forms)).sorted()
    }
}
