internal import API
internal import Control
internal import Core

extension Verb {
    static let quota: Verb = Verb(
        "quota", "show how much may still be sent to a destination: its free space, and its quotas",
        operands: "[DESTINATION]", takes: .destinations,
        count: 0...1,
        details: [
            "Shows the free space that the destination last reported, and how much is left of each quota that "
                + "counts uploads to it. It sends no request to the destination, so it costs nothing. `sluice usage` "
                + "shows the same quotas with the bytes that were sent."
        ],
        options: Option.client,
        examples: [
            ("sluice quota", "Shows every destination."),
            ("sluice quota archive --json", "Shows one destination, for a script."),
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
            let space = view.space.map { spaceText($0, call.now()) } ?? "reports no free space, or was not asked yet"
            try call.console.line("  " + space)
            if view.quotas.isEmpty { try call.console.line("  no quota counts uploads to it") }
            for quota in view.quotas {
                for line in quotaLines(quota, call.console, call.now()) { try call.console.line("  " + line) }
            }
        }
        return .ok
    }
}
