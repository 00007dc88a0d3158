package import Core
package import Linux

/// The result of the configured folders' rules for one path, for a user who asks why nothing happens to it.
package enum PathEvaluation: Hashable, Sendable {
    /// It lies in no folder.
    case outside
    /// It is a folder itself, under its own name or another.
    case itself(folder: String)
    /// A folder leaves it alone, with the reason in words that follow "it".
    case excluded(folder: String, reason: String)
    /// A folder takes it with the next scan, or has taken it.
    case accepted(folder: String)

    /// Waits for the disk.
    ///
    /// - Parameter rules: In the order of the configuration: the first that takes a file has it.
    package static func of(
        _ path: FilePath, rules: [WatchRule], in folders: SourceFolders, now: WallTime
    ) -> PathEvaluation {
        let path = path.normalised
        var refusal: PathEvaluation?
        for rule in rules {
            if isSame(path, rule.path) { return .itself(folder: rule.name) }
            guard let relative = relative(of: path, in: rule), !relative.isEmpty else { continue }
            guard let reason = nameObjection(to: relative, rule) else {
                switch objection(to: relative, rule, folders[rule.path], now) {
                case nil: return .accepted(folder: rule.name)
                // Another folder on the same path may take such a size.
                case .size(let reason)?: refusal = refusal ?? .excluded(folder: rule.name, reason: reason)
                case .other(let reason)?: return .excluded(folder: rule.name, reason: reason)
                }
                continue
            }
            refusal = refusal ?? .excluded(folder: rule.name, reason: reason)
        }
        return refusal ?? .outside
    }

    /// By its name, or by a link on the way to it.
    private static func isSame(_ path: FilePath, _ folder: FilePath) -> Bool {
        if path == folder.normalised { return true }
        guard let real = Files.real(path) else { return false }
        return real == Files.real(folder)
    }

    /// The path below the folder, which may be a link or lie behind one.
    package static func relative(of path: FilePath, in rule: WatchRule) -> FilePath? {
        path.relative(to: rule.path) ?? Files.real(rule.path).flatMap { path.relative(to: $0) }
    }

    /// Whether an ignore file or a link in its path excludes a file. `false` when that cannot be determined. Waits for
    /// the disk.
    ///
    /// - Parameter relative: Below the rule's folder.
    package static func isExcluded(_ relative: FilePath, by rule: WatchRule, in folders: SourceFolders) -> Bool {
        // A disk that is away: the caller keeps waiting.
        do { return try pathObjection(to: relative, folders[rule.path].open()) != nil } catch { return false }
    }

    private static func nameObjection(to relative: FilePath, _ rule: WatchRule) -> String? {
        if !rule.recursive, !relative.parent.isEmpty { return "is in a subdirectory, and the folder is not recursive" }
        for part in relative.parent.components where TemporaryNames.contains(part) {
            return "is below \(part.display), a hidden or temporary directory"
        }
        if NameRules(include: rule.include, exclude: rule.exclude, marker: rule.marker).matches(relative) { return nil }
        func matches(_ pattern: String) -> Bool {
            let glob = Glob(pattern)
            return glob.matches(glob.matchesPath ? relative : relative.name)
        }
        if let pattern = rule.exclude.first(where: matches) { return "is excluded by `exclude: \(pattern)`" }
        if let marker = rule.marker, relative.name.bytes.withUnsafeBufferPointer(marker.isMarker) {
            return "is a marker (settle.marker: \(marker.source))"
        }
        if let pattern = TemporaryNames.globs.first(where: { Glob($0).matches(relative.name) }) {
            return "has the name of a hidden or temporary file (`\(pattern)`)"
        }
        return "matches none of `include: [\(rule.include.joined(separator: ", "))]`"
    }

    /// The reason why a folder that takes the name leaves a file alone, in words that follow "it".
    private enum Objection {
        /// It is too small or too large.
        case size(String)
        case other(String)
    }

    private static func objection(
        to relative: FilePath, _ rule: WatchRule, _ folder: SourceFolder, _ now: WallTime
    ) -> Objection? {
        if let missing = MountCheck(folder, [rule.requirement]).missing() {
            return .other("belongs to a folder that is absent: \(missing)")
        }
        do throws(SystemError) {
            let top = try folder.open()
            if let reason = try pathObjection(to: relative, top) { return .other(reason) }
            guard let status = try top.statusIfPresent(at: relative) else { return .other("does not exist") }
            if status.isDirectory { return .other("is a directory: name a file in it") }
            guard status.isRegular else {
                return .other("is not a regular file: links, devices, sockets and FIFOs are skipped")
            }
            if let reason = rule.limits.objection(to: status, now: now) {
                let words = "is skipped: \(reason)"
                return rule.limits.allows(size: status.size) ? .other(words) : .size(words)
            }
            let wait = rule.limits.wait(for: status, unchanged: .zero, now: now)
            if wait > .zero, let least = rule.limits.minAge {
                return .other("is too recent: `min_age: \(writtenTime(least))`, for another \(words(wait))")
            }
            if let marker = rule.marker {
                let beside = relative.parent.appending(marker.marker(of: relative.name))
                if try !top.has(beside) {
                    return .other(
                        "waits for its marker \(folder.path.appending(beside).display): `settle.marker: \"\(marker.source)\"`"
                    )
                }
            }
            return nil
        } catch { return .other("cannot be checked: \(error)") }
    }

    /// The objection on the way from the folder to the file: links, and ignore files.
    private static func pathObjection(
        to relative: FilePath, _ top: borrowing OpenFolder
    ) throws(SystemError) -> String? {
        var below: FilePath = ""
        var chain: [(ignore: Ignore, file: FilePath, depth: Int)] = []
        let parts = relative.components
        for depth in parts.indices {
            let stream: FolderStream
            let at = top.path.appending(below)
            do throws(SystemError) { stream = try top.stream(below) } catch {
                if error.isLink || error.isMissing, let status = try top.statusIfPresent(at: below), !status.isDirectory
                {
                    return "is reached through \(at.display), a symbolic link, and links are not followed"
                }
                throw error
            }
            let (ignore, trouble) = Ignore.read(in: stream, named: at)
            if let trouble { return "is skipped: \(trouble)" }
            if ignore != .nothing { chain.append((ignore, at.appending(IgnoreRules.fileName), depth)) }
            let isLast = depth == parts.count - 1
            // The nearest ignore file that mentions a name counts.
            for (ignore, file, from) in chain.reversed() {
                guard case .rules(let rules) = ignore else { continue }
                let name = parts[from...depth].reduce(FilePath("")) { $0.appending($1) }
                let verdict = name.bytes.withUnsafeBufferPointer { rules.verdict(on: $0, isFolder: !isLast) }
                guard let isIgnored = verdict else { continue }
                if isIgnored { return "is excluded by \(file.display)" }
                break
            }
            below = below.appending(parts[depth])
        }
        return nil
    }
}
