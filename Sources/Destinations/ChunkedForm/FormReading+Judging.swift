internal import Core

/// Checks of several keys together.
extension FormReading {
    /// ext4 holds no larger file, so a block of this size means "never cut". Beyond it the unit is a mistake.
    private static let largestBlock: Int64 = 16 << 40

    mutating func judge(_ settings: FormSettings) {
        judgeBlocks(settings)
        judgeNames(settings)
        judgeOmissions(settings)
        judgeAnswers(settings)
        judgeParts("send", settings.send, settings.part, without: settings.omitted)
        if let open = settings.open { judgeParts("open", open.message, open.part, without: settings.omitted) }
        judgeHeaders(settings)
        for section in ["open", "finish", "abort"] { judgeMethod(section, settings) }
        if let url = values.text("url"), url.contains(where: { $0 == "{" || $0 == "}" }) {
            object("url", "is used as it is: names in braces are not replaced; use them in `send.url`")
        }
    }

    private mutating func judgeBlocks(_ settings: FormSettings) {
        if settings.blockSize < 1 || settings.blockSize > Self.largestBlock {
            object("block.size", "takes 1 B to 16 TiB: no file is larger; the preset's size is used where none is set")
        }
        guard let parallel = values.whole("parallel_blocks"), parallel > 1 else { return }
        if !settings.repeatsSafely {
            object(
                "parallel_blocks",
                "must be 1: this server joins blocks in the order of their arrival (`repeat_safe: false`)")
        } else if case .header = settings.probe {
            object("parallel_blocks", "must be 1: this server answers each block with how far it got")
        }
    }

    /// Whether one of them distinguishes the blocks of a file.
    func namesBlock(_ templates: [FormTemplate]) -> Bool {
        let places: [FormName] = [.index0, .index1, .offset, .end, .last]
        return templates.contains { $0.names.contains(where: places.contains) }
    }

    // MARK: Names in braces

    private typealias Placed = (key: String, template: FormTemplate)

    private func placed(_ key: String, _ templates: [String: FormTemplate]) -> [Placed] {
        templates.sorted { $0.key < $1.key }.map { ("\(key).\($0.key)", $0.value) }
    }

    private func placed(_ section: String, _ message: FormSettings.Message?, _ part: FormSettings.FilePart?) -> [Placed]
    {
        guard let message else { return [] }
        var all: [Placed] = [("\(section).url", message.url)]
        all += placed("\(section).fields", message.fields) + placed("\(section).query", message.query)
        all += placed("\(section).headers", message.headers)
        guard let part else { return all }
        return all + [
            ("\(section).file_part.name", part.name), ("\(section).file_part.filename", part.filename),
            ("\(section).file_part.content_type", part.contentType),
        ]
    }

    private mutating func refuse(_ name: FormName, in placed: [Placed], _ why: String) {
        for (key, template) in placed where template.names.contains(name) {
            object(key, "names `{\(name.rawValue)}`, \(why)")
        }
    }

    private mutating func judgeNames(_ settings: FormSettings) {
        let left = placed("send", settings.send, nil).filter { place in
            !settings.omitted.union(settings.onlyWhenResumed).contains { place.key.hasSuffix(".\($0)") }
        }
        if !namesBlock(left.map(\.template)) {
            object(
                "send",
                "does not say which block it carries: a field, `query`, `headers` or `url` must contain `{index0}`, `{index1}`, "
                    + "`{offset}`, `{end}` or `{last}`")
        }
        let headers = placed("headers", settings.headers)
        let open = placed("open", settings.open?.message, settings.open?.part)
        let finish = placed("finish", settings.finish?.message, nil)
        let abort = placed("abort", settings.abort?.message, nil)
        var list: [Placed] = []
        var each: [Placed] = []
        switch settings.probe {
        case .list(let message, _, _): list = placed("probe", message, nil)
        case .each(let message, _): each = placed("probe", message, nil)
        case .header, nil: break
        }
        for name in FormName.allCases where name.isOfPart {
            refuse(
                name, in: open + list + finish + abort,
                "which is about one block, and this request is about the whole file")
            refuse(
                name, in: headers,
                "which is about one block, and these go with every request; put it under `send.headers`")
        }
        refuse(.token, in: open, "which only the answer to this request gives")
        if !has("open") {
            let all = placed("send", settings.send, settings.part) + headers + list + each + finish + abort
            refuse(.token, in: all, "and without `open` no server gives one")
        }
        for name in [FormName.mtime, .mtimeMS] {
            refuse(name, in: abort, "which is not known any more when an upload is removed; take it out")
        }
    }

    private mutating func judgeOmissions(_ settings: FormSettings) {
        var known = Set(settings.headers.keys)
        for names in [settings.send.fields, settings.send.query, settings.send.headers] { known.formUnion(names.keys) }
        for key in ["send.omit", "send.omit_when_single", "send.only_when_resumed"] {
            for name in values.texts(key) ?? [] where !known.contains(name) {
                object(
                    key,
                    "names `\(name)`, and the request has no such field, parameter or header"
                        + (closest(to: name, among: known.sorted()).map { "; did you mean `\($0)`?" }
                            ?? (known.isEmpty
                                ? "; take it out" : "; there are: \(known.sorted().joined(separator: ", "))"))
                )
            }
        }
    }

    // MARK: Answers

    private mutating func judgeAnswers(_ settings: FormSettings) {
        // Plupload counts redirects as success; its preset follows what its servers expect.
        let preset = FormPreset.named(settings.preset)?.values["success.status"]
        if values["success.status"] != preset, settings.success.statuses.ranges.contains(where: { $0.upperBound > 299 })
        {
            object(
                "success.status",
                "takes statuses from 200 to 299, like `[200, 201]`: no other status means that the server has a block")
        }
        for (section, rule) in [("permanent", settings.permanent), ("restart", settings.restart)] {
            let both = (200...599).first { rule.statuses.contains($0) && settings.success.statuses.contains($0) }
            if let both {
                object(
                    "\(section).status",
                    "has \(both), which `success` has too: take it out of one of them, or tell them apart by `json`")
            }
        }
    }

    // MARK: Duplicate names

    /// Many servers keep only one of two parts with the same name.
    private mutating func judgeParts(
        _ section: String, _ message: FormSettings.Message, _ part: FormSettings.FilePart?, without omitted: Set<String>
    ) {
        guard case .text(let name)? = part?.name.pieces.first, part?.name.pieces.count == 1,
            message.fields[name] != nil, !omitted.contains(name)
        else { return }
        object("\(section).file_part.name", "is `\(name)`, and a field has the same name: rename one of them")
    }

    private mutating func judgeHeaders(_ settings: FormSettings) {
        let sections: [(String, FormSettings.Message?)] = [
            ("send", settings.send), ("open", settings.open?.message), ("finish", settings.finish?.message),
            ("abort", settings.abort?.message),
        ]
        // Values that are left out cannot collide.
        func sent(_ names: some Sequence<String>) -> [String] {
            names.filter { !settings.omitted.contains($0) }.sorted()
        }
        let all = sent((values.map("headers") ?? [:]).keys)
        judgeHeaders("headers", all, among: all)
        for (section, message) in sections {
            guard let names = message.map({ sent($0.headers.keys) }) else { continue }
            judgeHeaders("\(section).headers", names, among: all + names)
        }
    }

    private mutating func judgeHeaders(_ key: String, _ names: [String], among known: [String]) {
        for (index, name) in names.enumerated() {
            // The later of two duplicates in one map is reported.
            let earlier = known.filter { !names[index...].contains($0) }
            if let other = earlier.first(where: { $0 != name && $0.lowercased() == name.lowercased() }) {
                object(
                    "\(key).\(name)",
                    "differs from `\(other)` only in case, which headers ignore: write it the same way")
            }
        }
    }

    private mutating func judgeMethod(_ section: String, _ settings: FormSettings) {
        guard values.text("\(section).method") == "GET" else { return }
        let hasBody =
            switch section {
            case "open": settings.open.map { !$0.message.fields.isEmpty || $0.part != nil } ?? false
            case "finish": settings.finish.map { !$0.message.fields.isEmpty } ?? false
            default: settings.abort.map { !$0.message.fields.isEmpty } ?? false
            }
        if hasBody {
            object(
                "\(section).method",
                "cannot be `GET`, which carries no form: take POST, or write the fields under `query`"
                    + (section == "open" ? " and set `file_part: {body: absent}`" : ""))
        }
    }
}
