package import Core

/// Provides the headers that a destination needs, and reads their secrets again when they were refused.
///
/// An actor shared by all uploads of a destination, so that one reading serves them all.
package actor CredentialProvider {
    /// A header whose value is a secret, or a literal text of the configuration.
    package struct Header: Sendable {
        package let name: String
        package let source: SecretSource
        /// The key of the configuration that takes the secret, for messages; `nil` where its source is enough.
        let key: String?
        /// Makes the header's value of the secret.
        let form: @Sendable (String) -> String

        /// - Parameter prefix: Text before the secret: `Bearer `.
        package init(_ name: String, prefix: String = "", _ source: SecretSource, key: String? = nil) {
            self.init(name, source, key: key) { prefix + $0 }
        }

        package init(
            _ name: String, _ source: SecretSource, key: String? = nil, form: @escaping @Sendable (String) -> String
        ) {
            self.name = name
            self.source = source
            self.key = key
            self.form = form
        }
    }

    private let headers: [Header]
    private let reader: SecretReader
    /// Their values are sent unchanged.
    private let areSent: Bool
    private var cached: (headers: [(String, String)], secrets: [String])?
    /// The reader's ``SecretReader/renewals`` when they were read.
    private var age = 0
    /// Number of the reading, so that a refusal of old headers does not discard new ones.
    private var reading = 0

    /// - Parameter areSent: The values are sent unchanged in requests; otherwise other values are computed from them.
    package init(_ headers: [Header], reader: SecretReader, areSent: Bool = true) {
        self.headers = headers
        self.reader = reader
        self.areSent = areSent
    }

    /// - Returns: The headers, the secrets in them, and the number of their reading, for ``refused(_:)``.
    package func current() async throws(SecretError) -> (headers: [(String, String)], secrets: [String], reading: Int) {
        let now = reader.renewals
        if let cached, age == now { return (cached.headers, cached.secrets, reading) }
        var lines: [(String, String)] = []
        var secrets: [String] = []
        for header in headers {
            let secret: Secret
            do throws(SecretError) { secret = try await reader.read(header.source) } catch {
                throw error.of(key: header.key)
            }
            // RFC 9110, section 5.5.
            guard !areSent || secret.reveal().utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
                throw SecretError(
                    header.source, "it has several lines, or a control character, which no header may have",
                    remedy: "write it alone, in one line"
                ).of(key: header.key)
            }
            lines.append((header.name, header.form(secret.reveal())))
            secrets.append(secret.reveal())
        }
        // Two callers may have read at the same time; both are new, and either will do.
        reading += 1
        (cached, age) = ((lines, secrets), now)
        return (lines, secrets, reading)
    }

    /// The remote refused the headers of this reading: the next call reads them again.
    package func refused(_ reading: Int) { if reading == self.reading { cached = nil } }

    /// The next call reads them again.
    package func discard() { cached = nil }
}
