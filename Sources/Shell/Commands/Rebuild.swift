internal import Config
internal import Core
internal import Daemon
internal import Destinations
internal import Linux

extension Verb {
    static let rebuild: Verb = Verb(
        "rebuild", "build a new database when the old one is damaged or lost",
        usages: ["(--dry-run | --yes) [OPTION...]"],
        details: [
            "Use it when `sluice run` reports that the database is damaged. It builds the new one from the folders, "
                + "the staging folder and the contents of the destinations: files that a destination can confirm are "
                + "not sent again. It moves the old database aside and never deletes it. Stop the daemon first.",
            "A file that no destination can confirm becomes a `failed` upload, with the reason: `sluice retry ID` "
                + "sends it, `sluice cancel ID` gives it up. --unknown decides for all such files: `send` sends them, "
                + "`assume-sent` counts them as uploaded and keeps their sources.",
            "Run it as the daemon's user. It may be interrupted and run again at any point.",
        ],
        options: [
            Option(flag: "dry-run", "show what it would do, and change nothing"),
            Option(flag: "yes", "build the new database"),
            Option(
                "unknown", "ACTION", takes: .words(RebuildOptions.Undecided.allCases.map(\.rawValue)),
                "what to do with files that no destination can confirm: fail (default), send or assume-sent"),
            Option(flag: "offline", "contact no destination, so that none can confirm a file"),
            Option(flag: "force", "rebuild even if the database is intact, or a watched folder is absent"), .json,
            .config,
        ],
        examples: [
            ("sudo -u sluice sluice rebuild --dry-run", "Shows what it would do."),
            ("sudo -u sluice sluice rebuild --yes", "Builds the new database."),
        ]
    ) { call in
        var options = RebuildOptions()
        let word = call.arguments.text("unknown") ?? RebuildOptions.Undecided.fail.rawValue
        guard let undecided = RebuildOptions.Undecided(rawValue: word) else {
            let actions = enumerated(RebuildOptions.Undecided.allCases.map(\.rawValue), "or")
            throw Arguments.usage("--unknown is \(actions), not `\(printable(word))`", .rebuild)
        }
        options.undecided = undecided
        options.isOffline = call.arguments.has("offline")
        options.isTrial = call.arguments.has("dry-run")
        options.isForced = call.arguments.has("force")
        guard options.isTrial || call.arguments.has("yes") else {
            throw Arguments.usage("try --dry-run first, then confirm with --yes", .rebuild)
        }
        let settings = try await ConfigurationFile(call.arguments, call.console).load().settings
        let console = call.console
        let isShown = console.isTerminal && !call.json
        let report: RebuildReport
        do {
            report = try await Rebuild.run(
                settings, kinds: DestinationTable.builtIn, options: options, log: try Log(call.arguments, .rebuild),
                progress: { if isShown { console.progress($0) } })
        } catch let refusal as RebuildError {
            let status: ExitCode = if case .isWell = refusal { .conflict } else { .config }
            throw CommandError(status, printable("\(refusal)"), remedy: refusal.remedy)
        } catch { throw startError(error) }
        if isShown { console.progress("") }
        if call.json {
            try call.printJSON(report)
        } else {
            for line in lines(report, console) { try console.line(line) }
        }
        return .ok
    }
}

/// The summary for a person: the problem, a row for each destination, and the items that need attention.
private func lines(_ report: RebuildReport, _ console: Console) -> [String] {
    var lines: [String] = []
    if report.finishedEarlier {
        lines.append("an earlier rebuild was complete but for its last step, which is done now")
    } else {
        lines.append("the old database: \(printable(report.problem))")
        lines.append(
            "found \(report.files) files (\(Units.bytes(report.bytes))) in the folders, and \(report.copies) copies in staging"
        )
        if report.salvaged > 0 { lines.append("read \(report.salvaged) rows of the old database as evidence") }
        let names = Set(report.held.keys).union(report.toSend.keys).union(report.undecided.keys)
            .union(report.assumed.keys).sorted()
        if !names.isEmpty {
            var table = Table(columns: [
                .init(title: "DESTINATION"), .init(title: "HELD THERE", isRight: true),
                .init(title: "TO SEND", isRight: true), .init(title: "UNDECIDED", isRight: true),
                .init(title: "ASSUMED SENT", isRight: true),
            ])
            for name in names {
                var row = Table.Row(
                    cells: [
                        printable(name), "\(report.held[name] ?? 0)", "\(report.toSend[name] ?? 0)",
                        "\(report.undecided[name] ?? 0)", "\(report.assumed[name] ?? 0)",
                    ])
                if let reason = report.reasons[name] { row.notes.append((printable(reason), .yellow)) }
                table.rows.append(row)
            }
            lines += table.lines(console)
        }
    }
    for place in report.givenBack { lines.append("renamed back: \(place)") }
    for place in report.unmatched {
        lines.append(
            report.trial
                ? "belongs to no known file, and would be moved to recovered/: \(place)"
                : "belongs to no known file, and is kept: \(place)")
    }
    for trouble in report.troubles { lines.append("needs attention: \(printable(trouble))") }
    if report.undecided.values.contains(where: { $0 > 0 }) {
        lines.append(
            "UNDECIDED: may have been sent before. `sluice list --list failed` shows them; `sluice retry --destination "
                + "NAME` sends "
                + "them, `sluice cancel ID` leaves one.")
    }
    if let old = report.setAside { lines.append("the old database is kept as \(old)") }
    lines.append(report.trial ? "nothing was changed" : "the new database is in place: start the daemon")
    return lines
}
