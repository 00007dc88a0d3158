internal import Config
internal import Control
internal import Core
internal import Credentials
internal import Daemon
internal import Destinations
internal import Linux
internal import Store
internal import Transport

extension Verb {
    static let check: Verb = Verb(
        "check", "test the configuration and everything that it names",
        details: [
            "Reads the configuration, looks at folders, staging and state, and asks each destination whether it would "
                + "take uploads. Nothing is changed or uploaded. Rights are those of whoever asks: run it as the daemon's "
                + "user, for example with `sudo -u sluice`.",
            "Ends with status 78 when the configuration or something local must be mended, else with 76 when a "
                + "destination failed, else with 0. Warnings do not count.",
        ],
        options: [.json, .config],
        examples: [
            ("sluice check --config ./sluice.yaml", "Before the first start."),
            ("sudo -u sluice sluice check", "With the rights of the service."),
        ]
    ) { call in
        let file = ConfigurationFile(call.arguments, call.console)
        let loaded = try await file.load()
        var findings = loaded.warnings.map {
            Finding(
                about: "config", name: $0.place, CheckResult(.warning, ($0.key.isEmpty ? "" : "\($0.key): ") + $0.text))
        }
        if findings.isEmpty {
            findings.append(Finding(about: "config", name: file.path.display, CheckResult(.ok, "valid")))
        }
        let settings = loaded.settings
        let local = await LocalChecks.all(settings)
        findings += local.findings
        for folder in settings.folders where folder.retention.isLimited && !local.silent.contains(folder.watch.name) {
            findings.append(await retentionFinding(folder, settings.state))
        }
        findings += await destinationFindings(settings)
        if call.json {
            try call.printJSON(CheckReport(ok: !findings.contains { $0.verdict == .failed }, checks: findings))
        } else {
            for line in findingLines(findings, call.console) { try call.console.line(line) }
        }
        let failed = findings.filter { $0.verdict == .failed }
        if failed.contains(where: { $0.about != "destination" }) { return .config }
        return failed.isEmpty ? .ok : .remote
    }
}

/// One thing that was looked at.
struct Finding: Codable, Sendable, Hashable {
    /// `config`, `folder`, `staging`, `state`, `control`, `destination`.
    let about: String
    let name: String
    let verdict: CheckResult.Verdict
    let detail: String

    init(about: String, name: String, _ result: CheckResult) {
        self.about = about
        self.name = name
        verdict = result.verdict
        detail = result.detail
    }
}

private struct CheckReport: Codable {
    let ok: Bool
    let checks: [Finding]
}

/// What a folder's `for` and `until_free` would let go of now.
private func retentionFinding(_ folder: FolderSettings, _ state: FilePath) async -> Finding {
    func finding(_ verdict: CheckResult.Verdict, _ text: String) -> Finding {
        Finding(about: "folder", name: folder.watch.name, CheckResult(verdict, text))
    }
    do {
        guard try FileLook.ifPresent(at: state.appending(StateFiles.database)) != nil else {
            return finding(.ok, "no verified source would go now: nothing was uploaded yet")
        }
        let disk = try await blocking { try SourceDisk(of: folder.watch.path) }
        let going = try await folder.going(free: disk.free, on: disk.fileSystem, now: SystemClocks().wall()) {
            try StateFiles.kept(state: state, in: folder.watch.name, on: $0, until: $1, limit: $2)
        }
        guard let first = going.first else {
            return finding(.ok, "no verified source would go now; \(Units.bytes(disk.free)) are free")
        }
        let bytes = Units.bytes(going.reduce(0) { $0 + $1.size })
        return finding(
            .ok,
            "\(going.count)\(going.count == 1_000 ? " or more" : "") verified sources, \(bytes), would go now, first "
                + first.path.display)
    } catch {
        return finding(.warning, "what would go now is not known: \(error)")
    }
}

/// Asks all destinations at the same time: each may wait for a server that does not answer.
private func destinationFindings(_ settings: Settings) async -> [Finding] {
    let transport = Transport()
    let findings = await withTaskGroup(of: (Int, Finding).self) { group in
        for (number, destination) in settings.destinations.enumerated() {
            group.addTask {
                let result = await checkDestination(destination, transport)
                return (number, Finding(about: "destination", name: destination.name, result))
            }
        }
        return await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
    }
    await transport.stop()
    return findings
}

private func checkDestination(_ destination: DestinationSettings, _ transport: Transport) async -> CheckResult {
    guard let kind = DestinationTable.builtIn.first(where: { $0.type.name == destination.type }) else {
        return CheckResult(.failed, "no type `\(destination.type)` in this version")
    }
    let tools = DestinationTools(
        transport: transport, secrets: SecretReader(), clocks: SystemClocks(), name: destination.name, log: { _ in })
    do {
        return await (try kind.make(destination.values, tools)).check()
    } catch {
        return CheckResult(.failed, "\(destination.place): \(redacted(printable("\(error)")))")
    }
}

/// A line each: verdict, what, which, and how it stands; below, where that does not fit beside.
func findingLines(_ findings: [Finding], _ console: Console) -> [String] {
    let about = findings.map { displayWidth($0.about) }.max() ?? 0
    let name = min(32, findings.map { displayWidth($0.name) }.max() ?? 0)
    return findings.flatMap { finding -> [String] in
        let style: Console.Style =
            switch finding.verdict {
            case .ok: .green
            case .warning: .yellow
            case .failed: .red
            }
        let verdict = console.styled(filled(finding.verdict.rawValue, to: 7), style)
        let start = verdict + "  " + filled(finding.about, to: about) + "  "
        let detail = printable(finding.detail)
        let indent = 7 + 2 + about + 2 + name + 2
        if displayWidth(finding.name) <= name, indent + displayWidth(detail) <= console.width {
            return [start + filled(finding.name, to: name) + "  " + detail]
        }
        let below = wrapped(detail, width: console.width, indent: 9).split(separator: "\n")
        return [start + finding.name] + below.map(String.init)
    }
}
