internal import API
internal import Config
internal import Core
internal import Credentials
internal import Linux
internal import Store
internal import Watch

/// The parts of `check` on this machine. Changes nothing: rights are queried, not tried out.
enum LocalChecks {
    /// - Returns: The findings, and the names of the folders whose disk does not respond: they must not be accessed
    ///   again.
    static func all(_ settings: Settings, _ request: CheckRequest, silent known: Set<String>) async -> (
        findings: [CheckFinding], silent: Set<String>
    ) {
        var findings: [CheckFinding] = []
        var silent = known
        // The rights of the daemon, if one runs: those of the calling user may differ.
        let running = StateFiles.holder(of: settings.state).flatMap { ProcessRights(FilePath("/proc/\($0)")) }
        let rights = running ?? ProcessRights()
        for each in settings.presentFolders where request.includes(folder: each.watch.name) {
            let result = known.contains(each.watch.name) ? nil : await answered { folder(each) }
            if result == nil { silent.insert(each.watch.name) }
            findings.append(
                CheckFinding(
                    about: "folder", name: each.watch.name,
                    result
                        ?? CheckResult(
                            .warning,
                            "\(each.watch.path.display) has not responded for \(timeout.inMilliseconds / 1000)s: check the server that it "
                                + "is on; its files are uploaded when it responds")))
            // A folder that did not answer is reported above.
            guard result?.verdict == .ok else { continue }
            for check in [
                { openFiles(each, rights) }, { parents(each.watch) }, { targetParents(each) }, { copies(each) },
            ]
                as [@Sendable () -> CheckResult?]
            {
                guard let more = await answered(check) ?? nil else { continue }
                findings.append(CheckFinding(about: "folder", name: each.watch.name, more))
            }
        }
        guard request.isAll else { return (findings, silent) }
        let answering = settings.presentFolders.filter { !silent.contains($0.watch.name) }
        var places: [(about: String, path: FilePath, check: @Sendable () -> CheckResult)] = [
            ("staging", settings.staging.path, { staging(settings.staging, for: answering) }),
            ("state", settings.state, { state(settings.state) }),
            (
                "control", settings.control.socket,
                {
                    ownFolder(
                        settings.control.socket.parent, what: "the socket", key: "control.socket", mayForget: true)
                }
            ),
        ]
        for token in settings.control.remote?.tokens ?? [] {
            // A token that cannot be read is reported by `doctor`, and by the start.
            guard let secret = try? await SecretReader().read(token.secret).reveal(),
                let complaint = complaint(aboutToken: Array(secret.utf8))
            else { continue }
            findings.append(
                CheckFinding(about: "control", name: "token \(token.name)", CheckResult(.warning, complaint)))
        }
        findings += await thumbnails(settings.control)
        for path in [settings.metrics.textfile, settings.metrics.statusFile].compactMap({ $0 }) {
            places.append(("metrics", path, { report(path, besides: settings.control.socket) }))
        }
        for place in places {
            findings.append(
                CheckFinding(
                    about: place.about, name: place.path.display,
                    await answered(place.check)
                        ?? CheckResult(
                            .failed,
                            "its disk has not responded for \(timeout.inMilliseconds / 1000)s: put it on a local disk of this machine"
                        )))
        }
        return (findings, silent)
    }

    private static let timeout: Duration = .seconds(5)

    /// - Returns: `nil` when the disk does not answer.
    private static func answered<R: Sendable>(_ check: @escaping @Sendable () -> R) async -> R? {
        // A disk of its own for each: one that does not answer does not delay the others.
        do { return try await SlowDisk(timeout: timeout).run { _ in check() } } catch { return nil }
    }

    private static func folder(_ folder: FolderSettings) -> CheckResult {
        let path = folder.watch.path
        if let absent = absent(folder.watch) { return CheckResult(.warning, absent) }
        do {
            guard try FileStatus(at: resolved(path)).isDirectory else {
                return CheckResult(.failed, "\(path.display) is not a folder")
            }
            _ = try Files.names(in: resolved(path))
            if let obstacle = FolderSurvey.obstacle(in: SourceFolders()[path]) { return CheckResult(.failed, obstacle) }
        } catch {
            return CheckResult(
                .failed, "\(path.display) cannot be read: \(error.reason); " + remedy(error, "read", at: path))
        }
        switch folder.afterUpload {
        case .keep where folder.retention.isLimited:
            if let error = Files.refusal(toWriteIn: path) {
                return CheckResult(
                    .failed,
                    "verified sources in \(path.display) cannot be deleted: \(error.reason); "
                        + remedy(error, "write", at: path))
            }
            return CheckResult(.ok, "\(path.display), writable; verified sources are deleted later")
        case .keep, .leave: return CheckResult(.ok, "\(path.display), readable; sources stay")
        case .delete:
            if let error = Files.refusal(toWriteIn: path) {
                return CheckResult(
                    .failed,
                    "sources in \(path.display) cannot be deleted: \(error.reason); "
                        + remedy(error, "write", at: path))
            }
            return CheckResult(.ok, "\(path.display), writable; sources are deleted after upload")
        case .move(let target):
            if let error = Files.refusal(toWriteIn: path) {
                return CheckResult(
                    .failed,
                    "sources cannot be moved out of \(path.display): \(error.reason); "
                        + remedy(error, "write", at: path))
            }
            let (base, _) = existing(target.fixedFolder)
            if let error = Files.refusal(toWriteIn: base) {
                return CheckResult(
                    .failed,
                    "sources cannot be moved below \(base.display): \(error.reason); "
                        + remedy(error, "write", at: base))
            }
            return CheckResult(.ok, "\(path.display), writable; sources move to \(printable(target.source))")
        }
    }

    /// Whether it can be known that no program has verified sources open for writing; `nil` where there is nothing to
    /// report.
    private static func openFiles(_ folder: FolderSettings, _ rights: ProcessRights?) -> CheckResult? {
        guard folder.removesSources else { return nil }
        let path = resolved(folder.watch.path)
        let doubt: WriterSearch.Doubt
        // A folder that cannot be opened is reported by its own line.
        guard let top = try? SourceFolders()[folder.watch.path].open() else { return nil }
        if WriterSearch.mayHideWriters(top) {
            doubt = .elsewhere
        } else if let rights, folder.watch.marker == nil, !rights.seesOthersOpenFiles, !rights.owns(path) {
            doubt = .notReported
        } else {
            return nil
        }
        switch folder.releaseUnsure ?? .standard(doubt) {
        case .keep:
            // If it is configured, it is intended.
            return CheckResult(
                folder.releaseUnsure == nil ? .warning : .ok,
                UnsureReleaseTexts.keptSourcesText(folder.watch.name, doubt))
        case .after(let time):
            return CheckResult(
                .ok,
                "\(UnsureReleaseTexts.unknown(doubt)): verified sources are deleted when they have not changed for a while "
                    + "(release_unsure: \(UnsureReleaseRule.after(time).written))")
        case .delete:
            return CheckResult(
                .ok,
                "\(UnsureReleaseTexts.unknown(doubt)): verified sources are deleted at once, even if a program has them open (release_unsure: delete)"
            )
        }
    }

    /// The users who could put another directory in the folder's place; `nil` when there are none, or a requirement
    /// would notice.
    private static func parents(_ rule: WatchRule) -> CheckResult? {
        let requirement = rule.requirement
        if requirement.mount.map({ $0 != "/" }) ?? false { return nil }
        guard let weak = FolderParents.weakest(above: rule.path) else { return nil }
        let words =
            "\(weak.directory.display), above \(rule.path.display), \(weak.why), who could replace it by another directory: "
        guard requirement.file == nil else {
            return CheckResult(
                .warning,
                words
                    + "with the file of `require` in it, Sluice would accept it. Keep the folder below directories that root owns, or set "
                    + "`require: {mount: …}`")
        }
        return CheckResult(
            .warning,
            words
                + "Sluice would then treat the folder as absent. Keep it below directories that root owns, or set `require`"
        )
    }

    /// The users who could cause verified sources to be moved elsewhere; `nil` when there are none.
    private static func targetParents(_ folder: FolderSettings) -> CheckResult? {
        guard case .move(let target) = folder.afterUpload else { return nil }
        let (base, _) = existing(target.fixedFolder)
        guard let weak = FolderParents.weakest(above: base) else { return nil }
        return CheckResult(
            .warning,
            "\(weak.directory.display), above \(base.display), \(weak.why), who could redirect verified sources elsewhere: move "
                + "them to a folder below directories that root owns")
    }

    /// The finding that moving verified sources means copying them; `nil` if it does not.
    private static func copies(_ folder: FolderSettings) -> CheckResult? {
        guard case .move(let target) = folder.afterUpload else { return nil }
        let (base, _) = existing(target.fixedFolder)
        let to = resolved(base)
        guard let source = try? SourceFolders()[folder.watch.path].open(), let here = try? source.status(at: ""),
            let there = try? FileStatus(at: to)
        else { return nil }
        let copy = "a move copies the file and compares the copy before it deletes the source"
        if here.device != there.device {
            return CheckResult(
                .ok, "\(base.display) is on another file system than \(folder.watch.path.display): \(copy)")
        }
        // No name moves from one mount to another, even where both belong to one file system (rename(2), EXDEV).
        guard let from = source.mount, let target = FileSystems.mount(of: to), from != target else { return nil }
        return CheckResult(
            .ok,
            "\(base.display) is a separate mount from \(folder.watch.path.display): \(copy). In the systemd unit, each path of ReadWritePaths= "
                + "is a separate mount: `sluice systemd-paths` names a directory that contains both")
    }

    /// The reason why no file in a folder would be inspected now; `nil` when the folder is present.
    private static func absent(_ rule: WatchRule) -> String? {
        do throws(SystemError) {
            let folder = SourceFolders()[rule.path]
            return try MountCheck(folder, [rule.requirement]).missing(in: folder.open()).map { "absent: \($0)" }
        } catch {
            if error.isOfAnotherFolder { return "absent: \(error.reason)" }
            // The following checks report the rest.
            guard error.isMissing, (try? FileStatus(at: rule.path)) == nil else { return nil }
            return "absent: \(rule.path.display) does not exist; it is watched when it appears" + hiding(rule.path)
        }
    }

    private static func staging(_ settings: StagingSettings, for folders: [FolderSettings]) -> CheckResult {
        let result = ownFolder(settings.path, what: "staged copies", key: "staging.path")
        // A file system that does not report its free space is no fault of the configuration.
        guard result.verdict == .ok, let space = try? Space(at: existing(settings.path).base) else { return result }
        let free = shownBytes(space.free)
        // Failures come before warnings.
        for folder in folders where (folder.copy ?? settings.copy) == .reflink && folder.export == nil {
            if let refusal = unshared(folder, settings.path) { return refusal }
        }
        if space.isMemory {
            return CheckResult(
                .warning,
                "is on a memory file system: a power cut loses files that exist nowhere else; set staging.path to a disk"
            )
        }
        if space.free <= settings.keepFree {
            return CheckResult(
                .warning,
                "\(free) free, and staging.keep_free is \(shownBytes(settings.keepFree)): no file will be staged")
        }
        return CheckResult(.ok, result.detail + ", \(free) free")
    }

    /// Why `copy: reflink` cannot work for a folder; `nil` when it can, or when that cannot be found out here.
    private static func unshared(_ folder: FolderSettings, _ staging: FilePath) -> CheckResult? {
        let (source, base) = (resolved(folder.watch.path), resolved(existing(staging).base))
        // If that cannot be found out, the lines about the places themselves report the cause, if it matters.
        guard let top = try? SourceFolders()[folder.watch.path].open(),
            let refusal = try? Files.refusesSharing(from: top, into: base)
        else { return nil }
        return CheckResult(
            .failed,
            "copy: reflink is set for folder \(folder.watch.name), and files of \(source.display) cannot share blocks with "
                + "\(base.display): \(refusal.reason); "
                + (refusal.crossesFileSystems
                    ? "they are on different file systems: put staging.path on that of the folder, or set copy: auto"
                    : "reflinks need Btrfs, or XFS made with reflink=1: set copy: auto, or move both to such a file system")
        )
    }

    private static func state(_ path: FilePath) -> CheckResult {
        let result = ownFolder(path, what: "the queue", key: "state")
        do {
            if let refusal = try StateFiles.refusal(in: existing(path).base) {
                return CheckResult(
                    .failed, "the daemon would not start: \(refusal)" + (refusal.remedy.map { "; \($0)" } ?? ""))
            }
        } catch {
            // A folder that this user may not read is reported with the rest of its rights.
            if (error as? SystemError)?.isDenied != true {
                return CheckResult(.failed, "\(error); put the state folder on a local disk that works")
            }
        }
        if result.verdict != .failed, let space = try? Space(at: existing(path).base), space.free < Store.neededSpace {
            return CheckResult(
                .failed,
                "\(shownBytes(space.free)) free, and the queue needs \(shownBytes(Store.neededSpace)): free space there"
            )
        }
        // A file system that does not report its free space is no fault of the configuration.
        guard result.verdict == .ok, let space = try? Space(at: existing(path).base), space.free < Store.scarceSpace
        else { return result }
        return CheckResult(
            .warning, "\(shownBytes(space.free)) free; keep \(shownBytes(Store.scarceSpace)) free for the queue")
    }

    /// A file that is written repeatedly, in a folder that usually belongs to another program and is not made.
    private static func report(_ path: FilePath, besides socket: FilePath) -> CheckResult {
        let folder = path.parent
        // This folder is made for the socket, at the start of the daemon.
        if folder == socket.parent { return ownFolder(folder, what: "the file", key: "metrics", mayForget: true) }
        do {
            guard try FileStatus(at: resolved(folder)).isDirectory else {
                return CheckResult(.failed, "\(folder.display) is not a folder; name another one")
            }
        } catch {
            return CheckResult(
                .failed,
                "\(folder.display): \(error.reason); "
                    + remedy(error, "write", at: folder))
        }
        if let error = Files.refusal(toWriteIn: folder) {
            return CheckResult(
                .failed,
                "cannot be written: \(folder.display): \(error.reason); "
                    + remedy(error, "write", at: folder))
        }
        return CheckResult(.ok, "writable")
    }

    /// A folder of the daemon's own: writable, or to be made below one that is.
    ///
    /// - Parameter key: Its key in the configuration.
    private static func ownFolder(
        _ path: FilePath, what: String, key: String, mayForget: Bool = false
    ) -> CheckResult {
        let (base, isThere) = existing(path)
        do {
            guard try FileStatus(at: resolved(base)).isDirectory else {
                return CheckResult(.failed, "\(base.display) is not a folder; move it away, or name another one")
            }
        } catch { return CheckResult(.failed, "\(base.display): \(error.reason)") }
        if let error = Files.refusal(toWriteIn: base) {
            return CheckResult(
                .failed,
                "cannot create the folder for \(what): \(base.display): \(error.reason); "
                    + remedy(error, "write", at: base)
                    + ", or set `\(key)` to another place")
        }
        if !isThere, let space = try? Space(at: base), space.total == 0 {
            return CheckResult(
                .failed,
                "cannot create the folder for \(what): \(base.display) belongs to a file system of the kernel; set `\(key)` to "
                    + "another place")
        }
        // As above: a file system that does not report its kind counts as a disk.
        if !mayForget, let space = try? Space(at: base), space.isMemory {
            return CheckResult(.warning, "is on a memory file system, which a reboot empties; name a folder on a disk")
        }
        return CheckResult(.ok, isThere ? "writable" : "will be created at start")
    }

    /// The nearest folder towards the root that exists, and whether that is `path` itself.
    private static func existing(_ path: FilePath) -> (base: FilePath, isThere: Bool) {
        var base = path.normalised
        var isThere = true
        // For any reason: the next folder above is tried.
        while base != "/", !base.isEmpty, (try? FileStatus(at: base)) == nil {
            base = base.parent
            isThere = false
        }
        return (base, isThere)
    }

    /// With links resolved: a configured folder may be one.
    private static func resolved(_ path: FilePath) -> FilePath { Files.real(path) ?? path }

    /// For a folder that the service's unit may hide from it; empty elsewhere.
    private static func hiding(_ path: FilePath) -> String {
        guard Notify().isEnabled, UnitPaths.isHidden(path) else { return "" }
        return "; if it is there, the systemd unit hides it: `sudo sluice systemd-paths --install` shows it"
    }

    private static func remedy(_ error: SystemError, _ right: String, at path: FilePath) -> String {
        if error.isReadOnly {
            return "mount it writable; under systemd, `sudo sluice systemd-paths --install` opens it"
        }
        if error.isDenied {
            guard let missing = MissingRight(right == "write" ? .write : .read, at: path) else {
                return "give the daemon's user the right to \(right) there" + hiding(path)
            }
            // A person's own rights say nothing about a daemon of another user.
            let doubt =
                ServiceGroups.isServiceUser ? "" : "; if the daemon has another user, run this check as that one"
            return "\(missing.text): \(missing.remedy)\(doubt)" + hiding(path)
        }
        if error.isMissing { return "create it, or mount the file system that belongs there" }
        return "check the disk"
    }
}
