internal import Control
internal import Core

extension Verb {
    static let events: Verb = Verb(
        "events", "follow events, one on each line",
        details: [
            "Runs until you stop it (Ctrl-C) or the daemon stops. Each event has a number; --since N starts after "
                + "event N. A first event `reset` means that older events are no longer stored: list, then continue."
        ],
        options: [Option("since", "N", "start with the first event after N")] + Option.client,
        examples: [
            ("sluice events", "From now on."),
            ("sluice events --since 0 --json", "All stored events, then new ones, for a program."),
        ]
    ) { call in
        var since: Int64?
        if let written = call.arguments.text("since") {
            guard let number = Int64(written), number >= 0 else {
                throw Arguments.usage("--since takes the number of an event, not `\(printable(written))`", .events)
            }
            since = number
        }
        let start = since
        try await call.withClient { client in
            for try await event in client.events(since: start) {
                if call.json {
                    try call.printJSON(event)
                } else {
                    try call.console.line(eventLine(event, call.console, now: call.now()))
                }
            }
        }
        return .ok
    }
}
