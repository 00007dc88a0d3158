internal import API
internal import Config
internal import Control
internal import Core
internal import Daemon

extension Verb {
    static let check: Verb = Verb(
        "check", "check the configuration, and the folders, hooks and destinations that it names",
        details: [
            "Reads the configuration, examines folders, staging, state and hooks, asks each destination whether it "
                + "would accept uploads, and each `busy` source whether it is busy. It changes and uploads nothing. "
                + "Run it as the daemon's user, for example with `sudo -u sluice`.",
            "Its requests ignore quotas, windows, pauses and rules about metered networks; only a network with "
                + "`allowed: false` is avoided. The output says how many bytes it sent and received, which count "
                + "neither in quotas nor in `usage`.",
            "With --running the daemon does the check, with its own permissions and its loaded configuration. Its "
                + "requests obey `policy`, and count in quotas and in `usage`. A destination with a hold is not "
                + "contacted; the hold is shown.",
            "Exits with status 78 when the configuration or something on this machine must be fixed, else with 76 when "
                + "a destination failed, else with 0. A warning does not change the status.",
        ],
        options: [
            Option(flag: "running", "let the running daemon check its loaded configuration"),
            Option("folder", "NAME", takes: .folders, "with --running: only this folder"),
            Option("destination", "NAME", takes: .destinations, "with --running: only this destination"),
            .json, .config,
            Option(
                "socket", "PATH", takes: .file, "with --running: " + Option.socket.summary),
        ],
        examples: [
            ("sluice check --config ./sluice.yaml", "Checks a new configuration before the first start."),
            ("sudo -u sluice sluice check", "Checks with the permissions of the service."),
            ("sluice check --running --destination nas", "Lets the daemon check one destination."),
        ]
    ) { call in
        let request = CheckRequest(
            folder: call.arguments.text("folder"), destination: call.arguments.text("destination"))
        if call.arguments.has("running") {
            return try call.report(try await call.withClient { try await $0.check(request) }.checks)
        }
        for option in ["folder", "destination", "socket"] where call.arguments.has(option) {
            throw Arguments.usage("--\(option) goes with --running", .check)
        }
        let loaded = try await ConfigurationFile(call.arguments, call.console).load()
        return try call.report(await configurationFindings(loaded, call))
    }
}

extension Invocation {
    /// Prints the findings.
    ///
    /// - Returns: The exit status of the worst.
    func report(_ findings: [CheckFinding]) throws -> ExitCode {
        if json {
            try printJSON(CheckReport(findings))
        } else {
            for line in findingLines(findings, console) { try console.line(line) }
        }
        let failed = findings.filter { $0.verdict == .failed }
        if failed.contains(where: { $0.about != "destination" }) { return .config }
        return failed.isEmpty ? .ok : .remote
    }
}

/// Checks of the configuration and everything that it names.
func configurationFindings(_ loaded: LoadedSettings, _ call: Invocation) async -> [CheckFinding] {
    var findings = loaded.warnings.map {
        CheckFinding(
            about: "config", name: $0.place, CheckResult(.warning, ($0.key.isEmpty ? "" : "\($0.key): ") + $0.text))
    }
    if findings.isEmpty {
        let path = ConfigurationFile(call.arguments, call.console).path
        findings.append(CheckFinding(about: "config", name: path.display, CheckResult(.ok, "valid")))
    }
    return findings + (await Checks.standalone(loaded.settings))
}

/// One line for each finding: verdict, subject, name, and state; the state goes below if there is no space beside.
func findingLines(_ findings: [CheckFinding], _ console: Console) -> [String] {
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
