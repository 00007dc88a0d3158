internal import Control
internal import Core

extension Verb {
    static let events: Verb = Verb(
        "events", "follow events, one on each line",
        details: [
            "Runs until you stop it (Ctrl-C), or until the daemon stops (status 69). Each event has a number; --since "
                + "N starts after event N. If some of these events are no longer stored, the first event is `reset`: "
                + "read the present state with `sluice list`, then continue with the events that follow."
        ],
        options: [Option("since", "N", "start with the first event after N")] + Option.client,
        examples: [
            ("sluice events", "Follows events from now on."),
            ("sluice events --since 0 --json", "Prints all stored events, then follows new ones, for a program."),
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
