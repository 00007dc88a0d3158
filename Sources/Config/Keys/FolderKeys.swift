internal import Core

extension FolderSettings {
    /// In the order in which messages list them.
    static let keys: [Key<Self>] =
        firstKeys + throughputKeys + lastKeys + PolicyRules.keys.map { $0.of(\.policy.rules) }

    // Separate, because the compiler would take minutes for the types of one expression.
    private static let firstKeys: [Key<Self>] = [
        Key("name", \.watch.name, .name), Key("path", \.watch.path, .path),
        Key("recursive", \.watch.recursive, .flag), Key("include", \.watch.include, listOf: .glob),
        Key("exclude", \.watch.exclude, listOf: .glob),
        Key("settle", .settle, settleKeys, conditional: brokenKeys, check: checkSettling),
        Key("existing", \.watch.existing), Key("empty", \.empty),
        Key("duplicates", \.duplicates),
        Key("upload_to", \.routes, { $0.routes($1) }, { routes, _ in .value(routes.inFile) })
            .takes(.oneOrList(.either([.name, .section("upload_to[]")]))).printed(after: "path"),
        Key("after_upload", .afterUpload, afterUploadKeys).printed(after: "priority"),
        Key("priority", \.priority, .whole(-1000...1000)),
        Key("remote_name", \.name, .relativeName(mayHaveFolders: true)),
        Key("metadata", \.metadata, { $0.metadata($1) }, { $1.templates($0) }).takes(.map(.template)),
        Key("key", \.key, .template(needsName: true)),
        Key("context", \.context, { $0.context($1) }, { $1.templates($0) }).takes(.map(.template)).printed(
            after: "metadata"),
    ]
    private static let throughputKeys: [Key<Self>] = PolicyOverrides.throughputKeys.map {
        $0.name == "concurrency" ? $0.of(\.policy).printed(after: "export") : $0.of(\.policy)
    }
    private static let lastKeys: [Key<Self>] = [
        Key("group", optional: \.group, { $0.group($1) }, section(.group, GroupRule.keys))
            .takes(.section("folders[].group")).printed(after: "max_age"),
        Key("require", .require, requireKeys, check: checkRequirement).printed(after: "group"),
        Key("watch", \.watch.watching), Key("min_size", \.watch.limits.minSize, .bytes),
        Key("max_size", \.watch.limits.maxSize, .bytes), Key("min_age", \.watch.limits.minAge, .duration(ages)),
        Key("max_age", \.watch.limits.maxAge, .duration(ages)),
        Key("staging", .folderStaging, stagingKeys),
        Key("export", optional: \.export, { $0.export($1) }) {
            section(.export, ExportDraft.keys)(ExportDraft($0), $1)
        }.takes(.section("folders[].export")),
        Key("removable", \.removable).printed(after: "watch"),
        PolicyOverrides.beforeUploadKey.of(\.policy),
        Key("release_unsure", \.releaseUnsure, .releaseUnsure).printed(after: "removable"),
    ]

    private static let ages = Duration.zero ... .seconds(100 * 366 * 86_400)
    private static let year = Duration.seconds(1) ... .seconds(365 * 86_400)

    static let settleKeys: [Key<Self>] = [
        Key("quiet_for", \.watch.quietFor, .duration(.zero ... .seconds(86_400))),
        Key("writers", \.watch.writers),
        Key("marker", \.watch.marker, .markerName),
        Key("report_after", \.watch.reportAfter, .duration(year)), Key("container", \.watch.container),
    ]
    static let brokenKeys: [Key<Self>] = [
        Key("broken", \.watch.broken).printed { $0.watch.container == .check },
        Key("broken_after", \.watch.brokenAfter, .duration(year)).printed {
            $0.watch.container == .check && $0.watch.broken == .upload
        },
    ]
    static let requireKeys: [Key<Self>] = [
        Key("file", \.watch.requirement.file, .pathBelow), Key("mount", \.watch.requirement.mount, .path),
    ]
    static let afterUploadKeys: [Key<Self>] = [
        Key("source", \.afterUpload, { $0.sourceAction($1) }) { action, _ in .value(.plain(action.word.rawValue)) }
            .takes(.word(SourceWord.allCases.map(\.rawValue))),
        Key("to", of: { if case .move(let to) = $0.afterUpload { to } else { nil } }).takes(.target),
        Key("for", \.retention.time, .duration(.seconds(60) ... .seconds(10 * 366 * 86_400))),
        Key("until_free", \.retention.untilFree, .bytes),
    ]
    static let stagingKeys: [Key<Self>] = [Key("copy", \.copy)]
}

extension GroupRule {
    static let keys: [Key<Self>] = [
        Key("by", of: { $0.by.rawValue }) { word, _ in .value(.plain(word)) }
            .takes(.word(GroupRule.Basis.allCases.map(\.rawValue))),
        Key("wait", \.wait, .duration(.zero ... .seconds(86_400))),
        Key("sidecars", \.sidecars, listOf: .ending).printed { $0.by == .stem },
        Key("manifest", of: { $0.by == .manifest ? $0.manifests : nil }) { patterns, _ in .value(patterns.inFile) }
            .takes(.oneOrList(.pattern)),
    ]
}

// Values that do not fit together.

extension FolderSettings {
    @Sendable private static func checkSettling(
        _ settle: MappingReader, _ folder: inout Self, _ readable: Set<String>, _ reading: SettingsReading
    ) {
        if let marker = folder.watch.marker, !folder.watch.include.isEmpty,
            folder.watch.include.allSatisfy({ GlobComparison.covers(marker.pattern, $0.loweredInASCII) })
        {
            settle.error(
                "matches every file that `include` takes, and a marker is never uploaded; give it an ending of its own",
                "marker")
        }
        // From an unreadable value nothing can be concluded.
        if folder.watch.container == .skip, readable.contains("container") || !settle.has("container") {
            for key in brokenKeys where settle.has(key.name) {
                settle.error("belongs to `container: check`; add that, or take this out", key.name)
            }
            return
        }
        brokenKeys.read(settle, into: &folder, reading)
        if folder.watch.broken == .wait, settle.has("broken_after") {
            settle.error("belongs to `broken: upload`; take it out, or set that", "broken_after")
        }
    }

    @Sendable private static func checkRequirement(
        _ require: MappingReader, _ folder: inout Self, _: Set<String>, _: SettingsReading
    ) {
        let path = folder.watch.path
        guard let mount = folder.watch.requirement.mount, !path.isEmpty else { return }
        if mount != "/", path != mount, path.relative(to: mount) == nil {
            require.error(
                "`\(path.display)` does not lie below `\(mount.display)`; name its mount point, or `/` for none",
                "mount")
        }
    }
}

/// The words of `after_upload.source`.
enum SourceWord: String, CaseIterable { case keep, delete, move }

extension SourceAction {
    fileprivate var word: SourceWord {
        if case .move = self { .move } else { self == .delete ? .delete : .keep }
    }
}

extension UploadRoute: SettingsValue {
    static let keys: [Key<Self>] = [
        Key("to", of: { $0.after == nil ? $0.destinations.first : nil }, { name, _ in .value(.text(name)) })
            .takes(.name),
        Key("first_of", of: { $0.after == nil ? nil : $0.destinations }, { names, _ in .value(names.inFile) })
            .takes(.list(.name)),
        Key("after", \.after, .duration(waits)),
        Key("if", of: \.when) { when, _ in .value(when.inFile) }.takes(.oneOrList(.section("when"))),
    ]

    /// How long one destination may be waited for before the next one may take over.
    static let waits = Duration.seconds(1) ... .seconds(365 * 86_400)

    var inFile: WrittenValue {
        if after == nil, when == nil, let name = destinations.first { return .text(name) }
        return Self.keys.inFile(of: self)
    }
}
