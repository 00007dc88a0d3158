internal import Core
internal import Credentials

/// A person's settings for a server that speaks the draft, with defaults filled in.
struct ResumableHTTPSettings: Sendable {
    var interop = InteropChoice.auto
    var limits = RequestLimits()
    /// `chunk_size`.
    var chunk: Int64?
    var gone = GonePolicy.reupload
    var finalError = FinalErrorPolicy.fail
    var allowedOrigins: [String] = []
    var token: SecretSource?
}

extension ResumableHTTPSettings: DeclaredSettings {
    static let defaults = ResumableHTTPSettings()

    static let keys = DestinationKey<ResumableHTTPSettings>.table {
        DestinationKey("url", .url, required: true, "The address to which files are uploaded.")
        AllowedOrigins.key(\.allowedOrigins)
        DestinationKey(
            "token", \.token, "Sent as `Authorization: Bearer …`, to this server and to `allow_origins` only.")
        DestinationKey(
            "interop", \.interop,
            "The version of the draft that the server speaks: `6`, `8` or `9`, `none` for a server without a version "
                + "(the RFC), or `auto` to find it ({default}).")
        ChunkSize.key(\.chunk)
        GonePolicy.key(\.gone)
        FinalErrorPolicy.key(\.finalError)
        for key in RequestLimits.keys { key.of(\.limits) }
    }
}
