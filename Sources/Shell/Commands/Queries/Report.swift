internal import API
internal import Config
internal import Control
internal import Core
internal import Daemon
internal import Linux

extension Verb {
    static let machineReport: Verb = Verb(
        "report", "write what is needed to judge this machine from afar into one file",
        details: [
            "The file has the configuration without secrets, the checks, the status, the oldest waits with their reasons, the "
                + "last failures with their requests, ways, disks, versions and the end of the log. Read it before you "
                + "send it: paths and names of files are in it, unless you give --hide-names. The paths of the "
                + "configuration stay.",
            "A running daemon checks its own configuration, with its own permissions and secrets, as `sluice check --running` "
                + "does; without one, the checks send what `sluice check` sends. With --offline nothing is sent.",
            "A part that cannot be had says why, and the others are there: without a daemon, with one that does not "
                + "answer, and with a configuration that has mistakes. The log is that of the journal, also of the runs before, "
                + "and of the file that the daemon writes; where it goes elsewhere, the report says so. It takes less than a "
                + "minute. The exit status is 0 when the report was written, whatever it says.",
        ],
        options: [
            Option("output", "FILE", takes: .file, "a new file instead of standard output (or -o FILE)"),
            Option("format", "FORMAT", takes: .words(["html", "markdown"]), "html (default) or markdown"),
            Option(flag: "hide-names", "replace names of files, and of folders below the watched ones, by marks"),
            Option(flag: "offline", "contact no destination"), Option.config, Option.socket,
        ],
        examples: [
            ("sudo sluice report -o sluice.html", "Writes one page that any browser shows."),
            ("sluice report --format markdown --hide-names | less", "Shows it, without names of files."),
        ]
    ) { call in
        let format = call.arguments.text("format") ?? "html"
        guard ["html", "markdown"].contains(format) else {
            throw Arguments.usage("--format is html or markdown, not `\(printable(format))`", .machineReport)
        }
        let output = call.arguments.path("output").map { NewFile($0) }
        try output?.refuseExisting()
        let report = await ReportSections(call).document()
        let text = format == "html" ? report.html : report.markdown
        guard let output else {
            try call.console.raw(text)
            return .ok
        }
        try output.create()
        try output.append(Array(text.utf8))
        return .ok
    }
}
