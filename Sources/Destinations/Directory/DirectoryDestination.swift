internal import Core
internal import Glibc
internal import Linux
internal import Transport

/// A folder of this machine: on a second disk, or on a mounted NAS.
struct DirectoryDestination: Destination {
    let target: DirectoryTarget
    let engine: WholeEngine
    let site: DestinationSite

    /// - Parameter cost: Whether bytes to a folder on another machine count as metered, as configured.
    init(_ target: DirectoryTarget, taken: NameConflictRule, cost: Metered? = nil) {
        self.target = target
        site = .folder(target.path, cost: cost)
        engine = WholeEngine(dialect: target, taken: taken)
    }

    func upload(
        _ order: UploadOrder, reporter: any UploadReporter, context: RequestContext
    ) async throws -> RemoteObject {
        try await engine.upload(order, reporter)
    }

    /// A larger file takes longer to write than to record.
    var bundling: Bundling? { Bundling(largest: 256 << 10, files: 32, bytes: 4 << 20) }

    func upload(
        together orders: [UploadOrder], reporter: any BundleReporter, context: RequestContext
    ) async throws -> [String: RemoteObject] {
        try await engine.upload(together: orders, reporter)
    }

    func discard(_ checkpoint: Checkpoint, context: RequestContext) async throws(UploadError) -> Bool {
        try await withUploadErrors { try await engine.discard(WholeCheckpoint(checkpoint)) }
    }

    func obstacleToRemoving(test order: UploadOrder, context: RequestContext) async -> String? { nil }

    func remove(
        test order: UploadOrder, _ checkpoint: Checkpoint, context: RequestContext
    ) async throws(UploadError) -> Bool {
        try await withUploadErrors {
            let isGone = try await engine.discard(WholeCheckpoint(checkpoint))
            guard let place = try await target.openFolder(order.name, isMaking: false) else { return true }
            let name = order.name.name
            switch try await place.status(at: name, for: order.file) {
            case .free: return isGone || checkpoint.isFinished
            case .same:
                try await place.remove(name)
                return true
            case .other: return false
            }
        }
    }

    func find(_ order: UploadOrder, context: RequestContext) async throws(UploadError) -> RemoteLookup {
        try await withUploadErrors { try await engine.find(order) }
    }

    /// The contract of these two calls has neither notes nor cancellation.
    private func withUploadErrors<R>(_ body: () async throws -> R) async throws(UploadError) -> R {
        do { return try await body() } catch let error as UploadError { throw error } catch {
            throw UploadError(
                target.failure(.cancelled, .cancelled, "the request was stopped", retryable: true),
                remedy: .retry(after: nil))
        }
    }

    // MARK: Space

    var reportsSpace: Bool { true }

    func space(context: RequestContext) async throws(UploadError) -> RemoteSpace? {
        let target = target
        return try await withUploadErrors {
            try await target.run("") { _ in
                let root = try target.openRoot()
                return RemoteSpace(try Space(of: root, named: target.path))
            }
        }
    }

    // MARK: Check

    func check(context: RequestContext) async -> CheckResult {
        do { return try await target.run("") { _ in try examine() } } catch let error as UploadError {
            let path = target.path
            switch error.failure.code {
            case .targetDenied:
                guard let missing = MissingRight(.write, at: path) else { break }
                return CheckResult(.failed, "\(missing.text): \(missing.remedy)")
            case .targetMissing where (try? FileStatus.ifPresent(at: path)) == .some(nil):
                // A path that cannot be examined has the other message.
                return CheckResult(.failed, "\(error.failure.message): \(MissingRight.commandToMake(path))")
            default: break
            }
            return CheckResult(.failed, error.failure.message)
        } catch { return CheckResult(.failed, "the check was stopped") }
    }

    private func examine() throws -> CheckResult {
        let path = target.path
        let root = try target.openRoot()
        let status = try FileStatus(of: root, named: path)
        // Where an unnamed file cannot be made, permissions are the only check that leaves nothing behind.
        if try Files.canMakeFiles(in: root, named: path) == nil {
            if let refusal = Files.refusal(toWriteIn: path) { throw refusal }
        }
        var words = "\(path.display) is writable"
        if let mounted = MountPoint.described(Files.real(path) ?? path, device: status.device) {
            words += ", \(mounted)"
        }
        let space = try Space(of: root, named: path)
        let told = RemoteSpace(space)
        words += ", \(told?.text ?? "\(shownBytes(space.free)) free")"
        if space.isMemory {
            return CheckResult(.warning, words + "; it is in memory, and a reboot erases it", space: told)
        }
        if space.free == 0 || space.filesFree == 0 {
            return CheckResult(.warning, words + ": uploads wait for free space", space: told)
        }
        if target.mount == nil, target.marker == nil, try FileStatus(at: "/").device == status.device {
            return CheckResult(
                .warning,
                words
                    + "; it lies on the system's own disk: if a NAS or another disk belongs there, name its mount point "
                    + "in `mount`, else set `mount: /`", space: told)
        }
        return CheckResult(.ok, words, space: told)
    }
}

extension RemoteSpace {
    /// Space that is reserved for root counts as used. The number of inodes is not checked: some file systems report
    /// none and still accept files, so the first refused file shows it.
    ///
    /// - Returns: `nil` where the figures make no sense.
    fileprivate init?(_ space: Space) {
        guard space.total > 0, space.free > 0 || !space.isFUSE else { return nil }
        self.init(free: space.free, used: max(0, space.total - space.free), limit: space.total)
    }
}

/// A person's settings for a folder.
struct DirectorySettings: DeclaredSettings {
    var path: FilePath = ""
    var mount: FilePath?
    var marker: String?
    var taken = NameConflictRule.suffix
    /// Octal digits.
    var mode: String?
    var cost: Metered?
    var timeout: Duration = .seconds(60)

    static let defaults = DirectorySettings()

    static let keys = DestinationKey<DirectorySettings>.table {
        DestinationKey("path", \.path, required: true, "The folder. It must exist, and is never created.")
        DestinationKey(
            "mount", \.mount,
            "The mount point that must be mounted before anything is written; by default that of `path` in /etc/fstab, `/` for none."
        )
        DestinationKey("marker", \.marker, "A file that must be in the folder before anything is written.")
        DestinationKey(
            "taken", \.taken, "What to do if another file has the name: `suffix` (default), `replace` or `fail`.")
        DestinationKey(
            "mode", \.mode, "Permission bits of files, like `\"0640\"`; by default those that the umask allows.")
        DestinationKey(
            "network", \.cost, among: [.metered, .unmetered],
            "What bytes to a folder on another machine cost (NFS, SMB, FUSE); unknown by default.")
        DestinationKey(
            "stall_timeout", \.timeout, "How long the folder may take to answer; {default} by default.")
    }

    /// - Throws: ``UnusableSettingError``.
    func markerFile() throws -> FilePath? {
        guard let marker else { return nil }
        guard !marker.isEmpty, !marker.utf8.contains(UInt8(ascii: "/")), marker != ".", marker != ".." else {
            throw UnusableSettingError(key: "marker", problem: "takes the name of a file in the folder, not a path")
        }
        return FilePath(marker)
    }

    /// - Throws: ``UnusableSettingError``.
    func permissions() throws -> UInt32? {
        guard let mode else { return nil }
        guard let bits = UInt32(mode, radix: 8), bits <= 0o777, bits & 0o600 == 0o600 else {
            throw UnusableSettingError(
                key: "mode", problem: "takes octal permission bits that let the owner read and write, like `\"0640\"`")
        }
        return bits
    }
}

extension DirectoryDestination {
    static let kind = DestinationDefinition(
        type: DestinationSchema(
            name: "directory", summary: "a folder of this machine, such as a NAS that is mounted",
            keys: DirectorySettings.keys.map(\.setting), sendsRequests: false),
        http: nil
    ) { values, tools in try DirectoryDestination(values, tools) }

    init(_ values: [String: SettingValue], _ tools: DestinationTools) throws {
        let settings = DirectorySettings.keys.settings(values)
        guard !settings.path.isEmpty else { throw UnusableSettingError(key: "path", problem: "is missing") }
        self.init(
            DirectoryTarget(
                name: tools.name, path: settings.path,
                mount: (settings.mount ?? MountPoint.expected(for: settings.path)).map { MountPoint($0) },
                marker: try settings.markerFile(), mode: try settings.permissions(), clocks: tools.clocks,
                disk: SlowDisk(timeout: max(settings.timeout, .seconds(1)))), taken: settings.taken,
            cost: settings.cost)
    }
}
