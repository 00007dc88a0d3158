internal import Core

/// The kind of medium that ApsaraVideo VOD makes of a file. VOD decides by the ending of the name alone (VOD developer
/// guide, "Upload overview", supported formats), regardless of the content.
enum ApsaraMediaKind: String, Sendable, CaseIterable {
    case video, audio, image

    private static let endings: [(ApsaraMediaKind, [String])] = [
        (
            .video,
            [
                "mp4", "ts", "3gp", "mpg", "mpeg", "mpe", "dat", "vob", "asf", "avi", "wmv", "flv", "f4v", "rm", "rmvb",
                "mov", "mkv", "m3u8", "dv", "gif", "m2t", "m4v", "mj2", "mjpeg", "mts", "ogg", "qt", "swf", "webm",
            ]
        ),
        (.audio, ["mp3", "wma", "wav", "aac", "ra", "m4a", "flac", "ape", "ac3", "amr", "caf", "acm"]),
        // Only endings that are no video: a `gif` may be either, and the vendor's own client treats it as a picture.
        (.image, ["png", "jpg", "jpeg", "gif", "heic", "webp"]),
    ]

    private static let byEnding: [String: ApsaraMediaKind] = {
        var table: [String: ApsaraMediaKind] = [:]
        for (sort, words) in endings { for word in words { table[word] = sort } }
        return table
    }()

    /// - Returns: `nil` for an ending that the service does not accept.
    static func of(_ name: FilePath) -> ApsaraMediaKind? { ending(of: name).flatMap { byEnding[$0] } }

    /// The ending in lower case.
    static func ending(of name: FilePath) -> String? { name.fileExtension.flatMap { $0.text }?.lowercased() }
}

/// Fields that are sent to VOD for every file, in addition to those from templates.
struct ApsaraFields: Hashable, Sendable {
    /// `false`: VOD keeps the file as it is.
    var transcode: Bool?
    var process: Bool?
    var watermark: Bool?
    var priority: Int?
    /// `default`, or `cover`.
    var imageType = "default"
}

extension ApsaraFields {
    /// Whether the request that ends the upload carries a notification for the service.
    var needsEnd: Bool { process != nil || watermark != nil || priority != nil }

    /// The fields that are sent to the service for one file, and warnings about values that had to be cut.
    struct MetadataFields: Hashable, Sendable {
        /// Fields by the service's own names (VOD API reference, "CreateUploadVideo", "CreateUploadImage").
        var fields: [String: String] = [:]
        /// The notification at the end of the upload; `nil` for none.
        var notification: JSONValue?
        var warnings: [String] = []
    }

    struct InvalidTextError: Error, Hashable { let text: String }

    /// Limits: characters of a text, and number of tags.
    static let longestTitle = 128
    static let longestDescription = 1024
    static let longestTag = 32
    static let maxTags = 16

    /// Keys of the section `media` that a template fills, with the service's names for them.
    static let named = [
        ("media.title", "Title"), ("media.description", "Description"), ("media.tags", "Tags"),
        ("media.category", "CateId"), ("media.cover", "CoverURL"), ("media.template_group", "TemplateGroupId"),
        ("media.workflow", "WorkflowId"), ("media.storage_location", "StorageLocation"),
        ("media.user_data", "UserData"), ("media.app_id", "AppId"),
    ]

    /// - Throws: A sentence for a person, where the text that a template made cannot be used.
    func metadata(of order: UploadOrder, as sort: ApsaraMediaKind) throws(InvalidTextError) -> MetadataFields {
        var metadata = MetadataFields()
        for (key, name) in Self.named {
            guard let text = order.metadata[key].flatMap({ Self.plain($0) }) else { continue }
            if let problem = Self.problem(with: text, at: key) {
                throw InvalidTextError(text: "`\(key)` made `\(FilePath(text).display)`, which \(problem)")
            }
            metadata.fields[name] = text
        }
        let title =
            metadata.fields["Title"] ?? ["title", "name"].lazy.compactMap { order.metadata[$0] }.first.flatMap {
                Self.plain($0)
            }
            ?? Self.plain(order.name.stem.text ?? order.name.stem.display) ?? order.name.name.display
        metadata.fields["Title"] = Self.cut(title, Self.longestTitle, "title", &metadata.warnings)
        if let words = metadata.fields["Description"] ?? order.metadata["description"].flatMap({ Self.plain($0) }) {
            metadata.fields["Description"] = Self.cut(words, Self.longestDescription, "description", &metadata.warnings)
        }
        if let tags = metadata.fields["Tags"] { metadata.fields["Tags"] = Self.tags(tags, &metadata.warnings) }
        let cover = metadata.fields["CoverURL"]
        if sort == .image {
            for name in ["CoverURL", "TemplateGroupId", "WorkflowId"] { metadata.fields[name] = nil }
            metadata.fields["ImageType"] = imageType
        } else if transcode == false, metadata.fields["TemplateGroupId"] == nil {
            metadata.fields["TranscodeMode"] = "NoTranscode"
        }
        metadata.notification = notification(metadata, cover)
        return metadata
    }

    /// The notification at the end of the upload (header `x-oss-notification`). It repeats the fields of the
    /// announcement, as the vendor's clients do.
    private func notification(_ metadata: MetadataFields, _ cover: String?) -> JSONValue? {
        guard needsEnd else { return nil }
        var vod: [String: JSONValue] = [:]
        for (name, own) in [("Title", "Title"), ("Description", "Description"), ("Tags", "Tags"), ("CateId", "CateId")]
        {
            if let text = metadata.fields[own] { vod[name] = .text(text) }
        }
        if let cover { vod["CoverUrl"] = .text(cover) }
        if let process { vod["IsProcess"] = .text("\(process)") }
        if let data = metadata.fields["UserData"].flatMap({ JSONValue.read(Array($0.utf8)) }) {
            vod["UserData"] = data
        } else {
            var data: [String: JSONValue] = [:]
            if let watermark { data["IsShowWaterMark"] = .text("\(watermark)") }
            if let priority { data["Priority"] = .text("\(priority)") }
            if !data.isEmpty { vod["UserData"] = .object(data) }
        }
        return .object(["Vod": .object(vod)])
    }

    /// Returns the problem of a text from a template or the configuration, as the end of a sentence.
    static func problem(with text: String, at key: String) -> String? {
        func isWord(_ marks: String, _ most: Int) -> Bool {
            text.utf8.count <= most && text.utf8.allSatisfy { $0.isLetterOrDigit() || marks.utf8.contains($0) }
        }
        switch key {
        case "media.category":
            return Int64(text).map { $0 > 0 } == true && text.utf8.first != UInt8(ascii: "+")
                ? nil : "is not a category number"
        case "media.cover":
            let isAddress =
                (text.hasPrefix("http://") || text.hasPrefix("https://")) && text.utf8.count > 8
                && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
            return isAddress ? nil : "is not an http or https address"
        case "media.template_group", "media.workflow":
            return isWord("-_", 64) ? nil : "is not an id: letters, digits, `-` and `_`, at most 64"
        case "media.app_id":
            return text.hasPrefix("app-") && isWord("-", 64)
                ? nil : "is not an id of an application, like `app-1000000`"
        case "media.storage_location":
            return isWord("-_.", 256) ? nil : "is not a storage address, like `outin-….oss-cn-shanghai.aliyuncs.com`"
        case "media.user_data":
            if case .object? = JSONValue.read(Array(text.utf8)) { return nil }
            return "is not a JSON object"
        default: return nil
        }
    }

    /// File names may contain line ends and other control characters, which a title must not have.
    private static func plain(_ text: String) -> String? {
        var scalars = String.UnicodeScalarView()
        scalars.append(contentsOf: text.unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 })
        return trimmed(String(scalars))
    }

    private static func cut(_ text: String, _ most: Int, _ what: String, _ warnings: inout [String]) -> String {
        guard text.unicodeScalars.count > most else { return text }
        warnings.append("`media.\(what)` had more than the \(most) characters that VOD takes, and was cut")
        var scalars = String.UnicodeScalarView()
        scalars.append(contentsOf: text.unicodeScalars.prefix(most))
        return String(scalars)
    }

    /// Tags are separated by commas; tags beyond the limit are left out.
    private static func tags(_ text: String, _ warnings: inout [String]) -> String {
        var tags = text.split(separator: ",").compactMap { trimmed(String($0)) }
        if tags.count > maxTags {
            warnings.append("`media.tags` had \(tags.count) tags, and VOD takes \(maxTags): the last were left out")
            tags = Array(tags.prefix(maxTags))
        }
        return tags.map { cut($0, longestTag, "tags", &warnings) }.joined(separator: ",")
    }
}
