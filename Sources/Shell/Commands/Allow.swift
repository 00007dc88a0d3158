internal import API
internal import Config
internal import Control
internal import Core

// A person's temporary exceptions from the policy.

extension Verb {
    static let allow: Verb = Verb(
        "allow", "make an exception from policy rules for uploads, for a while", operands: "[ID|KEY|PATH...]",
        usages: ["ID|KEY|PATH...", "--folder NAME"].map { "RULE... (--for DURATION | --end) [OPTION...] \($0)" },
        takes: .uploads("ongoing"), count: 0...1000,
        details: [
            "RULE is --metered, --quota, --rules, --window, or --rule with the name of a rule under `pause`. No exception "
                + "is made from a rule with `override: never`.",
            "Uploads with an exception run at once, unless another hold applies; every quota still counts them. A "
                + "network with `allowed: false` stays forbidden. `sluice why` and `sluice status` show who allowed "
                + "what, and until when.",
        ],
        options: [
            Option("folder", "NAME", takes: .folders, "all uploads of this folder"),
            Option(flag: "metered", "let them use metered networks"),
            Option(flag: "quota", "let them exceed quotas"),
            Option(
                "rule", "NAME", repeats: true, "let them run against this rule: under `pause`, `windows`, `metered`"),
            Option(flag: "rules", "let them run against all rules that may be excepted; metered bytes may cost money"),
            Option(flag: "window", "let them run outside windows"), Option.lasting,
            Option(flag: "end", "end the exception now"),
        ] + Option.client,
        examples: [
            (
                "sluice allow 01JD3K8Q --metered --for 1h",
                "Lets one upload use a metered network, which may cost money."
            ),
            ("sluice allow --folder door --window --for 2h", "Lets uploads of a folder run now, instead of at night."),
            ("sluice allow --folder door --window --end", "Ends that: they wait for the night again."),
        ]
    ) { call in try await allowUploads(call) }

    static let limit: Verb = Verb(
        "limit", "limit the rate of all transfers together for a while", operands: "RATE|off",
        usages: ["--for DURATION [OPTION...] RATE", "[OPTION...] off"], takes: .words(["off"]), count: 1...1,
        details: [
            "RATE is a rate like 2MB/s, 500kB/s or 8Mbit/s; 0 stops all transfers. The limit applies in addition to "
                + "`bandwidth` of the configuration: the lowest rate wins. `off` removes the limit."
        ],
        options: [Option.lasting] + Option.client,
        examples: [
            ("sluice limit 500kB/s --for 2h", "Limits the rate during a meeting."),
            ("sluice limit off", "Removes the limit when the meeting is over."),
        ]
    ) { call in try await limitTransfers(call) }
}

private func limitTransfers(_ call: Invocation) async throws -> ExitCode {
    guard let written = call.arguments.operands.first?.display else { return .usage }
    let duration = try seconds(call.arguments, .limit)
    let request: LimitRequest
    if written == "off" {
        if duration != nil {
            throw Arguments.usage(
                "`off` removes the limit at once, so --for does not go with it; it goes with a rate, like "
                    + "`2MB/s --for 2h`",
                .limit)
        }
        request = LimitRequest(rate: nil, duration: nil)
    } else {
        guard let rate = readRate(written) else {
            throw Arguments.usage(
                "takes a rate like `2 MB/s` or `500 kB/s`, or `off`, not `\(printable(written))`", .limit)
        }
        guard let duration else { throw Arguments.usage("name a length of time, like --for 2h", .limit) }
        request = LimitRequest(rate: rate, duration: duration)
    }
    return try printOverrides(
        try await call.withClient { try await $0.limit(request) }, call,
        nothing: "`sluice limit` has set no limit; the limits of the configuration stay as they are")
}

private func allowUploads(_ call: Invocation) async throws -> ExitCode {
    let arguments = call.arguments
    let flags: [(flag: String, kind: Exemption)] = [
        ("metered", .metered), ("quota", .quota), ("rules", .rule), ("window", .window),
    ]
    let kinds = flags.filter { arguments.has($0.flag) }.map(\.kind.rawValue)
    let rules = arguments.texts("rule")
    if kinds.isEmpty, rules.isEmpty {
        throw Arguments.usage("name the rule: --metered, --quota, --rules, --window or --rule NAME", .allow)
    }
    guard arguments.operands.isEmpty != (arguments.text("folder") == nil) else {
        throw Arguments.usage("name uploads, or a folder with --folder", .allow)
    }
    if arguments.has("end"), arguments.has("for") {
        throw Arguments.usage("--end ends the exception at once, so --for does not go with it", .allow)
    }
    guard arguments.has("end") || arguments.has("for") else {
        throw Arguments.usage("name a length of time, like --for 2h, or end it with --end", .allow)
    }
    let request = AllowRequest(
        ids: try arguments.operands.map(reference), folder: arguments.text("folder"), kinds: kinds,
        rules: rules.isEmpty ? nil : rules,
        duration: try seconds(arguments, .allow) ?? 0)
    let whom =
        request.folder.map { "folder \(printable($0))" }
        ?? request.ids.map { printable($0) }.joined(separator: ", ")
    return try printOverrides(
        try await call.withClient { try await $0.allow(request) }, call,
        nothing: "there is no such exception for \(whom)")
}

private func seconds(_ arguments: Arguments, _ verb: Verb) throws -> Int64? {
    guard let written = arguments.text("for") else { return nil }
    guard let seconds = Units.seconds(written), seconds > 0 else {
        throw Arguments.usage("--for takes a length of time like 30m or 2h, not `\(printable(written))`", verb)
    }
    return seconds
}

/// - Parameter nothing: The message when there was no exception to remove.
private func printOverrides(_ reply: OverridesReply, _ call: Invocation, nothing: String) throws -> ExitCode {
    if call.json {
        try call.printJSON(reply)
        return .ok
    }
    let now = call.now()
    if let ended = reply.ended {
        if ended.isEmpty { try call.console.line(nothing) }
        for exception in ended { try call.console.line("ended: " + exceptionText(exception, now)) }
    }
    if reply.ended == nil, reply.exceptions.isEmpty { try call.console.line("no exceptions") }
    for hold in reply.remaining ?? [] {
        try call.console.line("still held, since this rule permits no exception: " + holdText(hold, now))
    }
    for exception in reply.exceptions {
        try call.console.line((reply.ended == nil ? "" : "still: ") + exceptionText(exception, now))
    }
    return .ok
}

/// `folder door: window until 18:00, by root`.
func exceptionText(_ exception: OverrideView, _ now: WallTime) -> String {
    let what = exception.scope == "all" ? "all transfers" : "\(exception.scope) \(printable(exception.name ?? ""))"
    let word =
        exception.rate.map { "at most \(Units.rate($0))" }
        ?? (exception.kind + (exception.rule.map { " \(printable($0))" } ?? ""))
    return "\(what): \(word) until \(Units.moment(exception.until, now: now)), by \(printable(exception.by))"
}
