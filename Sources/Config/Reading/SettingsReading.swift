internal import Core

/// Reads the sections, and fills in the defaults. An unreadable value is reported, and left out of the result: the
/// result is used only when there was none.
struct SettingsReading {
    let findings: ProblemCollector
    let types: [DestinationSchema]
    let disk: Disk
    let environment: @Sendable (String) -> String?
    /// Paths where the file has none.
    let defaults: DefaultPlaces
    /// Values to which later sections refer. The names include those of folders and destinations that could not be read.
    private(set) var policy = PolicySettings()
    var networkNames: Set<String> { Set(networkInterfaces.keys) }
    /// The interfaces of the items with each name under `policy.networks`; `nil` for an item without.
    private(set) var networkInterfaces: [String: [String?]] = [:]
    /// Names of folders that stand for cards.
    private(set) var patternNames: Set<String> = []
    private(set) var folderNames: Set<String> = []
    private(set) var destinationNames: Set<String> = []

    /// - Parameter additions: The files of config.d.
    mutating func settings(main: MappingReader, additions: [MappingReader]) -> Settings {
        version(main)
        let state = main.read("state", as: .path)
        let statePath = state?.value ?? defaults.state
        var staging = StagingSettings(path: statePath.appending("staging"))
        StagingSettings.keys.read(main.fields("staging", .staging), into: &staging, self)
        check(staging, main)
        // Conditions of rules name them.
        let everything = [main] + additions
        let networks = named(in: main.node("policy")?.entries.first { $0.key == "networks" }?.value, with: "interface")
        networkInterfaces = Dictionary(grouping: networks, by: \.name).mapValues { $0.map(\.value) }
        let written = everything.flatMap { named(in: $0.node("folders"), with: "path") }
        folderNames = Set(written.map(\.name))
        patternNames = Set(written.filter { Glob.hasWildcard(FilePath($0.value ?? "")) }.map(\.name))
        destinationNames = Set(everything.flatMap { $0.node("destinations")?.entries.map(\.key) ?? [] })
        var policy = PolicySettings()
        PolicySettings.keys.read(main.fields("policy", .policy), into: &policy, self)
        self.policy = policy
        let control = ControlReading(findings: findings, disk: disk, secrets: secrets)
            .control(main.fields("control", .control), socket: defaults.socket)
        let metrics = metrics(main.fields("metrics", .metrics))
        var lists = ListRetention()
        ListRetention.keys.read(main.fields("retention", .retention), into: &lists, self)
        let destinations = destinations(everything)
        let folders = folders(everything)
        let patterns = folders.filter { $0.settings.pattern != nil }
        let overlaps = Overlaps(
            findings: findings, disk: disk, folders: folders.filter { $0.settings.pattern == nil }, patterns: patterns)
        overlaps.check(state: statePath, at: state?.place ?? main.start)
        overlaps.check(staging: staging.path, at: main.node("staging")?.entries.place(of: "path") ?? main.start)
        overlaps.checkStaging(staging.path, besides: statePath, at: main.node("staging")?.start ?? main.start)
        for destination in destinations {
            overlaps.check(
                destination: destination.settings, besides: staging.path, and: statePath, at: destination.place)
        }
        overlaps.checkFolders()
        var meetings = WindowOverlapCheck(findings: findings, policy: policy, destinations: destinations)
        meetings.check(policyAt: main.node("policy")?.entries.place(of: "bandwidth") ?? main.start)
        for folder in folders { meetings.check(folder) }
        for (key, path) in [("textfile", metrics.textfile), ("status_file", metrics.statusFile)] {
            guard let path else { continue }
            let place = main.node("metrics")?.entries.place(of: key) ?? main.start
            overlaps.check(report: path, at: place, key: "metrics.\(key)")
        }
        if everything.allSatisfy({ !$0.has("folders") }) {
            findings.warning("no folder is watched; add one under `folders`", at: main.start)
        }
        let hooks = hooks(main)
        let settings = Settings(
            state: statePath, staging: staging, folders: folders.map(\.settings).filter { $0.pattern == nil },
            destinations: destinations.map(\.settings), policy: policy, control: control, metrics: metrics,
            lists: lists, hooks: hooks, patternFolders: patterns.map(\.settings))
        ConditionReading.checkFileQuestions(of: settings, main, findings)
        return settings
    }

    private func check(_ staging: StagingSettings, _ main: MappingReader) {
        guard staging.memory == .refuse, disk.isInMemory(staging.path) else { return }
        let written = main.node("staging")
        findings.error(
            "`\(staging.path.display)` is on a file system in memory: a power cut would lose files whose sources "
                + "are gone. Set `staging.path` to a folder on a disk, or accept the loss with "
                + "`staging: {memory: allow}`",
            at: written?.entries.place(of: "path") ?? written?.start ?? main.start, key: "staging.path")
    }

    /// The names of the items of a list as written, including items that could not be read, and the text of a key.
    private func named(in list: Node?, with key: String) -> [(name: String, value: String?)] {
        guard case .list(let items)? = list?.content else { return [] }
        return items.compactMap { item in
            func text(_ key: String) -> String? { item.entries.first { $0.key == key }?.value.scalar }
            return text("name").map { ($0, text(key)) }
        }
    }

    private func version(_ main: MappingReader) {
        main.require("version", "a configuration begins with `version: 1`")
        _ = main.read(
            "version",
            as: Reader(expected: "the number 1", isPlain: true) { text throws(ValueError) in
                guard text == "1" else { throw ValueError("is \(quoted(text)); this program reads version 1") }
            })
    }

    /// - Parameters:
    ///   - keys: Those of the section.
    ///   - base: Values for keys that the section does not set.
    func retry(_ fields: MappingReader, _ section: Section, _ keys: [Key<Backoff>], otherwise base: Backoff = Backoff())
        -> Backoff?
    {
        guard fields.has("retry") else { return nil }
        let inner = fields.fields("retry", section)
        var backoff = base
        let readable = keys.read(inner, into: &backoff, self)
        if backoff.ceiling < backoff.first {
            inner.error(
                "the longest wait (\(writtenTime(backoff.ceiling))) is shorter than the first "
                    + "(\(writtenTime(backoff.first)))", readable.contains("max") ? "max" : "first")
        }
        return backoff
    }

    private func metrics(_ fields: MappingReader) -> MetricsSettings {
        var metrics = MetricsSettings()
        let readable = MetricsSettings.keys.read(fields, into: &metrics, self)
        if let textfile = metrics.textfile {
            if !textfile.bytes.suffix(5).elementsEqual(".prom".utf8) {
                fields.error("does not end in `.prom`: the node exporter reads no other file", "textfile")
            }
            if textfile == metrics.statusFile { fields.error("is the `textfile` as well; name another", "status_file") }
        }
        if readable.contains("every"), !fields.has("textfile"), !fields.has("status_file") {
            fields.error("belongs to `textfile` or `status_file`; add one of them, or take this out", "every")
        }
        return metrics
    }

    var secrets: SecretReading { SecretReading(findings: findings, disk: disk, environment: environment) }
}

extension [Node.Entry] {
    func place(of key: String) -> ConfigLocation? { first { $0.key == key }?.value.start }
}
