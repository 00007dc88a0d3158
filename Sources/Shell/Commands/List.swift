internal import Control
internal import Core
internal import Daemon

extension Verb {
    static let list: Verb = Verb(
        "list", "show uploads, newest first",
        details: [
            "Without --list: what is ongoing, and what failed. Ids may be shortened to what tells them apart, at least "
                + "6 characters. Held uploads say why."
        ],
        options: [
            Option("list", "LIST", "ongoing, completed, failed, cancelled or all"),
            Option("state", "STATE", "only this state, as in the STATE column"),
            Option("destination", "NAME", "only uploads to it"), Option("folder", "NAME", "only files of it"),
            Option("text", "TEXT", "only paths that contain it"),
            Option("limit", "N", "at most so many rows (100)"),
        ] + Option.client,
        examples: [
            ("sluice list", "What goes on, and what went wrong."),
            ("sluice list --list completed --destination archive --json", "The last hundred, for a script."),
        ]
    ) { call in
        var query = ListQuery()
        let list = call.arguments.text("list")
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
        // One list is one question. What a person wants to see at a glance is two.
        let lists: [String?] =
            list == "all" ? [nil] : list.map { [$0] } ?? (query.state == nil ? ["ongoing", "failed"] : [nil])
        let page = try await call.withClient { client in
            var whole: UploadPage?
            for list in lists {
                query.list = list
                let page = try await client.list(query)
                whole = whole.map { merged($0, page, limit: query.limit) } ?? page
            }
            return whole
        }
        guard let page else { return .ok }
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

/// Two lists as one page, newest first. It follows from the older of the two numbers, so that no event is missed.
private func merged(_ a: UploadPage, _ b: UploadPage, limit: Int) -> UploadPage {
    var page = a
    let all = (a.uploads + b.uploads).sorted { $0.id > $1.id }
    page.uploads = Array(all.prefix(limit))
    page.seq = min(a.seq, b.seq)
    page.next = all.count > limit ? page.uploads.last?.id : a.next ?? b.next
    return page
}
