internal import API
internal import Config
internal import Control
internal import Core
internal import Linux

extension Verb {
    static let plan: Verb = Verb(
        "plan", "forecast when uploads run, and which will not finish in time",
        details: [
            "Simulates the backlog with windows, limits and quotas: which folder is uploaded when, to which "
                + "destination, over which network, how fast and until when; which uploads wait, and for what; and "
                + "which will not be sent before the end of the forecast. It sends nothing.",
            "It assumes that networks, destinations and pauses without an end stay as they are now, and that no "
                + "file arrives. For each destination it assumes the rate of the last transfers or that of the best "
                + "hour of the last week, whichever is higher; --rate sets one for all transfers together.",
        ],
        options: [
            Option(
                "until", "TIME",
                "end of the forecast: 18:00, 2026-11-25, 2026-11-25T18:00 or 2d (in two days); default: when all is sent, "
                    + "at most a month"),
            Option("rate", "RATE", "assume this rate for all transfers together: 2MB/s, 8Mbit/s"),
        ] + Option.client,
        examples: [
            ("sluice plan", "Forecasts until all is sent."),
            ("sluice plan --until 18:00", "Shows what is sent by six, and what is not."),
            ("sluice plan --until 2d --rate 2MB/s --json", "Forecasts two days at this rate, for a script."),
        ]
    ) { call in try await showPlan(call) }
}

private func showPlan(_ call: Invocation) async throws -> ExitCode {
    let now = call.now()
    var query = PlanQuery()
    if let written = call.arguments.text("until") {
        guard let until = moment(meant: written, .toCome, now: now) else {
            throw Arguments.usage(
                "--until takes a future time like 18:00, 2026-11-25, 2026-11-25T18:00 or 2d, not "
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
