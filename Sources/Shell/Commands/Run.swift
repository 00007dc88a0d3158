internal import Config
internal import Control
internal import Core
internal import Daemon
internal import Destinations
internal import Glibc
internal import Linux
internal import Store
internal import Synchronization

extension Verb {
    static let runDaemon: Verb = Verb(
        "run", "run the daemon, in the foreground",
        details: [
            "Watches the configured folders and uploads until SIGTERM or Ctrl-C, which stop it within seconds with "
                + "everything stored; a second one ends it at once, which loses nothing either. Logs to standard error. "
                + "The configuration is read at the start only."
        ],
        options: [.config, .logLevel, .logFormat],
        examples: [
            ("sluice run --config ./sluice.yaml", "In a terminal, to try it out."),
            ("systemctl start sluice", "As a service."),
        ]
    ) { call in
        let log = try Log(call.arguments, .runDaemon)
        let loaded = try await ConfigurationFile(call.arguments, call.console).load()
        for warning in loaded.warnings {
            log.warning("configuration", ["at": warning.place, "key": warning.key, "text": warning.text])
        }
        let agent: Agent
        let server: ControlServer
        do {
            agent = try await Agent.start(loaded.settings, kinds: DestinationTable.builtIn, log: log)
            server = try await ControlServer.start(socket: loaded.settings.control.socket, operations: agent)
        } catch {
            throw startError(error)
        }
        let notify = Notify()
        notify.ready("watching \(loaded.settings.folders.count) folders")
        do {
            try await serve(agent, notify, log, call.signals)
        } catch {
            await server.stop()
            throw error is StateUnusable ? startError(error) : error
        }
        await server.stop()
        return .ok
    }
}

/// Runs the agent until a signal ends it.
private func serve(_ agent: Agent, _ notify: Notify, _ log: Log, _ signals: Signals?) async throws {
    let work = Task { try await agent.run() }
    let listening = Task {
        guard let signals else { return }
        var stops = 0
        for await signal in signals.stream {
            switch signal {
            case .hangUp:
                log.notice("the configuration is read at the start only: restart to apply it")
            case .interrupt, .terminate:
                stops += 1
                // Every step is durable before the next: an abrupt end is what start-up is made for.
                if stops > 1 { _exit(ExitCode.failed.rawValue) }
                log.notice("stopping", ["signal": "\(signal)"])
                notify.stopping()
                work.cancel()
                leave(within: .seconds(1.5), log)
            }
        }
    }
    let telling = notify.isHeard ? Task { await tell(agent, notify) } : nil
    defer {
        listening.cancel()
        telling?.cancel()
    }
    try await work.value
}

/// Ends the process when the orderly way takes too long: a disk that does not answer must not hold up a shutdown.
private func leave(within limit: Duration, _ log: Log) {
    Task.detached {
        // Nobody cancels this task.
        try? await Task.sleep(for: limit)
        log.notice("leaving what is under way as it is; the next start takes it up")
        _exit(ExitCode.ok.rawValue)
    }
}

/// Keeps the line in `systemctl status` true: after something happened, at most every 2 s. Idle, it does not wake.
private func tell(_ agent: Agent, _ notify: Notify) async {
    // A stream that fails or ends leaves the last line standing, which is no reason to stop working.
    guard let events = try? await agent.events(since: nil) else { return }
    let (changes, change) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    await withTaskGroup { group in
        group.addTask {
            for await _ in events { change.yield() }
            change.finish()
        }
        group.addTask {
            for await _ in changes {
                // The line stays as it was until the state can be read again; the sleep ends with its task.
                guard let status = try? await agent.status() else { continue }
                notify.status(summary(status))
                guard (try? await Task.sleep(for: .seconds(2))) != nil else { return }
            }
        }
    }
}

/// `3 uploading (11.2 MB/s), 41 waiting, 2 failed`.
private func summary(_ status: StatusView) -> String {
    let running = status.destinations.reduce(0) { $0 + $1.running }
    var text = "\(running) uploading"
    if status.rate > 0 { text += " (\(Units.rate(status.rate)))" }
    text += ", \(max(0, status.counts.ongoing - running)) waiting, \(status.counts.failed) failed"
    if status.paused.contains(where: { $0.scope == "all" }) { text += "; paused" }
    return text + (status.destinations.compactMap { $0.hold.map { "; \($0.text)" } }.first ?? "")
}

/// Status 78 keeps systemd from trying again, so only what a person has to mend gets it: a disk that is full or a socket that
/// is taken may be all right in a minute.
func startError(_ error: any Error) -> any Error {
    switch error {
    case let locked as StateLocked: return CommandError(.notNow, "\(locked)")
    case let state as StateUnusable:
        return CommandError(
            state.error.isPassing ? .failed : .config, redacted(printable("\(state)")), remedy: state.remedy)
    case let error as SystemError:
        let isForAPerson =
            error.isDenied || error.isReadOnly || error.isMissing || error.code == ENAMETOOLONG || error.code == EINVAL
        return CommandError(isForAPerson ? .config : .failed, "\(error)", remedy: startRemedy(error))
    case let error as StoreError where error.isPassing:
        return CommandError(
            .failed, redacted(printable("\(error)")), remedy: "It may be all right by itself in a while.")
    default: return CommandError(.config, redacted(printable("\(error)")))
    }
}

private func startRemedy(_ error: SystemError) -> String {
    if error.isReadOnly { return "Under systemd, name the folder in ReadWritePaths= of the unit." }
    if error.isDenied { return "Let the daemon's user write there." }
    return "`sluice check` looks at everything that the configuration names."
}

extension Log {
    /// As `--log-level` and `--log-format` say.
    init(_ arguments: Arguments, _ verb: Verb) throws(CommandError) {
        let level = arguments.text("log-level") ?? "info"
        guard let known = Level(level) else {
            throw Arguments.usage(
                "--log-level is one of \(Level.allCases.map(\.name).joined(separator: ", ")), not `\(printable(level))`",
                verb)
        }
        switch arguments.text("log-format") ?? "text" {
        case "text": self.init(level: known)
        case "json": self.init(level: known, format: .json)
        case let other: throw Arguments.usage("--log-format is text or json, not `\(printable(other))`", verb)
        }
    }
}
