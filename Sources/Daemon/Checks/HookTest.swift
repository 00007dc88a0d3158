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
            let trial = try await run(hook, sender, requests, at: SystemClocks().wall(), isCounted: false)
            await transport.stop()
            return trial
        } catch {
            await transport.stop()
            throw error
        }
    }

    static func run(
        _ hook: Hook, _ sender: HookSender, _ requests: some PolicyRequestSender, at now: WallTime, isCounted: Bool
    ) async throws -> HookTestResult {
        let event = EventView(seq: 0, ts: now.description, type: .test, detail: [EventField.hook.rawValue: hook.name])
        let notice = Notice(id: "sluice-test-\(now.milliseconds)", body: try JSON.line(event))
        let web: WebHook
        switch hook.target {
        case .command(let words):
            let result = await sender.deliver(notice, by: .command(words), within: hook.timeout)
            return HookTestResult(hook, result, cost: nil, isCounted)
        case .web(let target): web = target
        }
        let asked = await requests.perform(Hook.account(hook.name), web.network) { context in
            await sender.deliver(notice, by: .web(web, context.permit), within: hook.timeout)
        }
        switch asked {
        case .success(let asked): return HookTestResult(hook, asked.answer, cost: asked.cost, isCounted)
        case .failure(let held):
            return HookTestResult(
                hook: hook.name, ok: false, detail: "no notice was sent: \(held.hold.text)", sent: 0, received: 0,
                hold: HoldView(held.hold), counted: isCounted)
        }
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
