internal import Core
internal import Credentials
internal import Transport

/// How a video is created and its bytes are sent.
///
/// The other two belong to versions of the API that the public service has switched off; private servers still speak
/// them.
enum VimeoFlow: String, Sendable, CaseIterable {
    case tus
    case twoStep = "two-step"
    case fourStep = "four-step"
}

/// When an upload counts as verified.
enum VimeoVerification: String, Sendable, CaseIterable {
    /// The service has every byte and says that it accepted them.
    case transfer
    /// The video can be watched.
    case transcoded
}

/// A person's settings for an account, with defaults filled in.
struct VimeoSettings: Sendable {
    static let publicAPI = "https://api.vimeo.com"

    /// Without a slash at its end.
    var base = publicAPI
    var flow = VimeoFlow.tus
    /// `nil`: `transcoded` where the source goes with the upload's end, else `transfer`.
    var verify: VimeoVerification?
    /// A warning is given when a video is worked on for longer.
    var verifyTimeout: Duration = .seconds(86_400)
    /// Wait between the first two questions whether a video is ready; later waits are longer.
    var firstPoll: Duration = .seconds(15)
    var limits = RequestLimits()
    var video = VimeoFields()
    var password: SecretSource?
    /// The account's access token.
    var token: SecretSource?
    /// `chunk_size`.
    var chunk: Int64?
    var finalError = FinalErrorPolicy.fail
    var allowedOrigins: [String] = []
}

/// Fields for every video, in addition to its name and description.
struct VimeoFields: Hashable, Sendable {
    var license: String?
    var locale: String?
    var contentRating: [String] = []
    /// Addresses of users who may see it, `/users/123`.
    var users: [String] = []
    var download: Bool?
    var add: Bool?
    /// The folder's address, `/users/1/projects/2`.
    var folder: String?
    /// An image that belongs to a video becomes its thumbnail.
    var thumbnail = false
}

extension VimeoSettings: DeclaredSettings {
    static let defaults = VimeoSettings()

    static let keys = DestinationKey<VimeoSettings>.table {
        DestinationKey(
            "token", \.token, required: true, "An access token of the account, with the scope `upload`.")
        DestinationKey("url", .url, "The API, `\(publicAPI)` by default.") { value, settings in
            if let url = String.of(value) { settings.base = withoutSlash(url) }
        }
        AllowedOrigins.key(\.allowedOrigins)
        DestinationKey(
            "flow", \.flow,
            "How bytes are sent: `tus` (default), or the older `two-step` and `four-step`, which the public service has switched off."
        )
        DestinationKey(
            "verify", \.verify,
            "When an upload is complete: when the service has accepted every byte (`transfer`), or when the video is `transcoded`; the latter by default if sources are deleted or moved."
        )
        DestinationKey(
            "poll", \.firstPoll,
            "Time until it is asked again whether a video is ready; {default} by default, and more each time.")
        DestinationKey(
            "verify_timeout", \.verifyTimeout,
            "How long it may process a video before a warning; {default} by default. No source is released because of the time."
        )
        ChunkSize.key(\.chunk)
        FinalErrorPolicy.key(\.finalError)
        for key in RequestLimits.keys(
            reply:
                "How long it may take to answer after the last byte: {default} by default, and 60 s if the request has no bytes of the file."
        ) { key.of(\.limits) }
        DestinationKey("video", videoKeys, "Properties of each video.")
    }

    private static let videoKeys = DestinationKey<VimeoSettings>.table {
        DestinationKey("name", .template, "Its title; the name of the file without its ending by default.")
        DestinationKey("description", .template, "Its description.")
        DestinationKey("license", \.video.license, as: .choice(VimeoLimits.licenses), "A Creative Commons licence.")
        DestinationKey("locale", \.video.locale, "The language of its texts, `en` or `de-DE`.")
        DestinationKey(
            "content_rating", \.video.contentRating, "Ratings, as Vimeo names them: `safe`, `unrated`, `violence` …")
        DestinationKey("password", \.password, "The password for viewers; for `privacy: {view: password}`.")
        DestinationKey("users", \.video.users, "Who may see it, as `/users/123`; for `privacy: {view: users}`.")
        DestinationKey("folder", \.video.folder, "The folder that it is put into, as `/users/1/projects/2`.")
        DestinationKey(
            "thumbnail", \.video.thumbnail,
            "Whether an image that accompanies a video (`group` of its folder) becomes its thumbnail; no by default.")
        DestinationKey("privacy", privacyKeys, "Who may see, embed, download or comment it.")
    }

    private static let privacyKeys = DestinationKey<VimeoSettings>.table {
        DestinationKey(
            "view", .template,
            "Who may see it: \(Vimeo.list(VimeoLimits.view)), or a template that makes one of them.")
        DestinationKey("embed", .template, "Where it may be embedded: \(Vimeo.list(VimeoLimits.embed)).")
        DestinationKey("comments", .template, "Who may comment: \(Vimeo.list(VimeoLimits.comments)).")
        DestinationKey("download", \.video.download, "Whether viewers may download it.")
        DestinationKey("add", \.video.add, "Whether viewers may add it to their collections.")
    }
}

extension Vimeo {
    static let kind = DestinationDefinition(
        type: DestinationSchema(
            name: "vimeo", summary: "an account at Vimeo, or at a server that speaks its API",
            keys: VimeoSettings.keys.map(\.setting), takesOnlyVideos: true, releaseDoubts: { releaseDoubts($0) },
            objections: { objections($0) }),
        http: HTTPUse(reserved: Tus.reserved.union(["accept", "content-range"])) { _ in "token" }
    ) { values, tools in try Vimeo(values, tools) }

    fileprivate static func list(_ words: [String]) -> String { words.map { "`\($0)`" }.joined(separator: ", ") }

    private static func isAddress(_ text: String, after prefix: String) -> Bool {
        text.hasPrefix(prefix) && text.utf8.count > prefix.utf8.count
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && !"?#%\\".utf8.contains($0) }
    }

    /// Doubts that can be found before there is a file.
    private static func releaseDoubts(_ values: [String: SettingValue]) -> [String] {
        let settings = VimeoSettings.keys.settings(values)
        var doubts = settings.finalError.releaseDoubts
        if settings.verify == .transfer {
            doubts.append(
                "`verify: transfer` regards an upload as complete before the service knows whether it can make a video of it; "
                    + "leave `verify` out, or set `transcoded`")
        }
        return doubts
    }

    static func objections(_ values: [String: SettingValue]) -> [SettingObjection] {
        var all: [SettingObjection] = []
        func object(_ key: String, _ problem: String) { all.append(SettingObjection(key: key, problem: problem)) }
        for (name, words) in VimeoLimits.choices.sorted(by: { $0.key < $1.key }) {
            guard let written = values.template(name)?.constant,
                !words.contains(written)
            else { continue }
            object(
                name,
                "takes one of \(list(words)), not `\(written)`"
                    + (closest(to: written.lowercased(), among: words).map { "; did you mean `\($0)`?" } ?? ""))
        }
        for (name, most) in VimeoLimits.longest.sorted(by: { $0.key < $1.key }) {
            guard let template = values.template(name) else { continue }
            let count = template.pieces.reduce(0) { if case .text(let text) = $1 { $0 + text.count } else { $0 } }
            if count > most { object(name, "has \(count) characters, and Vimeo takes at most \(most)") }
        }
        let settings = VimeoSettings.keys.settings(values)
        let fields = settings.video
        for user in fields.users where !isAddress(user, after: "/users/") {
            object("video.users", "takes addresses like `/users/123`, not `\(user)`")
        }
        if let folder = fields.folder, !isAddress(folder, after: "/") {
            object("video.folder", "takes an address like `/users/1/projects/2`, not `\(folder)`")
        }
        if let locale = fields.locale, !isLocale(locale) {
            object("video.locale", "takes a language like `en` or `de-DE`, not `\(locale)`")
        }
        let hasPassword = settings.password != nil
        guard let view = values.template("video.privacy.view") else {
            if hasPassword { object("video.password", "has no effect without `privacy: {view: password}`") }
            if !fields.users.isEmpty { object("video.users", "has no effect without `privacy: {view: users}`") }
            return all
        }
        if view.constant == "password", !hasPassword {
            object("video.privacy.view", "is `password`, and `video.password` is missing")
        }
        if view.constant == "users", fields.users.isEmpty {
            object("video.privacy.view", "is `users`, and `video.users` is missing")
        }
        return all
    }

    /// Two or three letters, and perhaps more after hyphens (RFC 5646).
    private static func isLocale(_ text: String) -> Bool {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        return (2...3).contains(parts[0].count) && parts[0].allSatisfy { $0.isASCII && $0.isLetter }
            && parts.allSatisfy {
                (1...8).contains($0.count) && $0.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
            }
    }
}

/// The values that Vimeo accepts (its OpenAPI description, version 3.4, "Upload a video"), and its limits.
enum VimeoLimits {
    static let view = ["anybody", "contacts", "disable", "nobody", "password", "unlisted", "users"]
    static let embed = ["private", "public", "whitelist"]
    static let comments = ["anybody", "contacts", "nobody"]
    static let licenses = ["by", "by-nc", "by-nc-nd", "by-nc-sa", "by-nd", "by-sa", "cc0"]
    static let choices = [
        "video.privacy.view": view, "video.privacy.embed": embed, "video.privacy.comments": comments,
    ]
    /// In characters. The service's help names them; its API description does not.
    static let longest = ["video.name": 128, "video.description": 5000]
}
