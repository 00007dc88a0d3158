internal import API
internal import Config
internal import Control
internal import Core
internal import Daemon

extension Verb {
    static let hook: Verb = Verb(
        "hook", "send a test event to a hook, and print the result", operands: "NAME", count: 1...1,
        details: [
            "Runs its command or posts to its address once, with an event of the type `test`, whatever events the hook "
                + "lists. The test is neither stored nor retried. The running daemon sends it, with its permissions "
                + "and with the hook's settings that it has loaded. The request obeys `policy` like every request to "
                + "the hook, and its bytes count in `usage`.",
            "Without a daemon, this command sends it: run it as the daemon's user, for example with `sudo -u sluice`. "
                + "A hook with `network: policy` is then contacted only if configuration, networks and pauses allow "
                + "it, and no bytes are counted.",
            "Exits with status 0 when the hook accepted the event, with 75 when policy holds it, else with 76.",
        ],
        options: Option.client,
        examples: [("sluice hook tell-home", "Lets the daemon send it, or sends it directly if none runs.")]
    ) { call in
        let settings = try await ConfigurationFile(call.arguments, call.console).load().settings
        let name = call.arguments.operands.first?.lossyText ?? ""
        guard let hook = settings.hook(named: name) else {
            let names = settings.hooks.map(\.name)
            throw CommandError(
                .notFound, "no hook is called `\(printable(name))`",
                remedy: names.isEmpty ? "There is none under `hooks`." : "There are: \(names.joined(separator: ", ")).")
        }
        let trial = try await runTrial(hook, settings, call)
        if call.json {
            try call.printJSON(trial)
        } else {
            // A target that is an address is identified by its answer.
            let program = if case .command = hook.target { ", " + hook.target.shown } else { "" }
            try call.console.line("\(hook.name)\(program): " + printable(trial.detail) + cost(trial))
        }
        return trial.ok ? .ok : trial.hold == nil ? .remote : .notNow
    }
}

/// Runs the trial in the daemon, or here when no daemon runs.
private func runTrial(_ hook: Hook, _ settings: Settings, _ call: Invocation) async throws -> HookTestResult {
    do { return try await call.withClient { try await $0.tryHook(hook.name) } } catch let error as ControlError {
        guard case .notRunning = error, !call.arguments.has("socket") else { throw error }
    } catch let refusal as Refusal where refusal.code == .notFound {
        throw CommandError(
            ExitCode(refusal.code), refusal.message,
            remedy: "The configuration file has it: load it with `sluice reload`.")
    }
    return try await HookTestResult.standalone(hook, settings)
}

private func cost(_ trial: HookTestResult) -> String {
    guard let sent = trial.sent else { return "" }
    let received = trial.received ?? 0
    if sent == 0, received == 0 { return "; nothing was sent" }
    return "; that sent \(Units.bytes(sent)) and received \(Units.bytes(received)), "
        + (trial.counted ? "counted as `hook \(trial.hook)`" : "not counted, because no daemon runs")
}
