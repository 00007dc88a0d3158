internal import Core

/// Reads `folders`.
extension SettingsReading {
    struct ReadFolder {
        var settings: FolderSettings
        /// The place of its path.
        var place: Place
        /// `folders[3]`, for messages.
        var key: String
        /// The place of the target of `move`.
        var target: Place?
    }

    /// - Parameter destinations: The names of all destinations, including those that could not be read.
    func folders(_ files: [Fields], policy: PolicySettings, destinations: Set<String>) -> [ReadFolder] {
        var taken: [String: Place] = [:]
        var all: [ReadFolder] = []
        for file in files {
            for (index, node) in (file.items("folders", expected: "a list of folders") ?? []).enumerated() {
                let fields = Fields(
                    node, .folder, path: "folders[\(index)]", start: node.start, findings: findings)
                guard case .mapping = node.content else { continue }
                fields.require("name", "give the folder a name for lists and logs")
                fields.require("path", "name the folder to watch")
                fields.require("upload_to", "name at least one destination")
                let name = fields.take("name", as: .name)
                if name?.value == FolderSettings.receivedName {
                    fields.error(
                        "is `-`, which is reserved for `sluice add -`; choose another name", "name")
                }
                if let name, let earlier = taken.updateValue(name.place, forKey: name.value) {
                    fields.error("another folder has this name, at \(findings.name(of: earlier))", "name")
                }
                let targets = uploadTo(fields, destinations)
                if let folder = folder(fields, name: name?.value ?? "", policy: policy, uploadTo: targets) {
                    all.append(folder)
                }
            }
        }
        return all
    }

    private func folder(_ fields: Fields, name: String, policy: PolicySettings, uploadTo: [String]) -> ReadFolder? {
        let settle = fields.fields("settle", .settle)
        let path = fields.take("path", as: .path)
        let include = fields.list("include", as: .glob)?.map(\.value) ?? []
        let group = group(fields, include)
        var watch = WatchRule(
            name: name, path: path?.value ?? "", recursive: fields.take("recursive", as: .flag)?.value ?? true,
            include: group?.include(with: include) ?? include,
            exclude: fields.list("exclude", as: .glob)?.map(\.value) ?? [],
            quietFor: settle.take("quiet_for", as: .duration(.zero ... .seconds(86_400)))?.value,
            writers: settle.take("writers", as: .choice)?.value ?? .lease,
            existing: fields.take("existing", as: .choice)?.value ?? .upload)
        watch.watching = fields.take("watch", as: .choice)?.value ?? .auto
        watch.requirement = requirement(fields.fields("require", .require), path?.value)
        watch.marker = settle.take("marker", as: .markerName)?.value
        if let marker = watch.marker, !include.isEmpty,
            include.allSatisfy({ Globs.covers(marker.pattern, $0.lowercased()) })
        {
            settle.error(
                "matches every file that `include` takes, and a marker is never uploaded; give it an ending of its own",
                "marker")
        }
        watch.reportAfter =
            settle.take("report_after", as: .duration(.seconds(1) ... .seconds(365 * 86_400)))?.value
            ?? watch.reportAfter
        watch.limits = limits(fields)
        readContainer(settle, &watch)
        let after = fields.fields("after_upload", .afterUpload)
        var settings = FolderSettings(
            watch: watch, uploadTo: uploadTo, afterUpload: sourceAction(after), retention: retention(after),
            group: group, empty: fields.take("empty", as: .choice)?.value ?? .skip,
            duplicates: fields.take("duplicates", as: .choice)?.value ?? .upload,
            priority: fields.take("priority", as: .whole(-1000...1000))?.value ?? 0,
            name: remoteName(fields),
            metadata: templates(fields.map("metadata", names: .fieldName, as: .template())),
            key: fields.take("key", as: .template(needsName: true))?.value, context: context(fields),
            policy: PolicyOverrides(
                concurrency: fields.take("concurrency", as: .whole(1...64))?.value,
                retry: fields.has("retry")
                    ? retry(fields.fields("retry", .folderRetry), otherwise: policy.retry) : nil,
                order: fields.take("order", as: .choice)?.value, beforeUpload: beforeUpload(fields),
                rules: rules(fields)),
            copy: fields.fields("staging", .folderStaging).take("copy", as: .choice)?.value, export: export(fields))
        settings.releaseUnsure = fields.take("release_unsure", as: .releaseUnsure)?.value
        settings.removable = fields.take("removable", as: .choice)?.value ?? .auto
        if settings.export != nil, settings.copy == .inPlace {
            fields.error("`copy: in-place` makes no file, and `export` does; remove one of them", "export")
        }
        guard let path else { return nil }
        switch disk.watching(path.value) {
        case .good: break
        case .absent(let text): fields.warning(text, "path")
        }
        return ReadFolder(settings: settings, place: path.place, key: fields.path, target: after.node("to")?.start)
    }

    private func requirement(_ fields: Fields, _ folder: FilePath?) -> FolderRequirement {
        let mount = fields.take("mount", as: .path)?.value
        if let mount, let folder, mount != "/", folder != mount, folder.relative(to: mount) == nil {
            fields.error(
                "`\(folder.display)` does not lie below `\(mount.display)`; name its mount point, or `/` for none",
                "mount")
        }
        return FolderRequirement(file: fields.take("file", as: .pathBelow)?.value, mount: mount)
    }

    private func readContainer(_ settle: Fields, _ watch: inout WatchRule) {
        let container = settle.take("container", as: Reader<WatchRule.ContainerCheck>.choice)
        watch.container = container?.value ?? .skip
        // From an unreadable value nothing can be concluded.
        if watch.container == .skip, container != nil || !settle.has("container") {
            for key in ["broken", "broken_after"] where settle.has(key) {
                settle.error("belongs to `container: check`; add that, or take this out", key)
            }
            return
        }
        watch.broken = settle.take("broken", as: .choice)?.value ?? .upload
        watch.brokenAfter =
            settle.take("broken_after", as: .duration(.seconds(1) ... .seconds(365 * 86_400)))?.value
            ?? watch.brokenAfter
        if watch.broken == .wait, settle.has("broken_after") {
            settle.error("belongs to `broken: upload`; take it out, or set that", "broken_after")
        }
    }

    private func limits(_ fields: Fields) -> FileLimits {
        let ages = Duration.zero ... .seconds(100 * 366 * 86_400)
        let limits = FileLimits(
            minSize: fields.take("min_size", as: .bytes)?.value, maxSize: fields.take("max_size", as: .bytes)?.value,
            minAge: fields.take("min_age", as: .duration(ages))?.value,
            maxAge: fields.take("max_age", as: .duration(ages))?.value)
        if limits.maxSize == 0 {
            fields.error("is 0, so only empty files would be taken; remove it for no limit", "max_size")
        } else if let least = limits.minSize, let most = limits.maxSize, least > most {
            fields.error("is less than `min_size`: no file would be taken", "max_size")
        }
        if let least = limits.minAge, let most = limits.maxAge, least >= most {
            fields.error("is no more than `min_age`: no file would be taken", "max_age")
        }
        return limits
    }

    private func uploadTo(_ fields: Fields, _ destinations: Set<String>) -> [String] {
        guard let names = fields.list("upload_to", as: .name, orOne: true) else { return [] }
        if case .list(let items)? = fields.node("upload_to")?.content, items.isEmpty {
            fields.error("names no destination; a folder needs at least one", "upload_to")
        }
        var unique: [String] = []
        for name in names {
            if !destinations.contains(name.value) {
                let known = destinations.sorted()
                findings.error(
                    "no destination is called \(quoted(name.value))"
                        + suggestion(
                            for: name.value, among: known,
                            else: known.isEmpty
                                ? "there is none; add it under `destinations`"
                                : "there are: \(known.joined(separator: ", "))"),
                    at: name.place, key: name.key)
            } else if unique.contains(name.value) {
                findings.error("\(quoted(name.value)) is named twice", at: name.place, key: name.key)
            } else {
                unique.append(name.value)
            }
        }
        return unique
    }

    private enum Source: String, CaseIterable { case keep, delete, move }

    private func sourceAction(_ fields: Fields) -> SourceAction {
        let source = fields.take("source", as: Reader<Source>.choice)?.value
        let target = fields.take("to", as: .target)
        if source != .move, fields.has("to") {
            if !fields.has("source") {
                fields.error("belongs to `source: move`; add it", "to")
            } else if source != nil {
                fields.error("belongs to `source: move`; take it out, or set that", "to")
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

    private enum Grouped: String, CaseIterable { case stem }

    private func group(_ fields: Fields, _ include: [String]) -> GroupRule? {
        guard fields.has("group") else { return nil }
        let group = fields.fields("group", .group)
        group.require("by", "files with one name and several endings belong together: `by: stem`")
        _ = group.take("by", as: Reader<Grouped>.choice)
        let endings = group.list("sidecars", as: .ending)
        if case .list(let items)? = group.node("sidecars")?.content, items.isEmpty {
            group.error("names no ending; take it out for the common ones", "sidecars")
        }
        let rule = GroupRule(
            wait: group.take("wait", as: .duration(.zero ... .seconds(86_400)))?.value ?? .seconds(5),
            sidecars: endings?.map(\.value) ?? GroupRule.commonSidecars)
        let isSidecar = { (glob: String) in rule.sidecars.contains { Globs.covers("*." + $0, glob.lowercased()) } }
        if !include.isEmpty, include.allSatisfy(isSidecar) {
            let text = "match all files that `include` takes: no file is left for them to accompany"
            if group.has("sidecars") {
                group.error(text, "sidecars")
            } else {
                fields.error("its sidecars " + text, "group")
            }
        }
        return rule
    }

    private func retention(_ fields: Fields) -> Retention {
        let retention = Retention(
            time: fields.take("for", as: .duration(.seconds(60) ... .seconds(10 * 366 * 86_400)))?.value,
            untilFree: fields.take("until_free", as: .bytes)?.value)
        if let source = fields.take("source", as: Reader<Source>.choice)?.value, source != .keep {
            for key in ["for", "until_free"] where fields.has(key) {
                fields.error(
                    "belongs to `source: keep`: with `source: \(source.rawValue)` the source is released at once", key)
            }
        }
        return retention
    }

    private func remoteName(_ fields: Fields) -> Template {
        if let template = fields.take("remote_name", as: .relativeName(mayHaveFolders: true)) { return template.value }
        return .builtIn("{folder}/{relative}")
    }

    /// At most 16 pairs, values of at most 1 KiB, 8 KiB together: they are part of every list and event.
    private func context(_ fields: Fields) -> [String: Template] {
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

    private func templates(_ pairs: [(name: String, found: Fields.Found<Template>)]) -> [String: Template] {
        Dictionary(pairs.map { ($0.name, $0.found.value) }, uniquingKeysWith: { first, _ in first })
    }
}
