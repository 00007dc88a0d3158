internal import API
internal import Config
internal import Control
internal import Core
internal import Linux

extension Verb {
    private static let questions = ["uploads", "folders", "destinations"]

    static let completions: Verb = Verb(
        "completions", "print the completion script of a shell", operands: "bash|zsh|fish",
        takes: .words(CompletionScript.allCases.map(\.rawValue)), count: 1...2,
        details: [
            "The script is made from the same tables as this help. It asks the daemon for ids and names. If no daemon "
                + "answers, it reads names from the configuration; if that fails too, it offers none.",
            "The script calls `sluice completions uploads [LIST]`, `sluice completions folders` and `sluice "
                + "completions destinations`, which print one word on each line, and never an error.",
        ],
        options: [.config, .socket, .json],
        examples: [
            (
                "sluice completions bash > /usr/share/bash-completion/completions/sluice",
                "Installs it for all users of bash."
            ),
            ("sluice completions zsh > /usr/share/zsh/vendor-completions/_sluice", "Installs it for all users of zsh."),
            ("sluice completions fish > ~/.config/fish/completions/sluice.fish", "Installs it for yourself, in fish."),
        ]
    ) { call in
        let words = call.arguments.operands.map(\.lossyText)
        if let script = CompletionScript(rawValue: words[0]), words.count == 1 {
            let text = script.text(Shell.verbs)
            if call.json { try call.printJSON(["script": text]) } else { try call.console.raw(text) }
            return .ok
        }
        guard questions.contains(words[0]), words.count == 1 || words[0] == "uploads" else {
            let known = CompletionScript.allCases.map(\.rawValue)
            let near = closest(to: words[0], among: known)
            throw Arguments.usage(
                "there are \(known.joined(separator: ", ")), not `\(printable(words.joined(separator: " ")))`"
                    + (near.map { "; did you mean `\($0)`?" } ?? ""), .completions)
        }
        let found = await candidates(words, call, within: timeout)
        if call.json { try call.printJSON(["words": found]) } else { for line in found { try call.console.line(line) } }
        return .ok
    }
}

/// A person waits after pressing a key: later answers are dropped.
private let timeout = Duration.milliseconds(700)

/// One word a line, and for ids a tab and a description. Prints nothing on any error: a completion must not show one.
func candidates(_ question: [String], _ call: Invocation, within limit: Duration) async -> [String] {
    await withTaskGroup(of: [String]?.self) { group in
        group.addTask {
            // Any error is dropped: the person who pressed a key did not ask for it.
            if let asked = try? await queryDaemon(question, call) { return asked }
            return (try? await readNames(question[0], call)) ?? []
        }
        group.addTask {
            try? await Alarms.shared.sleep(for: limit)
            return nil
        }
        let first = await group.next() ?? nil
        group.cancelAll()
        return first ?? []
    }
}

private func queryDaemon(_ question: [String], _ call: Invocation) async throws -> [String] {
    try await call.withClient { client in
        switch question[0] {
        case "folders": return try await client.status().folders.map(\.name)
        case "destinations": return try await client.status().destinations.map(\.name)
        default:
            var query = ListQuery()
            query.list = question.dropFirst().first
            return try await client.list(query).uploads.map {
                "\($0.id)\t\(printable($0.name)) -> \(printable($0.destination))"
            }
        }
    }
}

private func readNames(_ what: String, _ call: Invocation) async throws -> [String] {
    guard what != "uploads" else { return [] }
    let settings = try await ConfigurationFile(call.arguments, call.console).load(disk: .unchecked).settings
    return what == "folders" ? settings.folders.map(\.watch.name) : settings.destinations.map(\.name)
}
