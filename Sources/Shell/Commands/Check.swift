internal import Config
internal import Control
internal import Core
internal import Credentials
internal import Daemon
internal import Destinations
internal import Linux
internal import Store
internal import Synchronization
internal import Transport

extension Verb {
    static let check: Verb = Verb(
        "check", "test the configuration and everything that it names",
        details: [
            "Reads the configuration, looks at folders, staging, state and hooks, asks each destination whether it would take "
                + "uploads, and what `busy` names whether it is busy. Nothing is changed or uploaded. Rights are those of "
                + "whoever asks: run it as the daemon's user, for example with `sudo -u sluice`.",
            "Ends with status 78 when the configuration or something local must be mended, else with 76 when a "
                + "destination failed, else with 0. Warnings do not count.",
        ],
        options: [.json, .config],
        examples: [
            ("sluice check --config ./sluice.yaml", "Before the first start."),
            ("sudo -u sluice sluice check", "With the rights of the service."),
        ]
    ) { call in
        let loaded = try await ConfigurationFile(call.arguments, call.console).load()
        return try call.report(await configurationFindings(loaded, call))
    }
}

extension Invocation {
    /// Prints what was found.
    ///
    /// - Returns: The status of the worst.
    func report(_ findings: [Finding]) throws -> ExitCode {
        if json {
            try printJSON(CheckReport(ok: !findings.contains { $0.verdict == .failed }, checks: findings))
        } else {
            for line in findingLines(findings, console) { try console.line(line) }
        }
        let failed = findings.filter { $0.verdict == .failed }
        if failed.contains(where: { $0.about != "destination" }) { return .config }
        return failed.isEmpty ? .ok : .remote
    }
}

/// The configuration and everything that it names.
func configurationFindings(_ loaded: LoadedSettings, _ call: Invocation) async -> [Finding] {
    var findings = loaded.warnings.map {
        Finding(
            about: "config", name: $0.place, CheckResult(.warning, ($0.key.isEmpty ? "" : "\($0.key): ") + $0.text))
    }
    if findings.isEmpty {
        let path = ConfigurationFile(call.arguments, call.console).path
        findings.append(Finding(about: "config", name: path.display, CheckResult(.ok, "valid")))
    }
    let settings = loaded.settings
    let local = await LocalChecks.all(settings)
    findings += local.findings
    for folder in settings.folders where folder.retention.isLimited && !local.silent.contains(folder.watch.name) {
        findings.append(await retentionFinding(folder, settings.state))
    }
    let destinations = CheckedDestinations(settings)
    findings += await busyFindings(settings)
    findings += await hookFindings(settings)
    findings += await networkFindings(settings, destinations.sites)
    return findings + (await destinations.findings())
}

/// One thing that was looked at.
struct Finding: Codable, Sendable, Hashable {
    /// `config`, `folder`, `staging`, `state`, `control`, `metrics`, `busy`, `hook`, `network`, `destination`; with `doctor` also `kernel`, `mount`,
    /// `rights`, `clock`, `power`, `secret`, `daemon`.
    let about: String
    let name: String
    let verdict: CheckResult.Verdict
    let detail: String
    /// What a destination said of its room.
    let space: SpaceView?

    init(about: String, name: String, _ result: CheckResult) {
        self.about = about
        self.name = name
        verdict = result.verdict
        detail = result.detail
        space = result.space.map { SpaceView($0, askedAt: nil) }
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

/// Each interface with what it costs, what decided, and what would change it; and which destinations could not be reached.
private func networkFindings(_ settings: Settings, _ sites: [String: DestinationSite]) async -> [Finding] {
    let survey = await NetworkSurvey.look(settings, sites)
    var findings = survey.troubles.map { Finding(about: "network", name: "", CheckResult(.warning, $0)) }
    for interface in survey.interfaces {
        var words = (interface.isUsable ? "" : "down; ") + interface.reason
        if let forbidden = interface.forbidden { words += "; " + forbidden }
        if !interface.carries.isEmpty { words += "; " + interface.carries.joined(separator: ", ") + " by it" }
        if let remedy = interface.remedy { words += "; `\(remedy)` under `policy.networks` would change that" }
        findings.append(Finding(about: "network", name: interface.name, CheckResult(.ok, words)))
    }
    findings += survey.withoutEffect.map { destination, words in
        Finding(about: "network", name: destination, CheckResult(.warning, words))
    }
    return findings
        + survey.holds.map { destination, hold in
            Finding(about: "network", name: destination, CheckResult(.warning, "uploads wait now: \(hold.text)"))
        }
}

/// The destinations, each with a count of what asking it costs.
private struct CheckedDestinations {
    private let transport = Transport()
    private let made:
        [(settings: DestinationSettings, destination: Result<any Destination, CheckRefusal>, meter: Meter)]

    private struct CheckRefusal: Error { let result: CheckResult }

    init(_ settings: Settings) {
        let transport = transport
        made = settings.destinations.map { settings in
            let meter = Meter(transport: transport)
            return (settings, Self.make(settings, meter), meter)
        }
    }

    private static func make(
        _ destination: DestinationSettings, _ meter: Meter
    ) -> Result<any Destination, CheckRefusal> {
        guard let kind = DestinationTable.builtIn.first(where: { $0.type.name == destination.type }) else {
            return .failure(CheckRefusal(result: CheckResult(.failed, "no type `\(destination.type)` in this version")))
        }
        let tools = DestinationTools(
            transport: meter, secrets: SecretReader(), clocks: SystemClocks(), name: destination.name, log: { _ in })
        do { return .success(try kind.make(destination.values, tools)) } catch {
            let text = "\(destination.place): \(redacted(printable("\(error)")))"
            return .failure(CheckRefusal(result: CheckResult(.failed, text)))
        }
    }

    /// Where each is, by its name.
    var sites: [String: DestinationSite] {
        Dictionary(
            made.compactMap { one in (try? one.destination.get()).map { (one.settings.name, $0.site) } },
            uniquingKeysWith: { $1 })
    }

    /// Asks all at the same time: each may wait for a server that does not answer.
    func findings() async -> [Finding] {
        let findings = await withTaskGroup(of: (Int, Finding).self) { group in
            for (number, one) in made.enumerated() {
                group.addTask {
                    var result: CheckResult
                    switch one.destination {
                    case .success(let destination): result = await destination.check()
                    case .failure(let refusal): result = refusal.result
                    }
                    if one.meter.bytes > 0 { result.detail += "; asking it sent \(Units.bytes(one.meter.bytes))" }
                    return (number, Finding(about: "destination", name: one.settings.name, result))
                }
            }
            return await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
        await transport.stop()
        return findings
    }
}

/// Counts what leaves by the way, as the kernel does.
private final class Meter: Transporting {
    private let transport: Transport
    private let sum = Atomic<Int>(0)

    init(transport: Transport) { self.transport = transport }

    var bytes: Int64 { Int64(sum.load(ordering: .relaxed)) }

    func send(_ request: Request) async throws(TransportError) -> Response {
        var request = request
        request.onWire = { [self] in sum.add(Int($0), ordering: .relaxed) }
        return try await transport.send(request)
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
