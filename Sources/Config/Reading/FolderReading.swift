internal import Core

/// Reads `folders`.
extension SettingsReading {
    struct ReadFolder {
        var settings: FolderSettings
        /// The place of its path.
        var place: ConfigLocation
        /// `folders[3]`, for messages.
        var key: String
        /// The place of the target of `move`.
        var target: ConfigLocation?
    }

    func folders(_ files: [MappingReader]) -> [ReadFolder] {
        var taken: [String: ConfigLocation] = [:]
        var all: [ReadFolder] = []
        for file in files {
            for (index, node) in (file.items("folders", expected: "a list of folders") ?? []).enumerated() {
                let fields = MappingReader(
                    node, .folder, path: "folders[\(index)]", start: node.start, findings: findings)
                guard case .mapping = node.content else { continue }
                fields.require("name", "give the folder a name for lists and logs")
                fields.require("path", "name the folder to watch")
                fields.require("upload_to", "name at least one destination")
                var folder = FolderSettings(watch: WatchRule(name: "", path: ""), routes: [])
                let readable = FolderSettings.keys.read(fields, into: &folder, self)
                let name = folder.watch.name
                if name == FolderSettings.receivedName {
                    fields.error(
                        "is `-`, which is reserved for `sluice add -`; choose another name", "name")
                }
                if readable.contains("name"), let place = fields.node("name")?.start,
                    let earlier = taken.updateValue(place, forKey: name)
                {
                    fields.error("another folder has this name, at \(findings.name(of: earlier))", "name")
                }
                checkLimits(folder.watch.limits, fields)
                if folder.export != nil, folder.copy == .inPlace {
                    fields.error("`copy: in-place` makes no file, and `export` does; remove one of them", "export")
                }
                if let group = folder.group { folder.watch.include = group.include(with: folder.watch.include) }
                guard readable.contains("path"), let path = fields.node("path") else { continue }
                if folder.pattern != nil {
                    checkPattern(of: folder, fields)
                } else {
                    checkPath(of: folder.watch, fields)
                }
                all.append(
                    ReadFolder(
                        settings: folder, place: path.start, key: fields.path,
                        target: fields.node("after_upload")?.entries.place(of: "to")))
            }
        }
        return all
    }

    private func checkPath(of rule: WatchRule, _ fields: MappingReader) {
        // A path with a wildcard is meant as it is written if the person says that no mount is required.
        if Glob.hasWildcard(rule.path), rule.requirement.mount == nil {
            fields.error(
                "has a wildcard: add `require: {mount: …}` with the mount points that it stands for, like "
                    + "`/media/*/*` for `/media/*/*/DCIM`; if the name of the folder contains that character, add "
                    + "`require: {mount: /}`", "path")
            return
        }
        switch disk.watching(rule.path) {
        case .good: break
        case .absent(let text): fields.warning(text, "path")
        }
    }

    /// Checks a folder that stands for one folder on each card.
    private func checkPattern(of folder: FolderSettings, _ fields: MappingReader) {
        guard let pattern = folder.pattern else { return }
        if Glob.hasWildcard(pattern.rest) {
            fields.error(
                "has a wildcard below the mount point; only the part that `require.mount` names may have one", "path")
        }
        if pattern.mount.components.contains(where: { $0.bytes.starts(with: Array("**".utf8)) }) {
            fields.error("contains `**`; name each directory, like `/media/*/*`", "path")
        }
        for key in ["concurrency", "bandwidth", "quotas"] where fields.has(key) {
            fields.error(
                "would hold for each card alone, and this folder stands for any number of them; set it at the "
                    + "destination or in `policy`", key)
        }
        if folder.watch.existing == .skip {
            fields.warning(
                "leaves out everything that is on a card when Sluice sees it for the first time, and a card that a "
                    + "camera has formatted is a new one; remove it unless only files recorded later are meant",
                "existing")
        }
    }

    private func checkLimits(_ limits: FileLimits, _ fields: MappingReader) {
        if limits.maxSize == 0 {
            fields.error("is 0, so only empty files would be taken; remove it for no limit", "max_size")
        } else if let least = limits.minSize, let most = limits.maxSize, least > most {
            fields.error("is less than `min_size`: no file would be taken", "max_size")
        }
        if let least = limits.minAge, let most = limits.maxAge, least >= most {
            fields.error("is no more than `min_age`: no file would be taken", "max_age")
        }
    }

    func routes(_ fields: MappingReader) -> [UploadRoute]? { RouteReading(self).routes(fields) }

    func sourceAction(_ fields: MappingReader) -> SourceAction {
        let source = fields.read("source", as: Reader<SourceWord>.choice)?.value
        let target = fields.read("to", as: .target)
        if source != .move, fields.has("to") {
            if !fields.has("source") {
                fields.error("belongs to `source: move`; add it", "to")
            } else if source != nil {
                fields.error("belongs to `source: move`; take it out, or set that", "to")
            }
        }
        if let source, source != .keep {
            for key in ["for", "until_free"] where fields.has(key) {
                fields.error(
                    "belongs to `source: keep`: with `source: \(source.rawValue)` the source is released at once", key)
            }
        }
        switch source {
        case .delete: return .delete
        case .move:
            fields.require("to", "`source: move` needs a target, like `to: \"/srv/done/{year}/{name}\"`")
            return target.map { .move(to: $0.value) } ?? .keep
        case .keep, nil: return .keep
        }
    }

    func group(_ fields: MappingReader) -> GroupRule? {
        guard fields.has("group") else { return nil }
        let include = fields.list("include", as: .glob)?.map(\.value) ?? []
        let group = fields.fields("group", .group)
        group.require("by", "files with one name and several endings belong together: `by: stem`")
        let basis = group.read("by", as: Reader<GroupRule.Basis>.choice)?.value
        var rule = GroupRule(by: basis ?? .stem)
        GroupRule.keys.read(group, into: &rule, self)
        // Of an unreadable one nothing can be concluded.
        guard let by = basis else { return nil }
        for (key, basis) in [("sidecars", GroupRule.Basis.stem), ("manifest", .manifest)]
        where group.has(key) && by != basis {
            group.error("belongs to `by: \(basis.rawValue)`; take it out, or set that", key)
        }
        switch by {
        case .stem: checkSidecars(of: rule, group, fields, include)
        case .directory:
            if fields.read("recursive", as: .flag)?.value == false {
                group.error("needs `recursive: true`: without it no directory of the folder is read", "by")
            }
        case .manifest:
            group.require("manifest", "the name of the files that list the others, like `manifest: \"*.md5\"`")
            rule.manifests = group.list("manifest", as: .glob, orOne: true)?.map(\.value) ?? []
            if group.has("manifest"), rule.manifests.isEmpty {
                group.error("names no pattern; give one, like `\"*.md5\"`", "manifest")
            }
            if let pattern = rule.manifests.first(where: { $0.utf8.contains(UInt8(ascii: "/")) }) {
                group.error("`\(pattern)` has a slash: a manifest is known by its name alone", "manifest")
            }
            for pattern in rule.manifests
            where TemporaryNames.globs.contains(where: { GlobComparison.covers($0, pattern) }) {
                group.error(
                    "`\(pattern)` is the name of hidden or temporary files, which are never picked up", "manifest")
            }
            for pattern in rule.manifests {
                let exclude = fields.list("exclude", as: .glob)?.map(\.value) ?? []
                guard let other = exclude.first(where: { GlobComparison.covers($0, pattern) }) else { continue }
                group.error("`\(pattern)` is excluded by `exclude: \(other)`, so no manifest is ever found", "manifest")
            }
            if rule.manifests.contains(where: { GlobComparison.covers($0, "*") }) {
                group.error("matches every file: no file is left to be listed", "manifest")
            }
        }
        return rule
    }

    private func checkSidecars(
        of rule: GroupRule, _ group: MappingReader, _ fields: MappingReader, _ include: [String]
    ) {
        if case .list(let items)? = group.node("sidecars")?.content, items.isEmpty {
            group.error("names no ending; take it out for the common ones", "sidecars")
        }
        let isSidecar = { (glob: String) in
            rule.sidecars.contains { GlobComparison.covers("*." + $0, glob.loweredInASCII) }
        }
        if !include.isEmpty, include.allSatisfy(isSidecar) {
            let text = "match all files that `include` takes: no file is left for them to accompany"
            if group.has("sidecars") {
                group.error(text, "sidecars")
            } else {
                fields.error("its sidecars " + text, "group")
            }
        }
    }

    func metadata(_ fields: MappingReader) -> [String: Template] {
        templates(fields.map("metadata", names: .fieldName, as: .template()))
    }

    /// At most 16 pairs, values of at most 1 KiB, 8 KiB together: they are part of every list and event.
    func context(_ fields: MappingReader) -> [String: Template] {
        let pairs = fields.map("context", names: .name, as: .template())
        if pairs.count > 16 { fields.error("has \(pairs.count) pairs; the maximum is 16", "context") }
        for (_, value) in pairs where value.value.source.utf8.count > 1024 {
            findings.error("is longer than 1 KiB", at: value.place, key: value.key)
        }
        if pairs.reduce(0, { $0 + $1.name.utf8.count + $1.found.value.source.utf8.count }) > 8192 {
            fields.error("is longer than 8 KiB in total", "context")
        }
        return templates(pairs)
    }

    private func templates(_ pairs: [(name: String, found: MappingReader.Found<Template>)]) -> [String: Template] {
        Dictionary(pairs.map { ($0.name, $0.found.value) }, uniquingKeysWith: { first, _ in first })
    }
}
