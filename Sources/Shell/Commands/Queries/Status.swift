internal import API
internal import Control
internal import Core
internal import Linux

extension Verb {
    static let status: Verb = Verb(
        "status", "show what the daemon does, and why uploads wait",
        details: [
            "With --follow the status is redrawn every second until you stop it (Ctrl-C), with a bar for each running "
                + "upload. It fits the current size of the window, and waits while the daemon restarts."
        ],
        options: [Option(flag: "follow", "redraw the status every second")] + Option.client,
        examples: [
            ("sluice status", "Shows the status once."), ("sluice status --follow", "Shows uploads while they run."),
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
    var display = LiveDisplay()
    var query = ListQuery()
    query.list = "ongoing"
    query.state = ShownState.uploading.rawValue
    query.limit = 20
    var last: (lines: [String], at: WallTime)?
    var isAway = false
    while true {
        do {
            let status = try await client.status()
            var lines: [String] = []
            if call.json {
                try call.printJSON(status)
            } else {
                let running = try await client.list(query).uploads
                lines = statusLines(status, call.console, now: call.now())
                lines += running.map { progressLine($0, call.console) }
                try display.show(lines, on: call.console)
            }
            last = (lines, call.now())
            isAway = false
        } catch {
            // A daemon that answered once may come back, after a restart or an update.
            guard let last, isAbsence(error) else { throw error }
            let line =
                "waiting for the daemon, which answered last at \(LocalTime(last.at).clock): \(printable("\(error)"))"
            if call.console.isTerminal && !call.json {
                let below = wrapped(line, width: call.console.width, indent: 0)
                try display.show([call.console.styled(below, .yellow)] + last.lines, on: call.console)
            } else if !isAway {
                call.console.error(line)
            }
            isAway = true
        }
        try await Alarms.shared.sleep(for: .seconds(1))
    }
}

/// Whether no daemon answers, or one that is starting or stopping.
func isAbsence(_ error: any Error) -> Bool {
    switch error {
    case is ControlError: true
    case let refusal as Refusal: refusal.code == .unavailable
    default: false
    }
}

/// Output that is redrawn in place.
struct LiveDisplay {
    private var drawn = 0
    private var size: (width: Int, height: Int)?

    init() {}

    /// Replaces the earlier output. Without a terminal, the new output is appended, with an empty line after it.
    mutating func show(_ lines: [String], on console: Console) throws(Console.ClosedError) {
        guard console.isTerminal else {
            for line in lines + [""] { try console.line(line) }
            return
        }
        let now = (width: console.width, height: console.height)
        // A line that wraps, or leaves the screen, would break the count of lines to go back.
        var rows = lines.flatMap { $0.split(separator: "\n", omittingEmptySubsequences: false) }.map {
            trimmed(harmless(String($0)), to: now.width)
        }
        let room = max(2, now.height - 1)
        if rows.count > room {
            let hidden = rows.count - room + 1
            rows = rows.prefix(room - 1) + [console.styled(trimmed("… \(hidden) more lines", to: now.width), .dim)]
        }
        // Terminals differ in how they rewrap old lines when their size changes: begin on an empty one.
        let isResized = size.map { $0 != now } ?? false
        let start = isResized ? "\u{1B}[H\u{1B}[2J" : drawn > 0 ? "\u{1B}[\(drawn)A" : ""
        try console.raw(start + rows.map { "\u{1B}[2K" + $0 + "\n" }.joined() + "\u{1B}[J")
        (drawn, size) = (rows.count, now)
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

/// `text` cut to `width` columns. Escape sequences take no columns and are all kept.
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
