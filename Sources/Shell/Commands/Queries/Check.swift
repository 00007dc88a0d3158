internal import API
internal import Config
internal import Control
internal import Core
internal import Daemon
internal import Destinations
internal import Digests
internal import Linux

extension Verb {
    static let check: Verb = Verb(
        "check", "check the configuration, and the folders, hooks and destinations that it names",
        operands: "[DESTINATION]", takes: .destinations, count: 0...1,
        details: [
            "Reads the configuration, examines folders, staging, state and hooks, asks each destination whether it "
                + "would accept uploads, and each `busy` source whether it is busy. It changes and uploads nothing. "
                + "Run it as the daemon's user, for example with `sudo -u sluice`. With a destination, it "
                + "checks only that one; --folder checks only a folder.",
            "With --test-file it also sends a small file to each destination that accepts uploads, and removes it there: "
                + "a text, or a short video for services that take only videos. `removable` sends it only to a "
                + "destination that can remove it, `any` to all. The file obeys `policy`, except quotas and `bandwidth`. A bucket that "
                + "keeps versions keeps the removed file as an old version. With --test-size the file has that size, "
                + "and the output says how fast it was.",
            "The other requests ignore quotas, windows, pauses and rules about metered networks; only a network with "
                + "`allowed: false` is avoided, also for DNS. The output says how many bytes it sent and received, which count "
                + "neither in quotas nor in `usage`.",
            "With --running the daemon does the check, with its own permissions and its loaded configuration. Its "
                + "requests obey `policy`, and count in quotas and in `usage`. A destination with a hold is not "
                + "contacted; the hold is shown.",
            "Exits with status 78 when the configuration or something on this machine must be fixed, else with 76 when "
                + "a destination failed, else with 0. A warning does not change the status.",
        ],
        options: [
            Option(flag: "running", "let the running daemon check its loaded configuration"),
            Option("folder", "NAME", takes: .folders, "only this folder"),
            Option("destination", "NAME", takes: .destinations, "only this destination (as DESTINATION)"),
            .testFile("send one file to each destination, and remove it there; nothing is sent by default"),
            Option("test-size", "SIZE", "with --test-file: the size of that file, to see the speed; 100MB at most"),
            .json, .config,
            Option(
                "socket", "PATH", takes: .file, "with --running: " + Option.socket.summary),
        ],
        examples: [
            ("sluice check --config ./sluice.yaml", "Checks a new configuration before the first start."),
            ("sudo -u sluice sluice check", "Checks with the permissions of the service."),
            ("sluice check --running nas", "Lets the daemon check one destination."),
            (
                "sluice check nas --test-file removable --test-size 10MB",
                "Sends 10 MB, says how fast that was, and removes the file."
            ),
        ]
    ) { call in try await runCheck(call) }
}

private func runCheck(_ call: Invocation) async throws -> ExitCode {
    let operand = call.arguments.operands.first?.lossyText
    if operand != nil, call.arguments.has("destination") {
        throw Arguments.usage("the destination is given twice", .check)
    }
    let request = CheckRequest(
        folder: call.arguments.text("folder"), destination: operand ?? call.arguments.text("destination"))
    let testFile = try call.testFile(.check)
    let testSize = try call.testSize(testFile)
    if call.arguments.has("running") {
        if testFile != nil { throw Arguments.usage("--test-file does not go with --running", .check) }
        return try call.report(try await call.withClient { try await $0.check(request) }.checks)
    }
    if call.arguments.has("socket") { throw Arguments.usage("--socket goes with --running", .check) }
    let loaded = try await ConfigurationFile(call.arguments, call.console).load()
    let settings = loaded.settings
    // The disks of cards are asked only where it matters.
    if let name = request.folder, !settings.writtenFolders.contains(where: { $0.watch.name == name }),
        settings.patternFolders.isEmpty || Checks.withCards(settings).folder(named: name) == nil
    {
        throw CommandError(.notFound, "no folder is called `\(printable(name))`")
    }
    if let name = request.destination, !settings.destinations.contains(where: { $0.name == name }) {
        let isPath = name.contains("/") || name.hasSuffix(".yaml") || name.hasSuffix(".yml")
        throw CommandError(
            .notFound, "no destination is called `\(printable(name))`",
            remedy: isPath ? "A configuration file is given with --config." : nil)
    }
    let findings =
        request.isAll
        ? await configurationFindings(loaded, call) : await Checks.standalone(settings, request)
    return try call.report(findings + (await testFindings(settings, findings, testFile, size: testSize)))
}

/// To which destinations a test file is sent.
enum TestFileRule: String, CaseIterable { case removable, any, none }

extension Option {
    static func testFile(_ summary: String) -> Option {
        Option(
            "test-file", "RULE", takes: .words(TestFileRule.allCases.map(\.rawValue)),
            "removable, any or none: " + summary)
    }
}

/// Sends a test file to each destination that the findings name and that has not failed.
///
/// - Parameter size: Of the file, to measure the speed; `nil` for a small one that is not measured.
func testFindings(
    _ settings: Settings, _ findings: [CheckFinding], _ rule: TestFileRule?, size: Int? = nil
) async -> [CheckFinding] {
    guard let rule, rule != .none else { return [] }
    var tested: [CheckFinding] = []
    for one in settings.destinations {
        guard let found = findings.first(where: { $0.about == "destination" && $0.name == one.name }),
            found.verdict != .failed
        else { continue }
        let isForVideos = DestinationTable.builtIn.contains { $0.type.name == one.type && $0.type.takesOnlyVideos }
        let small =
            isForVideos
            ? DemoVideo.content(frames: 5)
            : Array("Sluice sent this file to try the destination, and removes it.\n".utf8)
        let content = size.map { enlarged(small, to: $0, isVideo: isForVideos) } ?? small
        let file = TestUpload.File(
            ending: isForVideos ? "mov" : "txt", mediaType: isForVideos ? "video/quicktime" : "text/plain",
            content: content, sha256: Hasher.digest(.sha256, of: content))
        let test = TestUpload(file, mayStay: rule == .any, isMeasured: size != nil)
        tested.append(await test.finding(settings, to: one.name))
    }
    return tested
}

/// The content with bytes behind it that no compression shortens; a video's are in a box that players skip (`free`,
/// QuickTime File Format Specification).
private func enlarged(_ content: [UInt8], to size: Int, isVideo: Bool) -> [UInt8] {
    let head = isVideo ? 8 : 0
    let missing = size - content.count - head
    guard missing > 0 else { return content }
    var enlarged = content
    enlarged.reserveCapacity(size)
    if isVideo {
        withUnsafeBytes(of: UInt32(missing + head).bigEndian) { enlarged += $0 }
        enlarged += Array("free".utf8)
    }
    // Longer than the distance over which common compression finds repetitions (RFC 1951: 32 KiB).
    let noise = Random.bytes(64 << 10)
    while enlarged.count < size { enlarged += noise.prefix(size - enlarged.count) }
    return enlarged
}

extension Invocation {
    /// - Throws: The usage error for another word.
    func testFile(_ verb: Verb) throws -> TestFileRule? {
        guard let word = arguments.text("test-file") else { return nil }
        guard let rule = TestFileRule(rawValue: word) else {
            throw Arguments.usage("--test-file takes removable, any or none, not `\(printable(word))`", verb)
        }
        return rule
    }

    /// - Throws: The usage error for a size without a test file, or out of bounds.
    fileprivate func testSize(_ rule: TestFileRule?) throws -> Int? {
        guard let written = arguments.text("test-size") else { return nil }
        guard let rule, rule != .none else { throw Arguments.usage("--test-size goes with --test-file", .check) }
        guard let size = readBytes(written), (1...100_000_000).contains(size) else {
            throw Arguments.usage(
                "--test-size takes an amount like 10MB, at most 100MB, not `\(printable(written))`", .check)
        }
        return Int(size)
    }

    /// Prints the findings.
    ///
    /// - Returns: The exit status of the worst.
    func report(_ findings: [CheckFinding]) throws -> ExitCode {
        if json {
            try printJSON(CheckReport(findings))
        } else {
            for line in findingLines(findings, console) { try console.line(line) }
        }
        return Self.status(of: findings)
    }

    static func status(of findings: [CheckFinding]) -> ExitCode {
        let failed = findings.filter { $0.verdict == .failed }
        if failed.contains(where: { $0.about != "destination" && $0.about != TestUpload.about }) { return .config }
        return failed.isEmpty ? .ok : .remote
    }
}

/// Checks of the configuration and everything that it names.
///
/// - Parameter contacts: Whether destinations are contacted.
func configurationFindings(
    _ loaded: LoadedSettings, _ call: Invocation, contacts: Bool = true
) async -> [CheckFinding] {
    var findings = loaded.warnings.map {
        CheckFinding(
            about: "config", name: $0.place, CheckResult(.warning, ($0.key.isEmpty ? "" : "\($0.key): ") + $0.text))
    }
    if findings.isEmpty {
        let path = ConfigurationFile(call.arguments, call.console).path
        findings.append(CheckFinding(about: "config", name: path.display, CheckResult(.ok, "valid")))
    }
    return findings + (await Checks.standalone(loaded.settings, contacts: contacts))
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
        let steps = stepLines(finding.steps ?? [], console)
        if displayWidth(finding.name) <= name, indent + displayWidth(detail) <= console.width {
            return [start + filled(finding.name, to: name) + "  " + detail] + steps
        }
        let below = wrapped(detail, width: console.width, indent: 9).split(separator: "\n")
        return [start + finding.name] + below.map(String.init) + steps
    }
}

/// The way to a destination, below its finding.
private func stepLines(_ steps: [CheckStep], _ console: Console) -> [String] {
    steps.flatMap { step -> [String] in
        let mark =
            switch step.verdict {
            case .ok: ""
            case .warning: "warning: "
            case .failed: "failed: "
            }
        let start = "         " + filled(step.step.rawValue, to: 11) + "  "
        let text = mark + printable(step.detail)
        let indent = displayWidth(start)
        if indent + displayWidth(text) <= console.width { return [start + text] }
        let lines = wrapped(text, width: console.width, indent: indent).split(separator: "\n").map(String.init)
        guard let first = lines.first else { return [start] }
        return [start + first.dropFirst(indent)] + lines.dropFirst()
    }
}
