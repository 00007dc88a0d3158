internal import API
internal import Control
internal import Core
internal import Destinations

extension Verb {
    static let remote: Verb = Verb(
        "remote", "list the objects at a destination, and which of them this installation uploaded",
        operands: "DESTINATION",
        takes: .destinations, count: 1...1,
        details: [
            "The running daemon queries the destination if policy allows it; the bytes count in quotas and in `usage`. "
                + "Objects of other clients are listed too. The last column names the upload here that created the "
                + "object, if it is still known.",
            "Destinations of these kinds support it: "
                + enumerated(DestinationTable.builtIn.filter(\.listsObjects).map(\.type.name), "and") + ".",
        ],
        options: [
            Option("limit", "N", "at most this many rows (default: 100)"),
            Option(flag: "foreign", "only objects that no upload here is known to have created"),
        ] + Option.client,
        examples: [
            ("sluice remote channel", "Lists the newest hundred objects."),
            ("sluice remote channel --foreign --json", "Lists objects of other clients, for a script."),
        ]
    ) { call in try await listObjects(call) }
}

private func listObjects(_ call: Invocation) async throws -> ExitCode {
    let name = call.arguments.operands.first?.lossyText ?? ""
    var limit = 100
    if let written = call.arguments.text("limit") {
        guard let number = Int(written), (1...100_000).contains(number) else {
            throw Arguments.usage("--limit is from 1 to 100000, not `\(printable(written))`", .remote)
        }
        limit = number
    }
    let most = limit
    let isForeign = call.arguments.has("foreign")
    let items = try await call.withClient { client in
        var items: [RemoteReply.Item] = []
        var mark: String?
        var seen: Set<String> = []
        repeat {
            let page = try await client.remote(name, RemoteRequest(after: mark))
            items += page.items.filter { !isForeign || $0.upload == nil }
            mark = page.next
            // With `--foreign` no item of a page may count, so the number of items alone does not end the loop.
            if let next = mark, !seen.insert(next).inserted {
                throw CommandError(
                    .remote, "`\(printable(name))` sends the same page again and again; its list has no end")
            }
        } while mark != nil && items.count < most
        return Array(items.prefix(most))
    }
    if call.json {
        for item in items { try call.printJSON(item) }
        return .ok
    }
    if items.isEmpty {
        try call.console.line(isForeign ? "no objects of other clients" : "no objects")
        return .ok
    }
    for line in table(items).lines(call.console) { try call.console.line(line) }
    return .ok
}

private func table(_ items: [RemoteReply.Item]) -> Table {
    var table = Table(columns: [
        .init(title: "ID", minimum: 8, shrinks: true), .init(title: "STATE", expendable: 2),
        .init(title: "SIZE", isRight: true, expendable: 3), .init(title: "NAME", minimum: 8, shrinks: true),
        .init(title: "PAGE", minimum: 8, shrinks: true, expendable: 4),
        .init(title: "UPLOAD", minimum: 10, shrinks: true),
    ])
    table.rows = items.map { item in
        Table.Row(
            cells: [
                printable(item.id), printable(item.state ?? "-"), item.size.map { Units.bytes($0) } ?? "-",
                printable(item.name ?? "-"), printable(item.url ?? "-"), item.upload.map { printable($0) } ?? "-",
            ])
    }
    return table
}
