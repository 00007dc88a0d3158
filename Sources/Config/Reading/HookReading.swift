internal import Core

/// Reads `hooks`.
extension SettingsReading {
    private static let forms = "`command: [/usr/local/bin/tell]` or `url: https://example.org/hook`"

    func hooks(_ main: MappingReader) -> [Hook] {
        var taken: [String: ConfigLocation] = [:]
        var all: [Hook] = []
        for (index, node) in (main.items("hooks", expected: "a list of hooks") ?? []).enumerated() {
            let fields = MappingReader(node, .hook, path: "hooks[\(index)]", start: node.start, findings: findings)
            guard case .mapping = node.content else { continue }
            var hook = Hook(name: Hook.name(ofNumber: index), target: .command(CommandHook([])))
            let readable = Hook.keys.read(fields, into: &hook, self)
            if readable.contains("name") || !fields.has("name"),
                let earlier = taken.updateValue(fields.place(of: "name"), forKey: hook.name)
            {
                fields.error("another hook is called \(quoted(hook.name)), at \(findings.name(of: earlier))", "name")
            }
            if let target = target(fields) {
                hook.target = target
                all.append(hook)
            }
        }
        return all
    }

    func types(_ fields: MappingReader) -> [EventType]? {
        let known = EventType.forHooks.map(\.rawValue)
        guard let words = fields.list("on", as: .text("a type of event")) else { return nil }
        if case .list(let items)? = fields.node("on")?.content, items.isEmpty {
            fields.error("lists no event, so the hook would never run; remove it for completed, failed", "on")
        }
        for word in words where !known.contains(word.value) {
            let text =
                word.value == EventType.progress.rawValue
                ? "is not sent to hooks, because it occurs twice a second; `sluice events` and `/v1/events` follow it"
                : "no event is called \(quoted(word.value))"
                    + suggestion(for: word.value, among: known)
            findings.error(text, at: word.place, key: word.key)
        }
        return words.map { EventType(rawValue: $0.value) }
    }

    func names(_ fields: MappingReader, _ key: String, _ what: String, _ known: Set<String>) -> [String]? {
        guard let names = fields.list(key, as: .name) else { return nil }
        if case .list(let items)? = fields.node(key)?.content, items.isEmpty {
            fields.error("names no \(what); take it out for all", key)
        }
        for name in names { _ = isKnown(name, what, known) }
        return names.map(\.value)
    }

    /// Reports the name of a folder or destination that nothing has.
    ///
    /// - Parameter remedy: What to do where there is none at all.
    func isKnown(_ name: MappingReader.Found<String>, _ what: String, _ known: Set<String>, remedy: String? = nil)
        -> Bool
    {
        if known.contains(name.value) { return true }
        findings.error(
            "no \(what) is called \(quoted(name.value))"
                + suggestion(for: name.value, among: known.sorted(), else: known.isEmpty ? remedy : nil),
            at: name.place, key: name.key)
        return false
    }

    private func target(_ fields: MappingReader) -> Hook.Target? {
        guard fields.has("command") != fields.has("url") else {
            let both = fields.has("command")
            fields.error(
                both
                    ? "names a command and an address; make two hooks"
                    : "names neither a command nor an address; write \(Self.forms)", both ? "url" : "command")
            return nil
        }
        if fields.has("command") {
            for key in ["headers", "secret", "ca_file"] where fields.has(key) {
                fields.error("belongs to `url`; a command sends nothing by itself", key)
            }
            let servers = ProgramServers(reading: fields)
            return program(fields, example: "/usr/local/bin/tell", meanwhile: "until then the hook does not run")
                .map { .command(CommandHook($0, servers: servers)) }
        }
        ProgramServers.refuse(besideURL: fields)
        guard let url = fields.read("url", as: .url) else { return nil }
        let secret = fields.node("secret").flatMap { secrets.secret($0, key: fields.path(of: "secret")) }
        var headers: [String: SecretSource] = [:]
        for entry in fields.node("headers").map({ findings.entries(of: $0, path: fields.path(of: "headers")) }) ?? [] {
            let path = findings.path(of: entry, in: fields.path(of: "headers"))
            guard findings.read(Node(key: entry.key, at: entry.place), path: path, as: .headerName) != nil else {
                continue
            }
            let word = entry.key.lowercased()
            if word == "content-type" || word == "content-length" || word.hasPrefix("webhook-") {
                findings.error("is set by Sluice; remove it", at: entry.place, key: path)
            } else if let value = secrets.value(entry.value, key: path, name: entry.key) {
                headers[entry.key] = value
            }
        }
        let caFile = fields.certificates(for: url.value, disk)
        return .web(
            WebHook(
                url: url.value, headers: headers, secret: secret,
                network: fields.read("network", as: .choice)?.value ?? .policy, caFile: caFile))
    }

    func beforeUpload(_ fields: MappingReader) -> BeforeUpload? {
        guard fields.has("before_upload") else { return nil }
        let before = fields.fields("before_upload", .beforeUpload)
        before.require("command", "it is asked before each upload, like `command: [/usr/local/bin/may-go]`")
        var question = BeforeUpload(command: [])
        return BeforeUpload.keys.read(before, into: &question, self).contains("command") ? question : nil
    }

    /// `command`: a program by its absolute path, and its arguments.
    ///
    /// - Parameter meanwhile: The consequence while it cannot be run, which is no error of the configuration.
    func program(_ fields: MappingReader, example: String, meanwhile: String) -> [String]? {
        guard let words = fields.list("command", as: .text), let program = words.first else {
            if case .list(let items)? = fields.node("command")?.content, items.isEmpty {
                fields.error("takes a program and its arguments, like `[\(example)]`", "command")
            }
            return nil
        }
        guard program.value.hasPrefix("/") else {
            fields.error("takes the program by its absolute path; no shell looks for it", "command", at: program.place)
            return nil
        }
        if let trouble = disk.troubleRunning(FilePath(program.value)) {
            fields.warning(trouble + "; " + meanwhile, "command", at: program.place)
        }
        return words.map(\.value)
    }
}
