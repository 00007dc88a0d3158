internal import API
internal import Control
internal import Core

extension Verb {
    static let orphans: Verb = Verb(
        "orphans", "list or remove abandoned uploads at a destination", operands: "DESTINATION",
        takes: .destinations, count: 1...1,
        details: [
            "Unfinished uploads at a destination may cost money until they are removed. The running daemon asks the "
                + "destination, as policy allows, and counts the bytes. It lists those with names that this "
                + "installation has uploaded or will upload, unless one of its uploads continues or removes them.",
            "Not every kind of destination supports this: s3 does.",
        ],
        options: [Option(flag: "abort", "remove them there")] + Option.client,
        examples: [
            ("sluice orphans archive", "What is left there."),
            ("sluice orphans archive --abort", "List and remove them."),
        ]
    ) { call in
        let name = call.arguments.operands.first?.lossyText ?? ""
        let isToGo = call.arguments.has("abort")
        let reply = try await call.withClient { client in
            try await client.orphans(name, OrphansRequest(abort: isToGo ? true : nil))
        }
        if call.json {
            try call.printJSON(reply)
        } else {
            for line in table(reply.items).lines(call.console) where !reply.items.isEmpty {
                try call.console.line(line)
            }
            let others = reply.others == 0 ? "" : "; \(reply.others) more are in use, or are not ours"
            try call.console.line(
                (reply.items.isEmpty ? "no abandoned uploads" : "\(reply.items.count) in all") + others)
        }
        return reply.items.contains { $0.removed == false } ? .remote : .ok
    }
}

private func table(_ items: [OrphansReply.Item]) -> Table {
    var table = Table(columns: [
        .init(title: "NAME", minimum: 8, shrinks: true), .init(title: "STARTED", expendable: 2),
        .init(title: "STATE"), .init(title: "ID", minimum: 8, shrinks: true, expendable: 3),
    ])
    table.rows = items.map { item in
        Table.Row(
            cells: [
                printable(item.name), item.begunAt.map { printable($0) } ?? "-",
                item.removed.map { $0 ? "removed" : "still there" } ?? "unfinished", printable(item.id),
            ])
    }
    return table
}
