internal import Core
internal import Synchronization
internal import Transport

/// The addresses of the uploads that are being sent to one destination. A server may take one creation for a repetition
/// of another, and answer both with one address: the bytes of two files, or of two parts of a file, would be mixed
/// there. Shared by all uploads to a destination.
final class UploadAddresses: Sendable {
    struct Owner: Hashable, Sendable {
        /// ``UploadOrder/id``.
        let upload: String
        /// The offset in the file at which a part of it begins; `nil` for the whole file.
        var part: Int64?
    }

    private let owners = Mutex<[String: Owner]>([:])

    /// - Returns: Whether no other owner has the address. Then it belongs to this one until ``release(upload:)``.
    func claim(_ url: String, for owner: Owner) -> Bool {
        let key = Self.key(url)
        return owners.withLock { owners in
            if let other = owners[key] { return other == owner }
            owners[key] = owner
            return true
        }
    }

    /// Whether it belongs to an upload that is being sent.
    func isClaimed(_ url: String) -> Bool {
        let key = Self.key(url)
        return owners.withLock { $0[key] != nil }
    }

    /// The attempt of an upload is over, or its parts are given up.
    func release(upload id: String) {
        owners.withLock { owners in owners = owners.filter { $0.value.upload != id } }
    }

    /// Whether both are the address of one upload.
    static func areEqual(_ one: String, _ other: String) -> Bool { key(one) == key(other) }

    /// Equal for different spellings of an address.
    private static func key(_ url: String) -> String {
        let address = WebAddress(url)
        let path = address.path.hasSuffix("/") ? String(address.path.dropLast()) : address.path
        let parts = [path, address.query ?? ""].map { part in
            PercentCoding.bytes(decoding: part).map { String(decoding: $0, as: UTF8.self) } ?? part
        }
        return ([address.origin] + parts).joined(separator: "\n")
    }
}

extension OffsetDialect {
    /// Requires that the address of the upload of a whole file is that of no other upload.
    func requireOwn(_ url: String, among addresses: UploadAddresses, _ order: UploadOrder) throws(UploadError) {
        guard !addresses.claim(url, for: UploadAddresses.Owner(upload: order.id)) else { return }
        throw error(
            .protocol, .sameUpload,
            "the server gave this upload the address of another one that is being sent; it waits for that one",
            .retry(after: .seconds(60)))
    }
}
