internal import Core

/// The differences between the present settings and their replacement, in the words of the file.
package struct SettingsChanges: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, Codable { case added, removed, changed }

    package struct Change: Hashable, Sendable {
        /// `folder`, `destination`, `hook`, or the section's own name.
        package var what: String
        /// The name of the folder, destination or hook; empty for a section.
        package var name: String
        package var kind: Kind
        /// For a change, the changed keys as in the file, sorted.
        package var keys: [String]
    }

    /// A key that cannot be changed while the daemon runs.
    package struct Fixed: Hashable, Sendable {
        package var key: String
        /// For people: never contains a secret.
        package var old: String
        package var new: String
    }

    /// Folders, destinations and sections, in the order of the file.
    package var changes: [Change]
    package var fixed: [Fixed]

    package init(from old: Settings, to new: Settings) {
        fixed = Self.fixedKeys.compactMap { key, value in
            value(old) == value(new) ? nil : Fixed(key: key, old: value(old), new: value(new))
        }
        if old.control.remote?.token != new.control.remote?.token {
            fixed.append(
                Fixed(
                    key: "control.token", old: old.control.remote == nil ? "none" : "what it was",
                    new: new.control.remote == nil ? "none" : "another"))
        }
        changes =
            Self.compare("folder", old.folders, new.folders, name: \.watch.name, keys: Self.keys)
            + Self.compare("destination", old.destinations, new.destinations, name: \.name, keys: Self.keys)
            + Self.compare("hook", old.hooks, new.hooks, name: \.name, keys: Self.keys)
        let sections: [(String, [(key: String, differs: Bool)])] = [
            (
                "staging",
                [
                    ("copy", old.staging.copy != new.staging.copy),
                    ("max_size", old.staging.maxSize != new.staging.maxSize),
                    ("keep_free", old.staging.keepFree != new.staging.keepFree),
                    ("concurrency", old.staging.concurrency != new.staging.concurrency),
                ]
            ),
            (
                "policy",
                [
                    (
                        "concurrency",
                        old.policy.total != new.policy.total || old.policy.perDestination != new.policy.perDestination
                    ), ("order", old.policy.order != new.policy.order), ("retry", old.policy.retry != new.policy.retry),
                    ("before_upload", old.policy.beforeUpload != new.policy.beforeUpload),
                ] + Self.rules(old.policy.rules, new.policy.rules)
            ),
            (
                "metrics",
                [
                    ("textfile", old.metrics.textfile != new.metrics.textfile),
                    ("status_file", old.metrics.statusFile != new.metrics.statusFile),
                    ("every", old.metrics.every != new.metrics.every),
                ]
            ),
            (
                "retention",
                [
                    ("completed", old.lists.completed != new.lists.completed),
                    ("failed", old.lists.failed != new.lists.failed),
                    ("cancelled", old.lists.cancelled != new.lists.cancelled),
                    ("history", old.lists.history != new.lists.history),
                ]
            ),
        ]
        for (section, keys) in sections {
            let changed = keys.filter(\.differs).map(\.key)
            if !changed.isEmpty { changes.append(Change(what: section, name: "", kind: .changed, keys: changed)) }
        }
        if changes.isEmpty, old.folders.map(\.watch.name) != new.folders.map(\.watch.name) {
            // The first folder that accepts a name gets the file.
            changes.append(Change(what: "folders", name: "", kind: .changed, keys: ["order"]))
        }
    }

    /// Resources that are opened once, at the start, and kept: locked, synced, listened on.
    private static let fixedKeys: [(String, @Sendable (Settings) -> String)] = [
        ("state", { $0.state.display }), ("staging.path", { $0.staging.path.display }),
        ("control.socket", { $0.control.socket.display }),
        ("control.listen", { $0.control.remote.map { "\($0.listen)" } ?? "none" }),
        ("control.hosts", { $0.control.remote.map { $0.hosts.joined(separator: ", ") } ?? "none" }),
        (
            "control.trusted_proxies",
            { $0.control.remote.map { $0.trustedProxies.map(\.description).joined(separator: ", ") } ?? "none" }
        ),
        ("control.certificate", { $0.control.remote?.certificate?.chain.display ?? "none" }),
        ("control.key", { $0.control.remote?.certificate?.key.display ?? "none" }),
    ]
    /// For the manual.
    static var namesOfFixedKeys: [String] { fixedKeys.map(\.0) + ["control.token"] }

    private static func compare<T: Hashable>(
        _ what: String, _ old: [T], _ new: [T], name: (T) -> String, keys: (T, T) -> [String]
    ) -> [Change] {
        let before = Dictionary(old.map { (name($0), $0) }, uniquingKeysWith: { first, _ in first })
        let left = Set(new.map(name))
        var changes = old.filter { !left.contains(name($0)) }.map {
            Change(what: what, name: name($0), kind: .removed, keys: [])
        }
        for item in new {
            if let earlier = before[name(item)] {
                let changed = keys(earlier, item).sorted()
                if !changed.isEmpty {
                    changes.append(Change(what: what, name: name(item), kind: .changed, keys: changed))
                }
            } else {
                changes.append(Change(what: what, name: name(item), kind: .added, keys: []))
            }
        }
        return changes
    }

    private static func keys(_ old: FolderSettings, _ new: FolderSettings) -> [String] {
        let (a, b) = (old.watch, new.watch)
        let differs: [(String, Bool)] = [
            ("path", a.path != b.path), ("recursive", a.recursive != b.recursive), ("include", a.include != b.include),
            ("exclude", a.exclude != b.exclude),
            (
                "settle",
                a.quietFor != b.quietFor || a.writers != b.writers || a.marker != b.marker
                    || a.reportAfter != b.reportAfter || a.container != b.container || a.broken != b.broken
                    || a.brokenAfter != b.brokenAfter
            ),
            ("existing", a.existing != b.existing), ("empty", old.empty != new.empty),
            ("duplicates", old.duplicates != new.duplicates), ("upload_to", old.uploadTo != new.uploadTo),
            ("group", old.group != new.group),
            ("after_upload", old.afterUpload != new.afterUpload || old.retention != new.retention),
            ("priority", old.priority != new.priority),
            ("remote_name", old.name != new.name), ("metadata", old.metadata != new.metadata),
            ("key", old.key != new.key), ("context", old.context != new.context),
            ("require", a.requirement != b.requirement), ("watch", a.watching != b.watching),
            ("min_size", a.limits.minSize != b.limits.minSize), ("max_size", a.limits.maxSize != b.limits.maxSize),
            ("min_age", a.limits.minAge != b.limits.minAge), ("max_age", a.limits.maxAge != b.limits.maxAge),
            ("staging", old.copy != new.copy), ("export", old.export != new.export),
            ("removable", old.removable != new.removable), ("release_unsure", old.releaseUnsure != new.releaseUnsure),
        ]
        return differs.filter(\.1).map(\.0) + keys(old.policy, new.policy)
    }

    private static func keys(_ old: DestinationSettings, _ new: DestinationSettings) -> [String] {
        (old.type != new.type ? ["type"] : [])
            + Set(old.values.keys).union(new.values.keys).filter { old.values[$0] != new.values[$0] }
            + keys(old.policy, new.policy)
    }

    private static func keys(_ old: Hook, _ new: Hook) -> [String] {
        func parts(_ hook: Hook) -> (command: [String]?, web: WebHook?) {
            switch hook.target {
            case .command(let words): (words, nil)
            case .web(let web): (nil, web)
            }
        }
        let (a, b) = (parts(old), parts(new))
        let differs: [(String, Bool)] = [
            ("on", old.on != new.on), ("folders", old.folders != new.folders),
            ("destinations", old.destinations != new.destinations), ("timeout", old.timeout != new.timeout),
            ("retry", old.retry != new.retry), ("give_up_after", old.giveUpAfter != new.giveUpAfter),
            ("command", a.command != b.command), ("url", a.web?.url != b.web?.url),
            ("headers", (a.web?.headers ?? [:]) != (b.web?.headers ?? [:])), ("secret", a.web?.secret != b.web?.secret),
            ("ca_file", a.web?.caFile != b.web?.caFile),
            ("network", (a.web?.network ?? .policy) != (b.web?.network ?? .policy)),
        ]
        return differs.filter(\.1).map(\.0)
    }

    private static func keys(_ old: PolicyOverrides, _ new: PolicyOverrides) -> [String] {
        (old.concurrency != new.concurrency ? ["concurrency"] : []) + (old.retry != new.retry ? ["retry"] : [])
            + (old.order != new.order ? ["order"] : [])
            + (old.beforeUpload != new.beforeUpload ? ["before_upload"] : [])
            + rules(old.rules, new.rules).filter(\.differs).map(\.key)
    }

    private static func rules(_ old: PolicyRules, _ new: PolicyRules) -> [(key: String, differs: Bool)] {
        [
            ("windows", old.windows != new.windows), ("bandwidth", old.bandwidth != new.bandwidth),
            ("metered", old.metered != new.metered),
            ("metered_unknown", old.meteredUnknown != new.meteredUnknown),
            ("networks", old.networks != new.networks), ("quotas", old.quotas != new.quotas),
            ("expires_after", old.expiresAfter != new.expiresAfter),
            ("on_battery", old.onBattery != new.onBattery), ("min_battery", old.minBattery != new.minBattery),
            ("busy", old.busy != new.busy),
        ]
    }
}

extension DestinationSettings {
    /// Whether it speaks to the same server in the same way: running uploads to it need not know of the change.
    package func isSameRemote(as other: DestinationSettings) -> Bool { type == other.type && values == other.values }
}
