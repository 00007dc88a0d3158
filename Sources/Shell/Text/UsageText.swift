internal import API
internal import Core

// The output of `usage`: a line for each day and month, with a bar in the remaining width, and the quotas.

func usageLines(_ view: UsageView, _ console: Console, now: WallTime) -> [String] {
    var sections: [[String]] = []
    if !view.days.isEmpty { sections.append(periodLines("day", view.days, console)) }
    if !view.months.isEmpty { sections.append(periodLines("month", view.months, console)) }
    if !view.quotas.isEmpty { sections.append(view.quotas.flatMap { quotaLines($0, console, now) }) }
    return Array(sections.joined(separator: [""]))
}

// MARK: Days and months

private struct UsageLine {
    var period = ""
    var name: String?
    var bytes: Int64
    var received: Int64
    var files: Int64
}

private func periodLines(_ title: String, _ periods: [UsagePeriodView], _ console: Console) -> [String] {
    let lines = periods.flatMap { period -> [UsageLine] in
        let label = period.name + (console.width < 60 ? "" : weekday(period.name))
        guard let parts = period.parts, !parts.isEmpty else {
            return [
                UsageLine(
                    period: label, name: period.parts == nil ? nil : "", bytes: period.bytes,
                    received: period.received, files: period.files)
            ]
        }
        return parts.enumerated().map { index, part in
            UsageLine(
                period: index == 0 ? label : "", name: partName(part.name), bytes: part.bytes,
                received: part.received, files: part.files)
        }
    }
    let most = lines.map(\.bytes).max() ?? 0
    var table = Table(columns: [
        Table.Column(title: title), Table.Column(title: "", minimum: 9, shrinks: true),
        Table.Column(title: "sent", isRight: true), Table.Column(title: "received", isRight: true, expendable: 3),
        Table.Column(title: "files", isRight: true, expendable: 2), Table.Column(title: "", expendable: 1),
    ])
    func row(_ line: UsageLine, _ bar: String) -> Table.Row {
        Table.Row(
            cells: [
                line.period, printable(line.name ?? ""), Units.bytes(line.bytes), Units.bytes(line.received),
                "\(line.files)", bar,
            ],
            styles: [0: .dim, 5: .cyan])
    }
    // The bar takes the width that the other columns leave. If that is less than a tenth of the line, the received
    // bytes are left out, and then the files.
    table.rows = lines.map { row($0, "") }
    let taken = table.lines(console).map { displayWidth(plain($0)) }.max() ?? 0
    var barWidth = min(60, console.width - taken - 2)
    let given = [
        max(8, lines.map { Units.bytes($0.received).count }.max() ?? 0),
        max(5, lines.map { "\($0.files)".count }.max() ?? 0),
    ]
    for column in given where barWidth < 8 { barWidth = min(60, barWidth + 2 + column) }
    if barWidth >= 4, most > 0 {
        let bars = UsageBar(console)
        table.rows = lines.map { row($0, bars.solid(Double($0.bytes) / Double(most), width: barWidth)) }
        // Every line reserves the same width, whichever bar is the longest.
        if let longest = table.rows.indices.max(by: { lines[$0].bytes < lines[$1].bytes }) {
            table.rows[longest].cells[5] = filled(table.rows[longest].cells[5], to: barWidth)
        }
    }
    return table.lines(console).map { withoutEnd($0) }
}

private func partName(_ name: String) -> String {
    if name.isEmpty { return "(no file)" }
    // The class of bytes that were sent while no rule depended on the network.
    return name == NetworkClass.any.rawValue ? "(not asked)" : name
}

/// ` fri`, after a day; nothing after a month.
private func weekday(_ name: String) -> String {
    let parts = name.split(separator: "-").compactMap { Int($0) }
    guard parts.count == 3, let day = CivilDay(year: parts[0], month: parts[1], day: parts[2]) else { return "" }
    return " \(day.weekday.rawValue)"
}

private func withoutEnd(_ line: String) -> String {
    var line = Substring(line)
    while line.last == " " { line.removeLast() }
    return String(line)
}

/// Without escape sequences, which take no columns.
private func plain(_ text: String) -> String {
    var out = ""
    var inEscape = false
    for letter in text {
        if letter == "\u{1B}" { inEscape = true }
        if !inEscape { out.append(letter) }
        if letter == "m" { inEscape = false }
    }
    return out
}

// MARK: Quotas

func quotaLines(_ quota: QuotaView, _ console: Console, _ now: WallTime) -> [String] {
    func amount(_ count: Int64) -> String { quota.counts == "files" ? "\(count)" : Units.bytes(count) }
    let fraction = quota.limit > 0 ? min(1, Double(quota.used) / Double(quota.limit)) : 1
    let style: Console.Style = quota.left == 0 ? .red : fraction >= 0.8 ? .yellow : .green
    let percent = Units.percent(fraction)
    let bar = UsageBar(console).framed(fraction, width: max(8, min(40, console.width - 8)))
    let isNothing = quota.limit == 0 && quota.used == 0
    let text =
        isNothing
        ? "nothing may be sent"
        : "\(amount(quota.used)) \(quotaVerb(quota))"
            + (quota.reserved > 0 ? ", \(amount(quota.reserved)) under way" : "")
            + ", \(amount(quota.left)) left until \(Units.moment(quota.until, now: now))"
    let start =
        "  " + console.styled(bar, style) + " " + String(repeating: " ", count: max(0, 4 - percent.count)) + percent
    func indented(_ text: String) -> [String] {
        wrapped(text, width: console.width, indent: 2).split(separator: "\n").map(String.init)
    }
    let place = console.styled(printable(quota.place), .bold)
    let fits = displayWidth(quota.place) + 2 + displayWidth(quota.text) <= console.width
    let head = fits ? [place + "  " + quota.text] : [place] + indented(quota.text)
    if displayWidth(bar) + 9 + displayWidth(text) <= console.width { return head + [start + "  " + text] }
    return head + [start] + indented(text)
}

/// The verb for the bytes that count.
private func quotaVerb(_ quota: QuotaView) -> String {
    (Quota.Direction(rawValue: quota.direction) ?? .sent).words
}

// MARK: Bars

/// Bars of blocks, or of `#` without a terminal or where the locale has no blocks.
struct UsageBar {
    let hasBlocks: Bool

    init(_ console: Console) {
        // The first variable that is set counts (locale(7)).
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].compactMap { console.environment($0) }.first { !$0.isEmpty } ?? ""
        let code = locale.lowercased()
        hasBlocks = console.isTerminal && (code.contains("utf-8") || code.contains("utf8"))
    }

    /// A bar of the fraction's share of `width`, and never empty for a value above 0.
    func solid(_ fraction: Double, width: Int) -> String {
        let share = min(1, max(0, fraction)) * Double(width)
        guard share > 0 else { return "" }
        guard hasBlocks else { return String(repeating: "#", count: max(1, Int(share + 0.5))) }
        let eighths = max(1, Int(share * 8 + 0.5))
        let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]
        return String(repeating: "█", count: eighths / 8) + rest
    }

    /// A bar of the whole width, partly full.
    func framed(_ fraction: Double, width: Int) -> String {
        guard hasBlocks else { return bar(fraction, width: width) }
        let full = fraction >= 1 ? width : fraction > 0 ? Int(fraction * Double(width)) : 0
        return String(repeating: "█", count: full) + String(repeating: "░", count: width - full)
    }
}
