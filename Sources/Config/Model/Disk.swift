internal import Core
internal import Glibc
internal import Linux

/// The loader's checks of the disk, besides reading the configuration itself.
package enum DiskChecks: Sendable {
    case checked
    /// Checks nothing: folders and secret files need not exist. For tests, and for a configuration for another machine.
    case unchecked
    /// Like ``unchecked``, except for the permissions of the configuration itself.
    case onlyItself
}

/// Checks folders and files that a configuration names. A `nil` result means no problem.
struct Disk {
    let checks: DiskChecks
    private let mounts: MountTable

    init(checks: DiskChecks) {
        self.checks = checks
        mounts = checks == .checked ? MountTable() : MountTable([])
    }

    /// The path with symbolic links followed, as far as it exists; the rest unchanged. A file system that may not
    /// answer is not accessed.
    func resolved(_ path: FilePath) -> FilePath {
        guard checks == .checked else { return path.normalised }
        return mounts.place(of: path.normalised).path
    }

    /// The same for a watched folder: a link that is not followed when the folder is opened is not followed here
    /// either.
    func resolved(watched path: FilePath) -> FilePath {
        let found = resolved(path)
        guard checks == .checked, found != path.normalised, mounts.place(of: found).slow == nil else { return found }
        do throws(SystemError) {
            _ = try SourceFolders()[path].open().path
            return found
        } catch {
            // The folder counts as absent. The user who made the link must not be able to keep the daemon from
            // starting.
            return error.isOfAnotherFolder ? path.normalised : found
        }
    }

    enum Watching {
        case good
        /// The folder does not exist now: this is reported, and the folder is watched when it appears.
        case absent(String)
    }

    /// The state of a folder to be watched, as a text with the remedy.
    func watching(_ path: FilePath) -> Watching {
        guard checks == .checked else { return .good }
        // The watching thread finds out later: a missing server would block everything here.
        let place = mounts.place(of: path.normalised)
        if place.slow != nil { return .good }
        switch Self.status(place.path) {
        case .failure(let error) where error.isMissing: return .absent(absent(path))
        case .failure(let error):
            return .absent(
                "`\(path.display)` cannot be examined now (\(error.reason)); it is watched as soon as it can be read")
        // A user who can write above it may have put the file there, and must not be able to keep the daemon from
        // starting.
        case .success(let status) where !status.isDirectory:
            return .absent("`\(path.display)` is not a folder; it is watched when a folder is there")
        case .success: return .good
        }
    }

    private func absent(_ path: FilePath) -> String {
        let above = Self.nearest(path.parent)
        let text =
            "`\(path.display)` does not exist now, and is watched when it appears: mount the file system that belongs there, or create it "
        if above == path.parent || above.isEmpty { return text + "(mkdir -p)" }
        return text + "(mkdir -p). Of its parent folders only `\(above.display)` exists: check the spelling"
    }

    /// Whether a folder is, or would be made, on a file system in memory. One that may not answer is on none.
    func isInMemory(_ path: FilePath) -> Bool {
        guard checks == .checked else { return false }
        let place = mounts.place(of: path.normalised)
        if place.slow != nil { return false }
        // A file system that does not report its kind counts as a disk.
        return (try? Space(at: Self.nearest(place.path)).isMemory) ?? false
    }

    /// The path, or the nearest folder above it that can be examined.
    private static func nearest(_ path: FilePath) -> FilePath {
        var path = path
        // For any reason: the next folder above is tried.
        while path != "/", !path.isEmpty, (try? FileStatus(at: path)) == nil { path = path.parent }
        return path
    }

    /// Why a secret file cannot be read.
    func troubleReading(_ path: FilePath) -> String? {
        guard checks == .checked else { return nil }
        switch Self.status(path) {
        case .failure(let error): return "`\(path.display)` cannot be read: \(error.reason)"
        case .success(let status) where !status.isRegular: return "`\(path.display)` is not a file"
        case .success: break
        }
        guard let reason = Self.accessProblem(path, R_OK) else { return nil }
        let join = UserDatabase.groupToJoin(for: path, writes: false).map {
            "; the user who runs this may join the group `\($0)`, which may read it: `sudo usermod -aG \($0) USER`"
        }
        let remedy = Notify().isEnabled ? "; " + Self.remedyOfService(path) : join
        return "`\(path.display)` cannot be read: \(reason)\(remedy ?? "")"
    }

    /// The command that lets the user of a service read a file.
    static func remedyOfService(_ file: FilePath) -> String {
        let (group, name) = (UserDatabase.shown(group: UserDatabase.group), printable(file.display))
        return "the service's user may not read it: `sudo chgrp \(group) \(name) && sudo chmod g+r \(name)`"
    }

    func troubleRunning(_ path: FilePath) -> String? {
        guard checks == .checked else { return nil }
        if case .success(let status) = Self.status(path), !status.isRegular {
            return "`\(path.display)` cannot be run: it is not a program"
        }
        return Self.accessProblem(path, X_OK).map { "`\(path.display)` cannot be run: \($0)" }
    }

    /// The permission bits of a file, when they let another user than its owner read it.
    func openMode(_ path: FilePath, to readers: Readers) -> String? {
        guard checks == .checked, case .success(let status) = Self.status(path), status.mode & readers.rawValue != 0
        else {
            return nil
        }
        return "0" + String(status.mode & 0o777, radix: 8)
    }

    /// The same for the configuration itself, which its group may read too.
    func openMode(ofConfiguration file: FilePath) -> String? {
        (checks == .onlyItself ? Disk(checks: .checked) : self).openMode(file, to: .groupOrOthers)
    }

    enum Readers: UInt32 {
        case others = 0o004
        case groupOrOthers = 0o044
    }

    private static func status(_ path: FilePath) -> Result<FileStatus, SystemError> {
        // `FileStatus` does not follow a final link, and settings may well be links (containers mount them so).
        do throws(SystemError) { return .success(try FileStatus(at: Files.real(path) ?? path)) } catch {
            return .failure(error)
        }
    }

    private static func accessProblem(_ path: FilePath, _ mode: CInt) -> String? {
        do throws(SystemError) {
            try systemCall("access", on: path.display) { path.withCString { access($0, mode) } }
            return nil
        } catch { return error.reason }
    }
}
