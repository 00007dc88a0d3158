internal import Core
internal import Glibc
internal import Linux

/// A person's settings for a folder, and the checks that it is the intended folder.
struct DirectoryTarget: WholeDialect {
    /// The destination's name in the configuration, for messages.
    let name: String
    let path: FilePath
    /// A mount point that must be mounted; `/` when the configuration says that none is required, `nil` when it says
    /// nothing.
    let mount: MountPoint?
    /// A file that must be in the folder.
    let marker: FilePath?
    /// Permission bits of files; `nil` for the process's umask.
    let mode: UInt32?
    /// Bytes between two durable points.
    var syncInterval: Int64 = 64 << 20
    let clocks: any Clocks
    let disk: SlowDisk

    // MARK: Reaching it

    func openFolder(_ name: FilePath, isMaking: Bool) async throws -> (any RemoteDirectory)? {
        let parts = try checked(name)
        return try await run(name) { pulse in
            let root = try openRoot()
            let status = try FileStatus(of: root, named: path)
            do {
                return try OpenTargetFolder(
                    self, try openFolder(parts, below: root, status, isMaking: isMaking, pulse), relative: name.parent,
                    root: status)
            } catch is MissingError { return nil }
        }
    }

    /// Opens the folder, if it is the intended one. It is never created: an empty mount point where nothing is mounted
    /// looks just like a folder that does not exist yet.
    func openRoot() throws -> Descriptor {
        let root = try openPath()
        try checkMount(root)
        try checkMarker(root)
        return root
    }

    private func openPath() throws -> Descriptor {
        do { return try Descriptor.open(path, for: .folder) } catch { throw failure(error, .target, path) }
    }

    private func checkMount(_ root: borrowing Descriptor) throws {
        guard let mount, mount.path != "/" else { return }
        if try mount.contains(root, named: path) { return }
        throw refusal(
            .notMounted,
            "nothing is mounted at \(mount.path.display), so nothing is written to \(path.display): mount the "
                + "file system that belongs there, or set `mount` of the destination",
            .holdDestination(after: nil))
    }

    private func checkMarker(_ root: borrowing Descriptor) throws {
        guard let marker else { return }
        if try FileStatus.ifPresent(at: marker, in: root) != nil { return }
        throw refusal(
            .noMarker,
            "\(path.appending(marker).display) does not exist, so nothing is written: mount the file system "
                + "that belongs there, or create that file", .holdDestination(after: nil))
    }

    /// Checks the path again: it must still lead to the folder that was opened.
    func checkRoot(_ opened: FileStatus) throws {
        // The path may be a symbolic link, which opening follows and `lstat` does not.
        let now = try FileStatus(of: try Descriptor.open(path, for: .folder), named: path)
        guard now.device == opened.device, now.inode == opened.inode else {
            throw refusal(
                .targetReplaced, "\(path.display) was replaced by another folder while a file was written",
                .holdDestination(after: nil))
        }
    }

    private func openFolder(
        _ parts: [FilePath], below root: borrowing Descriptor, _ status: FileStatus, isMaking: Bool,
        _ pulse: SlowDisk.Pulse
    ) throws -> Descriptor {
        var folder = try Files.openFolder(".", in: root)
        var so = FilePath("")
        for part in parts {
            try pulse.reportProgress()
            so = so.appending(part)
            do throws(SystemError) {
                if isMaking, try FileStatus.ifPresent(at: part, in: folder) == nil,
                    try Files.makeFolder(part, in: folder, mode: mode.map(Self.folderMode) ?? 0o777)
                {
                    try folder.sync(named: so.parent)
                }
                folder = try Files.openFolder(part, in: folder)
            } catch {
                if error.code == ENOENT, !isMaking { throw MissingError() }
                throw nameFailure(error, path.appending(so), in: status)
            }
        }
        return folder
    }

    private struct MissingError: Error {}

    /// A user with read permission for a folder's files also gets permission to enter it.
    private static func folderMode(_ mode: UInt32) -> UInt32 { mode | 0o700 | (mode & 0o444) >> 2 }

    /// The folders of a name, which must not lead out of the target. Symbolic links on the way are refused when they
    /// are opened.
    private func checked(_ name: FilePath) throws -> [FilePath] {
        let parts = name.bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard !parts.contains(where: { $0.isEmpty || $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }),
            marker.map({ $0 != name }) ?? true
        else {
            throw UploadError(
                failure(
                    .permanent, .nameRefused,
                    "`\(name.display)` is not a valid name below \(path.display): set `remote_name` of the folder",
                    retryable: false),
                remedy: .failUpload)
        }
        return name.parent.components
    }

    // MARK: Failures

    /// Runs `body` on a thread where it may block, and gives each of its errors a remedy.
    func run<R: Sendable>(
        _ shown: FilePath, _ body: @escaping @Sendable (SlowDisk.Pulse) throws -> R
    ) async throws -> R {
        do { return try await disk.run(body) } catch let error as SystemError {
            throw failure(error, .target, path.appending(shown))
        } catch let error as SlowDisk.TimeoutError {
            throw refusal(
                .targetSilent,
                "\(path.display) has not answered for \(error.timeout.inMilliseconds / 1000) s; is its server running?",
                .holdDestination(after: nil))
        }
    }

    func failure(_ error: SystemError, _ subject: DirectoryVerdict.Subject, _ place: FilePath) -> UploadError {
        let verdict = DirectoryVerdict(error.code, about: subject)
        let advice = verdict.advice.isEmpty ? "" : "; " + verdict.advice
        return UploadError(
            failure(
                verdict.kind, verdict.code, "\(place.display): \(error.reason) (\(error.call))\(advice)",
                retryable: verdict.remedy != .failUpload), remedy: verdict.remedy)
    }

    /// Makes the error for a call about a name. The error is about this file, unless the folder itself is gone.
    ///
    /// - Parameter root: The status of the target's folder when it was opened.
    func nameFailure(_ error: SystemError, _ place: FilePath, in root: FileStatus) -> UploadError {
        guard error.code == ENOENT else { return failure(error, .name, place) }
        // exFAT reports this for a name that it cannot have. A removed folder reports it for every name.
        guard (try? checkRoot(root)) != nil else { return failure(error, .target, path) }  // for any error
        return failure(SystemError(call: error.call, subject: error.subject, code: EINVAL), .name, place)
    }

    private func refusal(_ code: Failure.Code, _ message: String, _ remedy: Remedy) -> UploadError {
        UploadError(failure(.transient, code, message, retryable: true), remedy: remedy)
    }

    func failure(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, retryable: Bool) -> Failure {
        Failure(kind, code: code, message: "\(name): \(message)", at: clocks.wall(), retryable: retryable)
    }
}
