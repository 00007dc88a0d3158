internal import Control
internal import Core

extension Verb {
    static let help: Verb = Verb(
        "help", "list the verbs, or explain one", operands: "[VERB]", takes: .verbs, count: 0...1,
        examples: [
            ("sluice help", "Lists all verbs."), ("sluice help add", "Prints the same as `sluice add --help`."),
        ]
    ) { call in
        guard let name = call.arguments.operands.first?.lossyText else {
            try call.console.raw(generalHelp(Shell.verbs, width: call.console.width))
            return .ok
        }
        guard let verb = Shell.verbs.first(where: { $0.name == name }) else {
            let near = closest(to: name, among: Shell.verbs.map(\.name))
            throw CommandError(
                .usage, "sluice help: no verb `\(printable(name))`" + (near.map { "; did you mean `\($0)`?" } ?? ""))
        }
        try call.console.raw(verb.help(width: call.console.width))
        return .ok
    }

    static let version: Verb = Verb(
        "version", "show the version of this program",
        options: [.json, .ignoredConfig], examples: [("sluice version --json", "Shows it for a script.")]
    ) { call in
        if call.json {
            try call.printJSON(["version": sluiceVersion])
        } else {
            try call.console.line("sluice \(sluiceVersion)")
        }
        return .ok
    }
}
