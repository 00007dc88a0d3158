internal import Config

extension Verb {
    static let doctor: Verb = Verb(
        "doctor", "look for what keeps Sluice from working well on this machine",
        details: [
            "All that `sluice check` does, and the machine besides: limits of the kernel, file systems that tell of no "
                + "changes, what this user may see, the clock, who is asked about networks, batteries, whether each "
                + "secret can be read, and the daemon. Nothing is changed or uploaded. Where something should be done, the line says what.",
            "Ends with the same statuses as `sluice check`.",
        ],
        options: [.json, .config],
        examples: [
            ("sudo -u sluice sluice doctor", "With the rights of the service."),
            ("sluice doctor --json", "For a script, or to send to somebody who helps."),
        ]
    ) { call in
        let loaded = try await ConfigurationFile(call.arguments, call.console).load()
        let machine = await MachineChecks.all(loaded.settings)
        return try call.report(machine + (await configurationFindings(loaded, call)))
    }
}
