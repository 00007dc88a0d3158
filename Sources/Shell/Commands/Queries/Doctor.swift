internal import Config

extension Verb {
    static let doctor: Verb = Verb(
        "doctor", "find out what prevents Sluice from working well on this machine",
        details: [
            "Does all that `sluice check` does, and examines the machine: kernel limits, file systems that do not "
                + "report changes, the permissions of the user that runs it, clock, network services and batteries, "
                + "whether each secret can be read, and whether a daemon runs. It changes and uploads nothing. Each "
                + "problem is shown with its remedy.",
            "Exits with the same statuses as `sluice check`.",
        ],
        options: [.json, .config],
        examples: [
            ("sudo -u sluice sluice doctor", "Examines with the permissions of the service."),
            ("sluice doctor --json", "For a script, or for a support request."),
        ]
    ) { call in
        let loaded = try await ConfigurationFile(call.arguments, call.console).load()
        let machine = await MachineChecks.all(loaded.settings)
        return try call.report(machine + (await configurationFindings(loaded, call)))
    }
}
