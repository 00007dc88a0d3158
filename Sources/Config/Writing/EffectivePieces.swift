internal import Core

/// Converts settings back into the form of the file, key by key.
struct EffectivePieces {
    typealias Fields = [(key: String, piece: EffectivePiece)]

    let hides: Bool
    /// The keys of each type of destination, by full names.
    let keys: [String: [String]]
    private static let hidden = "hidden"

    func root(_ settings: Settings) -> EffectivePiece {
        let staging = settings.staging
        let policy = settings.policy
        let folders = settings.folders.map { ($0.watch.name, folder($0)) }
        let destinations = settings.destinations.map { ($0.name, destination($0)) }
        return .mapping(
            [
                ("version", .value(.number(1))), ("state", .value(.path(settings.state))),
                (
                    "staging",
                    section(
                        .staging,
                        [
                            ("path", .path(staging.path)), ("copy", .plain(staging.copy.rawValue)),
                            ("max_size", staging.maxSize.map { .bytes($0) }), ("keep_free", .bytes(staging.keepFree)),
                            ("concurrency", .number(Int64(staging.concurrency))),
                        ])
                ), ("folders", folders.isEmpty ? .value(.list([])) : .items(folders)),
                ("destinations", destinations.isEmpty ? .value(.mapping([])) : .mapping(destinations)),
                (
                    "policy",
                    .mapping(
                        [
                            (
                                "concurrency",
                                section(
                                    .concurrency,
                                    [
                                        ("total", .number(Int64(policy.total))),
                                        ("per_destination", .number(Int64(policy.perDestination))),
                                    ])
                            ), ("order", .value(.plain(policy.order.rawValue))),
                            ("retry", retry(policy.retry, otherwise: "default")),
                        ] + question(policy.beforeUpload) + values(rules(policy.rules)), known: Section.policy.keys)
                ), ("control", control(settings.control)),
            ] + metrics(settings.metrics) + [("retention", lists(settings.lists))] + hooks(settings.hooks),
            known: Section.root.keys)
    }

    private func control(_ control: ControlSettings) -> EffectivePiece {
        var fields = values([("socket", .path(control.socket))])
        if let remote = control.remote {
            fields += values([("listen", .text("\(remote.listen)"))])
            fields.append(("token", secret(remote.token)))
            fields += values([
                ("hosts", remote.hosts.isEmpty ? nil : .texts(remote.hosts)),
                (
                    "trusted_proxies",
                    remote.trustedProxies.isEmpty ? nil : .texts(remote.trustedProxies.map(\.description))
                ),
                ("certificate", (remote.certificate?.chain).map { .path($0) }),
                ("key", (remote.certificate?.key).map { .path($0) }),
            ])
        }
        return .mapping(fields, known: Section.control.keys)
    }

    private func metrics(_ metrics: MetricsSettings) -> Fields {
        guard metrics.isWritten else { return [] }
        return [
            (
                "metrics",
                section(
                    .metrics,
                    [
                        ("textfile", metrics.textfile.map { .path($0) }),
                        ("status_file", metrics.statusFile.map { .path($0) }), ("every", .time(metrics.every)),
                    ])
            )
        ]
    }

    private func lists(_ lists: ListRetention) -> EffectivePiece {
        func time(_ time: Duration?) -> WrittenValue { time.map { .time($0) } ?? .plain("never") }
        return section(
            .retention,
            [
                ("completed", time(lists.completed.time)), ("failed", time(lists.failed.time)),
                ("cancelled", time(lists.cancelled.time)), ("history", time(lists.history)),
            ])
    }

    private func values(_ fields: [(String, WrittenValue?)]) -> Fields {
        fields.compactMap { key, value in value.map { (key, .value($0)) } }
    }

    private func section(_ section: Section, _ fields: [(String, WrittenValue?)]) -> EffectivePiece {
        .mapping(values(fields), known: section.keys)
    }

    private func folder(_ folder: FolderSettings) -> EffectivePiece {
        let watch = folder.watch
        let limits = watch.limits
        var fields = values([
            ("name", .text(watch.name)), ("path", .path(watch.path)), ("upload_to", .texts(folder.uploadTo)),
            ("recursive", .flag(watch.recursive)), ("include", .texts(watch.include)),
            ("exclude", .texts(watch.exclude)),
        ])
        fields.append(("settle", settle(watch)))
        fields += values([
            ("existing", .plain(watch.existing.rawValue)), ("empty", .plain(folder.empty.rawValue)),
            ("duplicates", .plain(folder.duplicates.rawValue)), ("priority", .number(Int64(folder.priority))),
        ])
        fields.append(("after_upload", section(.afterUpload, afterUpload(folder))))
        fields.append(("remote_name", .value(.text(folder.name.source))))
        fields.append(("metadata", templates(folder.metadata)))
        fields.append(("context", templates(folder.context)))
        fields += values([
            ("key", folder.key.map { .text($0.source) }), ("watch", .plain(watch.watching.rawValue)),
            ("removable", .plain(folder.removable.rawValue)),
            ("release_unsure", folder.releaseUnsure.map { .plain($0.written) }),
            ("min_size", limits.minSize.map { .bytes($0) }),
            ("max_size", limits.maxSize.map { .bytes($0) }), ("min_age", limits.minAge.map { .time($0) }),
            ("max_age", limits.maxAge.map { .time($0) }),
        ])
        if let group = folder.group {
            fields.append(
                (
                    "group",
                    section(
                        .group,
                        [("by", .plain("stem")), ("wait", .time(group.wait)), ("sidecars", .texts(group.sidecars))])
                ))
        }
        let required = watch.requirement
        if required.file != nil || required.mount != nil {
            fields.append(
                (
                    "require",
                    section(
                        .require,
                        [("file", required.file.map { .path($0) }), ("mount", required.mount.map { .path($0) })])
                ))
        }
        if let copy = folder.copy {
            fields.append(("staging", section(.folderStaging, [("copy", .plain(copy.rawValue))])))
        }
        if let export = folder.export { fields.append(("export", self.export(export))) }
        return .mapping(fields + overrides(folder.policy), known: Section.folder.keys)
    }

    private func settle(_ watch: WatchRule) -> EffectivePiece {
        var settle: [(String, WrittenValue?)] = [
            ("quiet_for", watch.quietFor.map { .time($0) }), ("writers", .plain(watch.writers.rawValue)),
            ("marker", watch.marker.map { .text($0.source) }), ("report_after", .time(watch.reportAfter)),
            ("container", .plain(watch.container.rawValue)),
        ]
        if watch.container == .check {
            settle.append(("broken", .plain(watch.broken.rawValue)))
            if watch.broken == .upload { settle.append(("broken_after", .time(watch.brokenAfter))) }
        }
        return section(.settle, settle)
    }

    private func afterUpload(_ folder: FolderSettings) -> [(String, WrittenValue?)] {
        switch folder.afterUpload {
        case .delete: [("source", .plain("delete"))]
        case .move(let to): [("source", .plain("move")), ("to", .text(to.source))]
        case .keep, .leave:
            [
                ("source", .plain("keep")), ("for", folder.retention.time.map { .time($0) }),
                ("until_free", folder.retention.untilFree.map { .bytes($0) }),
            ]
        }
    }

    private func export(_ export: ExportSettings) -> EffectivePiece {
        .mapping(
            [
                ("command", command(export.command.source)), ("output", .value(.text(export.output.source))),
                ("timeout", .value(.time(export.timeout))), ("min_size", .value(.bytes(export.minSize))),
            ], known: Section.export.keys)
    }

    private func templates(_ templates: [String: Template]) -> EffectivePiece {
        if templates.isEmpty { return .value(.mapping([])) }
        return .mapping(
            templates.sorted { $0.key < $1.key }.map { ($0.key, .value(.text($0.value.source))) })
    }

    private func destination(_ destination: DestinationSettings) -> EffectivePiece {
        let own = sections(
            destination.values.map { ($0.key[...], $0.value) }, known: (keys[destination.type] ?? []).map { $0[...] })
        return .mapping(
            [("type", .value(.plain(destination.type)))] + own.fields + overrides(destination.policy),
            known: Section.destination.keys + own.known)
    }

    /// Moves `video.name` under `video` again.
    private func sections(
        _ values: [(name: Substring, value: SettingValue)], known: [Substring]
    ) -> (fields: Fields, known: [String]) {
        var fields: Fields = []
        for (first, all) in Dictionary(grouping: values, by: { $0.name.prefix { $0 != "." } }).sorted(by: {
            $0.key < $1.key
        }) {
            if let only = all.first, only.name == first {
                fields.append((String(first), value(only.value)))
                continue
            }
            let within = sections(
                all.map { ($0.name.dropFirst(first.count + 1), $0.value) },
                known: known.filter { $0.hasPrefix(first + ".") }.map { $0.dropFirst(first.count + 1) })
            fields.append((String(first), .mapping(within.fields, known: within.known)))
        }
        var names: [String] = []
        for name in known.map({ String($0.prefix { $0 != "." }) }) where !names.contains(name) { names.append(name) }
        return (fields, names)
    }

    private func value(_ value: SettingValue) -> EffectivePiece {
        switch value {
        case .text(let text): shown(text)
        case .secret(let source): secret(source)
        case .flag(let flag): .value(.flag(flag))
        case .bytes(let bytes): .value(.bytes(bytes))
        case .duration(let duration): .value(.time(duration))
        case .whole(let number): .value(.number(Int64(number)))
        case .path(let path): .value(.path(path))
        case .template(let template): .value(.text(template.source))
        case .texts(let texts): .value(.texts(texts))
        case .map(let map): headers(map)
        case .secrets(let map) where map.isEmpty: .value(.mapping([]))
        case .secrets(let map): .mapping(map.sorted { $0.key < $1.key }.map { ($0.key, secret($0.value)) })
        }
    }

    private func headers(_ map: [String: SecretSource]) -> EffectivePiece {
        if map.isEmpty { return .value(.mapping([])) }
        return .mapping(
            map.sorted { $0.key < $1.key }.map { name, source in
                if case .json(let object) = source { return (name, .mapping([("json", headers(object))])) }
                guard case .literal(let text) = source, hides else { return (name, secret(source)) }
                // A single placeholder hides nothing.
                if text.hasPrefix("{"), text.hasSuffix("}"), text.filter({ "{}".contains($0) }).count == 2 {
                    return (name, .value(.text(text)))
                }
                // A secret header cannot be distinguished from another one.
                return (name, .value(.text(Self.hidden), note: "its value is not shown"))
            })
    }

    private func secret(_ source: SecretSource) -> EffectivePiece {
        func only(_ key: String, _ value: WrittenValue) -> WrittenValue { .mapping([.init(key: key, value: value)]) }
        switch source {
        case .file(let path): return .value(only("file", .path(path)))
        case .environment(let name): return .value(only("env", .text(name)))
        case .credential(let name): return .value(only("credential", .text(name)))
        case .command(let words):
            guard case .value(let shown, let otherwise, let note) = command(words) else { return command(words) }
            return .value(only("command", shown), otherwise: otherwise, note: note)
        case .literal(let text):
            if !hides { return .value(only("literal", .text(text))) }
            return .value(only("literal", .text(Self.hidden)), note: "the secret itself is not shown")
        case .json(let object): return .mapping([("json", headers(object))])
        }
    }

    /// A text written by a person, which may contain a password.
    private func shown(_ text: String) -> EffectivePiece {
        let safe = hides ? redacted(text) : text
        return .value(.text(safe), note: safe == text ? nil : "a secret in it is not shown")
    }

    private func command(_ words: [String]) -> EffectivePiece {
        let safe = shown(words)
        return .value(.texts(safe), note: safe == words ? nil : "a secret in it is not shown")
    }

    /// A program and its arguments, without values after `--password=` or `--password`.
    func shown(_ words: [String]) -> [String] {
        guard hides else { return words }
        var name: Substring?
        return words.map { word in
            let bare = word.drop { $0 == "-" }
            defer { name = bare.startIndex == word.startIndex ? nil : bare }
            if let name, bare.startIndex == word.startIndex, redacted("\(name)=\(word)") != "\(name)=\(word)" {
                return "***"
            }
            return word[..<bare.startIndex] + redacted(String(bare))
        }
    }

    private func retry(
        _ backoff: Backoff, otherwise: String, of section: Section = .retry
    ) -> EffectivePiece {
        var fields: Fields = [
            ("first", .value(.time(backoff.first), otherwise: otherwise)),
            ("max", .value(.time(backoff.ceiling), otherwise: otherwise)),
        ]
        if let attempts = backoff.attempts {
            fields.append(("attempts", .value(.number(Int64(attempts)), otherwise: otherwise)))
        }
        if let limit = backoff.giveUpAfter {
            fields.append(("give_up_after", .value(.time(limit), otherwise: otherwise)))
        }
        return .mapping(fields, known: section.keys)
    }

    private func overrides(_ policy: PolicyOverrides) -> Fields {
        var fields = values([
            ("concurrency", policy.concurrency.map { .number(Int64($0)) }),
            ("order", policy.order.map { .plain($0.rawValue) }),
        ])
        if let own = policy.retry { fields.append(("retry", retry(own, otherwise: "as policy.retry"))) }
        return fields + question(policy.beforeUpload) + values(rules(policy.rules))
    }

    private func question(_ before: BeforeUpload?) -> Fields {
        guard let before else { return [] }
        let keys: Fields = [("command", command(before.command)), ("timeout", .value(.time(before.timeout)))]
        return [("before_upload", .mapping(keys, known: Section.beforeUpload.keys))]
    }

    private func hooks(_ hooks: [Hook]) -> Fields {
        hooks.isEmpty ? [] : [("hooks", .items(hooks.map { ($0.name, hook($0)) }))]
    }

    private func hook(_ hook: Hook) -> EffectivePiece {
        var fields: Fields = values([
            ("name", .text(hook.name)), ("on", .texts(hook.on)),
            ("folders", hook.folders.isEmpty ? nil : .texts(hook.folders)),
            ("destinations", hook.destinations.isEmpty ? nil : .texts(hook.destinations)),
        ])
        switch hook.target {
        case .command(let words): fields.append(("command", command(words)))
        case .web(let web):
            fields.append(("url", address(web)))
            if !web.headers.isEmpty { fields.append(("headers", headers(web.headers))) }
            if let secret = web.secret { fields.append(("secret", self.secret(secret))) }
            fields += values([
                ("ca_file", web.caFile.map { .path($0) }), ("network", .plain(web.network.rawValue)),
            ])
        }
        fields += values([("timeout", .time(hook.timeout))])
        fields.append(("retry", retry(hook.retry, otherwise: "default", of: .hookRetry)))
        fields += values([("give_up_after", .time(hook.giveUpAfter))])
        return .mapping(fields, known: Section.hook.keys)
    }

    /// A person who knows the path can often do all that the hook can.
    private func address(_ web: WebHook) -> EffectivePiece {
        if !hides || web.url == web.shown || web.url == web.shown + "/" { return .value(.text(web.url)) }
        return .value(.text(web.shown + "/" + Self.hidden), note: "its path is not shown")
    }
}
