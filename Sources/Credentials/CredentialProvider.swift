package import Core

/// Hands out the headers that a destination wants, and reads their secrets again when they were refused.
///
/// An actor shared by all uploads of a destination, so that one reading serves them all.
package actor CredentialProvider {
    /// A header whose value is a secret, or text that the configuration holds as a literal.
    package struct Header: Sendable {
        package let name: String
        /// Stands before the secret: `Bearer `.
        package let prefix: String
        package let source: SecretSource

        package init(_ name: String, prefix: String = "", _ source: SecretSource) {
            self.name = name
            self.prefix = prefix
            self.source = source
        }
    }

    private let headers: [Header]
    private let reader: SecretReader
    /// Their values are sent as they are.
    private let areSent: Bool
    private var cached: [(String, String)]?
    /// The reader's ``SecretReader/renewals`` when they were read.
    private var age = 0
    /// Counts the readings, so that one refusal of old headers does not throw away new ones.
    private var reading = 0

    /// - Parameter areSent: The values stand in requests as they are; else they are what something else is made of.
    package init(_ headers: [Header], reader: SecretReader, areSent: Bool = true) {
        self.headers = headers
        self.reader = reader
        self.areSent = areSent
    }

    /// - Returns: The headers, and the number of the reading they are from, for ``refused(_:)``.
    package func current() async throws(SecretError) -> (headers: [(String, String)], reading: Int) {
        let now = reader.renewals
        if let cached, age == now { return (cached, reading) }
        var lines: [(String, String)] = []
        for header in headers {
            let secret = try await reader.read(header.source)
            // RFC 9110, section 5.5.
            guard !areSent || secret.reveal().utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
                throw SecretError(
                    header.source, "it has several lines, or a control character, which no header may have",
                    remedy: "write it alone, in one line")
            }
            lines.append((header.name, header.prefix + secret.reveal()))
        }
        // Two callers may have read at the same time; both are new, and either will do.
        reading += 1
        (cached, age) = (lines, now)
        return (lines, reading)
    }

    /// The remote did not take the headers of this reading: the next ones are read anew.
    package func refused(_ reading: Int) { if reading == self.reading { cached = nil } }
}
