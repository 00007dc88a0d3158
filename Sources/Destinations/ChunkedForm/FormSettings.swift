internal import Core

/// A person's settings for a form, completed by the values of the preset.
struct FormSettings: Sendable {
    /// One kind of request: its address relative to the destination's, and its contents.
    struct Message: Sendable {
        var method: String
        /// Another address of the same server; empty for the destination's own.
        var url: FormTemplate
        var fields: [String: FormTemplate]
        var query: [String: FormTemplate]
        var headers: [String: FormTemplate]
        /// How the fields are written.
        var encoding: Encoding

        var templates: [FormTemplate] {
            [url] + Array(fields.values) + Array(query.values) + Array(headers.values)
        }
    }

    enum Encoding: String, Sendable, CaseIterable { case multipart, urlencoded }

    struct FilePart: Sendable {
        var name: FormTemplate
        var filename: FormTemplate
        var contentType: FormTemplate

        var templates: [FormTemplate] { [name, filename, contentType] }
    }

    struct Open: Sendable {
        var message: Message
        /// A file part without bytes; `nil` for none.
        var part: FilePart?
        var token: JSONPointer
    }

    enum Probe: Sendable {
        /// A request for each part.
        case each(Message, FormStatuses)
        /// A list of numbers in one answer; the first part has the number `base`.
        case list(Message, JSONPointer, base: Int)
        /// A header of the answer to each part: `0-N`, where N is the last byte that the server has.
        case header(String)
    }

    struct Finish: Sendable {
        var message: Message
        /// Files with a single part skip it.
        var skipsSinglePart: Bool
        var url: JSONPointer?
    }

    struct Abort: Sendable {
        var message: Message
        var statuses: FormStatuses
    }

    enum IDRule: String, Sendable, CaseIterable {
        case uuid4
        /// Size, path and the beginning of a digest of content and path: the same file always has the same id.
        case sizeName = "size-name"
    }

    enum Announcement: String, Sendable, CaseIterable { case nominal, actual }

    var preset: String
    var blockSize: Int64
    var rule: PartPlan.Rule
    var announced: Announcement
    var id: IDRule
    var repeatsSafely: Bool
    var headers: [String: FormTemplate]
    var open: Open?
    var send: Message
    var part: FilePart
    var omitted: Set<String>
    var omittedWhenSingle: Set<String>
    /// Fields of only the first block with which an upload continues.
    var onlyWhenResumed: Set<String>
    var success: FormRule
    var permanent: FormRule
    var restart: FormRule
    var done: JSONPointer?
    var newID: JSONPointer?
    var probe: Probe?
    var finish: Finish?
    var abort: Abort?
    /// Secrets that templates use, by their names in the templates.
    var secrets: [String: SecretSource]

    /// Whether a part is sent with a digest that the server can compare.
    var sendsDigest: Bool { (send.templates + part.templates).contains { $0.names.contains { $0.isDigest } } }
}

extension Dictionary where Key == String, Value == SettingValue {
    /// Merges a person's settings over a preset: maps name by name, all other values as a whole. Settings that choose
    /// another inquiry than the preset, `list` or `header`, drop the preset's question for each block. Settings with
    /// their own statuses for `success` replace the whole rule, since the preset's conditions belong to its own
    /// statuses.
    func mergedOver(_ preset: [String: SettingValue]) -> [String: SettingValue] {
        var preset = preset
        if self["success.status"] != nil { preset["success.json"] = nil }
        if self["finish"] == .text(SettingKey.none) { preset = preset.filter { !$0.key.hasPrefix("finish.") } }
        if ["probe.list", "probe.header"].contains(where: { self[$0] != nil && preset[$0] == nil }) {
            preset["probe.query"] = nil
        }
        return preset.merging(self) { old, new in
            if case .map(let old) = old, case .map(let new) = new { return .map(old.merging(new) { $1 }) }
            return new
        }
    }
}
