internal import Control
internal import Core
internal import Daemon
internal import Linux

extension Verb {
    static let status: Verb = Verb(
        "status", "show what the daemon does and what holds it back",
        details: [
            "With --follow it is drawn anew every second until you stop it (Ctrl-C), with a bar for each upload that runs."
        ],
        options: [Option(flag: "follow", "keep showing it")] + Option.client,
        examples: [
            ("sluice status", "Once."), ("sluice status --follow", "Watch uploads run."),
            ("sluice status --json", "For a script or a monitoring check."),
        ]
    ) { call in
        try await call.withClient { client in
            guard call.arguments.has("follow") else {
                let status = try await client.status()
                if call.json {
                    try call.printJSON(status)
                } else {
                    for line in statusLines(status, call.console, now: call.now()) { try call.console.line(line) }
                }
                return
            }
            try await follow(call, client)
        }
        return .ok
    }
}

private func follow(_ call: Invocation, _ client: ControlClient) async throws {
    var drawn = 0
    var query = ListQuery()
    query.list = "ongoing"
    query.state = "uploading"
    query.limit = 20
    while true {
        let status = try await client.status()
        if call.json {
            try call.printJSON(status)
        } else {
            let running = try await client.list(query).uploads
            var lines = statusLines(status, call.console, now: call.now())
            lines += running.map { progressLine($0, call.console) }
            // A line that wraps would break the count of lines to go back.
            if call.console.isTerminal {
                lines = lines.map { trimmed($0, to: call.console.width) }
                if drawn > 0 { try call.console.raw("\u{1B}[\(drawn)A") }
                try call.console.raw(lines.map { "\u{1B}[2K" + $0 + "\n" }.joined() + "\u{1B}[J")
            } else {
                for line in lines + [""] { try call.console.line(line) }
            }
            drawn = lines.count
        }
        try await Alarms.shared.sleep(for: .seconds(1))
    }
}

func progressLine(_ upload: UploadView, _ console: Console) -> String {
    let progress = upload.progress
    var text = bar(progress.fraction, width: console.width < 60 ? 12 : 22)
    let percent = Units.percent(progress.fraction)
    text += " " + String(repeating: " ", count: max(0, 4 - percent.count)) + percent
    if let rate = progress.rate { text += "  \(Units.rate(rate))" }
    if let eta = progress.eta { text += "  \(Units.duration(eta)) left" }
    return text + "  \(upload.name) -> \(upload.destination)"
}

/// `text` cut to `width` columns. Escape sequences take no room and are all kept.
func trimmed(_ text: String, to width: Int) -> String {
    var out = ""
    var used = 0
    var inEscape = false
    for letter in text {
        if letter == "\u{1B}" { inEscape = true }
        if inEscape {
            out.append(letter)
            if letter == "m" { inEscape = false }
            continue
        }
        used += displayWidth(String(letter))
        if used <= width { out.append(letter) }
    }
    return out
}
