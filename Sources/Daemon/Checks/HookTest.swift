package import API
package import Config
package import Core
internal import Credentials
internal import Linux
internal import Notices
internal import Transport

extension HookTestResult {
    /// Without a daemon: a notice to an address that policy applies to is sent if the configuration, the
    /// networks and the pauses on disk allow it.
    package static func standalone(
        _ hook: Hook, _ settings: Settings
    ) async throws -> HookTestResult {
        let transport = Transport()
        let sender = HookSender(
            transport: PermittedTransport(transport), secrets: SecretReader(), clocks: SystemClocks())
        var sites: [String: DestinationSite] = [:]
        if let site = hook.site { sites[Hook.account(hook.name)] = site }
        let requests = StandaloneRequestSender(settings, await StandaloneNetworkReport.make(settings, sites))
        do {
            let trial = try await run(hook, sender, requests, nil, at: SystemClocks().wall())
            await transport.stop()
            return trial
        } catch {
            await transport.stop()
            throw error
        }
    }

    /// - Parameter programs: The programs of the daemon; `nil` without a daemon, whose ledger counts nothing then.
    static func run(
        _ hook: Hook, _ sender: HookSender, _ requests: some PolicyRequestSender, _ programs: HookPrograms?,
        at now: WallTime
    ) async throws -> HookTestResult {
        let isCounted = programs != nil
        let event = EventView(seq: 0, ts: now.description, type: .test, detail: [EventField.hook.rawValue: hook.name])
        let notice = Notice(id: "sluice-test-\(now.milliseconds)", body: try JSON.line(event))
        let web: WebHook
        switch hook.target {
        case .command(let command):
            guard let programs else { return await withoutDaemon(hook, command, sender, notice, at: now) }
            if command.network == .policy,
                let hold = await programs.scheduler.snapshot.hold(of: hook)
            {
                return HookTestResult(hook, heldBy: hold, isCounted)
            }
            let outcome = await programs.run(command, of: hook, with: notice)
            return HookTestResult(hook, outcome.result, cost: outcome.cost, isCounted)
        case .web(let target): web = target
        }
        let asked = await requests.perform(Hook.account(hook.name), web.network) { context in
            await sender.deliver(notice, by: .web(web, context.permit), within: hook.timeout)
        }
        switch asked {
        case .success(let asked): return HookTestResult(hook, asked.answer, cost: asked.cost, isCounted)
        case .failure(let held):
            return HookTestResult(hook, heldBy: held.hold, isCounted)
        }
    }

    /// Only a daemon has the proxy that a program with `network: policy` needs.
    private static func withoutDaemon(
        _ hook: Hook, _ command: CommandHook, _ sender: HookSender, _ notice: Notice, at now: WallTime
    ) async -> HookTestResult {
        if command.network == .policy {
            let text =
                "its `network: policy` needs the proxy of the daemon, which is not running: start it, and try again"
            return HookTestResult(hook, heldBy: Hold(.global, since: now, text: text), false)
        }
        let result = await sender.deliver(notice, by: .command(command.words), within: hook.timeout)
        return HookTestResult(hook, result, cost: nil, false)
    }

    private init(_ hook: Hook, heldBy hold: Hold, _ isCounted: Bool) {
        self.init(
            hook: hook.name, ok: false, detail: "no notice was sent: \(hold.text)", sent: 0, received: 0,
            hold: HoldView(hold), counted: isCounted)
    }

    fileprivate init(_ hook: Hook, _ telling: DeliveryResult, cost: Spending?, _ isCounted: Bool) {
        let (isDelivered, detail) =
            switch telling {
            case .delivered(let text): (true, text)
            case .retry(let text, _, _): (false, text + "; the daemon would retry")
            case .refused(let text): (false, text + "; the daemon would not retry")
            case .stopped: (false, "it was stopped")
            }
        self.init(
            hook: hook.name, ok: isDelivered, detail: detail, sent: cost?.bytes, received: cost?.received, hold: nil,
            counted: isCounted)
    }
}
