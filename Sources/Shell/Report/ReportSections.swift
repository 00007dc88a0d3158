internal import API
internal import Config
internal import Control
internal import Core
internal import Credentials
internal import Daemon
internal import Glibc
internal import Linux
internal import Store
internal import Transport

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

    /// Without a terminal, so that no line is cut or coloured.
    var console: Console {
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
        var errors: ConfigErrors?
        let loaded = await configuration(&errors) { add("Configuration", $0, isOfConfiguration: $1) }
        if let loaded { await secrets.learn(loaded.settings) }
        let file = ConfigurationFile(call.arguments, call.console).path
        var places =
            loaded.map { ReportPlaces($0.settings) } ?? ReportPlaces(errors, of: file, call.console.environment)
        if let socket = call.arguments.path("socket") { places.use(socket: socket) }
        let transport = Transport()
        let daemon = await ReportedDaemon(ControlClient(socket: places.socket, transport: transport))
        async let checks = checks(loaded, daemon)
        let status = await daemon.part { _, status in statusLines(status, self.console, now: self.now) }
        let waits = await daemon.part { client, _ in try await self.oldestWaits(client) }
        let failed = await daemon.part { client, _ in try await self.failures(client) }
        let requests = await daemon.part { client, _ in try await self.requests(client) }
        let ways = await daemon.part { client, _ in routeLines(try await client.routes(), self.console) }
        let usage = await daemon.part { client, _ in
            var query = UsageQuery()
            query.by = "network"
            return usageLines(try await client.usage(query), self.console, now: self.now)
        }
        let pid = daemon.status?.pid ?? StateFiles.holder(of: places.state)
        let log = await DaemonLog(pid: pid, unit: DefaultPlaces.unit(of: file)).lines()
        if hidesNames {
            names.roots = (loaded?.settings.writtenFolders ?? []).map(\.watch.path.display)
            let uploads = (waits.value?.uploads ?? []) + (failed.value?.uploads ?? [])
            let known = await daemon.part { client, status in
                try await self.names(client, status, shown: uploads, log: log)
            }
            if let known = known.value {
                names.formUnion(known)
            } else {
                sections[0].lines.append(
                    "the daemon does not name its files: names are hidden below watched folders and where the log has them"
                )
            }
        }
        places.add((daemon.status?.folders ?? []).map { ($0.name, FilePath(display: $0.path) ?? FilePath($0.path)) })
        names.roots = Set(names.roots + places.folders.map(\.path.display)).sorted()
        names.kept.formUnion([places.state, places.staging, places.socket, file].map(\.display))
        names.keep((daemon.status?.folders.map(\.name) ?? []) + (daemon.status?.destinations.map(\.name) ?? []))
        add("Checks", await checks)
        add("Status", status.value ?? daemon.obstacle(places) ?? status.why)
        add("Oldest waits", waits.value?.lines ?? waits.why)
        add("Failed uploads", failed.value?.lines ?? failed.why)
        add("Failed requests", requests.value ?? requests.why)
        add("Ways", ways.value ?? ways.why)
        add("Usage", usage.value ?? usage.why)
        add("Log", log)
        add("Disks", await disks(places, file))
        // What the daemon has not answered by now is not waited for.
        try? await awaiting(atMost: .seconds(2)) { await transport.stop() }
        return (sections, names)
    }

    // MARK: This machine

    private func versions() async -> [String] {
        let system =
            (try? Files.read(Files.real("/etc/os-release") ?? "/etc/os-release", limit: 1 << 16)).map {
                String(decoding: $0, as: UTF8.self)
            } ?? ""
        let name = system.split(separator: "\n").first { $0.hasPrefix("PRETTY_NAME=") }?.dropFirst(12).filter {
            $0 != "\""
        }
        return [
            "sluice \(sluiceVersion)", "Linux \(Machine.kernel)", name.map { String($0) } ?? "no /etc/os-release",
            "user \(Machine.user)", "time \(now)",
        ]
    }

    /// - Returns: `nil` for a configuration with mistakes.
    private func configuration(
        _ errors: inout ConfigErrors?, _ add: ([String], _ isValid: Bool) -> Void
    ) async -> LoadedSettings? {
        let file = ConfigurationFile(call.arguments, call.console)
        do {
            let loaded = try await awaiting(atMost: .seconds(10)) { try await file.read(disk: .onlyItself) }
            add(EffectiveConfiguration(loaded).yaml.split(separator: "\n").map(String.init), true)
            return loaded
        } catch {
            errors = error as? ConfigErrors
            add("\(error)".split(separator: "\n").map(String.init), false)
            return nil
        }
    }

    private func disks(_ places: ReportPlaces, _ file: FilePath) async -> [String] {
        var all = [("state", places.state), ("staging", places.staging)]
        all += places.folders.map { ("folder \($0.name)", $0.path) }
        if places.origin != nil { all.insert(("configuration", file.parent), at: 0) }
        let lines = await withTaskGroup(of: (Int, String).self) { group in
            for (number, (name, path)) in all.enumerated() {
                group.addTask { (number, "\(name)  \(path.display)  " + (await Self.space(at: path))) }
            }
            return await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
        return (places.origin.map { [$0] } ?? []) + lines
    }

    private static func space(at path: FilePath) async -> String {
        // A disk that does not answer must not stop the report.
        do {
            let space = try await SlowDisk(timeout: .seconds(3)).run { _ in try Space(at: path) }
            let files = space.filesFree == .max ? "" : ", \(space.filesFree) more files fit"
            return "\(Units.bytes(space.free)) of \(Units.bytes(space.total)) free\(files)"
        } catch { return "\(error)" }
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
    private func names(
        _ client: ControlClient, _ status: StatusView, shown: [UploadView], log: [String]
    ) async throws -> HiddenNames {
        var names = HiddenNames()
        for settling in status.settling { names.add(settling.path) }
        for waiting in status.folders.flatMap({ $0.gathering ?? [] }) { names.add(waiting.path) }
        for run in status.staging.running ?? [] { names.add(run.path) }
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
