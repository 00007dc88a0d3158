internal import Core
internal import Transport

/// Makes settings from values, and collects the problems of the values, each with its key.
struct FormReading {
    let values: [String: SettingValue]
    private var secrets: [String: SecretSource] = [:]
    private(set) var objections: [SettingObjection] = []

    /// - Parameter values: Values of the right kinds, including those of a preset.
    init(_ values: [String: SettingValue]) {
        self.values = values
        if case .secrets(let map)? = values["secrets"] { secrets = map }
        if let source = values.secret("credential") { secrets[FormValues.credential] = source }
    }

    mutating func settings() -> FormSettings {
        let send = message("send", otherwise: "POST", encoding: .multipart)
        let part = part("send", otherwise: "file")
        var settings = FormSettings(
            preset: values.text("preset") ?? "custom", blockSize: values.bytes("block.size") ?? 1 << 20,
            rule: values.word("block.rule") ?? .short, announced: values.word("block.announce") ?? .nominal,
            id: values.word("id") ?? .uuid4, repeatsSafely: values.flag("repeat_safe") ?? true,
            headers: templates("headers", literalsOnly: true),
            open: nil, send: send, part: part, omitted: Set(values.texts("send.omit") ?? []),
            omittedWhenSingle: Set(values.texts("send.omit_when_single") ?? []),
            onlyWhenResumed: Set(values.texts("send.only_when_resumed") ?? []),
            success: rule("success", otherwise: ["200-299"]), permanent: rule("permanent", otherwise: []),
            restart: rule("restart", otherwise: []), done: pointer("done"), newID: pointer("new_id"),
            probe: probe(), finish: finish(), abort: abort(), secrets: [:])
        if has("open") { settings.open = open() }
        judge(settings)
        settings.secrets = secrets
        return settings
    }

    // MARK: Sections

    func has(_ section: String) -> Bool { values.keys.contains { $0.hasPrefix(section + ".") } }

    private mutating func message(
        _ section: String, otherwise method: String, encoding: FormSettings.Encoding
    ) -> FormSettings.Message {
        FormSettings.Message(
            method: values.text("\(section).method") ?? method, url: address("\(section).url"),
            fields: templates("\(section).fields"), query: templates("\(section).query"),
            headers: templates("\(section).headers"), encoding: values.word("\(section).encoding") ?? encoding)
    }

    private mutating func part(_ section: String, otherwise name: String) -> FormSettings.FilePart {
        FormSettings.FilePart(
            name: template("\(section).file_part.name", otherwise: name),
            filename: template("\(section).file_part.filename", otherwise: "{name}"),
            contentType: template("\(section).file_part.content_type", otherwise: "application/octet-stream"))
    }

    private mutating func open() -> FormSettings.Open? {
        let message = message("open", otherwise: "POST", encoding: .multipart)
        let isAbsent = values.text("open.file_part.body") == "absent"
        let part = isAbsent ? nil : part("open", otherwise: "file")
        guard let token = pointer("open.token") else {
            if values.text("open.token").map({ $0 == "none" }) ?? true {
                object("open.token", "is missing: where the answer names the upload, like `/data/upToken`")
            }
            return nil
        }
        return FormSettings.Open(message: message, part: part, token: token)
    }

    private mutating func probe() -> FormSettings.Probe? {
        guard has("probe") else { return nil }
        let message = message("probe", otherwise: "GET", encoding: .urlencoded)
        let list = values.text("probe.list")
        if values.has("probe.base"), list == nil {
            object(
                "probe.base", "is the first number of a list, and `list` is not set: take it out, or say where one is")
        }
        if let name = values.text("probe.header") {
            if list != nil {
                object(
                    "probe.header", "cannot be set together with `list`: a server reports its blocks in one way only")
            }
            if !isToken(name) { object("probe.header", "takes the name of a header, like `Range`, and not `\(name)`") }
            return .header(name)
        }
        if list != nil {
            return pointer("probe.list").map { .list(message, $0, base: values.whole("probe.base") ?? 1) }
        }
        if !namesBlock([message.url] + message.query.values) {
            object(
                "probe",
                "does not say which block to ask for: `query` or `url` must contain it (`{index0}`, `{index1}`, `{offset}`, "
                    + "`{end}` or `{last}`), or `list` or `header` names where the server lists its blocks")
            return nil
        }
        let known = statuses("probe.status", otherwise: ["200"])
        if values.texts("probe.status") == [] {
            object(
                "probe.status", "is empty, so no answer would confirm a block; list some, like `[200]`")
        }
        return .each(message, known)
    }

    private mutating func finish() -> FormSettings.Finish? {
        guard has("finish") else {
            if FormPreset.needingFinish.contains(values.text("preset") ?? ""), values.text("finish") != SettingKey.none
            {
                object(
                    "finish",
                    "is missing: servers of this preset keep blocks until a request of their own joins them; say which one, "
                        + "like `{url: /merge, fields: {id: \"{id}\"}, when: multi}`, or write `finish: none` for one that needs none"
                )
            }
            return nil
        }
        return FormSettings.Finish(
            message: message("finish", otherwise: "POST", encoding: .urlencoded),
            skipsSinglePart: values.text("finish.when") == "multi", url: pointer("finish.take"))
    }

    private mutating func abort() -> FormSettings.Abort? {
        guard has("abort") else { return nil }
        return FormSettings.Abort(
            message: message("abort", otherwise: "POST", encoding: .urlencoded),
            statuses: statuses("abort.status", otherwise: ["200-299", "404", "410"]))
    }

    private mutating func rule(_ section: String, otherwise: [String]) -> FormRule {
        let found = statuses("\(section).status", otherwise: otherwise)
        if section == "success", values.texts("success.status") == [] {
            object(
                "success.status", "is empty, so no answer would acknowledge a block; list some, like `[200-299]`")
        }
        var conditions: [FormCondition] = []
        for text in values.texts("\(section).json") ?? [] {
            guard let condition = FormCondition(text) else {
                object("\(section).json", "takes conditions like \(FormCondition.forms), and has `\(text)`")
                continue
            }
            conditions.append(condition)
        }
        return FormRule(statuses: found, conditions: conditions)
    }

    // MARK: Values

    mutating func object(_ key: String, _ problem: String) {
        objections.append(SettingObjection(key: key, problem: problem))
    }

    /// `none` removes the preset's value.
    private mutating func pointer(_ key: String) -> JSONPointer? {
        guard let text = values.text(key), text != "none" else { return nil }
        guard let pointer = JSONPointer(text) else {
            object(
                key,
                "takes a JSON pointer, like `/data/fileUrl`, or `none`, and not `\(text)`; a `~` in a name is written "
                    + "`~0`, and a `/` in one `~1`")
            return nil
        }
        return pointer
    }

    private mutating func statuses(_ key: String, otherwise: [String]) -> FormStatuses {
        do { return try FormStatuses(values.texts(key) ?? otherwise) } catch {
            object(key, error.problem)
            return FormStatuses.none
        }
    }

    private mutating func template(_ key: String, otherwise: String) -> FormTemplate {
        parsed(values.text(key) ?? otherwise, key)
    }

    private mutating func address(_ key: String) -> FormTemplate {
        guard let text = values.text(key) else { return FormTemplate([]) }
        if WebAddress(text).authority != nil || text.contains(where: \.isWhitespace) {
            object(key, "takes a path on the destination's own server, like `/upload/done`: secrets go nowhere else")
        }
        return parsed(text, key)
    }

    private mutating func parsed(_ text: String, _ key: String) -> FormTemplate {
        do {
            let template = try FormTemplate(text)
            var known: [String] = []
            if case .secrets(let map)? = values["secrets"] { known = map.keys.sorted() }
            for name in template.secrets where secrets[name] == nil {
                // The name is not repeated: it may be the secret itself.
                let near = closest(to: name, among: known).map { "; did you mean `{secret:\($0)}`?" }
                let all = known.isEmpty ? "" : "; there are: \(known.joined(separator: ", "))"
                object(key, "names a secret that `secrets` does not have\(near ?? all)")
            }
            // A field that is `credential` alone stays empty where the server needs none, as in presets.
            if template.names.contains(.credential), secrets[FormValues.credential] == nil, text != "{credential}" {
                object(key, "names `{credential}`, and `credential` is not set")
            }
            return template
        } catch {
            object(key, error.problem)
            return FormTemplate([])
        }
    }

    private mutating func templates(_ key: String, literalsOnly: Bool = false) -> [String: FormTemplate] {
        var templates: [String: FormTemplate] = [:]
        for (name, source) in values.map(key) ?? [:] {
            if case .json(let object) = source {
                templates[name] = FormTemplate(json(object, "\(key).\(name).json"))
                continue
            }
            guard case .literal(let text) = source else {
                if literalsOnly { continue }
                // A secret in place of a text.
                secrets["\(key).\(name)"] = source
                templates[name] = FormTemplate([.secret("\(key).\(name)")])
                continue
            }
            templates[name] = parsed(text, "\(key).\(name)")
        }
        return templates
    }

    /// A JSON object with sorted names, so that two requests write it in the same way.
    private mutating func json(_ object: [String: SecretSource], _ key: String) -> [FormTemplate.Piece] {
        var pieces: [FormTemplate.Piece] = []
        for (name, source) in object.sorted(by: { $0.key < $1.key }) {
            let path = "\(key).\(name)"
            pieces += [.text(pieces.isEmpty ? "{\"" : ",\""), .inJSON(.text(name)), .text("\":")]
            switch source {
            case .json(let inner): pieces += json(inner, path + ".json")
            case .literal(let text):
                let value = parsed(text, path).pieces
                if case .name(let name)? = value.first, value.count == 1, name.isBareInJSON {
                    pieces += value
                } else {
                    pieces += [.text("\"")] + value.map { .inJSON($0) } + [.text("\"")]
                }
            default:
                secrets[path] = source
                pieces += [.text("\""), .inJSON(.secret(path)), .text("\"")]
            }
        }
        return pieces.isEmpty ? [.text("{}")] : pieces + [.text("}")]
    }
}

extension FormStatuses {
    static let none = FormStatuses()

    private init() { ranges = [] }
}
