internal import API
internal import Config
internal import Core
internal import Linux
internal import Store
internal import Watch

/// Checks that a client requests from the daemon: with its rights, under the policy and the ledger of its uploads.
struct CheckCommands: Sendable {
    let context: Context
    let lifecycle: DaemonPhase
    let scheduler: Scheduler
    let watcher: Watcher
    let hooks: Hooks
    let requests: RequestRunner
    /// Whether a check is under way.
    let isChecking = StopFlag()

    /// Checks everything that the running configuration names. A held destination is not contacted.
    ///
    /// - Throws: `Refusal`, also while another check is under way.
    func check(_ request: CheckRequest) async throws -> CheckReport {
        try lifecycle.requireReady()
        // Unlike other commands, a check has something to say about a pattern itself.
        let isPattern = context.settings.patternFolders.contains { $0.watch.name == request.folder }
        try context.configuration.names.require(
            folder: isPattern ? nil : request.folder, destination: request.destination)
        guard isChecking.set() else {
            throw Refusal(.unavailable, "a check is running already; try again when it has ended")
        }
        defer { isChecking.clear() }
        let runtime = context.configuration.value
        let destinations = DestinationChecks(runtime)
        // The route of each destination is known, so no name is resolved again.
        var networkReport = await StandaloneNetworkReport.make(runtime.settings, [:])
        let backlog = try await context.store.read { try $0.backlog.classes() }
        let now = await scheduler.snapshot
        networkReport.note(now.interfaces)
        networkReport.choices = await now.explainedRoutes(context.configuration.sites)
        networkReport.withoutEffect = now.ineffectiveRules
        // A question to a disk that does not answer never returns, and each check would add another one.
        let silent = Set(watcher.states().filter(\.isStuck).map(\.folder))
        return CheckReport(
            await Checks.local(runtime.settings, request, networkReport, silent: silent)
                + PieceChecks.findings(runtime.settings, destinations, request)
                + PieceChecks.findings(now.permanentlyBlocked(backlog), request)
                + (await destinations.findings(
                    requests, .policy, request)))
    }

    /// Sends a made-up event to a hook. Nothing of it is stored or tried again.
    func tryHook(_ name: String) async throws -> HookTestResult {
        try lifecycle.requireReady()
        guard let hook = context.settings.hook(named: name) else {
            throw Refusal(
                .notFound, "no hook is called `\(printable(name))` in the configuration of the running daemon")
        }
        return try await hooks.try(hook)
    }
}
