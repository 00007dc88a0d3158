internal import API
internal import Core

/// The output of `status`.
func statusLines(_ status: StatusView, _ console: Console, now: WallTime) -> [String] {
    var lines = [
        entry(
            "sluice",
            "\(status.version), pid \(status.pid), since \(Units.moment(status.startedAt, now: now))"
                + (status.starting ? ", starting" : ""), console)
    ]
    let counts = status.counts
    lines.append(
        entry(
            "uploads",
            "\(counts.ongoing) ongoing, \(counts.completed) completed, "
                + console.styled("\(counts.failed) failed", counts.failed > 0 ? .red : nil)
                + ", \(counts.cancelled) cancelled", console))
    if status.filesTotal > 0 { lines.append(entry("now", batchText(status), console)) }
    if let limit = status.limit { lines.append(entry("limit", "\(Units.rate(limit)) for all transfers", console)) }
    for pause in status.paused { lines.append(entry("paused", pauseText(pause, now), console, .yellow)) }
    for exception in status.exceptions ?? [] {
        lines.append(entry("allowed", exceptionText(exception, now), console, .yellow))
    }
    for folder in status.folders {
        let state = printable(folder.state.rawValue)
        let settling =
            (folder.settling > 0 ? ", \(folder.settling) settling" : "")
            + (folder.polled > 0 ? ", \(folder.polled) director\(folder.polled == 1 ? "y" : "ies") polled" : "")
            + (folder.unwatched > 0 ? " (\(folder.unwatched) for lack of watches)" : "")
            + (folder.limit.map { ", at most \(Units.rate($0))" } ?? "")
        lines.append(
            entry(
                "folder",
                "\(folder.name)  \(folder.path)  " + styledState(state, ["watching", "scanning"], console) + settling,
                console))
        // Growing files, and those that have waited longest.
        for file in status.settling.filter({ $0.folder == folder.name }).prefix(5) {
            lines.append(entry("", settlingText(file, now), console, file.overdue ? .yellow : nil))
        }
        for file in (folder.gathering ?? []).prefix(3) {
            lines.append(entry("", "\(file.path) \(printable(file.reason))", console, .yellow))
        }
        if let hold = folder.hold { lines.append(entry("", holdText(hold, now), console, .yellow)) }
        if let card = folder.card {
            lines.append(
                entry(
                    "", cardText(card, waiting: folder.gathering?.first), console,
                    card.level == RemovalSafety.busy.rawValue ? .yellow : .green))
        }
        if let retention = folder.retention { lines.append(entry("", retentionText(retention, now), console)) }
    }
    for destination in status.destinations {
        var text =
            "\(destination.name)  \(destination.type)  "
            + styledState(
                destination.hold == nil ? printable(destination.state.rawValue) : "held", ["up"], console)
        text +=
            ", \(destination.running) running, \(destination.waiting) waiting, \(Units.bytes(destination.sentToday)) sent and \(Units.bytes(destination.receivedToday)) received today"
            + (destination.limit.map { ", at most \(Units.rate($0))" } ?? "")
        lines.append(entry("to", text, console))
        if let hold = destination.hold { lines.append(entry("", holdText(hold, now), console, .yellow)) }
        if let space = destination.space { lines.append(entry("", spaceText(space, now), console)) }
        lines += classLines(status, to: destination, console, now)
    }
    for hook in status.hooks ?? [] { lines += hookLines(hook, console, now) }
    let staging = status.staging
    lines.append(
        entry(
            "staging",
            "\(staging.path)  \(Units.bytes(staging.used)) used" + (staging.cap.map { " of \(Units.bytes($0))" } ?? "")
                + ", \(Units.bytes(staging.free)) free on its disk", console))
    for run in staging.running ?? [] {
        lines.append(entry("", "\(printable(run.path))  " + stagingText(run), console, .cyan))
    }
    if let hold = staging.hold { lines.append(entry("", holdText(hold, now), console, .yellow)) }
    if status.overflows > 0 {
        lines.append(
            entry(
                "events",
                "lost \(status.overflows) times since the start, because more than fs.inotify.max_queued_events "
                    + "were waiting; every folder was scanned again", console, .yellow))
    }
    lines += status.warnings.map { entry("warning", printable($0), console, .yellow) }
    return lines
}

/// `tell-home  https://example.org, 3 waiting since 14:02, 5 delivered`
private func hookLines(_ hook: HookView, _ console: Console, _ now: WallTime) -> [String] {
    let since = hook.oldest.map { " since \(Units.moment($0, now: now))" } ?? ""
    var text = "\(hook.name)  \(hook.target), \(hook.waiting) waiting\(since), \(hook.delivered) delivered"
    if hook.givenUp > 0 { text += ", " + console.styled("\(hook.givenUp) given up", .red) }
    if hook.dropped > 0 { text += ", " + console.styled("\(hook.dropped) dropped for lack of space", .red) }
    return [entry("hook", text, console)]
        + (hook.hold.map {
            [entry("", holdText($0, now) + ", since \(Units.moment($0.since, now: now))", console, .yellow)]
        } ?? [])
}

/// The holds of a folder's uploads to a destination that neither's own line shows.
private func classLines(
    _ status: StatusView, to destination: DestinationView, _ console: Console, _ now: WallTime
) -> [String] {
    (status.classes ?? []).filter { $0.destination == destination.name }.compactMap { one in
        let said = [destination.hold, status.folders.first { $0.name == one.folder }?.hold].compactMap { $0?.text }
        if said.contains(one.hold.text) { return nil }
        let count = "\(one.waiting) from \(one.folder) \(one.waiting == 1 ? "waits" : "wait")"
        return entry("", "\(count): \(holdText(one.hold, now))", console, .yellow)
    }
}

/// `1.2 GB free, 8.8 GB of 10 GB used, as reported at 14:02`
func spaceText(_ space: SpaceView, _ now: WallTime) -> String {
    printable(space.text) + (space.askedAt.map { ", as reported at \(Units.moment($0, now: now))" } ?? "")
        + (space.resetsAt.map { "; fully free again at \(Units.moment($0, now: now))" } ?? "")
}

private func settlingText(_ file: SettlingView, _ now: WallTime) -> String {
    var text = "\(file.path)  \(Units.bytes(file.size))"
    if let rate = file.rate, rate > 0 { text += ", growing by \(Units.rate(rate))" }
    return text + ", \(printable(file.reason)), since \(Units.moment(file.since, now: now))"
}

private func entry(_ label: String, _ text: String, _ console: Console, _ style: Console.Style? = nil) -> String {
    let indent = 10
    let head = console.styled(filled(label, to: 8), .dim) + "  "
    // Without a terminal, the text stays on one line, which programs can search.
    guard console.isTerminal, displayWidth(text) > console.width - indent else {
        return head + console.styled(text, style)
    }
    let lines = wrapped(text, width: console.width, indent: indent).split(separator: "\n")
    let below = lines.map { console.styled(String($0.dropFirst(indent)), style) }
    return head + below.joined(separator: "\n" + String(repeating: " ", count: indent))
}

private func styledState(_ state: String, _ good: [String], _ console: Console) -> String {
    console.styled(state, good.contains(state) ? .green : .yellow)
}

private func batchText(_ status: StatusView) -> String {
    let fraction = status.bytesTotal > 0 ? Double(status.bytesDone) / Double(status.bytesTotal) : 0
    var text = "\(status.filesDone) of \(status.filesTotal) files, \(Units.bytes(status.bytesDone)) of "
    text += "\(Units.bytes(status.bytesTotal)) (\(Units.percent(fraction)))"
    if status.rate > 0 { text += ", \(Units.rate(status.rate))" }
    if let eta = status.eta { text += ", \(Units.duration(eta)) left" }
    return text
}

/// `kept for 14 d, or until 20.0 GB are free (35.1 GB are); now go 3 files, 1.2 GB; the oldest was verified …`
func retentionText(_ retention: RetentionView, _ now: WallTime) -> String {
    var rules: [String] = []
    if let seconds = retention.seconds { rules.append("for \(Units.duration(seconds))") }
    if let floor = retention.untilFree {
        let free = retention.free.map { " (\(Units.bytes($0)) are)" } ?? ""
        rules.append("while \(Units.bytes(floor)) are free\(free)")
    }
    var text = "verified sources stay \(rules.joined(separator: ", ")); now "
    text +=
        retention.goingFiles == 0
        ? "none are due"
        : "\(retention.goingFiles) \(retention.goingFiles == 1 ? "is due" : "are due"), \(Units.bytes(retention.goingBytes))"
    if let oldest = retention.oldest { text += "; the oldest was verified \(Units.moment(oldest, now: now))" }
    return text
}

/// `safe to remove: every file is staged; 3 uploads continue without it`
///
/// - Parameter waiting: A file of the folder that waits for its group.
func cardText(_ card: CardView, waiting: GatheringView? = nil) -> String {
    // The counts stop there.
    func files(_ count: Int, _ one: String, _ many: String) -> String {
        "\(count >= 1000 ? "at least " : "")\(count) \(count == 1 ? one : many)"
    }
    let failed =
        card.failed > 0
        ? "; \(files(card.failed, "upload", "uploads")) failed: `sluice list --list failed` names them" : ""
    switch RemovalSafety(rawValue: card.level) {
    case .verified: return "safe to remove: every file is verified"
    case .staged:
        let left = card.unverified - card.failed
        return "safe to remove: every file is staged"
            + (left > 0 ? "; \(files(left, "upload continues", "uploads continue")) without it" : "")
            + (card.unreleased > 0 ? "; \(files(card.unreleased, "source", "sources")) on it still to be released" : "")
            + failed
    case .busy, nil:
        return "do not remove: "
            + (card.unstaged > 0
                ? "\(files(card.unstaged, "file is", "files are")) not staged yet"
                : waiting.map { "\($0.path): \(printable($0.reason))" } ?? "files on it are still being examined")
            + failed
    }
}

/// The command that ends a pause: without a scope it ends the one of everything alone.
private func resumeCommand(_ pause: PauseView) -> String {
    guard let name = pause.name, ["folder", "destination"].contains(pause.scope) else { return "sluice resume" }
    return "sluice resume --\(pause.scope) \(name)"
}

func pauseText(_ pause: PauseView, _ now: WallTime) -> String {
    let what = pause.scope == "all" ? "everything" : "\(pause.scope) \(pause.name ?? "")"
    return "\(what) since \(Units.moment(pause.since, now: now))"
        + (pause.until.map { ", until \(Units.moment($0, now: now))" } ?? ", until `\(resumeCommand(pause))`")
}

/// `[#####.....]`, `width` columns in all.
func bar(_ fraction: Double, width: Int) -> String {
    let columns = max(1, width - 2)
    let full = fraction >= 1 ? columns : fraction > 0 ? Int(fraction * Double(columns)) : 0
    return "[" + String(repeating: "#", count: full) + String(repeating: ".", count: columns - full) + "]"
}

/// One event in one line.
func eventLine(_ event: EventView, _ console: Console, now: WallTime) -> String {
    var text = console.styled(Units.moment(event.ts, now: now), .dim) + " " + filled(event.type.rawValue, to: 9)
    if let upload = event.op {
        text += " \(upload.id) \(upload.name) -> \(upload.destination)"
        switch event.type {
        case .progress where upload.staging != nil: text += "  " + (upload.staging.map(stagingText) ?? "")
        case .progress:
            text += "  \(Units.percent(upload.progress.fraction))"
            if let rate = upload.progress.rate { text += " \(Units.rate(rate))" }
            if let eta = upload.progress.eta { text += " \(Units.duration(eta)) left" }
        case .state:
            let words = [event.detail[.from], event.detail[.to] ?? upload.state.rawValue].compactMap { $0 }
            text += "  " + words.joined(separator: " to ") + upload.holds.map { "; \(holdText($0, now))" }.joined()
        case .failed, .attemptFailed:
            if let error = upload.error { text += "  \(error.code): \(printable(error.message))" }
        case .source:
            let words = [event.detail[.state], event.detail[.note]].compactMap { $0 }.filter { !$0.isEmpty }
            text += "  " + words.map { printable($0) }.joined(separator: ", ")
        default: break
        }
    }
    // Already contained in the words of its type.
    let skipped: [EventField] =
        switch event.type {
        case .attemptFailed where event.op?.error != nil: [.error, .message]
        case .source: [.state, .note]
        default: [.from, .to]
        }
    let rest = event.detail.filter {
        !$0.value.isEmpty && (event.op == nil || !skipped.map(\.rawValue).contains($0.key))
    }.sorted {
        $0.key < $1.key
    }
    return text + rest.map { "  \($0.key)=\(printable($0.value))" }.joined()
}
