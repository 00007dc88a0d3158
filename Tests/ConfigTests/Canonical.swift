import Core

@testable import Config

/// Settings written out as YAML with every key set: what is loaded from it must be the same settings.
struct Canonical {
    private var lines: [String] = []

    static func text(_ settings: Settings) -> String {
        var out = Canonical()
        out.write(settings)
        return out.lines.joined(separator: "\n") + "\n"
    }

    private mutating func write(_ settings: Settings) {
        lines.append("version: 1")
        lines.append("state: \(Self.quoted(settings.state))")
        var staging = ["path: \(Self.quoted(settings.staging.path))", "copy: \(settings.staging.copy.rawValue)"]
        if let most = settings.staging.maxSize { staging.append("max_size: \(Self.amount(most))") }
        staging.append("keep_free: \(Self.amount(settings.staging.keepFree))")
        staging.append("concurrency: \(settings.staging.concurrency)")
        lines.append("staging: {\(staging.joined(separator: ", "))}")
        if settings.folders.isEmpty { lines.append("folders: []") } else { lines.append("folders:") }
        for folder in settings.folders { write(folder) }
        if settings.destinations.isEmpty { lines.append("destinations: {}") } else { lines.append("destinations:") }
        for destination in settings.destinations {
            var keys = ["type: \(destination.type)"]
            for (key, value) in destination.values.sorted(by: { $0.key < $1.key }) {
                keys.append("\(key): \(Self.value(value))")
            }
            keys += Self.overrides(destination.policy)
            lines.append("  \(Self.quoted(destination.name)): {\(keys.joined(separator: ", "))}")
        }
        let policy = settings.policy
        lines.append(
            "policy: {concurrency: {total: \(policy.total), per_destination: \(policy.perDestination)}, "
                + "order: \(policy.order.rawValue), retry: \(Self.retry(policy.retry))"
                + Self.rules(policy.rules).map { ", " + $0 }.joined() + "}")
        var control = ["socket: \(Self.quoted(settings.control.socket))"]
        if let remote = settings.control.remote {
            control += ["listen: \"\(remote.listen)\"", "token: \(Self.secret(remote.token))"]
            if !remote.hosts.isEmpty { control.append("hosts: [\(remote.hosts.joined(separator: ", "))]") }
            if let files = remote.certificate {
                control += ["certificate: \(Self.quoted(files.chain))", "key: \(Self.quoted(files.key))"]
            }
        }
        lines.append("control: {\(control.joined(separator: ", "))}")
        let metrics = settings.metrics
        guard metrics.isWritten else { return }
        let files = [("textfile", metrics.textfile), ("status_file", metrics.statusFile)]
        let keys = files.compactMap { key, path in path.map { "\(key): \(Self.quoted($0))" } }
        lines.append("metrics: {\((keys + ["every: \(Self.time(metrics.every))"]).joined(separator: ", "))}")
    }

    private mutating func write(_ folder: FolderSettings) {
        let watch = folder.watch
        var settle = ["writers: \(watch.writers.rawValue)"]
        if let quiet = watch.quietFor { settle.append("quiet_for: \(Self.time(quiet))") }
        let retention =
            (folder.retention.time.map { ", for: \(Self.time($0))" } ?? "")
            + (folder.retention.untilFree.map { ", until_free: \($0) B" } ?? "")
        if let marker = watch.marker { settle.append("marker: \(Self.quoted(marker.source))") }
        settle.append("report_after: \(Self.time(watch.reportAfter))")
        if watch.container == .check {
            settle += ["container: check", "broken: \(watch.broken.rawValue)"]
            if watch.broken == .upload { settle.append("broken_after: \(Self.time(watch.brokenAfter))") }
        }
        let after =
            switch folder.afterUpload {
            case .keep, .leave: "source: keep" + retention
            case .delete: "source: delete"
            case .move(let to): "source: move, to: \(Self.quoted(to.source))"
            }
        var keys = [
            "name: \(Self.quoted(watch.name))", "path: \(Self.quoted(watch.path))", "recursive: \(watch.recursive)",
            "include: \(Self.list(watch.include))", "exclude: \(Self.list(watch.exclude))",
            "settle: {\(settle.joined(separator: ", "))}", "existing: \(watch.existing.rawValue)",
            "empty: \(folder.empty.rawValue)", "duplicates: \(folder.duplicates.rawValue)",
            "upload_to: \(Self.list(folder.uploadTo))", "after_upload: {\(after)}", "priority: \(folder.priority)",
            "remote_name: \(Self.quoted(folder.name.source))", "metadata: \(Self.templates(folder.metadata))",
            "context: \(Self.templates(folder.context))",
        ]
        if let group = folder.group {
            keys.append("group: {by: stem, wait: \(Self.time(group.wait)), sidecars: \(Self.list(group.sidecars))}")
        }
        keys.append("watch: \(watch.watching.rawValue)")
        let required = watch.requirement
        let require =
            (required.file.map { ["file: \(Self.quoted($0))"] } ?? [])
            + (required.mount.map { ["mount: \(Self.quoted($0))"] } ?? [])
        if !require.isEmpty { keys.append("require: {\(require.joined(separator: ", "))}") }
        let limits = watch.limits
        if let size = limits.minSize { keys.append("min_size: \(Self.amount(size))") }
        if let size = limits.maxSize { keys.append("max_size: \(Self.amount(size))") }
        if let age = limits.minAge { keys.append("min_age: \(Self.time(age))") }
        if let age = limits.maxAge { keys.append("max_age: \(Self.time(age))") }
        keys.append("removable: \(folder.removable.rawValue)")
        if let copy = folder.copy { keys.append("staging: {copy: \(copy.rawValue)}") }
        if let export = folder.export {
            keys.append(
                "export: {command: \(Self.list(export.command.source)), output: \(Self.quoted(export.output.source)), "
                    + "timeout: \(Self.time(export.timeout)), min_size: \(Self.amount(export.minSize))}")
        }
        if let key = folder.key { keys.append("key: \(Self.quoted(key.source))") }
        keys += Self.overrides(folder.policy)
        lines.append("  - {\(keys.joined(separator: ", "))}")
    }

    private static func overrides(_ policy: PolicyOverrides) -> [String] {
        (policy.concurrency.map { ["concurrency: \($0)"] } ?? []) + (policy.retry.map { ["retry: \(retry($0))"] } ?? [])
            + (policy.order.map { ["order: \($0.rawValue)"] } ?? []) + rules(policy.rules)
    }

    private static func rules(_ rules: PolicyRules) -> [String] {
        let windows = rules.windows.map { "{\(window($0))}" }
        let rates = rules.bandwidth.map { rule in
            "{limit: \(rule.limit.map { amount($0) + "/s" } ?? "unlimited")"
                + (rule.window.map { ", " + window($0) } ?? "") + "}"
        }
        var keys: [String] = []
        func add(_ key: String, _ items: [String]) {
            if !items.isEmpty { keys.append("\(key): [\(items.joined(separator: ", "))]") }
        }
        add("windows", windows)
        add("bandwidth", rates)
        if let metered = rules.metered { keys.append("metered: \(Self.metered(metered))") }
        if let unknown = rules.meteredUnknown { keys.append("metered_unknown: \(unknown.rawValue)") }
        add("networks", rules.networks.map(\.yaml))
        add("quotas", rules.quotas.map(quota))
        if let use = rules.onBattery { keys.append("on_battery: \(use.rawValue)") }
        if let share = rules.minBattery { keys.append("min_battery: \(share)%") }
        if let rule = rules.busy { keys.append("busy: {\(busy(rule))}") }
        if let age = rules.expiresAfter { keys.append("expires_after: \(time(age))") }
        return keys
    }

    private static func metered(_ rule: MeteredRule) -> String {
        switch rule {
        case .allow: "allow"
        case .pause: "pause"
        case .limit(let rate): "{limit: \(amount(rate))/s}"
        }
    }

    private static func busy(_ rule: BusyRule) -> String {
        switch rule.source {
        case .file(let path): "file: \(quoted(path))"
        case .command(let words):
            "command: \(list(words)), every: \(time(rule.every)), timeout: \(time(rule.timeout))"
        }
    }

    private static func quota(_ quota: Quota) -> String {
        let period =
            switch quota.period {
            case .hour: "hour"
            case .day: "day"
            case .week(let first): "week, starts_on: \(first.rawValue)"
            case .month(let first): "month, starts_on: \(first)"
            }
        return "{per: \(period)" + (quota.bytes.map { ", bytes: \(amount($0))" } ?? "")
            + (quota.files.map { ", files: \($0)" } ?? "") + ", network: \(quota.network.rawValue)}"
    }

    private static func window(_ window: Window) -> String {
        func time(_ minutes: Int) -> String { "\(padded(minutes / 60, 2)):\(padded(minutes % 60, 2))" }
        let days = Weekday.allCases.filter { window.days.contains($0) }.map(\.rawValue).joined(separator: ",")
        return "between: \"\(days) \(time(window.from))-\(time(window.to))\""
            + (window.except.isEmpty
                ? "" : ", except: [\(window.except.sorted().map { "\"\($0)\"" }.joined(separator: ", "))]")
    }

    private static func retry(_ backoff: Backoff) -> String {
        "{first: \(time(backoff.first)), max: \(time(backoff.ceiling))"
            + (backoff.attempts.map { ", attempts: \($0)" } ?? "") + "}"
    }

    private static func value(_ value: SettingValue) -> String {
        switch value {
        case .text(let text): quoted(text)
        case .secret(let source): secret(source)
        case .flag(let flag): "\(flag)"
        case .bytes(let bytes): amount(bytes)
        case .duration(let duration): time(duration)
        case .whole(let number): "\(number)"
        case .path(let path): quoted(path)
        case .map(let map):
            "{"
                + map.sorted { $0.key < $1.key }.map { "\(quoted($0.key)): \(secret($0.value))" }.joined(
                    separator: ", ")
                + "}"
        }
    }

    private static func secret(_ source: SecretSource) -> String {
        switch source {
        case .file(let path): "{file: \(quoted(path))}"
        case .environment(let name): "{env: \(quoted(name))}"
        case .credential(let name): "{credential: \(quoted(name))}"
        case .command(let words): "{command: \(list(words))}"
        case .literal(let text): "{literal: \(quoted(text))}"
        }
    }

    private static func templates(_ all: [String: Template]) -> String {
        "{"
            + all.sorted { $0.key < $1.key }.map { "\(quoted($0.key)): \(quoted($0.value.source))" }
            .joined(separator: ", ") + "}"
    }

    private static func list(_ texts: [String]) -> String { "[" + texts.map(quoted).joined(separator: ", ") + "]" }
    private static func quoted(_ path: FilePath) -> String { quoted(path.text ?? path.display) }

    /// In double quotes, all but plain ASCII as `\U0001F3A5` (YAML 1.1, section 5.6).
    static func quoted(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            if scalar == "\"" || scalar == "\\" {
                out += "\\\(scalar)"
            } else if (0x20..<0x7F).contains(scalar.value) {
                out.unicodeScalars.append(scalar)
            } else {
                let digits = String(scalar.value, radix: 16)
                out += "\\U" + String(repeating: "0", count: 8 - digits.count) + digits
            }
        }
        return out + "\""
    }

    static func time(_ duration: Duration) -> String { "\(duration.inMilliseconds)ms" }

    /// With the last unit in which it takes at most three decimals.
    static func amount(_ bytes: Int64) -> String {
        let units: [(String, Int64)] = [
            ("B", 1), ("kB", 1_000), ("KiB", 1 << 10), ("MB", 1_000_000), ("MiB", 1 << 20), ("GB", 1_000_000_000),
            ("GiB", 1 << 30), ("TB", 1_000_000_000_000), ("TiB", 1 << 40),
        ]
        for (name, factor) in units.reversed() {
            let (thousandths, rest) = (Int128(bytes) * 1000).quotientAndRemainder(dividingBy: Int128(factor))
            guard rest == 0 else { continue }
            let decimals = padded(Int(thousandths % 1000), 3)
            return decimals == "000" ? "\(thousandths / 1000) \(name)" : "\(thousandths / 1000).\(decimals) \(name)"
        }
        return "\(bytes) B"
    }
}
