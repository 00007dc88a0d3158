internal import Config
internal import Control
internal import Core
internal import Daemon

// A person's temporary exceptions from the policy.

extension Verb {
    static let allow: Verb = Verb(
        "allow", "let uploads off the policy for a while", operands: "[ID|KEY|PATH...]", takes: .uploads("ongoing"),
        count: 0...1000,
        details: [
            "What is allowed goes at once where nothing else is in the way, and counts in every quota all the same. A network "
                + "with `allowed: false` stays forbidden. `why` and `status` say who allowed what until when.",
            "Give uploads or a folder, one or more of --metered, --quota and --window, and --for.",
        ],
        options: [
            Option("folder", "NAME", takes: .folders, "all that comes from this folder"),
            Option(flag: "metered", "over metered networks"), Option(flag: "quota", "beyond its quotas"),
            Option(flag: "window", "outside its windows"), Option("for", "TIME", "for 30m, 2h, 1d …"),
            Option(flag: "end", "take back what was allowed"),
        ] + Option.client,
        examples: [
            ("sluice allow 01JD3K8Q --metered --for 1h", "This one may cost something."),
            ("sluice allow --folder door --window --for 2h", "Now, and not at night."),
            ("sluice allow --folder door --window --end", "At night after all."),
        ]
    ) { call in
        let arguments = call.arguments
        let kinds = Exemption.allCases.map(\.rawValue).filter { arguments.has($0) }
        if kinds.isEmpty { throw Arguments.usage("say what is allowed: --metered, --quota or --window", .allow) }
        guard arguments.operands.isEmpty != (arguments.text("folder") == nil) else {
            throw Arguments.usage("name uploads, or a folder with --folder", .allow)
        }
        if arguments.has("end"), arguments.has("for") {
            throw Arguments.usage("--end takes back at once what was allowed, so --for goes not with it", .allow)
        }
        guard arguments.has("end") || arguments.has("for") else {
            throw Arguments.usage("say for how long, like --for 2h; or take it back with --end", .allow)
        }
        let request = AllowRequest(
            ids: try arguments.operands.map(reference), folder: arguments.text("folder"), kinds: kinds,
            duration: try seconds(arguments, .allow) ?? 0)
        let whom =
            request.folder.map { "folder \(printable($0))" }
            ?? request.ids.map { printable($0) }.joined(separator: ", ")
        return try tell(
            try await call.withClient { try await $0.allow(request) }, call,
            nothing: "nothing of that was allowed to \(whom)")
    }

    static let limit: Verb = Verb(
        "limit", "limit all transfers together for a while", operands: "RATE|off", takes: .words(["off"]), count: 1...1,
        details: [
            "Counts beside the `bandwidth` of the configuration: the strictest wins. 0 sends nothing; `off` takes the limit back."
        ],
        options: [Option("for", "TIME", "for 30m, 2h, 1d …")] + Option.client,
        examples: [
            ("sluice limit 500kB/s --for 2h", "While somebody is in a meeting."),
            ("sluice limit off", "The meeting is over."),
        ]
    ) { call in
        guard let written = call.arguments.operands.first?.display else { return .usage }
        let duration = try seconds(call.arguments, .limit)
        let request: LimitRequest
        if written == "off" {
            if duration != nil {
                throw Arguments.usage(
                    "`off` takes the limit back at once, so --for goes not with it; a rate takes it, like `2MB/s --for 2h`",
                    .limit)
            }
            request = LimitRequest(rate: nil, duration: nil)
        } else {
            guard let rate = readRate(written) else {
                throw Arguments.usage(
                    "takes a rate like `2 MB/s` or `500 kB/s`, or `off`, not `\(printable(written))`", .limit)
            }
            guard let duration else { throw Arguments.usage("say for how long, like --for 2h", .limit) }
            request = LimitRequest(rate: rate, duration: duration)
        }
        return try tell(
            try await call.withClient { try await $0.limit(request) }, call,
            nothing: "there was no limit of yours; that of the configuration stays as it is")
    }
}

private func seconds(_ arguments: Arguments, _ verb: Verb) throws -> Int64? {
    guard let written = arguments.text("for") else { return nil }
    guard let seconds = Units.seconds(written), seconds > 0 else {
        throw Arguments.usage("--for takes a length of time like 30m or 2h, not `\(printable(written))`", verb)
    }
    return seconds
}

/// - Parameter nothing: The message when there was no exception to remove.
private func tell(_ reply: OverridesReply, _ call: Invocation, nothing: String) throws -> ExitCode {
    if call.json {
        try call.printJSON(reply)
        return .ok
    }
    let now = call.now()
    if let ended = reply.ended {
        if ended.isEmpty { try call.console.line(nothing) }
        for exception in ended { try call.console.line("taken back: " + exceptionText(exception, now)) }
    }
    if reply.ended == nil, reply.exceptions.isEmpty { try call.console.line("nothing is allowed beyond the policy") }
    for exception in reply.exceptions {
        try call.console.line((reply.ended == nil ? "" : "still: ") + exceptionText(exception, now))
    }
    return .ok
}

/// `folder door: window until 18:00, by root`.
func exceptionText(_ exception: OverrideView, _ now: WallTime) -> String {
    let what = exception.scope == "all" ? "all transfers" : "\(exception.scope) \(printable(exception.name ?? ""))"
    let word = exception.rate.map { "at most \(Units.rate($0))" } ?? exception.kind
    return "\(what): \(word) until \(Units.moment(exception.until, now: now)), by \(printable(exception.by))"
}
