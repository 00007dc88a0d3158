import Shell

/// Variables of the environment that the program reads. A test compares them with the code.
let environmentVariables: [(name: String, meaning: String)] = [
    ("SLUICE_CONFIG", "The configuration file, unless `--config` names one."),
    ("STATE_DIRECTORY", "The folder of the state, unless `state` of the configuration names one. systemd sets it."),
    ("RUNTIME_DIRECTORY", "The folder of the socket, unless `control.socket` names one. systemd sets it."),
    ("CREDENTIALS_DIRECTORY", "The folder of the credentials that systemd gives to the service."),
    ("NOTIFY_SOCKET", "The socket on which systemd waits for the service to be ready."),
    ("WATCHDOG_USEC", "The time within which systemd expects a sign that the daemon works. systemd sets it."),
    ("WATCHDOG_PID", "The process that this is meant for."),
    ("XDG_CONFIG_HOME", "The folder of an ordinary user's configuration (default: ~/.config)."),
    ("XDG_STATE_HOME", "The folder of an ordinary user's state (default: ~/.local/state)."),
    ("XDG_RUNTIME_DIR", "The folder of an ordinary user's socket (default: /run/user/UID)."),
    ("HOME", "The home folder of these."),
    ("JOURNAL_STREAM", "Tells whether standard error is the journal. Then log lines have priorities."),
    ("DBUS_SYSTEM_BUS_ADDRESS", "The system bus, on which NetworkManager and ModemManager are asked."),
    ("PATH", "Where programs are searched for: hooks, ffprobe."),
    ("TZ", "The time zone of windows and quotas (default: the machine's)."),
    ("TMPDIR", "Where `sluice demo` makes its folder (default: /var/tmp)."),
    ("SLUICE_EDITOR", "The editor of `sluice edit`. Without it `VISUAL` counts, and then `EDITOR`."),
    ("VISUAL", "See `SLUICE_EDITOR`."),
    ("EDITOR", "See `SLUICE_EDITOR`."),
    ("COLUMNS", "The width of the output where no terminal reports its own (default: 100)."),
    ("NO_COLOR", "If it is not empty, the output has no colours."),
    ("TERM", "If it is `dumb`, the output has no colours."),
]

/// Files and folders of the installed program.
let files: [(path: String, meaning: String)] = [
    ("/etc/sluice/sluice.yaml", "The configuration, unless another is named."),
    ("/etc/sluice/config.d/*.yaml", "Folders and destinations that are added to it, in the order of their names."),
    ("/var/lib/sluice", "The state: the database, and below it the staged files. It may hold the only copy of a file."),
    ("/run/sluice/control.sock", "The socket of the daemon."),
    ("/usr/share/doc/sluice/examples", "Configurations to copy from."),
]

/// sluice(1), from the table of verbs.
func programPage(date: String) -> String {
    var page = Page("SLUICE", section: 1, date: date, heading: "User Commands")
    page.name("sluice", "uploads the files of watched folders, with resume and verification")
    page.section("Synopsis")
    page.usage(["sluice VERB [OPTION...] [ARGUMENT...]"])
    page.section("Description")
    page.text(Shell.purpose)
    page.paragraph(
        "`sluice run` is the daemon. `sluice receive` is a server for the other end. Most other verbs ask the daemon, "
            + "over its socket, and need it to run.")
    page.paragraph("Words in the text of the verbs:")
    for (word, meaning) in Shell.sharedWords { page.item(word, meaning) }
    page.section("Verbs")
    for verb in Shell.verbs { add(verb, to: &page) }
    page.section("Exit status")
    for status in ExitCode.allCases { page.item("\(status.rawValue)", status.meaning) }
    page.section("Environment")
    for (name, meaning) in environmentVariables { page.item(name, meaning) }
    page.section("Files")
    for (path, meaning) in files { page.item(path, meaning) }
    page.section("Examples")
    page.text("Shows an upload that is cut and continues:")
    page.example(["sluice demo"])
    page.paragraph("Checks a configuration, runs the daemon in a terminal, and asks it why a file waits:")
    page.example(["sluice check --config ./sluice.yaml", "sluice run --config ./sluice.yaml", "sluice why clip.mp4"])
    page.section("See also")
    page.text("`sluice.yaml`(5), `systemd.unit`(5), `systemd.exec`(5)")
    return page.text
}

private func add(_ verb: Verb, to page: inout Page) {
    page.part(verb.name)
    page.usage(verb.usageForms)
    page.paragraph(verb.sentence)
    for text in verb.details { page.paragraph(text) }
    for option in verb.options { page.item(option.written, option.explanation) }
    for (command, does) in verb.examples {
        page.paragraph(does)
        page.example([command])
    }
}
