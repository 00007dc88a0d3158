internal import Core
internal import Transport

/// Makes settings of values, and collects what is wrong with them, each with its key.
struct FormReading {
    private let values: [String: SettingValue]
    private var secrets: [String: SecretSource] = [:]
    private(set) var objections: [SettingObjection] = []

    /// - Parameter values: Of the right kinds, a preset's among them.
    init(_ values: [String: SettingValue]) {
        self.values = values
        secrets = map("secrets")
        if case .secret(let source)? = values["credential"] { secrets[FormValues.credential] = source }
    }

    mutating func settings() -> FormSettings {
        let send = message("send", otherwise: "POST", encoding: .multipart)
        let part = part("send", otherwise: "file")
        var settings = FormSettings(
            preset: text("preset") ?? "custom", blockSize: bytes("block.size") ?? 1 << 20,
            rule: word("block.rule") ?? .short, announced: word("block.announce") ?? .nominal,
            id: word("id") ?? .uuid4, repeatsSafely: flag("repeat_safe") ?? true,
            headers: templates("headers", literalsOnly: true),
            open: nil, send: send, part: part, omitted: Set(texts("send.omit") ?? []),
            omittedWhenSingle: Set(texts("send.omit_when_single") ?? []),
            success: rule("success", otherwise: ["200-299"]), permanent: rule("permanent", otherwise: []),
            restart: rule("restart", otherwise: []), done: pointer("done"), newID: pointer("new_id"),
            probe: probe(), finish: finish(), abort: abort(), secrets: [:])
        if has("open") { settings.open = open() }
        if settings.blockSize < 1 { object("block.size", "must be at least 1 B") }
        judge(settings)
        settings.secrets = secrets
        return settings
    }

    /// What no key has by itself.
    private mutating func judge(_ settings: FormSettings) {
        if case .whole(let parallel)? = values["parallel_blocks"], parallel > 1 {
            if !settings.repeatsSafely {
                object(
                    "parallel_blocks", "must be 1: this server puts blocks together as they come (`repeat_safe: false`)"
                )
            } else if case .header = settings.probe {
                object("parallel_blocks", "must be 1: this server answers each block with how far it got")
            }
        }
        let left = settings.send.fields.filter { !settings.omitted.contains($0.key) }.values
        let tells = [settings.send.url] + left + settings.send.query.values + settings.send.headers.values
        let places: [FormName] = [.index0, .index1, .offset, .end, .last]
        if !tells.contains(where: { $0.names.contains(where: places.contains) }) {
            object(
                "send",
                "does not say which block it carries: a field, `query`, `headers` or `url` is to name `{index0}`, `{index1}`, "
                    + "`{offset}`, `{end}` or `{last}`")
        }
        let all = settings.send.templates + (settings.finish?.message.templates ?? [])
        if settings.open == nil, all.contains(where: { $0.names.contains(.token) }) {
            object("send.fields", "names `{token}`, and without `open` no server gives one")
        }
        for (section, message) in [
            ("open", settings.open?.message), ("finish", settings.finish?.message), ("abort", settings.abort?.message),
        ] {
            guard let names = message?.templates.flatMap(\.names), let name = names.first(where: \.isOfPart) else {
                continue
            }
            object(
                "\(section).fields",
                "names `{\(name.rawValue)}`, which is about one block, and this request is about the whole file")
        }
    }

    // MARK: Sections

    private func has(_ section: String) -> Bool { values.keys.contains { $0.hasPrefix(section + ".") } }

    private mutating func message(
        _ section: String, otherwise method: String, encoding: FormSettings.Encoding
    ) -> FormSettings.Message {
        FormSettings.Message(
            method: text("\(section).method") ?? method, url: address("\(section).url"),
            fields: templates("\(section).fields"), query: templates("\(section).query"),
            headers: templates("\(section).headers"), encoding: word("\(section).encoding") ?? encoding)
    }

    private mutating func part(_ section: String, otherwise name: String) -> FormSettings.FilePart {
        FormSettings.FilePart(
            name: template("\(section).file_part.name", otherwise: name),
            filename: template("\(section).file_part.filename", otherwise: "{name}"),
            contentType: template("\(section).file_part.content_type", otherwise: "application/octet-stream"))
    }

    private mutating func open() -> FormSettings.Open? {
        let message = message("open", otherwise: "POST", encoding: .multipart)
        let isAbsent = text("open.file_part.body") == "absent"
        let part = isAbsent ? nil : part("open", otherwise: "file")
        guard let token = pointer("open.token") else {
            object("open.token", "is missing: where the answer names the upload, like `/data/upToken`")
            return nil
        }
        return FormSettings.Open(message: message, part: part, token: token)
    }

    private mutating func probe() -> FormSettings.Probe? {
        let ways = ["query", "list", "header"].filter { values["probe.\($0)"] != nil }
        if ways.contains("list") && ways.contains("header") {
            object("probe.header", "cannot stand beside `list`: a server tells in one way what it has")
        }
        if let name = text("probe.header") { return .header(name) }
        guard !ways.isEmpty else { return nil }
        let message = message("probe", otherwise: "GET", encoding: .urlencoded)
        if let list = pointer("probe.list") {
            var base = 1
            if case .whole(let number)? = values["probe.base"] { base = number }
            return .list(message, list, base: base)
        }
        return .each(message, statuses("probe.status", otherwise: ["200"]))
    }

    private mutating func finish() -> FormSettings.Finish? {
        guard has("finish") else { return nil }
        return FormSettings.Finish(
            message: message("finish", otherwise: "POST", encoding: .urlencoded),
            isForManyOnly: text("finish.when") == "multi", url: pointer("finish.take"))
    }

    private mutating func abort() -> FormSettings.Abort? {
        guard has("abort") else { return nil }
        return FormSettings.Abort(
            message: message("abort", otherwise: "POST", encoding: .urlencoded),
            statuses: statuses("abort.status", otherwise: ["200-299", "404", "410"]))
    }

    private mutating func rule(_ section: String, otherwise: [String]) -> FormRule {
        let found = statuses("\(section).status", otherwise: otherwise)
        var conditions: [FormCondition] = []
        for text in texts("\(section).json") ?? [] {
            guard let condition = FormCondition(text) else {
                object("\(section).json", "takes conditions like \(FormCondition.forms), and has `\(text)`")
                continue
            }
            conditions.append(condition)
        }
        return FormRule(statuses: found, conditions: conditions)
    }

    // MARK: Values

    private func text(_ key: String) -> String? {
        if case .text(let text)? = values[key] { text } else { nil }
    }

    private func texts(_ key: String) -> [String]? {
        if case .texts(let texts)? = values[key] { texts } else { nil }
    }

    private func flag(_ key: String) -> Bool? {
        if case .flag(let flag)? = values[key] { flag } else { nil }
    }

    private func bytes(_ key: String) -> Int64? {
        if case .bytes(let bytes)? = values[key] { bytes } else { nil }
    }

    private func word<Word: RawRepresentable>(_ key: String) -> Word? where Word.RawValue == String {
        text(key).flatMap { Word(rawValue: $0) }
    }

    private func map(_ key: String) -> [String: SecretSource] {
        if case .map(let map)? = values[key] { map } else { [:] }
    }

    private mutating func object(_ key: String, _ problem: String) {
        objections.append(SettingObjection(key: key, problem: problem))
    }

    /// `none` takes away what a preset has.
    private mutating func pointer(_ key: String) -> JSONPointer? {
        guard let text = text(key), text != "none" else { return nil }
        guard let pointer = JSONPointer(text) else {
            object(key, "takes a JSON pointer, like `/data/fileUrl`, or `none`, and not `\(text)`")
            return nil
        }
        return pointer
    }

    private mutating func statuses(_ key: String, otherwise: [String]) -> FormStatuses {
        do { return try FormStatuses(texts(key) ?? otherwise) } catch {
            object(key, error.problem)
            return FormStatuses.none
        }
    }

    private mutating func template(_ key: String, otherwise: String) -> FormTemplate {
        parsed(text(key) ?? otherwise, key)
    }

    private mutating func address(_ key: String) -> FormTemplate {
        guard let text = text(key) else { return FormTemplate([]) }
        if WebAddress(text).authority != nil || text.contains(where: \.isWhitespace) {
            object(key, "takes a path on the destination's own server, like `/upload/done`: secrets go nowhere else")
        }
        return parsed(text, key)
    }

    private mutating func parsed(_ text: String, _ key: String) -> FormTemplate {
        do {
            let template = try FormTemplate(text)
            for name in template.secrets where secrets[name] == nil {
                object(key, "names `{secret:\(name)}`, and `secrets` has no `\(name)`")
            }
            // Alone it is empty where the server wants none, as presets have it.
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
        for (name, source) in map(key) {
            guard case .literal(let text) = source else {
                if literalsOnly { continue }
                // A secret that is given in place of a text.
                secrets["\(key).\(name)"] = source
                templates[name] = FormTemplate([.secret("\(key).\(name)")])
                continue
            }
            templates[name] = parsed(text, "\(key).\(name)")
        }
        return templates
    }
}

extension FormStatuses {
    static let none = FormStatuses()

    private init() { ranges = [] }
}
