internal import CLinux
internal import Core
internal import Glibc

/// The directory of a configured path, opened link by link.
struct ConfiguredDirectory: ~Copyable {
    let folder: OpenFolder
    let device: UInt64
    let inode: UInt64
    let born: Int64?
    let owner: UInt32

    /// - Throws: With `detail` and `ESTALE` where a link on the way belongs to a user whose links are not followed.
    init(_ path: FilePath) throws(SystemError) {
        let opened = try Self.open(path)
        var status = sluice_look()
        try opened.withNumber { number throws(SystemError) in
            _ = try systemCall("statx", on: path.display) { sluice_statx(number, "", &status) }
        }
        (device, inode, owner) = (status.device, status.inode, status.owner)
        born = status.has_born != 0 ? status.born : nil
        folder = OpenFolder(opened, named: path)
    }

    consuming func intoFolder() -> OpenFolder { folder }

    private static let flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC

    private static func open(_ path: FilePath) throws(SystemError) -> Descriptor {
        if OpenFolder.Resolver.standard == .kernel {
            // Nearly always there is no link in it.
            let opened = path.withCString { sluice_open_without_links($0, flags) }
            if opened >= 0 { return Descriptor(adopting: opened) }
            guard errno == ELOOP || errno == EINTR else {
                throw SystemError(call: "open", subject: path.display, code: errno)
            }
        }
        return try followingLinks(path)
    }

    /// The next step on the way down.
    private enum Step {
        case enter(FilePath)
        /// The target of a link is reached.
        case arrived(link: FilePath, owner: UInt32)
    }

    /// The kernel's own limit (path_resolution(7)).
    private static let maxLinks = 40

    static func followingLinks(_ path: FilePath) throws(SystemError) -> Descriptor {
        func failure(_ code: CInt) -> SystemError { SystemError(call: "open", subject: path.display, code: code) }
        let openFlags = sluice_path_flag() | O_CLOEXEC
        func enter(_ folder: borrowing Descriptor, _ name: FilePath, _ flags: CInt) throws(SystemError) -> Descriptor {
            try folder.withNumber { number throws(SystemError) in
                Descriptor(
                    adopting: try systemCall("open", on: path.display) {
                        name.withCString { openat(number, $0, flags) }
                    })
            }
        }
        func start(_ path: FilePath) throws(SystemError) -> Descriptor {
            let name: FilePath = path.isAbsolute ? "/" : "."
            return Descriptor(
                adopting: try systemCall("open", on: name.display) {
                    name.withCString { openat(AT_FDCWD, $0, openFlags | O_DIRECTORY) }
                })
        }
        var at = try start(path)
        var steps = path.components.reversed().map { Step.enter($0) }
        var links = 0
        while let step = steps.popLast() {
            switch step {
            case .arrived(let link, let owner):
                let target = try self.owner(of: at, path)
                if !FolderIdentity.mayLead(linkOf: owner, toDirectoryOf: target, daemon: geteuid()) {
                    throw SystemError(
                        call: "open", subject: path.display, code: ESTALE,
                        detail:
                            "\(link.display) in its path is a symbolic link of user \(UserDatabase.shown(owner)) to a directory of "
                            + "user \(UserDatabase.shown(target)): change the owner of the link to root, the daemon's user or that user (chown -h), or "
                            + "configure the path without it")
                }
            case .enter(let name):
                do {
                    // With O_DIRECTORY, so that an automount is mounted.
                    at = try enter(at, name, openFlags | O_DIRECTORY | O_NOFOLLOW)
                } catch {
                    guard error.code == ENOTDIR || error.code == ELOOP else { throw error }
                    let link = try enter(at, name, openFlags | O_NOFOLLOW)
                    guard let target = try self.target(of: link, path) else { throw failure(ENOTDIR) }
                    links += 1
                    if links > maxLinks { throw failure(ELOOP) }
                    steps.append(.arrived(link: name, owner: try owner(of: link, path)))
                    steps += target.components.reversed().map { Step.enter($0) }
                    if target.isAbsolute { at = try start(target) }
                }
            }
        }
        return try enter(at, ".", flags)
    }

    private static func owner(of file: borrowing Descriptor, _ path: FilePath) throws(SystemError) -> UInt32 {
        var status = sluice_look()
        try file.withNumber { number throws(SystemError) in
            _ = try systemCall("statx", on: path.display) { sluice_statx(number, "", &status) }
        }
        return status.owner
    }

    /// The target of a link; `nil` if it is not a link.
    private static func target(of link: borrowing Descriptor, _ path: FilePath) throws(SystemError) -> FilePath? {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = link.withNumber { number in
            buffer.withUnsafeMutableBytes { buffer in
                buffer.baseAddress.map {
                    readlinkat(number, "", $0.assumingMemoryBound(to: CChar.self), buffer.count)
                } ?? -1
            }
        }
        return count > 0 ? FilePath(bytes: buffer[..<count]) : nil
    }
}
