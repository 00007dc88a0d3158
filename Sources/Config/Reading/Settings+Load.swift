package import Core
internal import Glibc
internal import Linux

/// The result of the loader: settings, and warnings.
package struct LoadedSettings: Hashable, Sendable {
    package var settings: Settings
    package var warnings: [ConfigProblem]
    /// The files that were read, in order.
    package var files: [FilePath]
    /// The place of each setting, or the environment variable that decided it (``SettingLocations``).
    var origins: [String: String] = [:]
    /// The keys of each type of destination.
    var keys: [String: [SettingKey]] = [:]
}

extension Settings {
    /// The maximum size of one file: 1 MiB.
    package static let maxFileSize = 1 << 20

    /// Reads `file`, and `config.d/*.yaml` beside it in the order of their names.
    ///
    /// - Parameters:
    ///   - draft: A file whose content is read in place of that of `file`, which it may replace. Messages name `file`.
    ///   - types: The destination types that this program knows.
    ///   - user: The number of the user whose daemon reads it.
    ///   - environment: For defaults (``DefaultPlaces``) and for secrets in it.
    /// - Throws: All errors, not only the first.
    package static func load(
        _ file: FilePath, draft: FilePath? = nil, types: [DestinationSchema], disk: DiskChecks = .checked,
        user: UInt32 = UserDatabase.user,
        environment: @escaping @Sendable (String) -> String? = { getenv($0).map { String(cString: $0) } }
    ) throws(ConfigErrors) -> LoadedSettings {
        let findings = ProblemCollector()
        var files = [file]
        let folder = file.parent.appending("config.d")
        do throws(SystemError) {
            let names = try Files.names(in: folder).filter { !$0.bytes.starts(with: [UInt8(ascii: ".")]) }
            files += names.filter { $0.fileExtension == "yaml" }.sorted().map { folder.appending($0) }
            for name in names.sorted() where name.fileExtension == "yml" {
                findings.warning(
                    "is not read: only names that end with `.yaml` are", at: nil, in: folder.appending(name))
            }
        } catch {
            if !error.isMissing { findings.error("cannot be listed: \(error.reason)", at: nil, in: folder) }
        }
        var texts: [(file: FilePath, bytes: [UInt8])] = []
        for file in files {
            let place = file == files.first ? draft ?? file : file
            if let bytes = content(of: place, named: file, findings) { texts.append((file, bytes)) }
        }
        // Without the main file every name of a destination would be unknown, so only its own error is reported.
        if texts.first?.file != file, let failure = findings.failure { throw failure }
        return try read(texts, types: types, disk: disk, user: user, environment: environment, findings: findings)
    }

    /// Reads texts from memory, the main one first.
    static func read(
        _ texts: [(file: FilePath, bytes: [UInt8])], types: [DestinationSchema], disk: DiskChecks,
        user: UInt32 = UserDatabase.user, environment: @escaping @Sendable (String) -> String?,
        findings: ProblemCollector = ProblemCollector()
    ) throws(ConfigErrors) -> LoadedSettings {
        let covering = SecretMasker(types: types)
        var roots: [MappingReader] = []
        var nodes: [Node] = []
        for (number, text) in texts.enumerated() {
            guard let root = node(text.file, text.bytes, covering, findings) else { continue }
            nodes.append(root)
            roots.append(
                MappingReader(root, number == 0 ? .root : .addition, path: "", start: root.start, findings: findings))
        }
        guard roots.count == texts.count, let main = roots.first else {
            throw findings.failure ?? ConfigErrors(problems: [])
        }
        let defaults = DefaultPlaces(for: texts[0].file, user: user, environment: environment)
        var building = SettingsReading(
            findings: findings, types: types, disk: Disk(checks: disk), environment: environment, defaults: defaults)
        let settings = building.settings(main: main, additions: Array(roots.dropFirst()))
        if var failure = findings.failure {
            failure.places = ConfigErrors.Places(
                state: settings.state, staging: settings.staging.path, socket: settings.control.socket,
                folders: settings.folders.map { ConfigErrors.Places.Folder(name: $0.watch.name, path: $0.watch.path) })
            throw failure
        }
        return LoadedSettings(
            settings: settings, warnings: findings.warningsInOrder, files: texts.map(\.file),
            origins: defaults.origins.merging(SettingLocations(nodes, in: findings.sources).places) { $1 },
            keys: Dictionary(types.map { ($0.name, $0.keys) }) { first, _ in first })
    }

    static func content(
        of place: FilePath, named file: FilePath, as kind: DocumentKind = .configuration, _ findings: ProblemCollector
    ) -> [UInt8]? {
        do throws(SystemError) {
            // Links are resolved first, because `Files.read` refuses a final link, and a configuration may well be one.
            let real = Files.real(place) ?? place
            guard try FileStatus(at: real).isRegular else {
                findings.error("is not a regular file", at: nil, in: file)
                return nil
            }
            return try Files.read(real, limit: maxFileSize)
        } catch {
            switch error.code {
            case EFBIG: findings.error("is larger than 1 MiB, which no configuration is", at: nil, in: file)
            case ENOENT, ENOTDIR:
                findings.error(kind.missing, at: nil, in: file)
            case EACCES:
                let group = UserDatabase.groupToJoin(for: file, writes: false)
                let join = group.map { ", or join the group `\($0)`, which may read it: `sudo usermod -aG \($0) USER`" }
                // A service cannot become root: its user needs the right.
                let remedy = Notify().isEnabled ? Disk.remedyOfService(file) : "run this as root\(join ?? "")"
                findings.error("cannot be read: \(error.reason); \(remedy)", at: nil, in: file)
            default: findings.error("cannot be read: \(error.reason)", at: nil, in: file)
            }
            return nil
        }
    }

    static func node(
        _ file: FilePath, _ bytes: [UInt8], as kind: DocumentKind = .configuration, _ covering: SecretMasker,
        _ findings: ProblemCollector
    ) -> Node? {
        let number = findings.sources.count
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]  // a byte order mark has no meaning in UTF-8
        let bytes = bytes.starts(with: mark) ? Array(bytes.dropFirst(3)) : bytes
        guard bytes.count <= maxFileSize else {
            findings.error("is larger than 1 MiB, which no configuration is", at: nil, in: file)
            return nil
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            let good = String(decoding: bytes, as: UTF8.self).unicodeScalars.prefix { $0 != "\u{FFFD}" }
            let line = good.split(omittingEmptySubsequences: false) { $0 == "\n" }.count
            findings.error("is not UTF-8: line \(line) has bytes that are not text", at: nil, in: file)
            return nil
        }
        findings.sources.append(SourceText(file: file, text: text))
        do throws(YAMLSyntaxError) {
            guard let root = try NodeReader.read(bytes, file: number) else {
                findings.error(kind.empty, at: nil, in: file)
                return nil
            }
            covering.cover(root, in: &findings.sources[number])
            return root
        } catch {
            findings.sources[number].secretWords = covering.words
            let hint = hint(for: error, in: findings.sources[number])
            let place = findings.sources[number].inside(line: error.line, column: error.column)
            findings.error(
                error.text + hint, at: ConfigLocation(file: number, line: place.line, column: place.column))
            return nil
        }
    }

    /// libyaml reports the scanner's state; this describes the mistake that a person probably made.
    private static func hint(for mistake: YAMLSyntaxError, in source: SourceText) -> String {
        let here = source.scalar(atLine: mistake.line, column: mistake.column)
        let before = source.scalar(atLine: mistake.line, column: max(1, mistake.column - 1))
        if here == "\t" || (before == "\t" && mistake.text.contains("token")) {
            return "; indent with spaces, YAML allows no tabs there"
        }
        if mistake.text.contains("alphabetic or numeric") { return "; a text that begins with `*` or `&` needs quotes" }
        if mistake.text.contains("mapping values are not allowed") {
            return "; a text with `: ` in it needs quotes, and keys of one mapping begin in the same column"
        }
        if mistake.text.contains("cannot start any token") { return "; a text that begins so needs quotes" }
        return ""
    }
}
