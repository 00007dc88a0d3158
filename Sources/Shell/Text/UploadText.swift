internal import API
internal import Core

// Uploads in the form that people read.

/// The length of ids that distinguishes all of `ids`; 12 at least, which covers the time and some random digits.
func distinctLength(_ ids: [String]) -> Int {
    let sorted = ids.sorted()
    var length = 12
    for (a, b) in zip(sorted, sorted.dropFirst()) where a != b {
        length = max(length, zip(a, b).prefix { $0 == $1 }.count + 1)
    }
    return length
}

/// The table that `list` shows.
func uploadTable(_ uploads: [UploadView], now: WallTime) -> Table {
    var table = Table(columns: [
        Table.Column(title: "ID", minimum: 12),
        Table.Column(title: "STATE", minimum: 9),
        Table.Column(title: "ADDED", isRight: true, expendable: 2),
        Table.Column(title: "DONE", isRight: true, expendable: 1),
        Table.Column(title: "SIZE", isRight: true, expendable: 4),
        Table.Column(title: "RATE", isRight: true, expendable: 6),
        Table.Column(title: "LEFT", isRight: true, expendable: 5),
        Table.Column(title: "TO", minimum: 6, shrinks: true, expendable: 3),
        Table.Column(title: "FILE", minimum: 12, shrinks: true),
    ])
    let length = distinctLength(uploads.map(\.id))
    table.rows = uploads.map { upload in
        let running = upload.state == .uploading
        return Table.Row(
            cells: [
                String(upload.id.prefix(length)), stateWord(upload), Units.shortMoment(upload.createdAt, now: now),
                Units.percent(upload.progress.fraction), Units.bytes(upload.size),
                running ? upload.progress.rate.map(Units.rate) ?? "" : "",
                running ? upload.progress.eta.map(Units.duration) ?? "" : "", upload.destination,
                upload.relative ?? upload.name,
            ],
            styles: [1: style(ofState: upload.state)].compactMapValues { $0 }, notes: notes(upload, now))
    }
    return table
}

/// The state in a word: "held" by a person is clearer than "waiting".
private func stateWord(_ upload: UploadView) -> String {
    (upload.isPaused ? .paused : upload.state).rawValue
}

func style(ofState state: ShownState) -> Console.Style? {
    switch state {
    case .uploading, .opening, .finishing: .cyan
    case .completed: .green
    case .waiting: .yellow
    case .failed: .red
    default: nil
    }
}

/// The reason why it waits, and its failure.
private func notes(_ upload: UploadView, _ now: WallTime) -> [(text: String, style: Console.Style?)] {
    var notes = upload.staging.map { [(text: stagingText($0), style: Console.Style?.some(.cyan))] } ?? []
    notes += upload.holds.map { (text: holdText($0, now), style: Console.Style?.some(.yellow)) }
    if let error = upload.error,
        upload.list.known == .failed || upload.holds.contains(where: { $0.kind.known == .backoff })
    {
        notes.append((text: "\(error.code): \(printable(error.message))", style: .red))
    }
    return notes + upload.warnings.map { (text: "warning: \(printable($0))", style: .yellow) }
}

func holdText(_ hold: HoldView, _ now: WallTime) -> String {
    "\(hold.kind.rawValue): \(printable(hold.text))"
        + (hold.until.map { " (until \(Units.moment($0, now: now))\(timeLeft(until: $0, now)))" } ?? "")
}

/// `, in 3h 20m`; empty when the moment is past, or the text is no time.
private func timeLeft(until text: String, _ now: WallTime) -> String {
    guard let until = WallTime(described: text), until > now else { return "" }
    return ", in \(Units.duration((until.milliseconds - now.milliseconds + 999) / 1000))"
}

/// The state of a group for people.
private func groupText(_ group: GroupView) -> String {
    let files = "\(group.files) \(group.files == 1 ? "file" : "files")"
    return "\(printable(group.name)): \(files), \(Units.bytes(group.bytes)), \(group.verified) verified"
}

/// The output of `show`: every field with a value.
func detailLines(_ detail: UploadDetail, _ console: Console, now: WallTime) -> [String] {
    let upload = detail.upload
    func time(_ text: String?) -> String? { text.map { Units.moment($0, now: now) } }
    var lines: [(String, String?)] = [
        ("id", upload.id),
        ("file", upload.path),
        ("size", "\(Units.bytes(upload.size)) (\(upload.size) bytes)"),
        ("folder", upload.folder),
        ("group", detail.group.map(groupText)),
        (
            "taken from",
            upload.keeping.map(contentPlace)
        ),
        ("destination", upload.destination),
        ("headers", upload.headers.map { "\($0.joined(separator: ", ")); their values are not shown" }),
        ("address", upload.url),
        ("given upload", upload.uploadOrigin.map { "at \($0); the rest of its address is not shown" }),
        ("state", console.styled(stateWord(upload), style(ofState: upload.state))),
    ]
    lines += upload.holds.map { ("held", "\(holdText($0, now)), since \(Units.moment($0.since, now: now))") }
    lines += [
        ("staging", upload.staging.map(stagingText)), ("progress", progressText(upload)),
    ]
    lines += [
        ("attempt", attemptText(upload, now)),
        ("wasted", detail.wasted.map { "\(Units.bytes($0)) were sent, but the destination did not keep them" }),
    ]
    if let error = upload.error { lines.append(("error", errorText(error, now))) }
    lines += upload.warnings.map { ("warning", printable($0)) }
    let context = upload.context.sorted { $0.key < $1.key }.map { "\($0.key)=\(printable($0.value))" }
    lines += [
        ("key", upload.key.map(printable)),
        ("context", context.isEmpty ? nil : context.joined(separator: ", ")),
        ("priority", upload.priority == 0 ? nil : String(upload.priority)),
        ("recorded", time(detail.media?.recordedAt)), ("recording", detail.media.flatMap(mediaText)),
    ]
    lines += [
        ("sha256", upload.sha256), ("settled by", upload.settledBy),
        ("remote", upload.remote.flatMap { remoteText($0, now) }),
        ("remote copy", upload.remoteDelete.map { "deletion \($0)" + ($0 == "unknown" ? ": check it there" : "") }),
        ("source", "\(upload.sourceAction): \(printable(upload.sourceState))"), ("created", time(upload.createdAt)),
        ("started", time(upload.startedAt)), ("finished", time(upload.finishedAt)),
        ("listed", time(upload.expiresAt).map { "in \(upload.list.rawValue) until \($0)" }),
    ]
    var shown = lines.compactMap { line in line.1.map { filled(line.0, to: 12) + "  " + $0 } }
    if !detail.attempts.isEmpty {
        shown.append("")
        shown.append(console.styled("attempts that failed", .dim))
        shown += detail.attempts.map { "  \($0.generation).\($0.attempt)  \(errorText($0.error, now))" }
    }
    return shown
}

/// Duration, size of the picture, and camera.
private func mediaText(_ media: MediaView) -> String? {
    var parts: [String] = []
    if let duration = media.duration { parts.append(Units.duration(Int64(duration.rounded()))) }
    if let width = media.width, let height = media.height { parts.append("\(width) × \(height)") }
    if let camera = media.camera { parts.append(printable(camera)) }
    return parts.isEmpty ? nil : parts.joined(separator: ", ")
}

private func progressText(_ upload: UploadView) -> String {
    let progress = upload.progress
    var text =
        "\(Units.percent(progress.fraction)), \(Units.bytes(progress.acked)) of \(Units.bytes(progress.total)) acknowledged"
    if let rate = progress.rate { text += ", \(Units.rate(rate))" }
    if let eta = progress.eta { text += ", \(Units.duration(eta)) left" }
    return text
}

/// The progress of a copy: `copying, 43%, 1.2 GB of 2.8 GB, 80 MB/s, 20s left`.
func stagingText(_ run: StagingRunView) -> String {
    var parts = [run.work]
    if let fraction = run.fraction { parts.append(Units.percent(fraction)) }
    if run.total == 0 {
        parts.append(Units.bytes(run.done))
    } else if run.work != "exporting" {
        parts.append("\(Units.bytes(run.done)) of \(Units.bytes(run.total))")
    }
    if let rate = run.rate { parts.append(Units.rate(rate)) }
    if let eta = run.eta { parts.append("\(Units.duration(eta)) left") }
    return parts.joined(separator: ", ")
}

private func attemptText(_ upload: UploadView, _ now: WallTime) -> String? {
    guard upload.attempt > 0 || upload.generation > 1 else { return nil }
    return "\(upload.attempt)" + (upload.generation > 1 ? " of generation \(upload.generation)" : "")
        + (upload.nextAttemptAt.map { ", next at \(Units.moment($0, now: now))" } ?? "")
}

private func errorText(_ error: ErrorView, _ now: WallTime) -> String {
    "\(Units.moment(error.at, now: now))  \(error.kind) \(error.code)"
        + (error.http.map { " (HTTP \($0))" } ?? "") + ": \(printable(error.message))"
        + (error.retryable ? "" : " (final)")
}

private func remoteText(_ remote: RemoteView, _ now: WallTime) -> String? {
    let resumable = remote.resumable.map {
        "continues at \(Units.bytes($0.offset)), dropped there at \(Units.moment($0.expiresAt, now: now))"
    }
    let parts = [remote.id, remote.url, remote.verifiedBy.map { "verified by \($0)" }, resumable].compactMap {
        $0.map(printable)
    }
    return parts.isEmpty ? nil : parts.joined(separator: ", ")
}

/// The place of an upload's bytes, when that is no copy of its source.
private func contentPlace(_ stagingMode: String) -> String {
    switch stagingMode {
    case "export": "the output of export.command"
    case "received": "bytes received by `sluice add -` or the API"
    default: "the source, in place"
    }
}
