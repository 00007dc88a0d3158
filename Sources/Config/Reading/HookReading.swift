internal import Core

/// Reads `hooks`.
extension SettingsReading {
    private static let forms = "`command: [/usr/local/bin/tell]` or `url: https://example.org/hook`"

    /// - Parameters:
    ///   - folders: The names of all folders, including those that could not be read.
    ///   - destinations: The names of all destinations, including those that could not be read.
    func hooks(_ main: Fields, folders: Set<String>, destinations: Set<String>) -> [Hook] {
        var taken: [String: Place] = [:]
        var all: [Hook] = []
        for (index, node) in (main.items("hooks", expected: "a list of hooks") ?? []).enumerated() {
            let fields = Fields(node, .hook, path: "hooks[\(index)]", start: node.start, findings: findings)
            guard case .mapping = node.content else { continue }
            let name = fields.has("name") ? fields.take("name", as: .name)?.value : Hook.name(ofNumber: index)
            if let name, let earlier = taken.updateValue(fields.place(of: "name"), forKey: name) {
                fields.error("another hook is called \(quoted(name)), at \(findings.name(of: earlier))", "name")
            }
            if let hook = hook(fields, name ?? "", folders, destinations) { all.append(hook) }
        }
        return all
    }

    private func hook(_ fields: Fields, _ name: String, _ folders: Set<String>, _ destinations: Set<String>) -> Hook? {
        let on = types(fields)
        let known = (
            names(fields, "folders", folders, what: "folder"),
            names(fields, "destinations", destinations, what: "destination")
        )
        let timeout = fields.take("timeout", as: .duration(.milliseconds(100) ... .seconds(600)))?.value
        let retry = retry(fields.fields("retry", .hookRetry), otherwise: Hook.patience, isOfUploads: false)
        let giveUp = fields.take("give_up_after", as: .duration(.seconds(1) ... .seconds(30 * 86_400)))?.value
        guard let target = target(fields) else { return nil }
        return Hook(
            name: name, on: on, folders: known.0, destinations: known.1, target: target,
            timeout: timeout ?? .seconds(30), retry: retry, giveUpAfter: giveUp ?? .seconds(86_400))
    }

    private func types(_ fields: Fields) -> [String] {
        guard let words = fields.list("on", as: .text("a type of event")) else { return Hook.usual }
        if case .list(let items)? = fields.node("on")?.content, items.isEmpty {
            fields.error("lists no event, so the hook would never run; remove it for completed, failed", "on")
        }
        for word in words where !Hook.types.contains(word.value) {
            let text =
                word.value == "progress"
                ? "is not sent to hooks, because it occurs twice a second; `sluice events` and `/v1/events` follow it"
                : "no event is called \(quoted(word.value))"
                    + suggestion(
                        for: word.value, among: Hook.types, else: "there are: \(Hook.types.joined(separator: ", "))")
            findings.error(text, at: word.place, key: word.key)
        }
        return words.map(\.value)
    }

    private func names(_ fields: Fields, _ key: String, _ known: Set<String>, what: String) -> [String] {
        guard let names = fields.list(key, as: .name) else { return [] }
        if case .list(let items)? = fields.node(key)?.content, items.isEmpty {
            fields.error("names no \(what); take it out for all", key)
        }
        for name in names where !known.contains(name.value) {
            findings.error(
                "no \(what) is called \(quoted(name.value))"
                    + suggestion(
                        for: name.value, among: known.sorted(),
                        else: known.isEmpty ? "there is none" : "there are: \(known.sorted().joined(separator: ", "))"),
                at: name.place, key: name.key)
        }
        return names.map(\.value)
    }

    private func target(_ fields: Fields) -> Hook.Target? {
        guard fields.has("command") != fields.has("url") else {
            let both = fields.has("command")
            fields.error(
                both
                    ? "names a command and an address; make two hooks"
                    : "names neither a command nor an address; write \(Self.forms)", both ? "url" : "command")
            return nil
        }
        if fields.has("command") {
            for key in ["headers", "secret", "ca_file", "network"] where fields.has(key) {
                fields.error("belongs to `url`; a command sends nothing by itself", key)
            }
            guard
                let words = program(
                    fields, example: "/usr/local/bin/tell", meanwhile: "until then the hook does not run")
            else { return nil }
            return .command(words)
        }
        guard let url = fields.take("url", as: .url) else { return nil }
        let secrets = SecretReading(findings: findings, disk: disk, environment: environment)
        let secret = fields.node("secret").flatMap { secrets.secret($0, key: fields.path(of: "secret")) }
        var headers: [String: SecretSource] = [:]
        for entry in fields.node("headers").map({ findings.entries(of: $0, path: fields.path(of: "headers")) }) ?? [] {
            let path = "\(fields.path(of: "headers")).\(entry.key)"
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
        let caFile = fields.take("ca_file", as: .path)
        if let caFile, let trouble = disk.troubleReading(caFile.value) { fields.error(trouble, "ca_file") }
        return .web(
            WebHook(
                url: url.value, headers: headers, secret: secret,
                network: fields.take("network", as: .choice)?.value ?? .policy, caFile: caFile?.value))
    }

    func beforeUpload(_ fields: Fields) -> BeforeUpload? {
        guard fields.has("before_upload") else { return nil }
        let before = fields.fields("before_upload", .beforeUpload)
        let timeout = before.take("timeout", as: .duration(.milliseconds(100) ... .seconds(600)))?.value
        before.require("command", "it is asked before each upload, like `command: [/usr/local/bin/may-go]`")
        guard
            let words = program(before, example: "/usr/local/bin/may-go", meanwhile: "until then uploads wait")
        else { return nil }
        return BeforeUpload(command: words, timeout: timeout ?? .seconds(10))
    }

    /// `command`: a program by its absolute path, and its arguments.
    ///
    /// - Parameter meanwhile: The consequence while it cannot be run, which is no error of the configuration.
    func program(_ fields: Fields, example: String, meanwhile: String) -> [String]? {
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
