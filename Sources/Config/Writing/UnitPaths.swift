package import Core
internal import Linux

/// The paths that the systemd unit must open for a configuration, as a drop-in.
///
/// `ProtectSystem=strict` makes every other folder read-only, `ProtectHome=yes` hides those of users, and `PrivateTmp=yes`
/// those for temporary files (systemd.exec(5)). systemd mounts each path separately, and no rename goes from one mount to
/// another: a folder and the target of its moves need one path that holds both.
package struct UnitPaths: Sendable {
    /// A path with the reasons why it is needed.
    package struct Entry: Hashable, Sendable {
        package var path: FilePath
        /// `nil`: read only, for a folder that would be hidden.
        package var isWritable: Bool
        package var reasons: [String]
    }

    /// Thrown for a path that no unit can open.
    package struct Refusal: Error, Hashable, CustomStringConvertible {
        package let description: String
    }

    /// Answers about the file system.
    package struct Disk: Sendable {
        /// The path with its links followed as far as it exists.
        var resolve: @Sendable (FilePath) -> FilePath
        /// Whether a rename can move files between two folders.
        var canRename: @Sendable (FilePath, FilePath) -> Bool
        var exists: @Sendable (FilePath) -> Bool

        /// Of this machine.
        package static let real = Disk(
            resolve: { path in
                let (base, rest) = existing(path)
                return (Files.real(base) ?? base).appending(rest)
            },
            canRename: { a, b in
                let (a, b) = (existing(a).base, existing(b).base)
                // Folders that cannot be examined are taken for ones of the same file system: one path opens both.
                guard let one = try? FileStatus(at: a).device, let other = try? FileStatus(at: b).device else {
                    return true
                }
                return one == other && FileSystems.mount(of: a) == FileSystems.mount(of: b)
            },
            exists: { path in existing(path).base == path })

        private static func existing(_ path: FilePath) -> (base: FilePath, rest: FilePath) {
            var base = path.normalised
            // For any reason: the next folder above is tried.
            while base != "/", (try? FileStatus(at: Files.real(base) ?? base)) == nil { base = base.parent }
            return (base, path.normalised.relative(to: base) ?? "")
        }
    }

    /// In the order of their paths; none is inside another with the same rights.
    package private(set) var entries: [Entry] = []
    /// What the drop-in cannot do, in sentences for a person.
    package private(set) var notes: [String] = []
    /// `sluice.service` or `sluice@NAME.service`.
    package let unit: String
    private let made: [FilePath]
    private let disk: Disk

    /// - Parameters:
    ///   - file: The configuration that the unit reads.
    package init(_ settings: Settings, file: FilePath, disk: Disk = .real) throws(Refusal) {
        self.disk = disk
        unit = DefaultPlaces.unit(of: file)
        let places = DefaultPlaces(for: file, user: 0) { _ in nil }
        // systemd makes these (StateDirectory=, RuntimeDirectory=) and lets the service write there.
        made = [places.state, places.socket.parent]
        for folder in settings.folders where folder.card == nil { try add(folder) }
        for folder in settings.patternFolders { try add(pattern: folder) }
        for destination in settings.destinations where destination.type == "directory" {
            guard case .path(let path)? = destination.values["path"] else { continue }
            try add(path, "destination \(destination.name)")
        }
        try add(settings.staging.path, "staging.path")
        try add(settings.state, "state")
        try add(settings.control.socket.parent, "control.socket")
        for path in [settings.metrics.textfile, settings.metrics.statusFile].compactMap({ $0 }) {
            try add(path.parent, "metrics")
        }
        merge()
        for entry in entries where !disk.exists(entry.path) {
            notes.append(
                "\(printable(entry.path.display)) does not exist: systemd ignores it until the service is restarted after "
                    + "it was made")
        }
    }

    private mutating func add(_ folder: FolderSettings) throws(Refusal) {
        let (name, path) = ("folder \(folder.watch.name)", folder.watch.path)
        guard folder.removesSources else {
            if Self.isHidden(disk.resolve(path)) { try add(path, "\(name): sources are read", writable: false) }
            return
        }
        guard case .move(let template) = folder.afterUpload else {
            return try add(path, "\(name): sources are deleted")
        }
        let target = template.fixedFolder
        let (from, to) = (disk.resolve(path), disk.resolve(target))
        let parent = Self.common(from, to)
        if parent == from || parent == to || !disk.canRename(from, to) {
            try add(path, "\(name): sources are moved from here")
            return try add(target, "\(name): sources are moved to here")
        }
        if Self.isTooMuch(parent) {
            notes.append(
                "\(name): a move to \(printable(target.display)) stays a copy. Only \(parent.display) holds both folders, and "
                    + "the service must not write to all of it; put the target beside the folder, in a directory of their "
                    + "own")
            try add(path, "\(name): sources are moved from here")
            return try add(target, "\(name): sources are moved to here")
        }
        try add(parent, "\(name): holds the sources and the target of their moves")
    }

    /// A pattern needs the folder below which its mount points are made: a path that is mounted later is in no drop-in.
    private mutating func add(pattern folder: FolderSettings) throws(Refusal) {
        guard let pattern = folder.pattern else { return }
        var fixed = folder
        fixed.watch.path = pattern.fixedFolder
        try add(fixed)
    }

    private mutating func add(_ path: FilePath, _ reason: String, writable: Bool = true) throws(Refusal) {
        let path = disk.resolve(path)
        if made.contains(where: { path == $0 || path.relative(to: $0) != nil }) { return }
        if Self.isTooMuch(path) {
            throw Refusal(
                description: writable
                    ? "\(reason): the service must not write to all of \(path.display); name a folder below it"
                    : "\(reason): the unit hides \(path.display) from the service; name a folder below it")
        }
        guard let text = path.text, text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F }),
            // systemd 257 (Debian 13) takes no quote in a path that it binds, in no form.
            !text.contains(where: { "\"'".contains($0) }) || !Self.isHidden(path)
        else {
            throw Refusal(
                description:
                    "\(reason): a unit cannot contain the path \(printable(path.display)); rename the folder")
        }
        entries.append(Entry(path: path, isWritable: writable, reasons: [reason]))
    }

    /// Joins entries of the same path, and drops those inside another.
    private mutating func merge() {
        var merged: [Entry] = []
        // A folder comes before those inside it, and a writable one before the same one for reading.
        for entry in entries.sorted(by: { ($0.path, $1.isWritable ? 1 : 0) < ($1.path, $0.isWritable ? 1 : 0) }) {
            let outer = merged.firstIndex { outer in
                (outer.path == entry.path || entry.path.relative(to: outer.path) != nil)
                    && (outer.isWritable || !entry.isWritable)
            }
            if let outer { merged[outer].reasons += entry.reasons } else { merged.append(entry) }
        }
        entries = merged
    }

    // MARK: Paths

    private static let homes: [FilePath] = ["/home", "/root", "/run/user"]
    private static let temporary: [FilePath] = ["/tmp", "/var/tmp"]

    private static func isHome(_ path: FilePath) -> Bool { homes.contains { path.relative(to: $0) != nil } }

    /// Whether the unit hides the path unless it binds it.
    package static func isHidden(_ path: FilePath) -> Bool {
        (homes + temporary).contains { path == $0 || path.relative(to: $0) != nil }
    }

    /// Folders of the system, and those of all users: more than a service for uploads may write to.
    private static func isTooMuch(_ path: FilePath) -> Bool {
        let others: [FilePath] = [
            "/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var",
            "/var/lib",
        ]
        return (homes + temporary + others).contains(path)
    }

    /// The innermost folder that holds both.
    private static func common(_ a: FilePath, _ b: FilePath) -> FilePath {
        var parent = a
        while parent != "/", parent != b, b.relative(to: parent) == nil { parent = parent.parent }
        return parent
    }

    // MARK: The drop-in

    /// Distinguishes the file from one that a person has written.
    package static let beginning = "# Made by `sluice systemd-paths`"

    /// The file for systemd.
    package func dropIn(for file: FilePath) -> String {
        var lines = [
            "\(Self.beginning) from \(printable(file.display)). After a change of the folders there, make it again."
        ]
        lines += notes.map { "# Note: \($0)." }
        lines.append("[Service]")
        if entries.isEmpty { lines.append("# The configuration needs no more paths than the unit opens.") }
        if entries.contains(where: { Self.isHome($0.path) }) {
            lines += [
                "# Shows only the folders below, and nothing else of /home, /root and /run/user.", "ProtectHome=tmpfs",
            ]
        }
        for entry in entries {
            lines += entry.reasons.map { "# " + printable($0) }
            guard Self.isHidden(entry.path) else {
                lines.append("ReadWritePaths=\(Self.word(entry.path))")
                continue
            }
            // A colon separates the two paths of a bind.
            let path = Self.word(entry.path).replacing(":", with: "\\:")
            lines.append("\(entry.isWritable ? "BindPaths" : "BindReadOnlyPaths")=\(path)")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// A path that may be missing, as one word (systemd.syntax(7)), without specifiers (systemd.unit(5)). A `$` stands for
    /// itself there.
    private static func word(_ path: FilePath) -> String {
        let text = "-" + (path.text ?? path.display).replacing("%", with: "%%")
        guard text.contains(where: { " \"'\\;#".contains($0) }) else { return text }
        return "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
}
