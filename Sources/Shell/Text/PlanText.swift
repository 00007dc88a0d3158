internal import API
internal import Core
internal import Linux

// A plan for people: the transfers, period by period; the waiting files; when each folder is done; and the files that
// do not fit.

/// Periods that are shown; a script reads all of them.
private let maxStretches = 40

func planLines(_ plan: PlanView, _ console: Console, now: WallTime) -> [String] {
    let page = PlanPage(console: console, now: now)
    let isWhole = !plan.queues.isEmpty && plan.queues.allSatisfy { $0.leftFiles == 0 }
    let end = isWhole ? "everything is sent" : page.time(plan.until)
    var lines = page.text("from \(page.time(plan.from)) until \(end), \(rates(plan.rates))")
    if plan.queues.isEmpty {
        return lines + page.text("Nothing waits.")
    }
    lines += stretches(plan, page)
    lines += waiting(plan, page)
    lines += endings(plan, page)
    if plan.isCut {
        lines += page.section("Cut", ["there is too much to plan at once: ask for less with --until"], .yellow)
    }
    return lines + page.section("Note", plan.notes, .dim)
}

/// Line breaks and the form of times.
private struct PlanPage {
    let console: Console
    let now: WallTime

    func text(_ text: String, indent: Int = 0) -> [String] {
        // Continuation lines are indented further.
        let lines = wrapped(printable(text), width: console.width, indent: indent + 2).split(separator: "\n").map(
            String.init)
        return lines.enumerated().map { $0 == 0 ? String($1.dropFirst(2)) : $1 }
    }

    func section(_ title: String, _ entries: [String], _ style: Console.Style = .bold) -> [String] {
        if entries.isEmpty { return [] }
        return ["", console.styled(title, style)] + entries.flatMap { text($0, indent: 2) }
    }

    func stretch(_ from: String, _ to: String) -> String {
        let (start, end) = (time(from), time(to))
        if start != end { return "\(start) to \(end)" }
        guard let first = WallTime(described: from), let last = WallTime(described: to) else { return start }
        return "\(start) for \(Units.duration((last.milliseconds - first.milliseconds + 999) / 1000))"
    }

    /// `22:00` for today, `Sun 22:00` for the next days, otherwise with the date.
    func time(_ text: String) -> String {
        guard let time = WallTime(described: text) else { return printable(text) }
        let (today, day) = (Zone.local.localTime(at: now).day, Zone.local.localTime(at: time).day)
        let clock = String(LocalTime(time).clock.prefix(5))
        switch day.number - today.number {
        case 0: return clock
        case 1...6: return day.weekday.rawValue.capitalizedWord + " " + clock
        default: return "\(day) \(clock)"
        }
    }
}

extension String {
    var capitalizedWord: String { prefix(1).uppercased() + dropFirst() }
}

private func rates(_ rates: [PlanRateView]) -> String {
    let known = rates.map { rate in
        let speed = rate.rate.map(Units.rate) ?? "an unknown speed"
        let source =
            switch rate.source {
            case "measured": "measured"
            case "usage": "the best hour of last week"
            case "given": "as given"
            default: ""
            }
        return "at \(speed)" + (rate.destination.map { " to \($0)" } ?? "") + (source.isEmpty ? "" : " (\(source))")
    }
    return known.isEmpty ? "nothing to send" : known.joined(separator: ", ")
}

private func files(_ count: Int64) -> String { "\(count) \(count == 1 ? "file" : "files")" }

private func amount(_ count: Int64, _ bytes: Int64) -> String { "\(files(count)), \(Units.bytes(bytes))" }

private func stretches(_ plan: PlanView, _ page: PlanPage) -> [String] {
    var lines: [String] = []
    var last = ""
    var shown = 0
    for step in plan.steps {
        let title = page.stretch(step.from, step.to)
        if title != last {
            shown += 1
            if shown > maxStretches { break }
            lines += ["", page.console.styled(title, .bold)]
            last = title
        }
        let part = step.files == 0 ? "a part of one file, \(Units.bytes(step.bytes))" : amount(step.files, step.bytes)
        var text = "\(step.folder) -> \(step.destination)  \(part) at \(Units.rate(step.rate))"
        if let interface = step.interface { text += " by \(interface)" }
        if step.network == "metered" { text += " (metered)" }
        lines += page.text(text, indent: 2)
        lines += page.text(ending(step, page), indent: 4).map {
            page.console.styled($0, step.end == "done" ? .green : .dim)
        }
    }
    if shown > maxStretches { lines += ["", "… and more after that: --json shows everything"] }
    return lines
}

private func ending(_ step: PlanStepView, _ page: PlanPage) -> String {
    switch step.end {
    case "done": return "then everything is sent"
    case "held":
        guard let hold = step.holds.first else { return "then it must stop" }
        return "then \(hold.text)" + (hold.until.map { ", until \(page.time($0))" } ?? "")
    default: return "and continues"
    }
}

/// The files that do not go at once.
private func waiting(_ plan: PlanView, _ page: PlanPage) -> [String] {
    var entries: [String] = []
    for queue in plan.queues {
        let isFirst = { (wait: PlanWaitView) in wait.from == plan.from }
        if let wait = queue.waits.first(where: isFirst) {
            entries.append(
                "\(queue.folder) -> \(queue.destination)  \(amount(queue.files, queue.bytes)): \(wait.kind): \(wait.text)"
                    + (wait.until.map { ", until \(page.time($0))" } ?? ""))
        }
        if queue.copying > 0 {
            entries.append(
                "\(queue.folder) -> \(queue.destination)  \(files(queue.copying)) still to be copied; the plan treats them as copied"
            )
        }
        if queue.paused > 0 {
            entries.append(
                "\(queue.folder) -> \(queue.destination)  \(files(queue.paused)) paused by a person, not planned")
        }
        if queue.standby > 0 {
            entries.append(
                "\(queue.folder) -> \(queue.destination)  \(files(queue.standby)) only if they are not verified in time at "
                    + "another destination, not planned")
        }
    }
    return page.section("Waiting now", entries)
}

private func endings(_ plan: PlanView, _ page: PlanPage) -> [String] {
    var (done, late, endless, never): ([String], [String], [String], [String]) = ([], [], [], [])
    for queue in plan.queues where queue.files > 0 {
        let name = "\(queue.folder) -> \(queue.destination)"
        if queue.leftFiles == 0, let ends = queue.ends {
            done.append("\(name)  \(page.time(ends)), \(amount(queue.files, queue.bytes))")
            continue
        }
        for obstacle in queue.obstacles {
            let what = "\(name)  \(amount(obstacle.files, obstacle.bytes)): "
            if obstacle.kind == "never" {
                never.append(what + obstacle.text)
            } else {
                endless.append(what + "\(obstacle.kind): \(obstacle.text)")
            }
        }
        // Files that wait only for time.
        if queue.leftFiles > queue.obstacles.filter({ $0.kind == "never" }).reduce(0, { $0 + $1.files }),
            queue.obstacles.allSatisfy({ $0.kind == "never" })
        {
            late.append("\(name)  \(amount(queue.leftFiles, queue.leftBytes)) left; " + why(queue, page))
        }
    }
    return page.section("All sent by", done, .green)
        + page.section("Will not fit before \(page.time(plan.until))", late, .yellow)
        + page.section("End not known", endless, .yellow)
        + page.section("Never, with this configuration", never, .yellow)
}

/// The limiting condition, and when the files would be there.
private func why(_ queue: PlanQueueView, _ page: PlanPage) -> String {
    var reasons = queue.waits.filter { $0.seconds > 0 }.prefix(2).map { wait in
        // The amount used up today is not tomorrow's.
        let text = wait.kind == "quota" ? String(wait.text.split(separator: ",").first ?? "") : wait.text
        return "\(wait.kind): \(text), for \(Units.duration(wait.seconds))"
    }
    if queue.turns > 0 { reasons.append("others go first for \(Units.duration(queue.turns))") }
    if queue.going > 0 { reasons.append("sending takes \(Units.duration(queue.going))") }
    let end = queue.ends.map { "it would be sent by \(page.time($0))" } ?? "it would not end within a month"
    return (reasons + [end]).joined(separator: "; ")
}
