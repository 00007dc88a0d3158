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
        fixed = Self.fixedKeys.filter { $0.differs(old, new) }
            .map { Fixed(key: $0.name, old: $0.text(of: old), new: $0.text(of: new)) }
        if old.control.remote?.tokens != new.control.remote?.tokens {
            fixed.append(
                Fixed(
                    key: "control.tokens", old: old.control.remote == nil ? "none" : "what it was",
                    new: new.control.remote == nil ? "none" : "another"))
        }
        let (tls, nextTLS) = (old.control.remote?.tls, new.control.remote?.tls)
        if tls != nextTLS {
            func text(_ files: RemoteControlSettings.TLSFiles?) -> String {
                files.map { "\($0.chain.display), \($0.key.display)" } ?? "none"
            }
            fixed.append(Fixed(key: "control.tls", old: text(tls), new: text(nextTLS)))
        }
        changes =
            Self.compare(
                "folder", old.writtenFolders, new.writtenFolders, name: \.watch.name, keys: FolderSettings.keys.changed)
            + Self.compare("destination", old.destinations, new.destinations, name: \.name, keys: Self.keys)
            + Self.compare("hook", old.hooks, new.hooks, name: \.name, keys: Hook.keys.changed)
        let sections = [
            ("staging", StagingSettings.keys.changed(from: old.staging, to: new.staging).filter { $0 != "path" }),
            ("policy", PolicySettings.keys.changed(from: old.policy, to: new.policy)),
            ("control", Self.controlKeys(fixed: false).changed(from: old.control, to: new.control)),
            ("metrics", MetricsSettings.keys.changed(from: old.metrics, to: new.metrics)),
            ("retention", ListRetention.keys.changed(from: old.lists, to: new.lists)),
        ]
        for (section, keys) in sections where !keys.isEmpty {
            changes.append(Change(what: section, name: "", kind: .changed, keys: keys))
        }
        if changes.isEmpty, old.writtenFolders.map(\.watch.name) != new.writtenFolders.map(\.watch.name) {
            // The first folder that accepts a name gets the file.
            changes.append(Change(what: "folders", name: "", kind: .changed, keys: ["order"]))
        }
    }

    /// Resources that are opened once, at the start, and kept: locked, synced, listened on.
    private static let fixedKeys: [Key<Settings>] =
        [Key("state", \.state, .path)]
        + StagingSettings.keys.filter { $0.name == "path" }.map { $0.of(\.staging, below: "staging") }
        + controlKeys(fixed: true).map { $0.of(\.control, below: "control") }

    /// - Parameter fixed: Those of the addresses where it listens; else those that are read for each request.
    private static func controlKeys(fixed: Bool) -> [Key<ControlSettings>] {
        let changing = ["thumbnails"]
        return ControlSettings.keys.filter {
            !["tokens", "tls"].contains($0.name) && changing.contains($0.name) != fixed
        }
    }

    /// For the manual.
    static var namesOfFixedKeys: [String] { fixedKeys.map(\.name) + ["control.tokens", "control.tls"] }

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

    private static func keys(_ old: DestinationSettings, _ new: DestinationSettings) -> [String] {
        (old.type != new.type ? ["type"] : [])
            + Set(old.values.keys).union(new.values.keys).filter { old.values[$0] != new.values[$0] }
            + PolicyOverrides.destinationKeys.changed(from: old.policy, to: new.policy)
    }
}

extension DestinationSettings {
    /// Whether it speaks to the same server in the same way: running uploads to it need not know of the change.
    package func isSameRemote(as other: DestinationSettings) -> Bool { type == other.type && values == other.values }
}
