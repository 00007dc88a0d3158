internal import CLinux
package import Core
internal import Glibc

// Renames that never replace.

/// A name in an open directory, or a path.
struct NameAt: Sendable {
    /// `AT_FDCWD` for a path.
    let folder: CInt
    let name: FilePath
    /// For messages.
    let shown: FilePath

    init(_ path: FilePath) { (folder, name, shown) = (AT_FDCWD, path, path) }

    init(_ name: FilePath, in folder: CInt, shown: FilePath) {
        (self.folder, self.name, self.shown) = (folder, name, shown)
    }

    func withCString<R, E: Error>(_ body: (CInt, UnsafePointer<CChar>) throws(E) -> R) throws(E) -> R {
        try name.withCString { name throws(E) in try body(folder, name) }
    }
}

extension Files {
    /// Renames, and never replaces: `EEXIST` if `to` exists (renameat2(2), `RENAME_NOREPLACE`).
    ///
    /// On file systems that do not know the flag (`EINVAL`: some FUSE and network mounts), it makes a hard link and
    /// unlinks the old name, which does not replace either. Where a link is refused too (a file system without links,
    /// or a file of another user under `fs.protected_hardlinks`), it creates an empty file with the name, which fails
    /// where the name exists, and replaces that file with a plain rename.
    ///
    /// - Parameter isOurs: No other program makes the name `to`. Then a check for the name is enough, and a crash
    ///   leaves no empty file with it.
    package static func renameNoReplace(
        _ from: FilePath, to: FilePath, isOurs: Bool = false
    ) throws(SystemError) {
        try renameNoReplace(NameAt(from), to: NameAt(to), isOurs: isOurs, by: .kernel)
    }

    /// The same, from one open folder to another.
    package static func renameNoReplace(
        _ from: FilePath, in source: borrowing Descriptor, to: FilePath, in target: borrowing Descriptor
    ) throws(SystemError) {
        try source.withNumber { source throws(SystemError) in
            try target.withNumber { target throws(SystemError) in
                try renameNoReplace(
                    NameAt(from, in: source, shown: from), to: NameAt(to, in: target, shown: to), isOurs: false,
                    by: .kernel)
            }
        }
    }

    /// The two calls that rename without replacing. Tests replace them, since few file systems refuse them.
    struct ExclusiveRename: Sendable {
        /// `RENAME_NOREPLACE` of renameat2(2).
        var rename: @Sendable (_ from: NameAt, _ to: NameAt) throws(SystemError) -> Void
        var link: @Sendable (_ from: NameAt, _ to: NameAt) throws(SystemError) -> Void

        static let kernel = ExclusiveRename { from, to throws(SystemError) in
            try call("renameat2", from, to) { sluice_rename_no_replace($0, $1, $2, $3) }
        } link: { from, to throws(SystemError) in
            try call("link", from, to) { linkat($0, $1, $2, $3, 0) }
        }

        static func call(
            _ name: StaticString, _ from: NameAt, _ to: NameAt,
            _ body: (CInt, UnsafePointer<CChar>, CInt, UnsafePointer<CChar>) -> CInt
        ) throws(SystemError) {
            _ = try systemCall(name, on: "\(from.shown.display) to \(to.shown.display)") {
                from.withCString { source, from in to.withCString { target, to in body(source, from, target, to) } }
            }
        }
    }

    static func renameNoReplace(
        _ from: NameAt, to: NameAt, isOurs: Bool, by calls: ExclusiveRename
    ) throws(SystemError) {
        do { return try calls.rename(from, to) } catch {
            guard error.code == EINVAL || error.code == ENOSYS else { throw error }
        }
        do { try calls.link(from, to) } catch {
            guard [EPERM, EIO, EOPNOTSUPP, EMLINK, ENOSYS].contains(error.code) else { throw error }
            return try replaceAnEmptyFile(from, to: to, isOurs: isOurs)
        }
        try unlink(from)
    }

    private static func replaceAnEmptyFile(_ from: NameAt, to: NameAt, isOurs: Bool) throws(SystemError) {
        if isOurs {
            var status = sluice_look()
            if to.withCString({ sluice_statx($0, $1, &status) }) == 0 {
                throw SystemError(
                    call: "rename", subject: "\(from.shown.display) to \(to.shown.display)", code: EEXIST)
            }
            return try replace(from, to: to)
        }
        _ = Descriptor(
            adopting: try systemCall("open", on: to.shown.display) {
                to.withCString { openat($0, $1, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600) }
            })
        do { return try replace(from, to: to) } catch {
            // The file is empty, and ours. The error of the rename matters more than a file that may stay.
            try? unlink(to)
            throw error
        }
    }

    private static func replace(_ from: NameAt, to: NameAt) throws(SystemError) {
        try ExclusiveRename.call("rename", from, to) { renameat($0, $1, $2, $3) }
    }

    private static func unlink(_ name: NameAt) throws(SystemError) {
        _ = try systemCall("unlink", on: name.shown.display) { name.withCString { unlinkat($0, $1, 0) } }
    }
}

extension OpenFolder {
    /// Renames from this directory into another and never replaces: `EEXIST` if `to` exists.
    ///
    /// - Parameter isOurs: As in ``Files/renameNoReplace(_:to:isOurs:)``.
    package borrowing func renameNoReplace(
        _ from: FilePath, to: FilePath, in target: borrowing OpenFolder, isOurs: Bool = false
    ) throws(SystemError) {
        let (shownFrom, shownTo) = (path.appending(from), target.path.appending(to))
        try withNumber { source throws(SystemError) in
            try target.withNumber { number throws(SystemError) in
                try Files.renameNoReplace(
                    NameAt(from, in: source, shown: shownFrom), to: NameAt(to, in: number, shown: shownTo),
                    isOurs: isOurs, by: .kernel)
            }
        }
    }
}
