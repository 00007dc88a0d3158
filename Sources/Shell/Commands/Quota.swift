internal import Control
internal import Core
internal import Daemon

extension Verb {
    static let quota: Verb = Verb(
        "quota", "show what may still go to a destination", operands: "[DESTINATION]", takes: .destinations,
        count: 0...1,
        details: [
            "What the destination said of its room when it was asked last, and what is left of each quota of the configuration "
                + "that counts what goes there. Nobody is asked for it, so it costs nothing."
        ],
        options: Option.client,
        examples: [
            ("sluice quota", "Of every destination."), ("sluice quota archive --json", "Of one, for a script."),
        ]
    ) { call in
        let name = call.arguments.operands.first?.lossyText
        let views = try await call.withClient { try await $0.allowances(of: name) }
        if call.json {
            if name != nil, let view = views.first {
                try call.printJSON(view)
            } else {
                try call.printJSON(AllowancesReply(destinations: views))
            }
            return .ok
        }
        for (number, view) in views.enumerated() {
            if number > 0 { try call.console.line("") }
            try call.console.line(call.console.styled(printable(view.destination), .bold))
            let space = view.space.map { spaceText($0, call.now()) } ?? "says nothing of its room, or was not asked yet"
            try call.console.line("  " + space)
            if view.quotas.isEmpty { try call.console.line("  no quota counts what goes there") }
            for quota in view.quotas {
                for line in quotaLines(quota, call.console, call.now()) { try call.console.line("  " + line) }
            }
        }
        return .ok
    }
}
