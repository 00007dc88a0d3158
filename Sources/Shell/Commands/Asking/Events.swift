internal import Control
internal import Core
internal import Daemon

extension Verb {
    static let events: Verb = Verb(
        "events", "follow what happens, one line an event",
        details: [
            "Until you stop it (Ctrl-C) or the daemon stops. Each event has a number; --since shows what came after one. "
                + "A first event `reset` says that older ones are no longer kept: list, then go on."
        ],
        options: [Option("since", "N", "also what happened after event N")] + Option.client,
        examples: [
            ("sluice events", "From now on."),
            ("sluice events --since 0 --json", "Everything that is still kept, and then on, for a program."),
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
