internal import Control

extension Verb {
    static let metrics: Verb = Verb(
        "metrics", "print everything in numbers, as Prometheus reads it",
        details: [
            "What `GET /metrics` answers at the daemon's socket. Counters begin at 0 with the daemon. The configuration can "
                + "have it written to a file as well (`metrics.textfile`)."
        ],
        options: [.config, .socket],
        examples: [
            ("sluice metrics", "All of it."),
            ("sluice metrics --socket /run/sluice/control.sock", "Of the daemon that listens there."),
        ]
    ) { call in
        let text = try await call.withClient { try await $0.metrics() }
        try call.console.raw(String(decoding: text, as: UTF8.self))
        return .ok
    }
}
