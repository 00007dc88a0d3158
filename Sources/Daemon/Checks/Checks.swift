package import API
package import Config
internal import Core
internal import Credentials
internal import Destinations
internal import Linux
internal import Notices
internal import Staging
internal import Store
internal import Transport

/// Checks everything that a configuration names. Changes nothing, and uploads nothing.
package enum Checks {
    /// For a command without a daemon, with the user's rights: the destinations are contacted at any cost, and the
    /// findings report the cost. Only a network that is not `allowed` stays closed.
    ///
    /// - Parameter contacts: Whether destinations are contacted, and names looked up. Otherwise nothing is sent.
    package static func standalone(
        _ written: Settings, _ request: CheckRequest = CheckRequest(), contacts: Bool = true
    ) async -> [CheckFinding] {
        let settings = withCards(written)
        let transport = Transport()
        let destinations = DestinationChecks(settings, transport)
        let networkReport = await StandaloneNetworkReport.make(settings, contacts ? destinations.sites : [:])
        var findings = request.isAll ? [ServiceGroups.finding(ServiceUnit(ServiceGroups.unit))].compactMap { $0 } : []
        findings += await local(settings, request, networkReport)
        findings += PieceChecks.findings(settings, destinations, request)
        if contacts {
            findings += await destinations.findings(StandaloneRequestSender(settings, networkReport), .any, request)
        }
        await transport.stop()
        let errors = await ForeignSecrets.errors(in: settings)
        return findings.map { ForeignSecrets.judged($0, after: errors) }
    }

    /// The settings with the folders of cards, as a daemon would have them.
    package static func withCards(_ written: Settings) -> Settings {
        CardFolders.expand(written, known: StateFiles.cards(in: written.state)).settings
    }

    /// All checks except those of destinations.
    ///
    /// - Parameter silent: Folders whose disk is known not to answer.
    static func local(
        _ settings: Settings, _ request: CheckRequest, _ networkReport: StandaloneNetworkReport,
        silent: Set<String> = []
    ) async -> [CheckFinding] {
        let local = await LocalChecks.all(settings, request, silent: silent)
        var findings = local.findings
        for folder in settings.presentFolders
        where folder.retention.isLimited && request.includes(folder: folder.watch.name)
            && !local.silent.contains(folder.watch.name)
        {
            findings.append(await retention(folder, settings.state))
        }
        findings += patterns(settings, request) + releaseDoubts(settings, request)
        if request.isAll {
            findings += await busy(settings)
            findings += await hooks(settings)
        }
        return findings + network(networkReport, request)
    }

    /// The cards of each folder with a pattern.
    private static func patterns(_ settings: Settings, _ request: CheckRequest) -> [CheckFinding] {
        let cardsAway = settings.folders.filter { $0.isCardAway && request.folder == $0.watch.name }.compactMap(\.card)
        let away = cardsAway.map { card in
            CheckFinding(
                about: "folder", name: card.name,
                CheckResult(.ok, "its card is not mounted now; it was mounted last at \(card.point.display)"))
        }
        let leftOut = CardFolders.expand(settings, known: settings.folders.compactMap(\.card)).leftOut
        return away
            + settings.patternFolders.filter { request.includes(folder: $0.watch.name) }.flatMap { folder in
                let name = folder.watch.name
                let cards = settings.presentFolders.compactMap(\.card).filter { $0.pattern == name }
                let names = cards.map { "\($0.name) at \($0.point.display)" }.joined(separator: ", ")
                let text =
                    cards.isEmpty
                    ? "no file system is mounted at \(folder.pattern?.mount.display ?? "") now; it is watched when one is"
                    : "\(folder.watch.path.display) stands for \(names)"
                let missing = leftOut.filter { folder.pattern?.matches($0.point) ?? false }.map { card in
                    CheckFinding(
                        about: "folder", name: name,
                        CheckResult(.warning, "the card at \(card.point.display) is not watched: \(card.words)"))
                }
                return [CheckFinding(about: "folder", name: name, CheckResult(.ok, text))] + missing
            }
    }

    /// The sources that a folder's `for` and `until_free` would release now.
    private static func retention(_ folder: FolderSettings, _ state: FilePath) async -> CheckFinding {
        func finding(_ verdict: CheckResult.Verdict, _ text: String) -> CheckFinding {
            CheckFinding(about: "folder", name: folder.watch.name, CheckResult(verdict, text))
        }
        do {
            guard try FileStatus.ifPresent(at: state.appending(StateFiles.database)) != nil else {
                return finding(.ok, "no verified source would be deleted now: no file has been uploaded yet")
            }
            let disk = try await blocking { try SourceDisk(of: folder.watch.path) }
            let going = try await folder.sourcesToRelease(
                free: disk.free, on: disk.fileSystem, now: SystemClocks().wall()
            ) {
                try StateFiles.kept(state: state, in: folder.watch.name, on: $0, until: $1, limit: $2)
            }
            guard let first = going.first else {
                return finding(.ok, "no verified source would be deleted now; \(shownBytes(disk.free)) free")
            }
            let bytes = shownBytes(going.reduce(0) { $0 + $1.size })
            return finding(
                .ok,
                "\(going.count)\(going.count == 1_000 ? " or more" : "") verified sources, \(bytes), would be deleted now, first "
                    + first.path.display)
        } catch {
            return finding(.warning, "cannot determine which sources would be deleted now: \(error)")
        }
    }

    /// Destinations with weak verification, where a folder deletes or moves its sources after it.
    static func releaseDoubts(_ settings: Settings, _ request: CheckRequest) -> [CheckFinding] {
        var findings: [CheckFinding] = []
        for folder in settings.folders where request.includes(folder: folder.watch.name) {
            let fate: String
            switch folder.afterUpload {
            case .delete: fate = "deletes"
            case .move: fate = "moves"
            // A source that is kept for a while is still removed later.
            case .keep where folder.retention.isLimited: fate = "later deletes"
            case .keep, .leave: continue
            }
            for destination in settings.destinations where folder.uploadTo.contains(destination.name) {
                let type = DestinationTable.builtIn.first { $0.type.name == destination.type }?.type
                for doubt in type?.releaseDoubts(destination.values) ?? [] {
                    let words =
                        "`after_upload` \(fate) sources after an answer of `\(destination.name)` that proves little: \(doubt)"
                    findings.append(
                        CheckFinding(about: "folder", name: folder.watch.name, CheckResult(.warning, words)))
                }
            }
        }
        return findings
    }

    /// The present answer of each `busy`, anywhere in the configuration. A source that is named twice is checked once.
    private static func busy(_ settings: Settings) async -> [CheckFinding] {
        var said: [BusyRule: CheckResult] = [:]
        var findings: [CheckFinding] = []
        for (place, rule) in settings.busyRules {
            let result: CheckResult
            if let known = said[rule] {
                result = known
            } else {
                let report = await BusyProbe.report(rule)
                result = CheckResult(report.isFree ? .ok : .warning, report.text)
                said[rule] = result
            }
            findings.append(CheckFinding(about: "busy", name: place, result))
        }
        return findings
    }

    /// Whether each hook could be notified, as far as that can be seen without doing it.
    private static func hooks(_ settings: Settings) async -> [CheckFinding] {
        let sender = HookSender(
            transport: PermittedTransport(Transport()), secrets: SecretReader(), clocks: SystemClocks())
        var findings: [CheckFinding] = []
        for hook in settings.hooks {
            var result = CheckResult(
                .ok,
                "\(hook.target.shown) on \(hook.on.map(\.rawValue).joined(separator: ", ")); `sluice hook \(hook.name)` tries it"
            )
            if let obstacle = await sender.obstacle(of: hook) { result = CheckResult(.failed, obstacle) }
            findings.append(CheckFinding(about: "hook", name: hook.name, result))
        }
        let policed =
            settings.hooks.filter { $0.target.isPolicedProgram }.map(\.name)
            + settings.folders.filter { $0.export?.servers != nil }.map { "export of folder \($0.watch.name)" }
        if !policed.isEmpty {
            findings.append(
                CheckFinding(about: "hook", name: policed.joined(separator: ", "), Confinement.Support.here.check))
        }
        for (place, rule) in settings.beforeUploads {
            let obstacle = await HookSender.obstacle(running: rule.command)
            let program = FilePath(rule.command.first ?? "").display
            findings.append(
                CheckFinding(
                    about: "hook", name: "before_upload of \(place)",
                    obstacle.map { CheckResult(.failed, $0 + "; uploads wait for it") }
                        ?? CheckResult(.ok, "\(program) is asked before each upload")))
        }
        return findings
    }

    /// The DNS servers to ask, where some rule depends on the network.
    private static func nameServers(_ networkReport: StandaloneNetworkReport) -> CheckResult? {
        guard !networkReport.nameServers.isEmpty else { return nil }
        let local = networkReport.localNameServers.map(\.description).joined(separator: ", ")
        if !local.isEmpty {
            return CheckResult(
                .warning,
                "names are resolved through \(local) on this machine, which chooses its own servers and routes: no rule "
                    + "can bind its queries to a network, and quotas count four queries for each name; servers of the "
                    + "network itself in /etc/resolv.conf would be queried over allowed networks only")
        }
        let all = networkReport.nameServers.map(\.description).joined(separator: ", ")
        if !networkReport.unreachableNameServers.isEmpty {
            let names = networkReport.unreachableNameServers.keys.sorted().joined(separator: ", ")
            return CheckResult(
                .warning,
                "no allowed network leads to \(all) now: uploads to \(names) wait, because no other name server may be queried"
            )
        }
        return CheckResult(.ok, "\(all): queried over allowed networks only")
    }

    /// Each interface with its cost, the reason for it, and the change that would alter it; and the destinations that
    /// could not be reached.
    private static func network(_ networkReport: StandaloneNetworkReport, _ request: CheckRequest) -> [CheckFinding] {
        var findings = networkReport.troubles.map {
            CheckFinding(about: "network", name: "", CheckResult(.warning, $0))
        }
        for interface in networkReport.interfaces where request.isAll {
            var words = (interface.isUsable ? "" : "down; ") + interface.reason
            if let forbidden = interface.forbidden { words += "; " + forbidden }
            if !interface.carries.isEmpty { words += "; used for " + interface.carries.joined(separator: ", ") }
            if let remedy = interface.remedy { words += "; `\(remedy)` under `policy.networks` would change that" }
            findings.append(CheckFinding(about: "network", name: interface.name, CheckResult(.ok, words)))
        }
        if request.isAll, let words = nameServers(networkReport) {
            findings.append(CheckFinding(about: "network", name: "DNS", words))
        }
        for slip in networkReport.misnamed where request.isAll {
            findings.append(
                CheckFinding(
                    about: "network", name: slip.place,
                    CheckResult(.warning, "`networks[\(slip.number)]`: \(slip.text)")))
        }
        for (destination, choice) in networkReport.choices where request.includes(destination: destination) {
            findings.append(CheckFinding(about: "network", name: destination, CheckResult(.ok, choice.words)))
        }
        for (destination, words) in networkReport.withoutEffect where request.includes(destination: destination) {
            findings.append(CheckFinding(about: "network", name: destination, CheckResult(.warning, words)))
        }
        return findings
            + networkReport.holds.filter { request.includes(destination: $0.destination) }.map { destination, hold in
                CheckFinding(
                    about: "network", name: destination, CheckResult(.warning, "uploads wait now: \(hold.text)"))
            }
    }
}

extension Admission.RouteChoice {
    /// For people: `by wan0 from 10.1.0.2: the kernel's own route, allowed and free (…); not by lte0: …`.
    var words: String {
        let route = [interface.map { "over \($0)" }, source.map { "from \($0)" }].compactMap { $0 }.joined(
            separator: " ")
        return
            ([route.isEmpty ? reason : "\(route): \(reason)"] + refused.map { "not over \($0.interface): \($0.reason)" })
            .joined(separator: "; ")
    }
}
