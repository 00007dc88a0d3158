/// The input of a `before_upload` program, as JSON with snake_case names.
struct BeforeUploadInput: Encodable, Sendable {
    var id: String
    var key: String?
    var folder, destination: String
    /// The source's absolute path, for display.
    var path: String
    /// The remote name as it stands.
    var name: String
    /// In bytes.
    var size: Int64
    var sha256: String?
    var mediaType: String
    var metadata, context: [String: String]
    var generation: Int
    var createdAt: String
}
