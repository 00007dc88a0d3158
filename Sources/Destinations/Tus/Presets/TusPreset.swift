internal import Core

/// A video service that takes tus, with the facts about it that no answer contains.
///
/// Sources: https://developers.cloudflare.com/stream/uploading-videos/resumable-uploads/ and
/// https://docs.bunny.net/stream/tus-resumable-uploads
enum TusPreset: String, Sendable, CaseIterable {
    case cloudflareStream = "cloudflare-stream"
    case bunnyStream = "bunny-stream"

    static let summaries = allCases.map { ($0.rawValue, $0.summary) }

    var summary: String {
        switch self {
        case .cloudflareStream: "Cloudflare Stream; needs `account` and `token`"
        case .bunnyStream: "Bunny Stream; needs `library` and `api_key`"
        }
    }

    /// The address for new uploads, where `url` is not set.
    func url(account: String?) -> String? {
        switch self {
        case .cloudflareStream: account.map { "https://api.cloudflare.com/client/v4/accounts/\($0)/stream" }
        case .bunnyStream: "https://video.bunnycdn.com/tusupload"
        }
    }

    /// The metadata that is the title of the video; by default the file's name.
    var titleKey: String {
        switch self {
        case .cloudflareStream: "name"
        case .bunnyStream: "title"
        }
    }

    /// The header of the answer to a creation with the id of the video.
    var idHeader: String? { self == .cloudflareStream ? "stream-media-id" : nil }

    /// In bytes: every request except the last has a multiple of it.
    var alignment: Int64 { self == .cloudflareStream ? 256 << 10 : 1 }
    /// In bytes: no request except the last is smaller.
    var minChunk: Int64? { self == .cloudflareStream ? 5 << 20 : nil }
    /// In bytes: no request is larger.
    var maxChunk: Int64? { self == .cloudflareStream ? 200 << 20 : nil }
    /// In bytes: the size that the service recommends.
    var chunk: Int64? { self == .cloudflareStream ? 50 << 20 : nil }

    // MARK: Settings

    /// The keys that it needs, and that no other preset has.
    private var ownKeys: [String] {
        switch self {
        case .cloudflareStream: ["account"]
        case .bunnyStream: ["library", "api_key"]
        }
    }

    static func objections(_ values: [String: SettingValue]) -> [SettingObjection] {
        let preset = values.text("preset").flatMap { TusPreset(rawValue: $0) }
        var all: [SettingObjection] = []
        func object(_ key: String, _ problem: String, missing: [String] = []) {
            all.append(SettingObjection(key: key, problem: problem, missing: missing))
        }
        for other in allCases where other != preset {
            for key in other.ownKeys where values[key] != nil {
                object(key, "belongs to `preset: \(other.rawValue)`")
            }
        }
        guard let preset else {
            if values["url"] == nil { object("url", "is missing: the address for new uploads", missing: ["url"]) }
            return all
        }
        // With an address of its own, Cloudflare needs no account.
        for key in preset.ownKeys where values[key] == nil && (preset == .bunnyStream || values["url"] == nil) {
            object(key, "is missing: `preset: \(preset.rawValue)` needs it", missing: [key])
        }
        if let text = values.text("account") ?? values.text("library"),
            !text.utf8.allSatisfy({ $0.isLetterOrDigit(or: "-_") })
        {
            object(preset.ownKeys[0], "takes letters, digits, `-` and `_`")
        }
        if case .bytes(let chunk)? = values["chunk_size"], let least = preset.minChunk, let most = preset.maxChunk,
            chunk < least || chunk > most || chunk % preset.alignment != 0
        {
            object("chunk_size", "takes 5 MiB to 200 MiB with this preset, and multiples of 256 KiB")
        }
        if preset == .bunnyStream {
            for key in ["token", "parallel"] where values[key] != nil {
                object(key, "has no meaning with `preset: bunny-stream`")
            }
        }
        return all
    }
}
