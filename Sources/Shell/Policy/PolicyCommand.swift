internal import Config
internal import Core

/// `policy explain` and `policy test`: what the rules of a configuration say, without a daemon.
enum PolicyCommand {
    static let verb: Verb = Verb(
        "policy", "print the rules as sentences, or decide about a file that does not exist yet",
        operands: "explain|test",
        usages: [
            "[--json] [--config FILE] explain",
            "--folder NAME [--to DESTINATION] [--at TIME] [--on NAME] [OPTION...] test",
        ], takes: .words(["explain", "test"]), count: 1...1,
        details: [
            "`explain` prints every rule of the configuration as a sentence, place by place, with the line that has "
                + "it.",
            "`test` decides what would happen to a file of a folder: for each destination whether it goes, or what "
                + "holds it and until when. A fact that no option states is unknown, and a restriction applies then, as "
                + "it does in the daemon. It assumes that the clock is set, that destinations answer, that quotas have "
                + "room, and that nothing is paused by hand. Exits with status 0 when the file goes to each "
                + "destination, and with 75 when a rule holds it.",
            "Both need no daemon and send nothing: they read the file as it is now.",
        ],
        options: [
            Option("folder", "NAME", takes: .folders, "the folder of the file; not needed where there is only one"),
            Option("to", "DESTINATION", takes: .destinations, "this destination alone"),
            Option("at", "TIME", "when: 03:00, \"2026-12-01 03:00\", 2d (in two days); default: now"),
        ] + NetworkOptions.all + [
            Option("battery", "SHARE|none", "the machine runs on its battery with this charge, like 40%; or not"),
            Option("temperature", "DEGREES", "the temperature of the machine in °C, like 75"),
            Option("size", "SIZE", "the size of the file: 30MB"),
            Option("kind", "KIND", "the kind of the file: video, photo, audio, other"),
            Option("duration", "LENGTH", "how long the recording is: 10s"), .json, .config,
        ],
        examples: [
            ("sluice policy explain", "Prints all rules."),
            (
                "sluice policy test --folder front --on lte --at \"2026-12-01 03:00\"",
                "Shows what would happen that night over the modem."
            ),
            (
                "sluice policy test --folder front --to nas --interface eth0 --metered no",
                "Shows what would happen now over a cable."
            ),
        ]
    ) { call in
        let word = call.arguments.operands.first?.lossyText ?? ""
        let loaded = try await ConfigurationFile(call.arguments, call.console).load(disk: .onlyItself)
        switch word {
        case "explain": return try explain(loaded, call)
        case "test": return try PolicyTest(loaded.settings, call).run()
        default:
            throw Arguments.usage("takes the word `explain` or `test`, not `\(printable(word))`", verb)
        }
    }

    private static func explain(_ loaded: LoadedSettings, _ call: Invocation) throws -> ExitCode {
        let strange = call.arguments.optionNames.subtracting(["json", "config"]).sorted()
        if let option = strange.first { throw Arguments.usage("--\(option) belongs to `policy test`", verb) }
        let explanation = PolicyExplanation(loaded)
        if call.json {
            try call.printJSON(ExplanationView(explanation))
            return .ok
        }
        for (number, place) in explanation.places.enumerated() {
            if number > 0 { try call.console.line() }
            try call.console.line(call.console.styled(place.name, .bold) + ": " + printable(place.about))
            for rule in place.rules {
                let name = rule.name.map { "\($0): " } ?? ""
                let text = "\(printable(name))\(rule.text) (\(printable(rule.from)))"
                try call.console.line(wrapped("- " + text, width: call.console.width, indent: 2))
            }
        }
        try call.console.line()
        try call.console.line(
            wrapped(
                "Rules only restrict: a file goes when no rule of policy, its destination or its folder holds it. A rule "
                    + "with a condition applies when the condition is true, and when that cannot be told.",
                width: call.console.width))
        return .ok
    }
}

private struct ExplanationView: Encodable {
    struct Place: Encodable {
        let name, about: String
        let rules: [Rule]
    }

    struct Rule: Encodable {
        let key: String
        let name: String?
        let text, from: String
    }

    let places: [Place]

    init(_ explanation: PolicyExplanation) {
        places = explanation.places.map { place in
            Place(
                name: place.name, about: place.about,
                rules: place.rules.map { Rule(key: $0.key, name: $0.name, text: $0.text, from: $0.from) })
        }
    }
}
