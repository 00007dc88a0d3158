internal import API
internal import Core
internal import Linux

/// The lines of `top`, for a size of the terminal. It makes no query.
struct TopScreen {
    let facts: TopFacts
    let state: TopState
    var commands = TopCommands()
    let console: Console
    let now: WallTime
    let width: Int
    let height: Int

    /// Everything, for an output that is no terminal.
    static func plain(_ facts: TopFacts, _ console: Console, now: WallTime) -> [String] {
        let screen = TopScreen(
            facts: facts, state: TopState(), console: console, now: now, width: .max, height: .max)
        return (screen.headerLines + screen.uploadLines(.max) + screen.panelLines).map(oneLine)
    }

    /// How far a key goes that moves by a screen: rows of uploads, or lines of the page that is open.
    var rows: Int { state.page == nil ? max(1, layout.uploads - 1) : pageRoom }

    /// The uploads of the list that is shown; none until the daemon has told them.
    var uploads: [UploadView] { facts.list == state.list ? facts.uploads : [] }

    /// At most `height` lines of at most `width` columns.
    var lines: [String] {
        if let page = state.page { return pageLines(page) }
        let (header, panels, layout) = (headerLines, panelLines, self.layout)
        var below = Array(panels.prefix(layout.panels))
        if panels.count > layout.panels, !below.isEmpty {
            below[below.count - 1] = console.styled(
                "… \(panels.count - below.count + 1) more lines: o shows all", .dim)
        }
        let (above, footer) = (header + uploadLines(layout.uploads) + below, footer)
        let room = max(0, height - footer.count)
        let filling = Array(repeating: "", count: max(0, room - above.count))
        return (above.prefix(room) + filling + footer).map { fitted(Self.oneLine($0)) }
    }

    /// A line that is too long loses its end, and shows so.
    private func fitted(_ line: String) -> String {
        displayWidth(line) <= width ? line : trimmed(line, to: width - 1) + "…"
    }

    /// All warnings, and all that stands below the uploads, for a page of its own.
    var overview: [String] {
        let warnings = notices.map { console.styled($0, .yellow) }
        return warnings.isEmpty ? Array(panelLines.dropFirst()) : warnings + panelLines
    }

    /// Each line has one row of the screen.
    private static func oneLine(_ text: String) -> String {
        harmless(text).replacing("\n", with: "\\x0a").replacing("\t", with: " ")
    }

    /// Lines for uploads, with their title, and for what stands below.
    private var layout: (uploads: Int, panels: Int) {
        let room = max(0, height - footer.count - headerLines.count)
        let (wanted, below) = (max(2, uploads.count + 1), panelLines.count)
        if wanted + below <= room { return (wanted, below) }
        // Each may have half of the screen, and what the other does not need.
        let uploads = max(min(wanted, (room + 1) / 2), room - below)
        return (uploads, max(0, room - uploads))
    }

    // MARK: Header

    private var headerLines: [String] {
        let status = facts.status
        let counts = status.counts
        var words = [
            "sluice \(status.version)", status.starting ? "starting" : "since \(moment(status.startedAt))",
            "\(counts.ongoing) ongoing", console.styled("\(counts.failed) failed", counts.failed > 0 ? .red : nil),
        ]
        if status.filesTotal > 0 {
            words.append("\(status.filesDone) of \(status.filesTotal) files")
            words.append("\(Units.bytes(status.bytesDone)) of \(Units.bytes(status.bytesTotal))")
        }
        if status.rate > 0 { words.append(console.styled(Units.rate(status.rate), .cyan)) }
        if let left = status.eta { words.append("\(Units.duration(left)) left") }
        var lines = [words.joined(separator: "  ")]
        lines += lossLines
        let notices = notices
        let most = max(1, height / 6)
        lines += notices.prefix(notices.count > most ? most - 1 : most).map { console.styled($0, .yellow) }
        if notices.count > most {
            lines.append(console.styled("… \(notices.count - most + 1) more warnings: o shows all", .yellow))
        }
        return lines + [""]
    }

    /// One line while the daemon cannot be asked.
    private var lossLines: [String] {
        guard let lost = state.lost else { return [] }
        return [
            console.styled(
                "\(lost.headline) since \(LocalTime(lost.since).clock): \(printable(lost.reason)). Below is what it said at "
                    + "\(LocalTime(facts.at).clock); asking again every second.", .red)
        ]
    }

    private var notices: [String] {
        let status = facts.status
        return status.paused.map { "paused: \(pauseText($0, now))" }
            + (status.exceptions ?? []).map { "allowed: \(exceptionText($0, now))" }
            + (status.limit.map { ["limit: \(Units.rate($0)) for all transfers"] } ?? [])
            + status.warnings.map { "warning: \(printable($0))" }
    }

    private func moment(_ text: String) -> String { Units.moment(text, now: now) }

    // MARK: Uploads

    private func uploadLines(_ count: Int) -> [String] {
        let uploads = uploads
        if uploads.isEmpty {
            let text = facts.list == state.list ? "none" : state.lost == nil ? "…" : "not known without the daemon"
            return [title("\(state.list.rawValue) uploads"), console.styled("  \(text)", .dim)]
        }
        let (chosen, room) = (state.index(in: uploads), max(1, count - 1))
        let chosenUpload = state.upload(in: uploads)?.id
        // The chosen row stays on the screen.
        let first = max(0, min(chosen - room / 2, uploads.count - room))
        let shown = uploads[first..<min(uploads.count, first + room)]
        var table = uploadTable
        table.rows = shown.map { row($0) }
        let lines = table.lines(width: width, style: { text, _ in text })
        return [title(lines[0])]
            + zip(lines.dropFirst(), shown).map { line, upload in
                // Nothing is chosen in plain text.
                upload.id == chosenUpload && width < .max
                    ? console.styled(filled(line, to: width), .reverse)
                    : console.styled(line, style(ofState: upload.state))
            }
    }

    private var uploadTable: Table {
        Table(columns: [
            Table.Column(title: "STATE", minimum: 9),
            Table.Column(title: "PROGRESS", expendable: 7),
            Table.Column(title: "DONE", isRight: true),
            Table.Column(title: "SIZE", isRight: true, expendable: 6),
            Table.Column(title: "RATE", isRight: true, expendable: 2),
            Table.Column(title: "LEFT", isRight: true, expendable: 3),
            Table.Column(title: "PRI", isRight: true, minimum: 3, expendable: 9),
            Table.Column(title: "TO", minimum: 6, shrinks: true, expendable: 4),
            Table.Column(title: "FILE", minimum: 12, shrinks: true),
            Table.Column(title: "WAITS FOR", minimum: 8, shrinks: true, expendable: 8),
        ])
    }

    private func row(_ upload: UploadView) -> Table.Row {
        let isRunning = upload.state == .uploading
        let wait =
            upload.error.flatMap { upload.list.known == .failed ? "\($0.code): \($0.message)" : nil }
            ?? upload.holds.first.map { holdText($0, now) }
        return Table.Row(cells: [
            upload.isPaused ? ShownState.paused.rawValue : upload.state.rawValue, progress(of: upload),
            Units.percent(upload.progress.fraction), Units.bytes(upload.size),
            isRunning ? upload.progress.rate.map(Units.rate) ?? "" : "",
            isRunning ? upload.progress.eta.map(Units.duration) ?? "" : "",
            upload.priority == 0 ? "" : String(upload.priority), upload.destination, upload.relative ?? upload.name,
            wait.map { printable($0) } ?? "",
        ])
    }

    /// A bar. While the file is staged it is that of the copy, after the word for the work.
    private func progress(of upload: UploadView) -> String {
        guard upload.list.known == .ongoing else { return "" }
        let columns = width < 100 ? 12 : 22
        if let run = upload.staging {
            let word = printable(run.work)
            return run.fraction.map { "\(word) \(bar($0, width: max(4, columns - displayWidth(word) - 1)))" } ?? word
        }
        let fraction = upload.progress.fraction
        return upload.state == .uploading || fraction > 0 ? bar(fraction, width: columns) : ""
    }

    // MARK: Below

    private var panelLines: [String] {
        let status = facts.status
        var lines = [""]
        func panel(_ name: String, _ content: [String]) {
            guard !content.isEmpty else { return }
            lines.append(title(name))
            lines += content.map { "  " + $0 }
        }
        panel("QUEUE", (status.queue ?? []).flatMap(queueLines))
        panel("DESTINATIONS", status.destinations.map(destinationText))
        panel("FOLDERS", status.folders.map(folderText))
        panel("WAYS", routeLines(facts.routes, console))
        panel("QUOTAS", facts.quotas.map(quotaText))
        let staging = status.staging
        panel(
            "DISK",
            [
                "staging \(staging.path)  \(Units.bytes(staging.used)) used"
                    + (staging.cap.map { " of \(Units.bytes($0))" } ?? "") + ", \(Units.bytes(staging.free)) free"
            ] + [staging.hold].compactMap { $0 }.map { console.styled(holdText($0, now), .yellow) })
        return lines
    }

    /// What waits from a folder to a destination, and each hold with the number of its uploads unless it has all.
    private func queueLines(_ one: QueuedView) -> [String] {
        let text =
            "\(one.waiting) from \(printable(one.folder)) to \(printable(one.destination)), \(Units.bytes(one.bytes))"
        let held = (facts.status.classes ?? []).filter { $0.folder == one.folder && $0.destination == one.destination }
        if let first = held.first, held.count == 1, first.waiting == one.waiting {
            return [text + "  " + console.styled(holdText(first.hold, now), .yellow)]
        }
        return [text] + held.map { "  \($0.waiting) of them  " + console.styled(holdText($0.hold, now), .yellow) }
    }

    private func destinationText(_ one: DestinationView) -> String {
        let state =
            one.hold.map { console.styled(holdText($0, now), .yellow) } ?? console.styled(one.state.rawValue, .green)
        return "\(printable(one.name))  \(one.running) running, \(one.waiting) waiting, "
            + "\(Units.bytes(one.sentToday)) sent today" + (one.limit.map { ", at most \(Units.rate($0))" } ?? "")
            + "  \(state)" + (one.space.map { "  \(spaceText($0, now))" } ?? "")
    }

    private func folderText(_ one: FolderView) -> String {
        let isWell = ["watching", "scanning"].contains(one.state.rawValue)
        return "\(printable(one.name))  "
            + console.styled(printable(one.state.rawValue), isWell ? .green : .yellow)
            + (one.settling > 0 ? ", \(one.settling) settling" : "")
            + (one.hold.map { "  " + console.styled(holdText($0, now), .yellow) } ?? "")
    }

    private func quotaText(_ quota: QuotaView) -> String {
        let isBytes = quota.counts == "bytes"
        func amount(_ count: Int64) -> String { isBytes ? Units.bytes(count) : "\(count) files" }
        let used = quota.used + quota.reserved
        let fraction = quota.limit > 0 ? Double(used) / Double(quota.limit) : 1
        let text =
            "\(bar(min(1, fraction), width: 12)) \(printable(quota.place)): \(amount(used)) of \(amount(quota.limit))"
            + (quota.when.map { ", \(printable($0))" } ?? "") + ", until \(moment(quota.until))"
        return console.styled(text, quota.left <= 0 ? .yellow : nil)
    }

    private func title(_ text: String) -> String { console.styled(text, .dim) }

    // MARK: Footer

    private var footer: [String] {
        if let question = state.question { return questionLines(question.text).map { console.styled($0, .bold) } }
        if let answer = state.answer { return [console.styled(printable(answer.line), answer.isError ? .red : .green)] }
        // Most are answered before anyone can read this.
        if let since = commands.since, now >= since.advanced(by: .seconds(1)) {
            return [console.styled(Self.unanswered(commands.unanswered), .yellow)]
        }
        if let since = state.askingSince, now >= since.advanced(by: .seconds(1)) {
            return [console.styled("asking…", .yellow)]
        }
        return [console.styled(keys, .dim)]
    }

    /// As many keys as have room, each whole; `?` shows the others.
    private var keys: String {
        var line = "q quit"
        for key in [
            "? keys", "Tab \(state.list.rawValue)", "o overview", "w why", "Enter show", "p pause", "r resume",
            "t retry", "c cancel", "+ - priority",
        ] {
            let longer = "\(line)  \(key)"
            if displayWidth(longer) > width { break }
            line = longer
        }
        return line
    }

    static func unanswered(_ count: Int) -> String {
        count == 1 ? "1 command is not answered yet" : "\(count) commands are not answered yet"
    }

    /// A question in as many lines as it needs, at most half of the screen. The keys that answer it are always there:
    /// a text that is too long loses its middle.
    private func questionLines(_ text: String) -> [String] {
        let (keys, most) = ("y/n", max(1, height / 2))
        let whole = broken("\(text) \(keys)", atSpaces: true, width: width)
        if whole.count <= most { return whole }
        // A wide letter may leave a column free at the end of each line.
        let room = most * (width - 1) - keys.count - 1
        var lines = broken(cut(text, to: max(0, room)), atSpaces: false, width: width)
        if let last = lines.last, displayWidth(last) + 1 + keys.count <= width || last.isEmpty {
            lines.removeLast()
            lines.append(last.isEmpty ? keys : "\(last) \(keys)")
        } else {
            lines.append(keys)
        }
        return lines
    }

    /// A text in lines of at most `width` columns.
    private func broken(_ text: String, atSpaces: Bool, width: Int) -> [String] {
        var lines: [String] = []
        var rest = Self.oneLine(text)
        while displayWidth(rest) > width {
            var line = trimmed(rest, to: width)
            if atSpaces, rest.dropFirst(line.count).first != " ", let space = line.lastIndex(of: " ") {
                line = String(line[...space])
            }
            if line.isEmpty { break }
            rest = String(rest.dropFirst(line.count).drop { $0 == " " })
            lines.append(line)
        }
        return lines + [rest]
    }

    // MARK: Pages

    private var pageRoom: Int { max(1, height - 2 - lossLines.count) }

    /// The lines of the page that is open, as many as it takes in this window.
    var pageText: [String] {
        let lines =
            switch state.page?.content {
            case .text(let lines): lines
            case .overview: overview
            case nil: [String]()
            }
        return lines.flatMap { $0.split(separator: "\n", omittingEmptySubsequences: false) }.flatMap {
            line -> [String] in
            let line = Self.oneLine(String(line))
            if displayWidth(line) <= width { return [line] }
            // What is broken loses its styles.
            let plain = withoutStyles(line)
            let indent = String(plain.prefix { $0 == " " }.prefix(width / 2))
            return broken(String(plain.dropFirst(indent.count)), atSpaces: true, width: width - indent.count).map {
                indent + $0
            }
        }
    }

    private func pageLines(_ page: TopState.Page) -> [String] {
        let text = pageText
        let offset = max(0, min(page.offset, text.count - pageRoom))
        let shown = text.dropFirst(offset).prefix(pageRoom)
        let filling = Array(repeating: "", count: max(0, pageRoom - shown.count))
        let more = text.count > offset + pageRoom
        let foot = console.styled(more ? "down: more  any other key: back" : "any key: back", .dim)
        let above = [console.styled(page.title, .bold)] + lossLines + shown + filling
        return (above.prefix(max(0, height - 1)) + [foot]).map { fitted(Self.oneLine($0)) }
    }
}
