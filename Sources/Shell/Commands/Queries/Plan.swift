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
            "It assumes that the present networks and routes, destinations and pauses without an end stay as they are, and "
                + "that no file arrives. --on and the options after it assume another network, and --from a later start.",
            "For each destination it assumes the rate of the last transfers or that of the best hour of the last week, "
                + "whichever is higher; --rate sets one for all transfers together.",
        ],
        options: PlanOptions.all + Option.client,
        examples: [
            ("sluice plan", "Forecasts until all is sent."),
            ("sluice plan --until 18:00", "Shows what is sent by six, and what is not."),
            ("sluice plan --on lte --from 22:00", "Shows what would be sent tonight if only the modem were there."),
            ("sluice plan --until 2d --rate 2MB/s --json", "Forecasts two days at this rate, for a script."),
        ]
    ) { call in try await showPlan(call) }
}

private enum PlanOptions {
    static let all: [Option] =
        [
            Option(
                "until", "TIME",
                "end of the forecast: 18:00, 2026-11-25, 2026-11-25T18:00 or 2d (in two days); default: when all is sent, "
                    + "at most a month"),
            Option("rate", "RATE", "assume this rate for all transfers together: 2MB/s, 8Mbit/s"),
            Option("from", "TIME", "start of the forecast, in the form of --until; default: now"),
        ] + NetworkOptions.all
}

private func showPlan(_ call: Invocation) async throws -> ExitCode {
    let now = call.now()
    var query = PlanQuery()
    query.until = try moment("until", call, now)
    query.from = try moment("from", call, now)
    let options = try NetworkOptions(call.arguments, of: .plan)
    (query.on, query.facts, query.isLAN) = (options.name, options.facts, options.isLAN)
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

/// A moment to come that an option names; `nil` without the option.
private func moment(_ option: String, _ call: Invocation, _ now: WallTime) throws -> WallTime? {
    guard let written = call.arguments.text(option) else { return nil }
    guard let moment = moment(meant: written, .toCome, now: now) else {
        throw Arguments.usage(
            "--\(option) takes a future time like 18:00, 2026-11-25, 2026-11-25T18:00 or 2d, not "
                + "`\(printable(written))`", .plan)
    }
    return moment
}
