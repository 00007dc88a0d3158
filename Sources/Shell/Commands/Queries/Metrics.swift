internal import Control

extension Verb {
    static let metrics: Verb = Verb(
        "metrics", "print metrics in the text format of Prometheus",
        details: [
            "Prints the answer to `GET /metrics` on the daemon's socket. Counters begin at 0 when the daemon "
                + "starts. The daemon can also write them to a file (`metrics.textfile`)."
        ],
        options: [.config, .socket],
        examples: [
            ("sluice metrics", "Prints all metrics."),
            ("sluice metrics --socket /run/sluice/control.sock", "Prints the metrics of the daemon on that socket."),
        ]
    ) { call in
        let text = try await call.withClient { try await $0.metrics() }
        try call.console.raw(String(decoding: text, as: UTF8.self))
        return .ok
    }
}
