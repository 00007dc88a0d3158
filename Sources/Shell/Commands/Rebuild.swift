internal import Config
internal import Core
internal import Daemon
internal import Destinations
internal import Linux

extension Verb {
    static let rebuild: Verb = Verb(
        "rebuild", "make a new database when the old one is damaged or lost",
        details: [
            "For the day on which `sluice run` says that the database is damaged. The new one is made from the folders, the "
                + "staging folder and what the destinations hold: what a destination can name is not sent again. The old "
                + "database is moved aside and never deleted. The daemon must not run meanwhile.",
            "What a destination cannot tell waits for you as `failed`, with the reason: `sluice retry ID` sends it, "
                + "`sluice cancel ID` lets it be. --unknown decides that for all of them: send, or assume-sent, which keeps their "
                + "sources.",
            "Run it as the daemon's user. It may be interrupted and run again at any point.",
        ],
        options: [
            Option(flag: "dry-run", "show what it would do, and change nothing"),
            Option(flag: "yes", "do not ask before it begins"),
            Option(
                "unknown", "WORD", takes: .words(RebuildOptions.Undecided.allCases.map(\.rawValue)),
                "hold (default), send or assume-sent what nobody can tell of"),
            Option(flag: "offline", "ask no destination"),
            Option(flag: "force", "also when the database is well, or a folder is away"), .json, .config,
        ],
        examples: [
            ("sudo -u sluice sluice rebuild --dry-run", "See what there is."),
            ("sudo -u sluice sluice rebuild --yes", "Do it."),
        ]
    ) { call in
        var options = RebuildOptions()
        let word = call.arguments.text("unknown") ?? RebuildOptions.Undecided.hold.rawValue
        guard let undecided = RebuildOptions.Undecided(rawValue: word) else {
            throw Arguments.usage("--unknown is hold, send or assume-sent, not `\(printable(word))`", .rebuild)
        }
        options.undecided = undecided
        options.isOffline = call.arguments.has("offline")
        options.isTrial = call.arguments.has("dry-run")
        options.isForced = call.arguments.has("force")
        guard options.isTrial || call.arguments.has("yes") else {
            throw Arguments.usage("look with --dry-run first, then say --yes", .rebuild)
        }
        let settings = try await ConfigurationFile(call.arguments, call.console).load().settings
        let console = call.console
        let isShown = console.isTerminal && !call.json
        let report: RebuildReport
        do {
            report = try await Rebuild.run(
                settings, kinds: DestinationTable.builtIn, options: options, log: try Log(call.arguments, .rebuild),
                progress: { if isShown { console.progress($0) } })
        } catch let refusal as RebuildRefusal {
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
                .init(title: "TO SEND", isRight: true), .init(title: "FOR YOU", isRight: true),
                .init(title: "TAKEN AS SENT", isRight: true),
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
    for place in report.givenBack { lines.append("has its name again: \(place)") }
    for place in report.unmatched {
        lines.append(
            report.trial
                ? "belongs to no file that is known, and would be moved to recovered/: \(place)"
                : "belongs to no file that is known, and is kept: \(place)")
    }
    for trouble in report.troubles { lines.append("look at this: \(printable(trouble))") }
    if report.undecided.values.contains(where: { $0 > 0 }) {
        lines.append(
            "FOR YOU: may have been sent before. `sluice list --list failed` shows them; `sluice retry --destination NAME` sends "
                + "them, `sluice cancel ID` lets one be.")
    }
    if let old = report.setAside { lines.append("the old database is kept as \(old)") }
    lines.append(report.trial ? "nothing was changed" : "the new database is in place: start the daemon")
    return lines
}
