internal import API
internal import Config
internal import Control
internal import Core

extension Verb {
    static let usage: Verb = Verb(
        "usage", "show how much was sent and received, and what is left of each quota; correct the count of a quota",
        operands: "[set NAME AMOUNT]", takes: .words(["set"]), count: 0...3,
        details: [
            "Counts the bytes that left this machine, with headers, queries and retransmissions, and the bytes "
                + "that came back: answers, acknowledgements and handshakes. Running transfers are included.",
            "With --days it shows only days, with --months only months, with both options both.",
            "`set` sets what a quota with a condition has counted in its present period: bytes like `2GB`, or a number "
                + "of files like `17`. Of several with the name: that of `policy`, or of --destination or --folder.",
        ],
        options: [
            Option("days", "N", "the last N days (default: 7)"),
            Option("months", "N", "the last N months (default: 3)"),
            Option(
                "by", "GROUP", takes: .words(UsageGrouping.allCases.map(\.rawValue)),
                "show the parts of each sum by destination, folder or network"),
            Option("destination", "NAME", takes: .destinations, "only bytes to this destination"),
            Option("folder", "NAME", takes: .folders, "only bytes of this folder"),
        ] + Option.client,
        examples: [
            ("sluice usage", "Shows the last days and months, and the quotas."),
            ("sluice usage --months 2 --by network", "Shows how much was sent over metered networks."),
            ("sluice usage --days 1 --json", "Shows today, for a script."),
            ("sluice usage set lte-plan 2GB", "Sets the count of a quota to what the provider reports."),
        ]
    ) { call in
        call.arguments.operands.isEmpty ? try await showUsage(call) : try await setUsage(call)
    }
}

private func showUsage(_ call: Invocation) async throws -> ExitCode {
    let query = try usageQuery(call.arguments)
    let view = try await call.withClient { try await $0.usage(query) }
    if call.json {
        try call.printJSON(view)
    } else {
        for line in usageLines(view, call.console, now: call.now()) { try call.console.line(line) }
    }
    return .ok
}

private func setUsage(_ call: Invocation) async throws -> ExitCode {
    let arguments = call.arguments
    let words = arguments.operands.map(\.lossyText)
    guard words.count == 3, words[0] == "set" else {
        throw Arguments.usage("takes `set`, the name of a quota and an amount, like `set lte-plan 2GB`", .usage)
    }
    if let other = ["days", "months", "by"].first(where: { arguments.has($0) }) {
        throw Arguments.usage("--\(other) does not go with `set`", .usage)
    }
    var request = UsageChangeRequest(name: words[1])
    switch (arguments.text("destination"), arguments.text("folder")) {
    case (let destination?, nil): request.place = "destinations.\(destination)"
    case (nil, let folder?): request.place = "folder \(folder)"
    case (nil, nil): break
    case (_?, _?): throw Arguments.usage("a quota has one place: --destination or --folder", .usage)
    }
    if let files = Int64(words[2]), files > 0 {
        request.files = files
    } else if let bytes = readBytes(words[2]) {
        request.bytes = bytes
    } else {
        throw Arguments.usage("takes an amount like `2GB`, or a number of files, not `\(printable(words[2]))`", .usage)
    }
    let view = try await call.withClient { try await $0.setUsage(request) }
    if call.json {
        try call.printJSON(view)
        return .ok
    }
    func amount(_ count: Int64) -> String { view.counts == "files" ? "\(count) files" : Units.bytes(count) }
    try call.console.line(
        "\(printable(view.name)) of \(printable(view.place)): \(amount(view.used)) instead of \(amount(view.before)), by "
            + printable(view.by))
    return .ok
}

private func usageQuery(_ arguments: Arguments) throws -> UsageQuery {
    var query = UsageQuery()
    func number(_ name: String, _ most: Int) throws -> Int? {
        guard let text = arguments.text(name) else { return nil }
        guard let number = Int(text), (1...most).contains(number) else {
            throw Arguments.usage("--\(name) is from 1 to \(most), not `\(printable(text))`", .usage)
        }
        return number
    }
    let days = try number("days", UsageQuery.maxDays)
    let months = try number("months", UsageQuery.maxMonths)
    if days != nil || months != nil { (query.days, query.months) = (days ?? 0, months ?? 0) }
    if let word = arguments.text("by") {
        guard let grouping = UsageGrouping(rawValue: word) else {
            let words = UsageGrouping.allCases.map(\.rawValue)
            let near = closest(to: word, among: words)
            throw Arguments.usage(
                "--by is \(enumerated(words, "or")), not `\(printable(word))`"
                    + (near.map { "; did you mean `\($0)`?" } ?? ""), .usage)
        }
        query.by = grouping.rawValue
    }
    query.destination = arguments.text("destination")
    query.folder = arguments.text("folder")
    return query
}
