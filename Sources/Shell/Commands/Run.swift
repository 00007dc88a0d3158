internal import API
internal import Config
internal import Control
internal import Core
internal import Credentials
internal import Daemon
internal import Destinations
internal import Glibc
internal import Linux
internal import Store
internal import Synchronization
internal import WebServer

extension Verb {
    static let runDaemon: Verb = Verb(
        "run", "run the daemon, in the foreground",
        details: [
            "Watches the configured folders and uploads until SIGTERM or Ctrl-C, which stop it within seconds with "
                + "everything stored; a second one ends it at once, which loses nothing either. Logs to standard "
                + "error. SIGHUP reads the configuration again, as `sluice reload` does.",
            "With --once it uploads the files that are in the folders now, and exits when no upload can make progress: "
                + "with status 0 when all is done, with 75 when something is left, which it lists with the reasons. It "
                + "does not wait for holds, for unreachable servers or for files that are being written, unless --wait "
                + "is given. Files younger than `min_age` are left for the next run, and the last line counts them.",
            "When nothing is left, --once prints nothing unless standard output is a terminal, so that cron sends no "
                + "mail.",
        ],
        options: [
            .config, .logLevel, .logFormat, Option(flag: "once", "exit when no upload can make progress"),
            Option(
                "wait", "DURATION",
                "with --once: wait at most this long for holds to end and servers to answer: 30s, 5m (default: 0s)"),
            Option(flag: "json", "with --once: print what is left as one JSON object"),
        ],
        examples: [
            ("sluice run --config ./sluice.yaml", "Runs it in a terminal, to try it out."),
            ("systemctl start sluice", "Runs it as a service."),
            ("sluice run --once --log-level warning", "For cron or a timer: prints only what is left."),
            ("sluice run --once --wait 5m", "Gives an unreachable server five minutes to come back."),
        ]
    ) { call in
        let log = try Log(call.arguments, .runDaemon)
        let once = try Once(call.arguments)
        let file = ConfigurationFile(call.arguments, call.console)
        let loaded = try await file.load()
        for warning in loaded.warnings {
            log.warning("configuration warning", ["at": warning.place, "key": warning.key, "text": warning.text])
        }
        let notify = Notify()
        let daemon: Daemon
        do {
            daemon = try await start(loaded.settings, file, once, notify, log, call.signals)
        } catch is CancellationError { return once == nil ? .ok : .notNow }
        let server: ControlServer?
        do {
            let control = loaded.settings.control
            server = try await ControlServer.start(
                socket: control.socket, remote: try await listener(control, state: loaded.settings.state, log),
                operations: daemon, log: log)
            if let remote = control.remote, let port = server?.port {
                log.notice(
                    "listening",
                    [
                        "address": remote.listen.port == 0 ? "\(remote.listen) (port \(port))" : "\(remote.listen)",
                        "tls": remote.tls == nil ? "no" : "yes", "web": remote.servesPage ? "yes" : "no",
                    ])
                if server?.awaitsAddress == true { log.warning(absentAddress, ["address": "\(remote.listen)"]) }
            }
        } catch {
            guard once != nil else { throw socketError(error, loaded.settings.control.socket) }
            // A run that ends by itself does not depend on its socket.
            warn(of: error, about: loaded.settings.control.socket, log)
            server = nil
        }
        MemoryTrimmer.scheduleTrim()
        let left: OnceView?
        do {
            left = try await serve(
                daemon, once, folders: loaded.settings.writtenFolders.count, notify, log, call.signals)
        } catch {
            await server?.stop()
            throw error is UnusableStateError ? startError(error) : error
        }
        await server?.stop()
        guard let left else { return .ok }
        if call.json {
            try call.printJSON(left)
        } else {
            for line in onceReport(left, call.console, now: call.now()) { try call.console.line(line) }
        }
        return left.done ? .ok : .notNow
    }
}

/// For the log: at boot DHCP may be later than the daemon, so this is no reason to end.
let absentAddress = "no interface of this machine has this address yet; requests are answered when one has it"

/// Opens the state, and waits for space on its disk until a signal ends that.
///
/// - Throws: ``CommandError``; `CancellationError` after a signal that asks to stop.
private func start(
    _ settings: Settings, _ file: ConfigurationFile, _ once: Once?, _ notify: Notify, _ log: Log, _ signals: Signals?
) async throws -> Daemon {
    // The same time as a run that ends by itself tolerates a state that cannot be written.
    let maxWait = once.map { max($0.maxWait, .seconds(10)) }
    let waiting = DelayedStart(settings: settings, notify: notify, log: log, maxWait: maxWait)
    let work = Task {
        try await waiting {
            try await Daemon.start(
                settings, kinds: DestinationTable.builtIn, log: log,
                reloading: Reloading(
                    load: { try await file.read() }, began: { notify.reloading() }, ended: { notify.reloaded() }),
                countsLinks: true)
        }
    }
    signals?.whenAskedToStop {
        notify.stopping()
        work.cancel()
    }
    let extending =
        notify.isEnabled && once == nil
        ? Task { await StartExtension(notify).run("starting: opening the state in \(settings.state.display)") } : nil
    defer { extending?.cancel() }
    return try await work.value
}

/// The listener configured under `control.listen`, with its files read.
private func listener(
    _ control: ControlSettings, state: FilePath, _ log: Log
) async throws -> ControlServer.Remote? {
    guard let remote = control.remote else { return nil }
    let (identity, sessions) = try await blocking {
        (
            try remote.tls.map { files in
                TLSIdentity(
                    certificate: String(decoding: try Files.read(files.chain, limit: 1 << 20), as: UTF8.self),
                    key: String(decoding: try Files.read(files.key, limit: 1 << 20), as: UTF8.self))
            },
            remote.servesPage ? openSessions(in: state, isSecure: remote.tls != nil, log) : nil
        )
    }
    let secrets = SecretReader()
    return ControlServer.Remote(
        listen: remote.listen, hosts: remote.hosts, trustedProxies: remote.trustedProxies, identity: identity,
        tokens: remote.tokens.map { token in
            ControlServer.Token(ControlClientIdentity(name: token.name, role: token.role)) {
                try await secrets.read(token.secret).reveal()
            }
        }, sessions: sessions, say: { log.warning("the control server reports a problem", ["reason": $0]) })
}

/// The sign-ins of browsers. Without a place to keep their key they end with this run, which is no reason to refuse to
/// start.
private func openSessions(in state: FilePath, isSecure: Bool, _ log: Log) -> WebSessions {
    do { return try WebSessions(in: state, isSecure: isSecure, clocks: SystemClocks()) } catch {
        log.warning(
            "the key of the web page's sign-ins cannot be kept: browsers must sign in again after each restart",
            [
                "path": error.subject, "reason": "\(error)",
                "remedy": error.isFull
                    ? "Make space on the disk of \(state.display), and restart the daemon."
                    : "Remove \(error.subject), or let the daemon's user (here \(Machine.user)) read it and write in "
                        + "\(state.display), and restart the daemon.",
            ])
        return WebSessions(isSecure: isSecure, clocks: SystemClocks())
    }
}

/// `--once` and its options.
private struct Once: Sendable {
    var maxWait: Duration = .zero

    /// - Returns: `nil` without `--once`.
    init?(_ arguments: Arguments) throws(CommandError) {
        guard arguments.has("once") else {
            for name in ["wait", "json"] where arguments.has(name) {
                throw Arguments.usage("--\(name) goes with --once", .runDaemon)
            }
            return nil
        }
        guard let written = arguments.text("wait"), written != "0", written != "0s" else { return }
        guard let seconds = Units.seconds(written) else {
            throw Arguments.usage(
                "--wait takes a length of time like 30s or 5m, not `\(printable(written))`", .runDaemon)
        }
        maxWait = .seconds(seconds)
    }
}

/// Runs the agent until a signal ends it, or it has done all that it could.
///
/// - Returns: The work that is left, after a run that ends by itself.
private func serve(
    _ daemon: Daemon, _ once: Once?, folders: Int, _ notify: Notify, _ log: Log, _ signals: Signals?
) async throws -> OnceView? {
    let work = Task { () -> OnceView? in
        if let once { return try await daemon.runOnce(maxWait: once.maxWait) }
        try await daemon.run { notify.ready("watching \(folders) folders") }
        return nil
    }
    if let signals { exitAfterTimeout(signals, within: .seconds(1.5), once == nil ? .ok : .notNow, log) }
    let (reloads, reload) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    // Separate from the other signals: the next one may ask to stop. Several signals during one reload cause one more
    // reload.
    let reloading = Task {
        for await _ in reloads {
            do { _ = try await daemon.reload() } catch {
                log.error("configuration not reloaded; the previous one stays in force", ["reason": "\(error)"])
            }
        }
    }
    let listening = Task {
        guard let signals else { return }
        for await signal in signals.stream {
            switch signal {
            case .hangUp: reload.yield()
            case .suspend, .resume: continue  // none of those that are handled here
            case .interrupt, .terminate:
                work.cancel()
                notify.stopping()
                log.notice("stopping", ["signal": "\(signal)"])
            }
        }
    }
    let telling = notify.isEnabled ? Task { await updateStatusLine(daemon, notify) } : nil
    // Only a daemon that runs until it is stopped has a watchdog: systemd has none for `Type=oneshot`.
    let watching =
        once == nil
        ? notify.watchdogTimeout.map { time in
            Task { await daemon.reportProgress(every: time / 2) { notify.watchdog() } }
        } : nil
    defer {
        listening.cancel()
        reloading.cancel()
        telling?.cancel()
        watching?.cancel()
    }
    return try await work.value
}

/// Ends the process when the regular shutdown takes too long after a signal, and on the second signal: a disk, or a
/// reader of the log, that does not answer must not delay a shutdown. Every step is durable before the next, and
/// start-up handles an abrupt end.
///
/// It uses alarms and not tasks: each thread that runs tasks may be waiting for the same reader.
func exitAfterTimeout(_ signals: Signals, within limit: Duration, _ status: ExitCode, _ log: Log) {
    let stops = Atomic(0)
    signals.whenAskedToStop {
        if stops.add(1, ordering: .relaxed).newValue > 1 { _exit(ExitCode.failed.rawValue) }
        _ = Alarms.shared.set(after: limit) {
            inBackground { log.notice("stopping with uploads unfinished; the next start continues them") }
            _ = Alarms.shared.set(after: .milliseconds(100)) { _exit(status.rawValue) }
        }
    }
}

/// Keeps the line in `systemctl status` current: after an event, at most every 2 s. While idle, it does not wake.
private func updateStatusLine(_ daemon: Daemon, _ notify: Notify) async {
    // If the stream fails or ends, the last line stays, which is no reason to stop working.
    guard let events = try? await daemon.events(since: nil) else { return }
    let (changes, change) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    await withTaskGroup(of: Void.self) { group in
        group.addTask {
            for await _ in events { change.yield() }
            change.finish()
        }
        group.addTask {
            for await _ in changes {
                // The line stays as it was until the state can be read again; the sleep ends with its task.
                guard let status = try? await daemon.status() else { continue }
                notify.status(summary(status))
                guard (try? await Alarms.shared.sleep(for: .seconds(2))) != nil else { return }
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

/// Status 78 keeps systemd from trying again. So it is only for errors that a person has to fix: a full disk or a
/// socket in use may be all right in a minute.
func startError(_ error: any Error, _ settings: Settings? = nil) -> any Error {
    switch error {
    case let locked as StateLockedError: return CommandError(.notNow, "\(locked)")
    case let state as UnusableStateError:
        return CommandError(
            state.error.isTransient ? .failed : .config, redacted(printable("\(state)")), remedy: state.remedy)
    case let error as SystemError:
        let needsFix =
            error.isDenied || error.isReadOnly || error.isMissing || error.code == ENAMETOOLONG || error.code == EINVAL
        return CommandError(needsFix ? .config : .failed, "\(error)", remedy: startRemedy(error, settings))
    case let error as StoreError where error.isTransient:
        return CommandError(
            .failed, redacted(printable("\(error)")), remedy: "The cause may be temporary: try again later.")
    default: return CommandError(.config, redacted(printable("\(error)")))
    }
}

private func startRemedy(_ error: SystemError, _ settings: Settings?) -> String {
    let key = settings.flatMap { keyLeading(to: FilePath(error.subject), $0) }
    if error.isReadOnly {
        return "Under systemd, open the folder with `sudo sluice systemd-paths --install`"
            + (key.map { ", or set `\($0)` to one that may be written." } ?? ".")
    }
    if error.isDenied {
        return "Let the daemon's user (here \(Machine.user)) write there"
            + (key.map { ", or set `\($0)` in the configuration to a folder of that user's." } ?? ".")
    }
    let hint = "`sluice check` examines everything that the configuration names."
    return key.map { "Set `\($0)` to a folder that exists or can be created; \(hint)" } ?? hint
}

/// The configuration key that contains a path.
private func keyLeading(to path: FilePath, _ settings: Settings) -> String? {
    func leads(_ folder: FilePath) -> Bool {
        path == folder || path.relative(to: folder) != nil || folder.relative(to: path) != nil
    }
    let isOfState = settings.staging.path.relative(to: settings.state) != nil
    if !isOfState, path == settings.staging.path || path.relative(to: settings.staging.path) != nil {
        return "staging.path"
    }
    return leads(settings.state) ? "state" : leads(settings.staging.path) ? "staging.path" : nil
}

/// The error when the socket cannot be opened for listening.
private func socketError(_ error: any Error, _ socket: FilePath) -> any Error {
    guard let remedy = socketRemedy(socket) else { return startError(error) }
    return CommandError(.config, redacted(printable("\(error)")), remedy: remedy)
}

/// The run goes on without its socket.
private func warn(of error: any Error, about socket: FilePath, _ log: Log) {
    log.warning(
        "this run cannot open its control socket", ["reason": "\(error)", "remedy": socketRemedy(socket)])
}

/// The remedy where permissions are the reason why the socket cannot be made. The server's error has only words; the
/// folder shows the cause, or the one above it that would have to contain it.
private func socketRemedy(_ socket: FilePath) -> String? {
    var folder = socket.parent
    var refusal = Files.refusal(toWriteIn: folder)
    while let error = refusal, error.isMissing, folder.parent != folder {
        folder = folder.parent
        refusal = Files.refusal(toWriteIn: folder)
    }
    guard let refusal, refusal.isDenied || refusal.isReadOnly else { return nil }
    return "Set `control.socket` to a path in a folder that the daemon's user (here \(Machine.user)) may write; "
        + "under systemd, RuntimeDirectory=sluice makes /run/sluice."
}

extension Log {
    /// Made from `--log-level` and `--log-format`.
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
