internal import Core
internal import Credentials
internal import Transport

/// When an upload counts as verified.
enum ApsaraVerification: String, Sendable, CaseIterable {
    /// The storage has every byte, with the right checksums.
    case transfer
    /// VOD says that it can use the medium.
    case playable
}

/// A person's settings for ApsaraVideo VOD, with defaults filled in.
struct ApsaraSettings: Sendable {
    var region = ApsaraAPI.defaultRegion
    /// The address for calls to VOD; without a slash at its end.
    var endpoint: String?
    /// Replaces the storage that an upload address names.
    var uploadEndpoint: String?
    var way = OSS.AddressKind.public
    var version = ApsaraSignature.Version.acs3
    /// The signature of requests to the storage; `nil`: V4 where the region is known.
    var signing: BucketWire.Signing?
    /// Whether an interrupted upload continues.
    var resumes = true
    var fields = ApsaraFields()
    /// `nil`: `playable` where the source goes with the upload's end, else `transfer`.
    var verify: ApsaraVerification?
    var verifyTimeout: Duration = .seconds(86_400)
    /// Wait between the first two requests for the state of a medium; later waits are longer.
    var firstPoll: Duration = .seconds(15)
    /// Sizes, time limits and the number of parallel parts. Each upload's own address says where its parts go.
    var bucket: S3Settings
}

extension Apsara {
    static let kind = DestinationKind(
        type: DestinationType(
            name: kindName, summary: "ApsaraVideo VOD at Alibaba Cloud",
            keys: [
                SettingKey(
                    "authorisation", .section(OwnService.keys),
                    "A service or a program of yours that asks VOD for an upload address and credential.")
            ] + S3Access.keysOfAlibaba + [
                SettingKey("region", .text, "The region of VOD; `\(ApsaraAPI.defaultRegion)` by default."),
                SettingKey("endpoint", .url, "The address of VOD's API; that of the region by default."),
                SettingKey(
                    "call_signature", .choice(ApsaraSignature.Version.allCases.map(\.rawValue)),
                    "How calls are signed: `acs3` by default, or the older `rpc`."),
                SettingKey(
                    "endpoint_kind", .choice(OSS.AddressKind.allCases.map(\.rawValue)),
                    "Which address of the storage: that of the upload address (`public`, default), `internal` from machines inside, or `accelerate`."
                ),
                SettingKey(
                    "upload_endpoint", .url,
                    "Used instead of the storage in the upload address: a service in front of it, without the bucket."),
                SettingKey(
                    "signature", .choice([BucketWire.Signing.v4.rawValue, BucketWire.Signing.v1.rawValue]),
                    "How requests to the storage are signed: `v4` by default, `v1` if its region is not known."),
                SettingKey(
                    "part_size", .size, "Bytes of a part, 16 MiB by default; more if a file would have too many parts."),
                SettingKey("single_up_to", .size, "Files up to this size are sent in one request; 16 MiB by default."),
                SettingKey("parallel", .whole(1...16), "Parts of one file that are sent at once; 4 by default."),
                SettingKey(
                    "resume", .flag,
                    "Whether an upload continues where it stopped; `true` by default. `false` removes the sent bytes when the daemon stops, and starts again."
                ),
                SettingKey(
                    "traffic_limit", .flag,
                    "Whether the service gets the rate limit of the policy, and enforces it too; `false` by default."),
                SettingKey("ca_file", .path, "Certificates to trust instead of the system's (PEM)."),
                SettingKey("stall_timeout", .duration, "How long the server may accept no byte; 60 s by default."),
                SettingKey(
                    "reply_timeout", .duration, "How long it may take to answer after the last byte; 10 min by default."
                ),
                SettingKey(
                    "verify", .choice(ApsaraVerification.allCases.map(\.rawValue)),
                    "When an upload is complete: when the storage has every byte (`transfer`), or when VOD can use it (`playable`); the latter by default if sources are deleted or moved."
                ),
                SettingKey(
                    "verify_timeout", .duration,
                    "How long VOD may process a file before a warning; 24 h by default. No source is released because of the time."
                ),
                SettingKey(
                    "poll", .duration,
                    "Time until VOD is asked again whether a file is ready; 15 s by default, and more each time."),
                SettingKey("media", .section(media), "Properties of each file."),
            ], releaseDoubts: { releaseDoubts($0) }, objections: { objections($0) })
    ) { values, tools in try Apsara(values, tools) }

    private static let kindName = "apsara-vod"

    private static let media = [
        SettingKey("title", .template, "Its title; the name of the file without its ending by default."),
        SettingKey("description", .template, "Its description."),
        SettingKey("tags", .template, "Its tags, with commas between them; at most 16 of 32 characters."),
        SettingKey("category", .template, "The number of its category."),
        SettingKey("cover", .template, "The address of its cover picture."),
        SettingKey("template_group", .template, "The id of the transcoding template group."),
        SettingKey("workflow", .template, "The id of the workflow; VOD prefers it to `template_group`."),
        SettingKey("storage_location", .template, "Where it is kept, as the console shows it."),
        SettingKey(
            "user_data", .templateOfJSON,
            "JSON that VOD passes on with its events; write its braces as `{{` and `}}`."),
        SettingKey("app_id", .template, "The application that it belongs to, like `app-1000000`."),
        SettingKey("image_type", .choice(["default", "cover"]), "The type of pictures; `default` by default."),
        SettingKey("transcode", .flag, "`false`: it is kept without transcoding, if no `template_group` is set."),
        SettingKey("process", .flag, "Whether VOD processes it after the upload."),
        SettingKey("watermark", .flag, "Whether it gets the watermark of its templates."),
        SettingKey("priority", .whole(1...10), "Priority of its transcoding, 10 first; 6 by default."),
    ]

    static func settings(_ values: [String: SettingValue]) -> ApsaraSettings {
        func text(_ key: String) -> String? { if case .text(let text)? = values[key] { text } else { nil } }
        func flag(_ key: String) -> Bool? { if case .flag(let flag)? = values[key] { flag } else { nil } }
        var settings = ApsaraSettings(bucket: OSS.unplaced)
        settings.bucket.take(values)
        if let region = text("region") { settings.region = region }
        settings.endpoint = text("endpoint").map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
        settings.uploadEndpoint = text("upload_endpoint").map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
        if let way = text("endpoint_kind").flatMap({ OSS.AddressKind(rawValue: $0) }) { settings.way = way }
        if let version = text("call_signature").flatMap({ ApsaraSignature.Version(rawValue: $0) }) {
            settings.version = version
        }
        settings.signing = text("signature").flatMap { BucketWire.Signing(rawValue: $0) }
        if let word = text("verify") { settings.verify = ApsaraVerification(rawValue: word) }
        if case .duration(let time)? = values["verify_timeout"] { settings.verifyTimeout = time }
        if case .duration(let time)? = values["poll"] { settings.firstPoll = time }
        if let resumes = flag("resume") { settings.resumes = resumes }
        settings.fields.transcode = flag("media.transcode")
        settings.fields.process = flag("media.process")
        settings.fields.watermark = flag("media.watermark")
        if case .whole(let number)? = values["media.priority"] { settings.fields.priority = number }
        if let type = text("media.image_type") { settings.fields.imageType = type }
        return settings
    }

    static func releaseDoubts(_ values: [String: SettingValue]) -> [String] {
        if OwnService.way(values, in: "authorisation") != nil {
            return [
                "with `authorisation` Sluice has no key to ask VOD whether it can use a file, so an upload is "
                    + "complete when the storage has it; set `access_key` or `sts` instead"
            ]
        }
        guard settings(values).verify == .transfer else { return [] }
        return [
            "`verify: transfer` regards an upload as complete before VOD knows whether it can use it; leave `verify` out, or "
                + "set `playable`"
        ]
    }

    static func objections(_ values: [String: SettingValue]) -> [SettingObjection] {
        var all: [SettingObjection] = []
        func object(_ key: String, _ problem: String) { all.append(SettingObjection(key: key, problem: problem)) }
        func text(_ key: String) -> String? { if case .text(let text)? = values[key] { text } else { nil } }
        if let region = text("region") {
            if region.isEmpty || !region.utf8.allSatisfy({ S3ValueChecks.isOfHosts($0) }) {
                object("region", "takes small letters, digits and hyphens, like `cn-shanghai`, not `\(region)`")
            } else if region.hasPrefix("oss-") || region.hasPrefix("vod.") {
                object("region", "is the plain name, without `oss-` before it: `\(region.dropFirst(4))`")
            }
        }
        for key in ["endpoint", "upload_endpoint"] {
            if let path = text(key).map({ WebAddress($0).path }), !path.isEmpty, path != "/" {
                object(key, "ends with its host")
            }
        }
        if values["upload_endpoint"] != nil, values["endpoint_kind"] != nil {
            object("endpoint_kind", "has no effect with `upload_endpoint`")
        }
        let isOwn = OwnService.isSet(values, in: "authorisation")
        if isOwn {
            for key in ["endpoint", "call_signature", "region"] where values[key] != nil && key != "region" {
                object(key, "has no effect with `authorisation`, which calls VOD itself")
            }
        }
        if isOwn, text("verify") == ApsaraVerification.playable.rawValue {
            object("verify", "is `playable`, and with `authorisation` there is no key to ask VOD for that")
        }
        all += OwnService.objections(values, in: "authorisation", lacking: "names no service")
        all += S3Access.objections(values, further: ["authorisation", "sts"], at: "authorisation")
        for (key, _) in ApsaraFields.named {
            guard case .template(let template)? = values[key] else { continue }
            if let text = template.constant.flatMap({ trimmed($0) }),
                let problem = ApsaraFields.problem(with: text, at: key)
            {
                object(key, "\(problem): `\(text)`")
            }
            let most = ["media.title": ApsaraFields.longestTitle, "media.description": ApsaraFields.longestDescription]
            let written = template.pieces.reduce(0) { if case .text(let text) = $1 { $0 + text.count } else { $0 } }
            if let most = most[key], written > most {
                object(key, "has \(written) characters, and VOD takes at most \(most)")
            }
        }
        if case .template(let tags)? = values["media.tags"], let text = tags.constant {
            let words = text.split(separator: ",").compactMap { trimmed(String($0)) }
            if words.count > ApsaraFields.mostTags {
                object("media.tags", "are \(words.count), and VOD takes at most \(ApsaraFields.mostTags)")
            }
            if let long = words.first(where: { $0.count > ApsaraFields.longestTag }) {
                object("media.tags", "has `\(long)`, and a tag has at most \(ApsaraFields.longestTag) characters")
            }
        }
        if values["media.user_data"] != nil, values["media.watermark"] != nil || values["media.priority"] != nil {
            for key in ["media.watermark", "media.priority"] where values[key] != nil {
                object(key, "has no effect with `user_data`, which replaces it")
            }
        }
        if case .flag(false)? = values["media.transcode"], values["media.template_group"] != nil {
            object("media.transcode", "is `false`, and has no effect with `template_group`")
        }
        return all + S3Settings.objections(values, settings(values).bucket.preset, of: kindName)
    }
}
