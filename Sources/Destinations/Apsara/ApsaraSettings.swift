internal import Core
internal import Credentials
internal import Transport

/// When an upload counts as verified.
enum ApsaraVerification: String, Sendable, CaseIterable {
    /// The storage has every byte, with the right checksums.
    case transfer
    /// VOD says that it can use the medium.
    case transcoded
}

/// A person's settings for ApsaraVideo VOD, with defaults filled in.
struct ApsaraSettings: Sendable {
    var region = ApsaraAPI.defaultRegion
    /// The address for calls to VOD; without a slash at its end.
    var endpoint: String?
    /// Replaces the storage that an upload address names.
    var uploadEndpoint: String?
    var addressKind = OSS.AddressKind.public
    var version = ApsaraSignature.Version.acs3
    /// The signature of requests to the storage; `nil`: V4 where the region is known.
    var signing: BucketProtocolNames.Signing?
    /// Whether an interrupted upload continues.
    var resumes = true
    var fields = ApsaraFields()
    /// `nil`: `transcoded` where the source goes with the upload's end, else `transfer`.
    var verify: ApsaraVerification?
    var verifyTimeout: Duration = .seconds(86_400)
    /// Wait between the first two requests for the state of a medium; later waits are longer.
    var firstPoll: Duration = .seconds(15)
    /// Asks VOD in place of a key.
    var authority = CredentialHelper.Settings()
    /// Sizes, time limits, the key and the number of parallel parts. Each upload's own address says where its parts go.
    var bucket: S3Settings
}

extension ApsaraSettings: DeclaredSettings {
    static let defaults = ApsaraSettings(bucket: OSS.unplaced)

    static let keys = DestinationKey<ApsaraSettings>.table {
        DestinationKey(
            "authorisation", CredentialHelper.Settings.keys.map { $0.of(\.authority) },
            "A service or a program of yours that asks VOD for an upload address and credential.")
        for key in S3AccessSettings.keysOfAlibaba { key.of(\.bucket.access) }
        DestinationKey("region", \.region, "The region of VOD; `{default}` by default.")
        address("endpoint", \.endpoint, "The address of VOD's API; that of the region by default.")
        DestinationKey(
            "call_signature", \.version, "How calls are signed: `{default}` by default, or the older `rpc`.")
        DestinationKey(
            "endpoint_kind", \.addressKind,
            "Which address of the storage: that of the upload address (`public`, default), `internal` from machines inside, or `accelerate`."
        )
        address(
            "upload_endpoint", \.uploadEndpoint,
            "Used instead of the storage in the upload address: a service in front of it, without the bucket.")
        DestinationKey(
            "signature", \.signing, among: [.v4, .v1],
            "How requests to the storage are signed: `v4` by default, `v1` if its region is not known.")
        for key in S3Settings.sizes { key.of(\.bucket) }
        DestinationKey(
            "resume", \.resumes,
            "Whether an upload continues where it stopped; `{default}` by default. `false` removes the sent bytes when the daemon stops, and starts again."
        )
        S3Settings.trafficLimit.of(\.bucket)
        for key in RequestLimits.keys { key.of(\.bucket.limits) }
        DestinationKey(
            "verify", \.verify,
            "When an upload is complete: when the storage has every byte (`transfer`), or when VOD can use it (`transcoded`); the latter by default if sources are deleted or moved."
        )
        DestinationKey(
            "verify_timeout", \.verifyTimeout,
            "How long VOD may process a file before a warning; {default} by default. No source is released because of the time."
        )
        DestinationKey(
            "poll", \.firstPoll,
            "Time until VOD is asked again whether a file is ready; {default} by default, and more each time.")
        DestinationKey("media", mediaKeys, "Properties of each file.")
    }

    private static let mediaKeys = DestinationKey<ApsaraSettings>.table {
        DestinationKey("title", .template, "Its title; the name of the file without its ending by default.")
        DestinationKey("description", .template, "Its description.")
        DestinationKey("tags", .template, "Its tags, with commas between them; at most 16 of 32 characters.")
        DestinationKey("category", .template, "The number of its category.")
        DestinationKey("cover", .template, "The address of its cover picture.")
        DestinationKey("template_group", .template, "The id of the transcoding template group.")
        DestinationKey("workflow", .template, "The id of the workflow; VOD prefers it to `template_group`.")
        DestinationKey("storage_location", .template, "Where it is kept, as the console shows it.")
        DestinationKey(
            "user_data", .templateOfJSON,
            "JSON that VOD passes on with its events; write its braces as `{{` and `}}`.")
        DestinationKey("app_id", .template, "The application that it belongs to, like `app-1000000`.")
        DestinationKey(
            "image_type", \.fields.imageType, as: .choice(["default", "cover"]),
            "The type of pictures; `{default}` by default.")
        DestinationKey(
            "transcode", \.fields.transcode,
            "`false`: it is kept without transcoding, if no `template_group` is set.")
        DestinationKey("process", \.fields.process, "Whether VOD processes it after the upload.")
        DestinationKey("watermark", \.fields.watermark, "Whether it gets the watermark of its templates.")
        DestinationKey(
            "priority", \.fields.priority, as: .whole(1...10),
            "Priority of its transcoding, 10 first; 6 by default.")
    }

    private static func address(
        _ name: String, _ path: DestinationKey<Self>.Property<String?>, _ summary: String
    ) -> DestinationKey<Self> {
        DestinationKey(name, .url, summary) { value, settings in
            settings[keyPath: path] = String.of(value).map { withoutSlash($0) }
        }
    }
}

extension Apsara {
    static let kind = DestinationDefinition(
        type: DestinationSchema(
            name: kindName, summary: "ApsaraVideo VOD at Alibaba Cloud", keys: ApsaraSettings.keys.map(\.setting),
            takesOnlyVideos: true, releaseDoubts: { releaseDoubts($0) }, objections: { objections($0) }),
        http: .ofBucket.to(["endpoint", "upload_endpoint"])
    ) { values, tools in try Apsara(values, tools) }

    private static let kindName = "apsara-vod"

    static func releaseDoubts(_ values: [String: SettingValue]) -> [String] {
        let settings = ApsaraSettings.keys.settings(values)
        if settings.authority.source != nil {
            return [
                "with `authorisation` Sluice has no key to ask VOD whether it can use a file, so an upload is "
                    + "complete when the storage has it; set `access_key` or `sts` instead"
            ]
        }
        guard settings.verify == .transfer else { return [] }
        return [
            "`verify: transfer` regards an upload as complete before VOD knows whether it can use it; leave `verify` out, or "
                + "set `transcoded`"
        ]
    }

    static func objections(_ values: [String: SettingValue]) -> [SettingObjection] {
        var all: [SettingObjection] = []
        func object(_ key: String, _ problem: String) { all.append(SettingObjection(key: key, problem: problem)) }
        if let region = values.text("region") {
            if region.isEmpty || !region.utf8.allSatisfy({ S3ValueChecks.isOfHosts($0) }) {
                object("region", "takes small letters, digits and hyphens, like `cn-shanghai`, not `\(region)`")
            } else if region.hasPrefix("oss-") || region.hasPrefix("vod.") {
                object("region", "is the plain name, without `oss-` before it: `\(region.dropFirst(4))`")
            }
        }
        for key in ["endpoint", "upload_endpoint"] {
            if let path = values.text(key).map({ WebAddress($0).path }), !path.isEmpty, path != "/" {
                object(key, "ends with its host")
            }
        }
        if values.has("upload_endpoint"), values.has("endpoint_kind") {
            object("endpoint_kind", "has no effect with `upload_endpoint`")
        }
        let isOwn = CredentialHelper.isSet(values, in: "authorisation")
        if isOwn {
            for key in ["endpoint", "call_signature", "region"] where values.has(key) && key != "region" {
                object(key, "has no effect with `authorisation`, which calls VOD itself")
            }
        }
        if isOwn, values.text("verify") == ApsaraVerification.transcoded.rawValue {
            object("verify", "is `transcoded`, and with `authorisation` there is no key to ask VOD for that")
        }
        all += CredentialHelper.objections(values, in: "authorisation", lacking: "names no service")
        all += S3Access.objections(values, further: ["authorisation", "sts"], at: "authorisation")
        for (key, _) in ApsaraFields.named {
            guard let template = values.template(key) else { continue }
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
        if let text = values.template("media.tags")?.constant {
            let words = text.split(separator: ",").compactMap { trimmed(String($0)) }
            if words.count > ApsaraFields.maxTags {
                object("media.tags", "are \(words.count), and VOD takes at most \(ApsaraFields.maxTags)")
            }
            if let long = words.first(where: { $0.count > ApsaraFields.longestTag }) {
                object("media.tags", "has `\(long)`, and a tag has at most \(ApsaraFields.longestTag) characters")
            }
        }
        if values.has("media.user_data"), values.has("media.watermark") || values.has("media.priority") {
            for key in ["media.watermark", "media.priority"] where values.has(key) {
                object(key, "has no effect with `user_data`, which replaces it")
            }
        }
        if values.flag("media.transcode") == false, values.has("media.template_group") {
            object("media.transcode", "is `false`, and has no effect with `template_group`")
        }
        return all + S3Settings.objections(values, OSS.unplaced.preset, of: kindName)
    }
}
