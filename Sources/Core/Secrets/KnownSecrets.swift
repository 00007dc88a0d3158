internal import Synchronization

/// Values of secrets that this process has read, to hide them in texts that others wrote: a server may quote a token, and
/// a program may print its environment.
package final class KnownSecrets: Sendable {
    private struct Value {
        let text: String
        let spellings: [String]
    }

    private struct State {
        /// Texts of the configuration, until the next one is loaded.
        var texts: [Value] = []
        /// The last value of each source that the configuration names.
        var ofSources: [SecretSource: Value] = [:]
        /// The sources that the configuration names.
        var sources: Set<SecretSource> = []
        /// Other values, the newest last.
        var passing: [Value] = []

        var all: [Value] { texts + ofSources.values + passing }

        mutating func keep(_ text: String, isCookie: Bool) {
            // A value that is still in use stays among the newest.
            if passing.suffix(KnownSecrets.maxPassing / 2).contains(where: { $0.text == text }) { return }
            if let value = KnownSecrets.value(text, isCookie: isCookie) { pass(value) }
        }

        mutating func pass(_ value: Value) {
            passing.removeAll { $0.text == value.text }
            passing.append(value)
            passing.removeFirst(max(0, passing.count - KnownSecrets.maxPassing))
        }
    }

    /// Each request adds the present values; a command may make a new one every hour. The oldest are dropped.
    private static let maxPassing = 256
    /// Shorter values and parts are not hidden: they may be words of any message. (bytes)
    package static let minLength = 8
    private let state = Mutex(State())

    package init() {}

    /// The values with their parts (``SecretParts``), each also in base 64.
    package var spellings: [String] { state.withLock { state in state.all.flatMap { $0.spellings } } }

    /// Replaces what is known of the configuration before: texts in it that may be secrets, each as a whole and not its
    /// parts, and the sources of its secrets, whose last values are kept from now on.
    package func replaceConfiguration(texts: [String], sources: [SecretSource]) {
        let texts = Set(texts).sorted().filter { $0.utf8.count >= Self.minLength }.map { text in
            Value(text: text, spellings: Self.spellings(ofPart: text))
        }
        let sources = Set(sources)
        state.withLock { state in
            // Requests and programs that began before may still use the old ones.
            for old in state.texts where !texts.contains(where: { $0.text == old.text }) { state.pass(old) }
            for (source, old) in state.ofSources where !sources.contains(source) { state.pass(old) }
            state.texts = texts
            state.ofSources = state.ofSources.filter { sources.contains($0.key) }
            state.sources = sources
        }
    }

    package func remember(_ value: String) { keep(value, isCookie: false) }

    /// Remembers the value of a secret's source.
    package func remember(_ value: String, from source: SecretSource) {
        state.withLock { state in
            guard state.sources.contains(source) else { return state.keep(value, isCookie: false) }
            let before = state.ofSources[source]
            if before?.text == value { return }
            if let before { state.pass(before) }
            state.ofSources[source] = Self.value(value, isCookie: false)
        }
    }

    /// Remembers the value of a header.
    package func remember(header name: String, _ value: String) {
        keep(value, isCookie: Self.isCookie(header: name))
    }

    private func keep(_ value: String, isCookie: Bool) {
        state.withLock { $0.keep(value, isCookie: isCookie) }
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
        SecretParts.of(value, isCookie: isCookie).filter { $0.utf8.count >= minLength }.flatMap(spellings(ofPart:))
    }

    private static func spellings(ofPart part: String) -> [String] { [part] + inBase64(Array(part.utf8)) }

    /// - Returns: `nil` for a value that is too short.
    private static func value(_ text: String, isCookie: Bool) -> Value? {
        let spellings = spellings(text, isCookie: isCookie)
        return spellings.isEmpty ? nil : Value(text: text, spellings: spellings)
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
