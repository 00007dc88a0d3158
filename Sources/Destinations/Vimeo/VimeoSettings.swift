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
    case playable
}

/// A person's settings for an account, with defaults filled in.
struct VimeoSettings: Sendable {
    static let publicAPI = "https://api.vimeo.com"

    /// Without a slash at its end.
    var base = publicAPI
    var flow = VimeoFlow.tus
    /// `nil`: `playable` where the source goes with the upload's end, else `transfer`.
    var verify: VimeoVerification?
    /// A warning is given when a video is worked on for longer.
    var verifyTimeout: Duration = .seconds(86_400)
    /// Wait between the first two questions whether a video is ready; later waits are longer.
    var firstPoll: Duration = .seconds(15)
    var limits = RequestLimits()
    var video = VimeoFields()
    var password: SecretSource?
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

extension Vimeo {
    static let kind = DestinationKind(
        type: DestinationType(
            name: "vimeo", summary: "an account at Vimeo, or at a server that speaks its API",
            keys: [
                SettingKey(
                    "token", .secret, required: true, "An access token of the account, with the scope `upload`."),
                SettingKey("url", .url, "The API, `https://api.vimeo.com` by default."),
                AllowedOrigins.key,
                SettingKey("ca_file", .path, "Certificates to trust instead of the system's (PEM)."),
                SettingKey(
                    "flow", .choice(VimeoFlow.allCases.map(\.rawValue)),
                    "How bytes are sent: `tus` (default), or the older `two-step` and `four-step`, which the public service has switched off."
                ),
                SettingKey(
                    "verify", .choice(VimeoVerification.allCases.map(\.rawValue)),
                    "When an upload is complete: when the service has accepted every byte (`transfer`), or when the video is `playable`; the latter by default if sources are deleted or moved."
                ),
                SettingKey(
                    "poll", .duration,
                    "Time until it is asked again whether a video is ready; 15 s by default, and more each time."),
                SettingKey(
                    "verify_timeout", .duration,
                    "How long it may process a video before a warning; 24 h by default. No source is released because of the time."
                ),
                SettingKey("chunk_size", .size, "Maximum bytes of one request, 64 MiB by default; 0 for no limit."),
                SettingKey(
                    "final_error", .choice(FinalErrorPolicy.allCases.map(\.rawValue)), FinalErrorPolicy.summary),
                SettingKey("stall_timeout", .duration, "How long the server may accept no byte; 60 s by default."),
                SettingKey(
                    "reply_timeout", .duration,
                    "How long it may take to answer after the last byte: 10 min by default, and 60 s if the request has no bytes of the file."
                ),
                SettingKey("video", .section(video), "Properties of each video."),
            ], releaseDoubts: { releaseDoubts($0) }, objections: { objections($0) })
    ) { values, tools in try Vimeo(values, tools) }

    private static let video = [
        SettingKey("name", .template, "Its title; the name of the file without its ending by default."),
        SettingKey("description", .template, "Its description."),
        SettingKey("license", .choice(VimeoLimits.licenses), "A Creative Commons licence."),
        SettingKey("locale", .text, "The language of its texts, `en` or `de-DE`."),
        SettingKey("content_rating", .texts, "Ratings, as Vimeo names them: `safe`, `unrated`, `violence` …"),
        SettingKey("password", .secret, "The password for viewers; for `privacy: {view: password}`."),
        SettingKey("users", .texts, "Who may see it, as `/users/123`; for `privacy: {view: users}`."),
        SettingKey("folder", .text, "The folder that it is put into, as `/users/1/projects/2`."),
        SettingKey(
            "thumbnail", .flag,
            "Whether an image that accompanies a video (`group` of its folder) becomes its thumbnail; no by default."),
        SettingKey(
            "privacy",
            .section([
                SettingKey(
                    "view", .template,
                    "Who may see it: \(list(VimeoLimits.view)), or a template that makes one of them."
                ),
                SettingKey("embed", .template, "Where it may be embedded: \(list(VimeoLimits.embed))."),
                SettingKey("comments", .template, "Who may comment: \(list(VimeoLimits.comments))."),
                SettingKey("download", .flag, "Whether viewers may download it."),
                SettingKey("add", .flag, "Whether viewers may add it to their collections."),
            ]), "Who may see, embed, download or comment it."),
    ]

    private static func list(_ words: [String]) -> String { words.map { "`\($0)`" }.joined(separator: ", ") }

    static func settings(_ values: [String: SettingValue]) -> VimeoSettings {
        var settings = VimeoSettings()
        if case .text(let url)? = values["url"] { settings.base = url.hasSuffix("/") ? String(url.dropLast()) : url }
        if case .text(let word)? = values["flow"], let flow = VimeoFlow(rawValue: word) { settings.flow = flow }
        if case .text(let word)? = values["verify"], let end = VimeoVerification(rawValue: word) {
            settings.verify = end
        }
        if case .duration(let time)? = values["poll"] { settings.firstPoll = time }
        if case .duration(let time)? = values["verify_timeout"] { settings.verifyTimeout = time }
        settings.limits = RequestLimits(values)
        if case .secret(let source)? = values["video.password"] { settings.password = source }
        settings.video = fields(values)
        return settings
    }

    private static func fields(_ values: [String: SettingValue]) -> VimeoFields {
        var fields = VimeoFields()
        if case .text(let word)? = values["video.license"] { fields.license = word }
        if case .text(let text)? = values["video.locale"] { fields.locale = text }
        if case .texts(let words)? = values["video.content_rating"] { fields.contentRating = words }
        if case .flag(let flag)? = values["video.privacy.download"] { fields.download = flag }
        if case .flag(let flag)? = values["video.privacy.add"] { fields.add = flag }
        if case .texts(let users)? = values["video.users"] { fields.users = users }
        if case .text(let folder)? = values["video.folder"] { fields.folder = folder }
        if case .flag(let flag)? = values["video.thumbnail"] { fields.thumbnail = flag }
        return fields
    }

    private static func isAddress(_ text: String, after prefix: String) -> Bool {
        text.hasPrefix(prefix) && text.utf8.count > prefix.utf8.count
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && !"?#%\\".utf8.contains($0) }
    }

    /// Doubts that can be found before there is a file.
    private static func releaseDoubts(_ values: [String: SettingValue]) -> [String] {
        var doubts = GonePolicy.releaseDoubts(values)
        if settings(values).verify == .transfer {
            doubts.append(
                "`verify: transfer` regards an upload as complete before the service knows whether it can make a video of it; "
                    + "leave `verify` out, or set `playable`")
        }
        return doubts
    }

    static func objections(_ values: [String: SettingValue]) -> [SettingObjection] {
        var all: [SettingObjection] = []
        func object(_ key: String, _ problem: String) { all.append(SettingObjection(key: key, problem: problem)) }
        for (name, words) in VimeoLimits.choices.sorted(by: { $0.key < $1.key }) {
            guard case .template(let template)? = values[name], let written = template.constant,
                !words.contains(written)
            else { continue }
            object(
                name,
                "takes one of \(list(words)), not `\(written)`"
                    + (closest(to: written.lowercased(), among: words).map { "; did you mean `\($0)`?" } ?? ""))
        }
        for (name, most) in VimeoLimits.longest.sorted(by: { $0.key < $1.key }) {
            guard case .template(let template)? = values[name] else { continue }
            let count = template.pieces.reduce(0) { if case .text(let text) = $1 { $0 + text.count } else { $0 } }
            if count > most { object(name, "has \(count) characters, and Vimeo takes at most \(most)") }
        }
        let fields = fields(values)
        for user in fields.users where !isAddress(user, after: "/users/") {
            object("video.users", "takes addresses like `/users/123`, not `\(user)`")
        }
        if let folder = fields.folder, !isAddress(folder, after: "/") {
            object("video.folder", "takes an address like `/users/1/projects/2`, not `\(folder)`")
        }
        if let locale = fields.locale, !isLocale(locale) {
            object("video.locale", "takes a language like `en` or `de-DE`, not `\(locale)`")
        }
        let hasPassword = values["video.password"] != nil
        guard case .template(let view)? = values["video.privacy.view"] else {
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
