internal import API
internal import Core

/// The output of `run --once` without a terminal: the files that are not done, and nothing when none are left.
func onceReport(_ view: OnceView, _ console: Console, now: WallTime) -> [String] {
    if console.isTerminal || !view.done { return onceLines(view, console, now: now) }
    return view.young > 0 ? [sum(view)] : []
}

private func sum(_ view: OnceView) -> String {
    let young = view.young > 0 ? ", \(view.young) younger than min_age: left for the next run" : ""
    return "\(view.completed) uploaded, \(view.waiting) waiting, \(view.failed) failed" + young
}

/// The output of `run --once` for a person: each file that is not done, with its reason, and the sum.
func onceLines(_ view: OnceView, _ console: Console, now: WallTime) -> [String] {
    func line(_ word: String, _ style: Console.Style, _ what: String, _ why: String) -> String {
        console.styled(filled(word, to: 9), style) + " \(what): \(why)"
    }
    var lines = view.troubles.map { line("trouble", .red, "all", printable($0)) }
    lines += view.absent.map { line("unseen", .red, "folder \($0.name) (\($0.path))", printable($0.state.rawValue)) }
    lines += view.withoutCard.map { line("no card", .dim, "folder \($0)", "no card is mounted") }
    for upload in view.uploads {
        let isFailed = upload.list.known == .failed
        lines.append(
            line(
                isFailed ? "failed" : "waiting", isFailed ? .red : .yellow, "\(upload.path) to \(upload.destination)",
                reason(upload, now)))
    }
    let unnamed = view.waiting + view.young + view.failed - view.uploads.count - view.settling.count
    lines += view.settling.map { file in
        file.isYoung
            ? line("young", .dim, file.path, printable(file.reason))
            : line("settling", .yellow, file.path, printable(file.reason))
    }
    lines += view.unreleased.map { line("source", .yellow, $0.path, "not released yet: \(printable($0.reason))") }
    lines += view.kept.map { console.styled(filled("source", to: 9), .yellow) + " " + printable($0) }
    if unnamed > 0 { lines.append("and \(unnamed) more: `sluice list` shows them while a daemon runs") }
    lines.append(sum(view))
    return lines
}

private func reason(_ upload: UploadView, _ now: WallTime) -> String {
    if upload.list.known == .failed, let error = upload.error {
        return "\(error.code): \(printable(error.message)); `sluice retry` starts it again"
    }
    let holds = upload.holds.map { holdText($0, now) }
    if !holds.isEmpty { return holds.joined(separator: "; ") }
    if upload.state == .settling { return "it changed while it was copied" }
    return upload.startedAt == nil ? "it was not started" : "stopped before its end; the next run continues it"
}
