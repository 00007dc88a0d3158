internal import Core

/// What a person set for a form, with the preset's values where nothing was set.
struct FormSettings: Sendable {
    /// One kind of request: its address relative to the destination's, and what it carries.
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
        /// Without a byte in it; `nil` for none.
        var part: FilePart?
        var token: JSONPointer
    }

    enum Probe: Sendable {
        /// A request for each part.
        case each(Message, FormStatuses)
        /// A list of numbers in one answer; the first part's is `base`.
        case list(Message, JSONPointer, base: Int)
        /// A header of the answer to each part: `0-N`, with the last byte that is there.
        case header(String)
    }

    struct Finish: Sendable {
        var message: Message
        /// Files of one part need none.
        var isForManyOnly: Bool
        var url: JSONPointer?
    }

    struct Abort: Sendable {
        var message: Message
        var statuses: FormStatuses
    }

    enum IDRule: String, Sendable, CaseIterable {
        case uuid4
        /// Size, path and the beginning of a digest of content and path: the same file has the same one again.
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
    /// Of the first block alone with which an upload is taken up again.
    var onlyWhenResumed: Set<String>
    var success: FormRule
    var permanent: FormRule
    var restart: FormRule
    var done: JSONPointer?
    var newID: JSONPointer?
    var probe: Probe?
    var finish: Finish?
    var abort: Abort?
    /// Secrets that templates name, by the names that they have there.
    var secrets: [String: SecretSource]

    /// Whether a part is sent with a digest that the server can compare.
    var sendsDigest: Bool { (send.templates + part.templates).contains { $0.names.contains { $0.isDigest } } }
}

extension Dictionary where Key == String, Value == SettingValue {
    /// What a person set over what a preset has: of maps name by name, of all else the whole value. Who asks in another
    /// way than the preset, by `list` or `header`, begins without its question for each block. Who sets the statuses of
    /// `success` writes that rule anew: the preset's conditions were about its own.
    func over(_ preset: [String: SettingValue]) -> [String: SettingValue] {
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
