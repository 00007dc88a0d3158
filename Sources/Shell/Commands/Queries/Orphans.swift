internal import API
internal import Control
internal import Core
internal import Destinations

extension Verb {
    static let orphans: Verb = Verb(
        "orphans", "list or remove unfinished uploads at a destination that no upload here continues",
        operands: "DESTINATION",
        takes: .destinations, count: 1...1,
        details: [
            "Unfinished uploads at a destination may cost money until they are removed. This lists those that this "
                + "installation began, judging by name and time, and that none of its uploads will continue or remove. "
                + "The running daemon queries the destination if policy allows it; the bytes count in quotas and in "
                + "`usage`.",
            "Destinations of these kinds support it: "
                + enumerated(DestinationTable.builtIn.filter(\.listsUnfinished).map(\.type.name), "and") + ".",
        ],
        options: [Option(flag: "abort", "remove the listed uploads from the destination")] + Option.client,
        examples: [
            ("sluice orphans archive", "Lists what is left there."),
            ("sluice orphans archive --abort", "Lists and removes it."),
        ]
    ) { call in
        let name = call.arguments.operands.first?.lossyText ?? ""
        let aborts = call.arguments.has("abort")
        let reply = try await call.withClient { client in
            try await client.orphans(name, OrphansRequest(abort: aborts ? true : nil))
        }
        if call.json {
            try call.printJSON(reply)
        } else {
            for line in table(reply.items).lines(call.console) where !reply.items.isEmpty {
                try call.console.line(line)
            }
            let others = reply.others == 0 ? "" : "; \(reply.others) more are in use, or belong to other clients"
            try call.console.line(
                (reply.items.isEmpty ? "no such uploads" : "\(reply.items.count) in all") + others)
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
