internal import API
internal import Control
internal import Core

extension Verb {
    static let list: Verb = Verb(
        "list", "show uploads, newest first",
        details: [
            "Shows when each upload was added, and the path of its file, relative to the watched folder; a narrow "
                + "terminal shortens the path with an ellipsis. Uploads with a hold show the hold, failed ones the "
                + "error."
        ],
        options: [
            Option(
                "list", "LIST", takes: .words(ListQuery.lists),
                "only this list: ongoing, completed, failed or cancelled, or the history of uploads that left these "
                    + "lists"
            ),
            Option(
                "state", "STATE", takes: .words(ListQuery.states),
                "only this state: " + enumerated(ListQuery.states, "or")),
            Option("destination", "NAME", takes: .destinations, "only uploads to this destination"),
            Option("folder", "NAME", takes: .folders, "only files of this folder"),
            Option("text", "TEXT", "only paths that contain this text, in upper or lower case"),
            Option("context", "NAME=VALUE", repeats: true, "only uploads with this context"),
            Option(
                "since", "TIME",
                "only uploads added since then: 18:00, 2026-11-20, 2026-11-20T18:00 or 2d (two days ago)"),
            Option("until", "TIME", "only uploads added before then, in the same form"),
            Option("limit", "N", "at most this many rows, newest first (default: 100; at most 1000)"),
        ] + Option.client,
        examples: [
            ("sluice list --list ongoing", "Lists ongoing uploads and their holds."),
            (
                "sluice list --list completed --destination archive --json",
                "Lists the last hundred completed uploads, for a script."
            ),
            ("sluice list --list failed --since 22:00", "Lists what failed in the night."),
        ]
    ) { call in try await listUploads(call) }
}

private func listUploads(_ call: Invocation) async throws -> ExitCode {
    var query = ListQuery()
    query.list = call.arguments.text("list")
    query.state = call.arguments.text("state")
    query.destination = call.arguments.text("destination")
    query.folder = call.arguments.text("folder")
    query.text = call.arguments.text("text")
    query.context = try readContext(call.arguments.texts("context"), .list)
    let now = call.now()
    for (name, field) in [("since", \ListQuery.since), ("until", \ListQuery.until)] {
        guard let written = call.arguments.text(name) else { continue }
        guard let time = moment(meant: written, .past, now: now) else {
            throw Arguments.usage(
                "--\(name) takes a past time like 18:00, 2026-11-20, 2026-11-20T18:00 or 2d, not "
                    + "`\(printable(written))`", .list)
        }
        query[keyPath: field] = time
    }
    if let limit = call.arguments.text("limit") {
        guard let number = Int(limit), (1...1000).contains(number) else {
            throw Arguments.usage("--limit is from 1 to 1000, not `\(printable(limit))`", .list)
        }
        query.limit = number
    }
    let question = query
    let page = try await call.withClient { try await $0.list(question) }
    if call.json {
        try call.printJSON(page)
        return .ok
    }
    if page.uploads.isEmpty {
        let counts = page.counts
        try call.console.line(
            "Nothing here. In all: \(counts.ongoing) ongoing, \(counts.completed) completed, \(counts.failed) failed, "
                + "\(counts.cancelled) cancelled.")
        return .ok
    }
    for line in uploadTable(page.uploads, now: call.now()).lines(call.console) { try call.console.line(line) }
    if page.next != nil { call.console.error("There are more; see them with --limit or a filter.") }
    return .ok
}
