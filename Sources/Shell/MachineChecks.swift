internal import API
internal import Config
internal import Control
internal import Core
internal import Credentials
internal import Daemon
internal import Linux
internal import Store
internal import Transport
internal import Watch

/// The checks that `doctor` makes in addition to those of `check`: the machine, its limits, and this process's rights.
enum MachineChecks {
    /// - Parameters:
    ///   - asksDaemon: Whether the daemon is asked if it runs.
    ///   - readsSecrets: Whether this process reads each secret.
    static func all(
        _ settings: Settings, asksDaemon: Bool = true, readsSecrets: Bool = true
    ) async -> [CheckFinding] {
        var findings = [
            CheckFinding(about: "kernel", name: "release", CheckResult(.ok, "Linux \(Machine.kernel)")),
            openFiles(settings),
        ]
        findings += fileSize()
        findings += await watches(settings)
        findings.append(rights(settings))
        findings.append(clock())
        findings.append(await managers())
        findings.append(power(isNeeded: settings.allRules.contains(where: \.dependsOnPower)))
        if let finding = temperature(settings) { findings.append(finding) }
        if readsSecrets { findings += await credentials(settings) }
        if asksDaemon { findings.append(await daemon(settings)) }
        return findings
    }

    /// Those that need no configuration.
    static func withoutSettings() async -> [CheckFinding] {
        let limit = Machine.openFileLimit.most
        var findings = [
            CheckFinding(about: "kernel", name: "release", CheckResult(.ok, "Linux \(Machine.kernel)")),
            CheckFinding(
                about: "kernel", name: "open files",
                CheckResult(.ok, "\(limit == UInt64.max ? "any number of" : "\(limit)") are allowed")),
        ]
        findings += fileSize()
        findings.append(
            CheckFinding(
                about: "kernel", name: "watches",
                CheckResult(.ok, "\(Inotify.watchLimit) are allowed; \(Inotify.instanceLimit) instances")))
        findings.append(clock())
        findings.append(await managers())
        findings.append(power(isNeeded: false))
        return findings
    }

    // MARK: Limits

    /// Descriptors that a transfer may have open: the staged file, its socket, and the target's files.
    private static let filesOfTransfer: UInt64 = 8
    /// Descriptors that are open even when no transfer runs.
    private static let filesAtRest: UInt64 = 128

    private static func openFiles(_ settings: Settings) -> CheckFinding {
        let limit = Machine.openFileLimit
        let need = filesAtRest + filesOfTransfer * UInt64(max(0, settings.policy.total))
        func finding(_ verdict: CheckResult.Verdict, _ text: String) -> CheckFinding {
            CheckFinding(about: "kernel", name: "open files", CheckResult(verdict, text))
        }
        // The daemon raises its limit to the maximum.
        let shown = limit.most == UInt64.max ? "any number of" : "\(limit.most)"
        if limit.most < need {
            return finding(
                .warning,
                "\(shown) open files are allowed, and \(settings.policy.total) transfers may need \(need): raise it with "
                    + "`ulimit -Hn \(need)`, under systemd LimitNOFILE=\(need), or set a smaller policy.concurrency.total"
            )
        }
        return finding(.ok, "\(shown) are allowed, \(need) are enough")
    }

    /// Reported where it may be too small: the limit applies to the database too.
    private static func fileSize() -> [CheckFinding] {
        guard let limit = Machine.fileSizeLimit else { return [] }
        let shown = shownBytes(Int64(clamping: limit))
        return [
            CheckFinding(
                about: "kernel", name: "file size",
                CheckResult(
                    .warning,
                    "no file of this process may be larger than \(shown): larger ones cannot be staged, and the database needs up to "
                        + "\(shownBytes(Int64(Store.neededFileSize))) and more with many uploads: raise it with `ulimit -f`, under systemd "
                        + "LimitFSIZE="))
        ]
    }

    /// Limit of the count of directories; beyond it no exact number is needed.
    private static let maxCountedDirectories = 1_000_000

    private static func watches(_ settings: Settings) async -> [CheckFinding] {
        var findings: [CheckFinding] = []
        var directories = 0
        var isCut = false
        for folder in settings.folders {
            let rule = folder.watch
            let need: FolderSurvey.Need
            do {
                need = try await SlowDisk(timeout: .seconds(20)).run { _ in
                    try FolderSurvey.need(of: rule, in: SourceFolders()[rule.path], atMost: maxCountedDirectories)
                }
            } catch {
                // The check `folder` reports folders that are missing or cannot be read.
                continue
            }
            directories += need.directories
            isCut = isCut || need.isCut
            if let finding = planted(need.releases, rule, settings.state) { findings.append(finding) }
            if need.isPolled {
                findings.append(
                    CheckFinding(
                        about: "mount", name: rule.name,
                        CheckResult(
                            .ok,
                            "\(rule.path.display) is on a file system that does not report all changes: it is "
                                + "scanned at intervals, and new files are found later")))
            }
        }
        let limit = Inotify.watchLimit
        let counted = "\(directories)\(isCut ? " or more" : "") director\(directories == 1 ? "y needs" : "ies need")"
        if let most = Int(limit), most < directories + directories / 10 {
            let wanted = max(524_288, directories * 2)
            findings.append(
                CheckFinding(
                    about: "kernel", name: "watches",
                    CheckResult(
                        .warning,
                        "fs.inotify.max_user_watches is \(most), shared by all programs of a user, and \(counted) "
                            + "a watch: directories without one are scanned at intervals; raise it with `sysctl -w "
                            + "fs.inotify.max_user_watches=\(wanted)`, permanently in /etc/sysctl.d/sluice.conf")))
        } else {
            findings.append(
                CheckFinding(
                    about: "kernel", name: "watches",
                    CheckResult(.ok, "\(limit) are allowed, \(counted) one; \(Inotify.instanceLimit) instances")))
        }
        return findings
    }

    /// Names like those of sources being released that no release of ours has made; `nil` where there is none.
    private static func planted(_ names: [FilePath], _ rule: WatchRule, _ state: FilePath) -> CheckFinding? {
        let parsed = names.compactMap { ReleaseToken.parse($0.name) }
        // A state that cannot be read has a finding of its own, and counts as knowing none of them.
        let unknown = (try? StateFiles.unknown(parsed, in: state)) ?? parsed.map { _ in true }
        var answers = unknown[...]
        let strange = names.filter { ReleaseToken.parse($0.name) == nil || answers.popFirst() == true }
        guard let first = strange.first else { return nil }
        return CheckFinding(
            about: "folder", name: rule.name,
            CheckResult(
                .warning,
                "\(rule.path.appending(first).display)\(strange.count > 1 ? " and \(strange.count - 1) more" : "") looks "
                    + "like a source that is being released, but no release of this daemon created it: it is left "
                    + "alone. Inspect it, and remove or rename it by hand"
            ))
    }

    // MARK: Rights and time

    /// Whether this process can see that a program still writes a file.
    private static func rights(_ settings: Settings) -> CheckFinding {
        let asks = Set(settings.folders.map(\.watch.writers))
        let user = "as \(Machine.user)"
        func finding(_ verdict: CheckResult.Verdict, _ text: String) -> CheckFinding {
            CheckFinding(about: "rights", name: "writers", CheckResult(verdict, text))
        }
        if asks == [.skip] { return finding(.ok, "\(user); no folder checks for writers (settle.writers: skip)") }
        guard let lease = Machine.has(.lease), let looks = ProcessRights()?.mayExamineOthers else {
            return finding(.warning, "\(user); /proc does not show the rights of this process: mount it")
        }
        if asks.contains(.proc), !looks, !lease {
            return finding(
                .warning,
                "\(user), without CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH: settle.writers: proc does not see writers of other users, and their files "
                    + "wait for the longer quiet time; set writers: lease, or grant both with AmbientCapabilities= and "
                    + "CapabilityBoundingSet= in the unit")
        }
        if asks.contains(.lease), !lease {
            return finding(
                .ok,
                "\(user), without CAP_LEASE: files that belong to other users wait for the longer quiet time, and are not "
                    + "deleted or moved unless release_unsure of their folder says so; the packaged unit has "
                    + "AmbientCapabilities=CAP_LEASE")
        }
        return finding(.ok, "\(user), with the right to check every file for writers")
    }

    private static func clock() -> CheckFinding {
        func finding(_ verdict: CheckResult.Verdict, _ text: String) -> CheckFinding {
            CheckFinding(about: "clock", name: "system", CheckResult(verdict, text))
        }
        let clocks = SystemClocks()
        var trust = ClockTrust(oldest: Zone.utc.start(of: earliestPlausibleDay))
        let now = clocks.readBoth()
        if let trouble = trust.evaluate(wall: now.wall, monotonic: now.monotonic, isSynchronised: clocks.isSynchronised)
        {
            return finding(
                .warning,
                "\(trouble.text); everything that depends on the time waits: `timedatectl set-ntp true`, or set it by hand"
            )
        }
        guard clocks.isSynchronised == true else {
            return finding(
                .ok,
                "\(now.wall); no service reports that it is synchronised: run systemd-timesyncd, chrony or ntpd")
        }
        return finding(.ok, "\(now.wall), synchronised")
    }

    // MARK: Network and power

    private static func managers() async -> CheckFinding {
        func finding(_ verdict: CheckResult.Verdict, _ text: String) -> CheckFinding {
            CheckFinding(about: "network", name: "managers", CheckResult(verdict, text))
        }
        do {
            let report = try await StandaloneNetworkReport.managers()
            if let trouble = report.trouble {
                return finding(
                    .ok,
                    "neither NetworkManager nor ModemManager is asked: \(trouble); rules and the kind of interface decide"
                )
            }
            let there = [
                report.networkManager.isRunning ? "NetworkManager" : nil,
                report.modemManager.isRunning ? "ModemManager" : nil,
            ].compactMap { $0 }
            return finding(
                .ok,
                there.isEmpty
                    ? "neither NetworkManager nor ModemManager runs: rules and the kind of interface decide"
                    : there.joined(separator: " and ") + " answer\(there.count == 1 ? "s" : "")")
        } catch { return finding(.warning, "cannot query NetworkManager: \(error)") }
    }

    /// `nil` where no rule asks for it.
    private static func temperature(_ settings: Settings) -> CheckFinding? {
        guard settings.allRules.flatMap(\.conditions).contains(where: \.dependsOnTemperature) else { return nil }
        let result =
            ThermalZones().hottest.map { CheckResult(.ok, "the hottest sensor is at \($0) °C") }
            ?? CheckResult(
                .warning,
                "no temperature sensor under /sys/class/thermal can be read, so rules with `hotter_than` always apply: "
                    + "take `hotter_than` out")
        return CheckFinding(about: "power", name: "temperature", result)
    }

    /// - Parameter isNeeded: A rule depends on it.
    private static func power(isNeeded: Bool) -> CheckFinding {
        func finding(_ verdict: CheckResult.Verdict, _ text: String) -> CheckFinding {
            CheckFinding(about: "power", name: "supply", CheckResult(verdict, text))
        }
        do {
            guard let power = Power(try PowerSupplies().all(), at: SystemClocks().wall()) else {
                return finding(.ok, "no battery: `on_battery: true` and `battery_below` do not hold")
            }
            return finding(
                .ok,
                (power.isOnBattery ? "runs on battery" : "runs on mains power")
                    + (power.percent.map { ", which is at \($0) %" } ?? ""))
        } catch {
            return finding(
                isNeeded ? .warning : .ok,
                "the power source is not known: \(error)")
        }
    }

    // MARK: Credentials and the daemon

    private static func credentials(_ settings: Settings) async -> [CheckFinding] {
        let reader = SecretReader()
        func finding(
            _ owner: String, _ key: String, _ source: SecretSource, _ complain: (String) -> String? = { _ in nil }
        ) async -> CheckFinding {
            do {
                let complaint = complain(try await reader.read(source).reveal())
                let result = complaint.map { CheckResult(.warning, $0) } ?? CheckResult(.ok, "\(key) can be read")
                return CheckFinding(about: "secret", name: owner, result)
            } catch {
                let result = CheckResult(error.isHeld ? .warning : .failed, "`\(key)`: \(error)")
                return ForeignSecrets.judged(
                    CheckFinding(about: "secret", name: owner, result), after: [error])
            }
        }
        var findings: [CheckFinding] = []
        if let remote = settings.control.remote {
            for token in remote.tokens {
                findings.append(
                    await finding("control", "token \(token.name)", token.secret) {
                        complaint(aboutToken: Array($0.utf8))
                    })
            }
        }
        for destination in settings.destinations {
            for (key, value) in destination.values.sorted(by: { $0.key < $1.key }) {
                let sources: [SecretSource] =
                    switch value {
                    case .secret(let source): [source]
                    case .secrets(let map): map.sorted { $0.key < $1.key }.map(\.value)
                    // A text in the file itself needs no reading, and may be empty.
                    case .map(let map):
                        map.sorted { $0.key < $1.key }.flatMap(\.value.leaves).filter {
                            if case .literal = $0 { false } else { true }
                        }
                    default: []
                    }
                for source in sources { findings.append(await finding(destination.name, key, source)) }
            }
        }
        return findings
    }

    private static func daemon(_ settings: Settings) async -> CheckFinding {
        let socket = settings.control.socket
        func finding(_ verdict: CheckResult.Verdict, _ text: String) -> CheckFinding {
            CheckFinding(about: "daemon", name: socket.display, CheckResult(verdict, text))
        }
        let transport = Transport()
        let result: CheckFinding
        do {
            let client = ControlClient(socket: socket, transport: transport)
            // A process that is stopped accepts the connection and never answers.
            let status = try await awaiting(atMost: .seconds(15)) { try await client.status() }
            let unwatched = status.folders.reduce(0) { $0 + $1.unwatched }
            let troubles = status.warnings.count + (unwatched > 0 ? 1 : 0)
            result = finding(
                troubles == 0 ? .ok : .warning,
                "runs since \(status.startedAt), pid \(status.pid)"
                    + (status.overflows > 0
                        ? "; the kernel lost events \(status.overflows) times: `sysctl -w fs.inotify.max_queued_events=65536` "
                            + "makes that less frequent" : "")
                    + (troubles == 0
                        ? "" : "; `sluice status` shows \(troubles == 1 ? "a warning" : "\(troubles) warnings")"))
        } catch let error as TimeLimitError {
            result = finding(.warning, "\(error): the daemon is stopped, or overloaded")
        } catch { result = finding(.ok, "\(error)") }
        await transport.stop()
        return result
    }
}
