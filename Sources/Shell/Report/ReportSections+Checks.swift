internal import API
internal import Config
internal import Control
internal import Core
internal import Daemon
internal import Linux

// The checks: of this process, and of the running daemon, which has other permissions, and secrets of its own.

extension ReportSections {
    private static let patience: Duration = .seconds(25)

    func checks(_ loaded: LoadedSettings?, _ daemon: ReportedDaemon) async -> [String] {
        // The daemon reads its secrets itself.
        async let machine = machine(loaded, readsSecrets: daemon.status == nil)
        // Where it does not answer, its secrets and destinations are tried from here.
        async let here = daemon.status == nil ? own(loaded, contacts: !isOffline) : []
        var lines: [String] = []
        var rest: [CheckFinding] = []
        var isDone = false
        if let status = daemon.status {
            do {
                guard !isOffline else { throw OfflineError() }
                let client = daemon.client
                let report = try await awaiting(atMost: Self.patience) { try await client.check(CheckRequest()) }
                lines.append("by the running daemon, pid \(status.pid), with the configuration that it has loaded:")
                lines += findingLines(report.checks, wide) + ["", "by this process:"]
                isDone = true
            } catch {
                if !(error is OfflineError) { lines.append("the running daemon has not checked: \(error)") }
                rest = await own(loaded, contacts: false)
            }
        }
        if loaded == nil {
            lines.append(
                "left out, because the configuration cannot be read: "
                    + (isDone
                        ? "what this process would examine of it"
                        : "folders, staging, state, hooks, secrets, rules and destinations"))
        }
        return lines + findingLines(await machine + rest + here, wide)
    }

    /// A name on two lines would not be found.
    private var wide: Console {
        guard hidesNames else { return console }
        return Console(
            isTerminal: false, size: { (100_000, .max) }, colour: false, environment: call.console.environment
        ) { _, _ in true }
    }

    private struct OfflineError: Error {}

    private func machine(_ loaded: LoadedSettings?, readsSecrets: Bool) async -> [CheckFinding] {
        await bounded("machine", .seconds(25)) {
            guard let settings = loaded?.settings else { return await MachineChecks.withoutSettings() }
            return await MachineChecks.all(settings, asksDaemon: false, readsSecrets: readsSecrets)
        }
    }

    private func own(_ loaded: LoadedSettings?, contacts: Bool) async -> [CheckFinding] {
        guard let loaded else { return [] }
        let call = call
        guard contacts else {
            return await bounded("configuration", .seconds(10)) {
                await configurationFindings(loaded, call, contacts: false)
            }
        }
        do {
            return try await awaiting(atMost: Self.patience) { await configurationFindings(loaded, call) }
        } catch {
            let silent = CheckResult(.warning, "the checks of destinations did not end: \(error)")
            return await own(loaded, contacts: false)
                + [CheckFinding(about: "destination", name: "all", silent)]
        }
    }

    private func bounded(
        _ name: String, _ limit: Duration, _ work: @escaping @Sendable () async -> [CheckFinding]
    ) async -> [CheckFinding] {
        do { return try await awaiting(atMost: limit) { await work() } } catch {
            return [CheckFinding(about: "check", name: name, CheckResult(.warning, "left out: \(error)"))]
        }
    }
}
