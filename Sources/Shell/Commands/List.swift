internal import Control
internal import Core
internal import Daemon

extension Verb {
    static let list: Verb = Verb(
        "list", "show uploads, newest first",
        details: [
            "Held uploads say why, failed ones what went wrong. Where an id is asked for, its beginning will do, from 6 "
                + "characters on."
        ],
        options: [
            Option("list", "LIST", takes: .words(ListQuery.lists), "only ongoing, completed, failed or cancelled ones"),
            Option(
                "state", "STATE", takes: .words(ListQuery.states),
                "only this state: settling, staging, queued, waiting, opening, uploading, finishing …"
            ),
            Option("destination", "NAME", takes: .destinations, "only uploads to it"),
            Option("folder", "NAME", takes: .folders, "only files of it"),
            Option("text", "TEXT", "only paths that contain it"),
            Option("limit", "N", "at most so many rows (100)"),
        ] + Option.client,
        examples: [
            ("sluice list --list ongoing", "What goes on, and what holds it."),
            ("sluice list --list completed --destination archive --json", "The last hundred, for a script."),
        ]
    ) { call in
        var query = ListQuery()
        query.list = call.arguments.text("list")
        query.state = call.arguments.text("state")
        query.destination = call.arguments.text("destination")
        query.folder = call.arguments.text("folder")
        query.text = call.arguments.text("text")
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
        if page.next != nil { try call.console.line("There are more; see them with --limit or a filter.") }
        return .ok
    }
}
