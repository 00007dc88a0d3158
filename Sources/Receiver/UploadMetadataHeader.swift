internal import FoundationEssentials

/// `Upload-Metadata` (tus 1.0, section "Upload-Metadata"): pairs of a key and a value in Base64, between commas.
struct UploadMetadataHeader: Hashable, Sendable {
    /// As the client sent it; HEAD returns it unchanged.
    let header: String
    private let values: [String: [UInt8]]

    /// `nil` when the header is malformed or a key occurs twice. Blanks around the commas are accepted, since some
    /// clients send them.
    init?(header: String) {
        var values: [String: [UInt8]] = [:]
        for pair in header.split(separator: ",") {
            let parts = pair.split(separator: " ")
            guard let key = parts.first, parts.count <= 2 else { return nil }
            var value: [UInt8] = []
            if parts.count == 2 {
                guard let decoded = Data(base64Encoded: String(parts[1])) else { return nil }
                value = Array(decoded)
            }
            guard values.updateValue(value, forKey: String(key)) == nil else { return nil }
        }
        self.header = header
        self.values = values
    }

    /// `nil` when the key is missing.
    func bytes(_ key: String) -> [UInt8]? { values[key] }

    /// `nil` when the key is missing, empty, or no text.
    func text(_ key: String) -> String? {
        guard let bytes = values[key], !bytes.isEmpty else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }
}
