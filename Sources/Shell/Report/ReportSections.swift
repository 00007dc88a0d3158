internal import API
internal import Config
internal import Control
internal import Core
internal import Credentials
internal import Glibc
internal import Linux

/// Collects the parts of a report. A part that cannot be had says why.
struct ReportSections {
    let call: Invocation
    /// Whether destinations are not contacted.
    let isOffline: Bool
    /// Whether the names of files are needed, to hide them.
    let hidesNames: Bool

    init(_ call: Invocation) {
        self.call = call
        isOffline = call.arguments.has("offline")
        hidesNames = call.arguments.has("hide-names")
    }

    /// Uploads of a list that are described.
    private static let most = 10
    private static let logLines = "300"

    /// Without a terminal, so that no line is cut or coloured.
    private var console: Console {
        Console(
            isTerminal: false, size: { (100, .max) }, colour: false, environment: call.console.environment
        ) { _, _ in true }
    }
    private var now: WallTime { call.now() }

    func document() async -> ReportDocument {
        let secrets = SecretReader()
        var report = ReportDocument(title: "Sluice report", at: now, hiding: secrets.known)
        let names: HiddenNames
        (report.sections, names) = await all(secrets)
        if hidesNames { report.hide(names) }
        return report
    }

    /// - Returns: The sections, and the names of the files in them.
    private func all(_ secrets: SecretReader) async -> (sections: [ReportDocument.Section], names: HiddenNames) {
        var sections: [ReportDocument.Section] = []
        var names = HiddenNames()
        func add(_ title: String, _ lines: [String], isOfConfiguration: Bool = false) {
            sections.append(
                ReportDocument.Section(
                    title: title, lines: lines.isEmpty ? ["nothing"] : lines, isOfConfiguration: isOfConfiguration,
                    isOwnText: ["Configuration", "Checks"].contains(title)))
        }
        add("Versions", await versions())
        let loaded = await configuration { add("Configuration", $0, isOfConfiguration: $1) }
        if let settings = loaded?.settings {
            await learn(ConfiguredSecrets(of: settings), by: secrets)
            names.roots = Set((settings.folders + settings.writtenFolders).map { $0.watch.path.display }).sorted()
        }
        if let loaded { add("Checks", await checks(loaded)) }
        let title = "Daemon"
        do {
            try await call.withClient { client in
                let status = try await client.status()
                add("Status", statusLines(status, console, now: now))
                let waits = try await oldestWaits(client)
                add("Oldest waits", waits.lines)
                let failed = try await failures(client)
                add("Failed uploads", failed.lines)
                add("Failed requests", try await requests(client))
                add("Ways", routeLines(try await client.routes(), console))
                var query = UsageQuery()
                query.by = "network"
                add("Usage", usageLines(try await client.usage(query), console, now: now))
                let log = await log(of: status.pid)
                add("Log", log)
                if hidesNames {
                    for settling in status.settling { names.add(settling.path) }
                    names.formUnion(try await self.names(client, shown: waits.uploads + failed.uploads, log: log))
                }
            }
        } catch {
            add(title, ["\(error)"])
        }
        if let loaded { add("Disks", await disks(loaded.settings)) }
        return (sections, names)
    }

    // MARK: This machine

    private func versions() async -> [String] {
        let system =
            (try? Files.read("/etc/os-release", limit: 1 << 16)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        let name = system.split(separator: "\n").first { $0.hasPrefix("PRETTY_NAME=") }?.dropFirst(12).filter {
            $0 != "\""
        }
        return [
            "sluice \(sluiceVersion)", "Linux \(Machine.kernel)", name.map { String($0) } ?? "no /etc/os-release",
            "user \(Machine.user)", "time \(now)",
        ]
    }

    /// - Returns: `nil` for a configuration with mistakes.
    private func configuration(_ add: ([String], _ isValid: Bool) -> Void) async -> LoadedSettings? {
        do {
            let loaded = try await ConfigurationFile(call.arguments, call.console).load(disk: .onlyItself)
            add(EffectiveConfiguration(loaded).yaml.split(separator: "\n").map(String.init), true)
            return loaded
        } catch {
            add("\(error)".split(separator: "\n").map(String.init), false)
            return nil
        }
    }

    private func checks(_ loaded: LoadedSettings) async -> [String] {
        let machine = await MachineChecks.all(loaded.settings)
        return findingLines(machine + (await configurationFindings(loaded, call, contacts: !isOffline)), console)
    }

    /// Reads the secrets, so that the report can hide them. Commands are not run for that.
    private func learn(_ configured: ConfiguredSecrets, by reader: SecretReader) async {
        for source in configured.sources {
            if case .command = source { continue }
            // One that cannot be read is among the checks.
            _ = try? await reader.read(source)
        }
        for part in configured.addressParts { reader.known.remember(part) }
    }

    private func disks(_ settings: Settings) async -> [String] {
        var places = [("state", settings.state), ("staging", settings.staging.path)]
        places += settings.presentFolders.map { ("folder \($0.watch.name)", $0.watch.path) }
        var lines: [String] = []
        for (name, path) in places {
            // A disk that does not answer must not stop the report.
            let text: String
            do {
                let space = try await SlowDisk(timeout: .seconds(3)).run { _ in try Space(at: path) }
                let files = space.filesFree == .max ? "" : ", \(space.filesFree) more files fit"
                text = "\(Units.bytes(space.free)) of \(Units.bytes(space.total)) free\(files)"
            } catch { text = "\(error)" }
            lines.append("\(name)  \(path.display)  \(text)")
        }
        return lines
    }

    private func log(of pid: Int32) async -> [String] {
        let program = Program(
            words: ["journalctl", "_PID=\(pid)", "-n", Self.logLines, "--no-pager", "-o", "short-iso"].map {
                Array($0.utf8)
            },
            environment: ["PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"], folder: "/")
        do {
            let text = try await program.awaitOutput(atMost: 1 << 20, within: .seconds(20))
            return String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
        } catch {
            return ["the journal has no log of the daemon (\(error)); add the end of its log by hand"]
        }
    }

    // MARK: From the daemon

    private func oldestWaits(_ client: ControlClient) async throws -> (lines: [String], uploads: [UploadView]) {
        var oldest: [UploadView] = []
        // The list has the newest first: an earlier end of the period finds older ones.
        for days in [30, 7, 1, 0] as [Int64] {
            var query = ListQuery()
            // Also those that are just being tried again.
            query.list = UploadList.ongoing.rawValue
            if days > 0 { query.until = now.advanced(by: .seconds(-days * 86_400)) }
            query.limit = 1000
            oldest = try await client.list(query).uploads.suffix(Self.most).reversed()
            if !oldest.isEmpty { break }
        }
        var lines: [String] = []
        for upload in oldest {
            lines += whyLines(try await client.why(upload.id), console, now: now)
        }
        return (lines, oldest)
    }

    private func failures(_ client: ControlClient) async throws -> (lines: [String], uploads: [UploadView]) {
        var query = ListQuery()
        query.list = UploadList.failed.rawValue
        query.limit = Self.most
        let failed = try await client.list(query).uploads
        var lines: [String] = []
        for upload in failed { lines += detailLines(try await client.show(upload.id), console, now: now) + [""] }
        return (lines, failed)
    }

    private func requests(_ client: ControlClient) async throws -> [String] {
        try await client.failures().destinations.flatMap { one in
            try ["\(one.destination):"] + one.requests.map { "  " + (try JSON.text($0)) }
        }
    }

    // MARK: Names

    /// The names of the files that the report may mention: of the uploads that it shows, of those in the log, and of the
    /// newest of each list.
    private func names(_ client: ControlClient, shown: [UploadView], log: [String]) async throws -> HiddenNames {
        var names = HiddenNames()
        var uploads = shown
        for list in [UploadList.ongoing, .failed, .completed, .cancelled, .history] {
            var query = ListQuery()
            query.list = list.rawValue
            query.limit = 1000
            uploads += try await client.list(query).uploads
        }
        let known = Set(uploads.map(\.id))
        for id in Set(log.flatMap(Self.uploadIDs)).subtracting(known) {
            // It may be gone from the history.
            do { uploads.append(try await client.show(id).upload) } catch let refusal as Refusal
                where refusal.code == .notFound
            {}
        }
        for upload in uploads {
            names.add(upload.path)
            names.add(upload.name, relative: upload.relative)
        }
        return names
    }

    /// The ids of uploads in a line of the log.
    static func uploadIDs(_ line: String) -> [String] {
        line.split { !$0.isLetter && !$0.isNumber }.map(String.init).filter { UploadID($0) != nil }
    }
}
