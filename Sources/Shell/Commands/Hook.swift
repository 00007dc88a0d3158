internal import Config
internal import Control
internal import Core
internal import Credentials
internal import Daemon
internal import Linux
internal import Notices
internal import Transport

extension Verb {
    static let hook: Verb = Verb(
        "hook", "tell a hook of a made-up event, and say what came of it", operands: "NAME", count: 1...1,
        details: [
            "Runs its command or posts to its address once, with an event of the type `test`, whatever the hook listens to. "
                + "Nothing of it is stored or tried again, and policy is not asked. The daemon is not needed; rights are those of "
                + "whoever asks: run it as the daemon's user, for example with `sudo -u sluice`.",
            "Ends with status 0 when the hook took it, else with 76.",
        ],
        options: [.json, .config],
        examples: [("sudo -u sluice sluice hook tell-home", "With the rights of the service.")]
    ) { call in
        let settings = try await ConfigurationFile(call.arguments, call.console).load().settings
        let name = call.arguments.operands.first?.lossyText ?? ""
        guard let hook = settings.hooks.first(where: { $0.name == name }) else {
            let names = settings.hooks.map(\.name)
            throw CommandError(
                .notFound, "no hook is called `\(printable(name))`",
                remedy: names.isEmpty ? "There is none under `hooks`." : "There are: \(names.joined(separator: ", ")).")
        }
        let clocks = SystemClocks()
        let event = EventView(
            seq: 0, ts: clocks.wall().description, type: Hook.test, detail: ["hook": hook.name])
        let transport = Transport()
        let courier = Courier(transport: transport, secrets: SecretReader(), clocks: clocks)
        let notice = Notice(
            id: "sluice-test-\(clocks.wall().milliseconds)", body: try JSON.bytes(event) + [UInt8(ascii: "\n")])
        let telling = await courier.tell(notice, by: hook)
        await transport.stop()
        let (isTold, detail) =
            switch telling {
            case .told(let text): (true, text)
            case .again(let text, _, _): (false, text + "; the daemon would try it again")
            case .refused(let text): (false, text + "; the daemon would give it up")
            case .stopped: (false, "it was stopped")
            }
        if call.json {
            try call.printJSON(HookReport(hook: hook.name, ok: isTold, detail: detail))
        } else {
            // An address is named by what it answered.
            let program = if case .command = hook.target { ", " + hook.target.shown } else { "" }
            try call.console.line("\(hook.name)\(program): " + printable(detail))
        }
        return isTold ? .ok : .remote
    }
}

private struct HookReport: Codable {
    let hook: String
    let ok: Bool
    let detail: String
}

/// Whether each hook could be told, as far as that shows without telling it.
func hookFindings(_ settings: Settings) async -> [Finding] {
    let courier = Courier(transport: Transport(), secrets: SecretReader(), clocks: SystemClocks())
    var findings: [Finding] = []
    for hook in settings.hooks {
        var result = CheckResult(
            .ok, "\(hook.target.shown) on \(hook.on.joined(separator: ", ")); `sluice hook \(hook.name)` tries it")
        if let obstacle = await courier.obstacle(of: hook) { result = CheckResult(.failed, obstacle) }
        findings.append(Finding(about: "hook", name: hook.name, result))
    }
    let asked =
        settings.folders.map { ("folder \($0.watch.name)", $0.policy.beforeUpload) }
        + settings.destinations.map { ("destinations.\($0.name)", $0.policy.beforeUpload) }
    for case (let place, let rule?) in asked {
        let obstacle = await Courier.obstacle(running: rule.command)
        let program = FilePath(rule.command.first ?? "").display
        findings.append(
            Finding(
                about: "hook", name: "before_upload of \(place)",
                obstacle.map { CheckResult(.failed, $0 + "; uploads wait for it") }
                    ?? CheckResult(.ok, "\(program) is asked before each upload")))
    }
    return findings
}
