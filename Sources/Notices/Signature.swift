internal import Core
internal import Digests

/// The signature of a notice, by the Standard Webhooks specification 1.0.0, "Signature scheme": HMAC-SHA256 over id,
/// moment and body with full stops between them, in base 64 after the version `v1`.
package struct Signature: Sendable {
    package struct UnusableKeyError: Error, CustomStringConvertible {
        package let description: String
    }

    private let key: [UInt8]

    /// - Parameter secret: `whsec_` and the key in base 64; any other text is the key itself.
    /// - Throws: ``UnusableKeyError``, without the secret.
    package init(secret: String) throws(UnusableKeyError) {
        let mark = "whsec_"
        guard secret.hasPrefix(mark) else {
            key = Array(secret.utf8)
            return
        }
        var text = String(secret.dropFirst(mark.count))
        text += String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        guard let bytes = bytes(base64: text), !bytes.isEmpty else {
            throw UnusableKeyError(description: "the secret begins with `whsec_`, and the rest is not Base64")
        }
        key = bytes
    }

    /// - Parameter moment: Seconds since 1970.
    /// - Returns: The value of `Webhook-Signature`.
    package func of(id: String, moment: Int64, body: [UInt8]) -> String {
        let signed = Array("\(id).\(moment).".utf8) + body
        return "v1," + base64(Hasher.authentication(.sha256, of: signed, key: key))
    }
}
