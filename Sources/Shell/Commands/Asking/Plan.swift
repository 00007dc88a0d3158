internal import Config
internal import Control
internal import Core
internal import Daemon
internal import Linux

extension Verb {
    static let plan: Verb = Verb(
        "plan", "say what goes when, and what will not fit",
        details: [
            "The backlog is carried through windows, limits and quotas by a clock that only counts: which folder goes when, "
                + "where to, over which network, how fast and until when; what waits, and for what; and what will not be sent "
                + "by then. Nothing is sent for it.",
            "Networks, the health of destinations and pauses without an end are taken as they are now, and nothing new "
                + "arrives. How fast bytes go was measured while they went, or is the best hour of the last week; --rate "
                + "says otherwise, for all transfers together.",
        ],
        options: [
            Option(
                "until", "TIME", "where it ends: 18:00, 2026-11-25, 2026-11-25T18:00 or 2d (all is sent, or a month)"),
            Option("rate", "RATE", "reckon with that, like 2 MB/s"),
        ] + Option.client,
        examples: [
            ("sluice plan", "Until all is sent."),
            ("sluice plan --until 18:00", "What is there by six, and what is not."),
            ("sluice plan --until 2d --rate 2MB/s --json", "For a script."),
        ]
    ) { call in
        let now = call.now()
        var query = PlanQuery()
        if let written = call.arguments.text("until") {
            guard let until = moment(meant: written, .toCome, now: now) else {
                throw Arguments.usage(
                    "--until takes a time to come like 18:00, 2026-11-25, 2026-11-25T18:00 or 2d, not "
                        + "`\(printable(written))`", .plan)
            }
            query.until = until
        }
        if let written = call.arguments.text("rate") {
            guard let rate = readRate(written), rate > 0 else {
                throw Arguments.usage("--rate takes a rate like 2 MB/s or 8 Mbit/s, not `\(printable(written))`", .plan)
            }
            query.rate = rate
        }
        let question = query
        let view = try await call.withClient { try await $0.plan(question) }
        if call.json {
            try call.printJSON(view)
        } else {
            for line in planLines(view, call.console, now: now) { try call.console.line(line) }
        }
        return .ok
    }
}
