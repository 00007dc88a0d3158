internal import Core

/// Reads the sections, and fills in the defaults. An unreadable value is reported, and left out of the result: the
/// result is used only when there was none.
struct SettingsReading {
    let findings: Findings
    let types: [DestinationType]
    let disk: Disk
    let environment: @Sendable (String) -> String?

    /// - Parameter additions: The files of config.d.
    func settings(main: Fields, additions: [Fields]) -> Settings {
        version(main)
        let state = main.take("state", as: .path)
        let statePath = state?.value ?? folder(from: "STATE_DIRECTORY") ?? "/var/lib/sluice"
        let staging = staging(main.fields("staging", .staging), state: statePath)
        let policy = policy(main.fields("policy", .policy))
        let control = ControlReading(findings: findings, disk: disk, environment: environment)
            .control(main.fields("control", .control), runtime: folder(from: "RUNTIME_DIRECTORY"))
        let metrics = metrics(main.fields("metrics", .metrics))
        let lists = lists(main.fields("retention", .retention))
        let everything = [main] + additions
        let destinations = destinations(everything, policy: policy)
        let names = Set(everything.flatMap { $0.node("destinations")?.entries.map(\.key) ?? [] })
        let folders = folders(everything, policy: policy, destinations: names)
        let overlaps = Overlaps(findings: findings, disk: disk, folders: folders)
        overlaps.check(state: statePath, at: state?.place ?? main.start)
        overlaps.check(staging: staging.path, at: main.node("staging")?.entries.place(of: "path") ?? main.start)
        overlaps.checkStaging(staging.path, besides: statePath, at: main.node("staging")?.start ?? main.start)
        for destination in destinations {
            overlaps.check(
                destination: destination.settings, besides: staging.path, and: statePath, at: destination.place)
        }
        overlaps.checkFolders()
        var meetings = WindowMeetings(findings: findings, policy: policy, destinations: destinations)
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
        let hooks = hooks(main, folders: Set(everything.flatMap(folderNames)), destinations: names)
        return Settings(
            state: statePath, staging: staging, folders: folders.map(\.settings),
            destinations: destinations.map(\.settings), policy: policy, control: control, metrics: metrics,
            lists: lists, hooks: hooks)
    }

    private func lists(_ fields: Fields) -> ListRetention {
        var lists = ListRetention()
        func take(_ key: String, _ least: Duration, _ into: inout Duration?) {
            if let read = fields.take(key, as: .duration(atLeast: least)) { into = read.value.time }
        }
        take("completed", ListRetention.leastCompleted, &lists.completed.time)
        take("failed", ListRetention.leastFailed, &lists.failed.time)
        take("cancelled", .seconds(1), &lists.cancelled.time)
        take("history", .seconds(1), &lists.history)
        return lists
    }

    /// As written, including folders that could not be read.
    private func folderNames(_ file: Fields) -> [String] {
        guard case .list(let folders)? = file.node("folders")?.content else { return [] }
        return folders.compactMap { folder in
            guard case .mapping(let entries) = folder.content,
                case .scalar(let name, _)? = entries.first(where: { $0.key == "name" })?.value.content
            else { return nil }
            return name
        }
    }

    private func version(_ main: Fields) {
        main.require("version", "a configuration begins with `version: 1`")
        _ = main.take(
            "version",
            as: Reader(expected: "the number 1", isPlain: true) { text throws(Complaint) in
                guard text == "1" else { throw Complaint("is \(quoted(text)); this program reads version 1") }
            })
    }

    private func staging(_ fields: Fields, state: FilePath) -> StagingSettings {
        StagingSettings(
            path: fields.take("path", as: .path)?.value ?? state.appending("staging"),
            copy: fields.take("copy", as: .choice)?.value ?? .auto,
            maxSize: fields.take("max_size", as: .bytes)?.value,
            keepFree: fields.take("keep_free", as: .bytes)?.value ?? 1_000_000_000,
            concurrency: fields.take("concurrency", as: .whole(1...8))?.value ?? 2)
    }

    private func policy(_ fields: Fields) -> PolicySettings {
        let concurrency = fields.fields("concurrency", .concurrency)
        let total = concurrency.take("total", as: .whole(1...64))?.value ?? 3
        return PolicySettings(
            total: total,
            perDestination: concurrency.take("per_destination", as: .whole(1...64))?.value ?? min(2, total),
            order: fields.take("order", as: .choice)?.value ?? .newestFirst,
            retry: retry(fields.fields("retry", .retry), otherwise: Backoff()),
            beforeUpload: beforeUpload(fields), rules: rules(fields))
    }

    /// Keys that `policy`, a destination and a folder have in common.
    func rules(_ fields: Fields) -> PolicyRules {
        PolicyRules(
            windows: windows(fields), bandwidth: bandwidth(fields), metered: metered(fields),
            meteredUnknown: fields.take("metered_unknown", as: .choice)?.value, networks: networks(fields),
            quotas: quotas(fields),
            expiresAfter: fields.take("expires_after", as: .duration(.seconds(60) ... .seconds(10 * 366 * 86_400)))?
                .value, onBattery: fields.take("on_battery", as: .choice)?.value,
            minBattery: fields.take("min_battery", as: .percent)?.value, busy: busy(fields))
    }

    /// - Parameters:
    ///   - otherwise: Values for keys that the section does not set.
    ///   - isOfUploads: Allows an end of repeated failures: notices have a key of their own for that.
    func retry(_ fields: Fields, otherwise base: Backoff, isOfUploads: Bool = true) -> Backoff {
        let first = fields.take("first", as: .duration(.milliseconds(100) ... .seconds(86_400)))
        let most = fields.take("max", as: .duration(.milliseconds(100) ... .seconds(7 * 86_400)))
        let backoff = Backoff(
            first: first?.value ?? base.first, ceiling: most?.value ?? base.ceiling,
            attempts: fields.take("attempts", as: .whole(1...1_000_000))?.value ?? base.attempts,
            giveUpAfter: isOfUploads
                ? fields.take("give_up_after", as: .duration(.seconds(60) ... .seconds(366 * 86_400)))?.value
                    ?? base.giveUpAfter : nil)
        if backoff.ceiling < backoff.first {
            fields.error(
                "the longest wait (\(writtenTime(backoff.ceiling))) is shorter than the first "
                    + "(\(writtenTime(backoff.first)))", most == nil ? "first" : "max")
        }
        return backoff
    }

    private func metrics(_ fields: Fields) -> MetricsSettings {
        var metrics = MetricsSettings(
            textfile: fields.take("textfile", as: .path)?.value,
            statusFile: fields.take("status_file", as: .path)?.value)
        if let textfile = metrics.textfile {
            if !textfile.bytes.suffix(5).elementsEqual(".prom".utf8) {
                fields.error("does not end in `.prom`: the node exporter reads no other file", "textfile")
            }
            if textfile == metrics.statusFile { fields.error("is the `textfile` as well; name another", "status_file") }
        }
        if let every = fields.take("every", as: .duration(.seconds(5) ... .seconds(3600))) {
            metrics.every = every.value
            if !fields.has("textfile") && !fields.has("status_file") {
                fields.error("belongs to `textfile` or `status_file`; add one of them, or take this out", "every")
            }
        }
        return metrics
    }

    /// Values from the environment where the file has none.
    var surroundings: [String: String] {
        let variables = [
            "state": "STATE_DIRECTORY", "staging.path": "STATE_DIRECTORY", "control.socket": "RUNTIME_DIRECTORY",
        ]
        return variables.filter { folder(from: $0.value) != nil }.mapValues { "$" + $0 }
    }

    /// The first folder that systemd made for us (systemd.exec(5), `RuntimeDirectory=`): the variable may name several.
    private func folder(from variable: String) -> FilePath? {
        guard let first = environment(variable)?.split(separator: ":").first, first.hasPrefix("/") else { return nil }
        return FilePath(String(first)).normalised
    }
}

extension [Node.Entry] {
    func place(of key: String) -> Place? { first { $0.key == key }?.value.start }
}
