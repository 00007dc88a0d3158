internal import Core
internal import Glibc
internal import Linux

/// The meaning of an `errno` of the target for an upload. No other code evaluates an `errno` of a directory.
///
/// The rows are in docs/destinations/directory.md and in `DirectoryVerdictTests`. Nearly all of them are about the
/// folder as a whole, and hold the destination. Those that are about one name end one upload.
struct DirectoryVerdict: Hashable, Sendable {
    var remedy: Remedy
    var kind: Failure.Class
    /// The failure code, for scripts.
    var code: Failure.Code
    /// Advice for a person; empty where the kernel's message is enough.
    var advice: String

    /// Whether the call was about the target or about a name that a person or a camera chose.
    enum Subject: Hashable, Sendable { case target, name }

    init(_ error: CInt, about subject: Subject) {
        let hold = Remedy.holdDestination(after: nil)
        switch (error, subject) {
        case (ENOSPC, _), (EDQUOT, _):
            self.init(.outOfSpace(after: nil), .quota, error == ENOSPC ? .targetFull : .targetQuota, "free space there")
        case (EROFS, _):
            self.init(
                .misconfigured, .config, .targetReadOnly,
                "mount it writable; under systemd, `sudo sluice systemd-paths --install` opens it")
        case (EACCES, _), (EPERM, _):
            self.init(.misconfigured, .config, .targetDenied, "give the daemon's user the right to write there")
        // A name that the file system cannot have: too long, a colon on exFAT, bytes that are no UTF-8.
        case (ENAMETOOLONG, .name), (EINVAL, .name), (EILSEQ, .name):
            self.init(
                .failUpload, .permanent, .nameRefused, "set `remote_name` of the folder to names that fit there")
        case (EFBIG, _):
            self.init(.failUpload, .permanent, .fileTooLarge, "that file system does not support files of this size")
        case (ELOOP, .name), (ENOTDIR, .name), (EISDIR, .name):
            self.init(
                .refused(after: nil), .config, .folderInTheWay,
                "a file or a link has the name of a folder, and links are not followed: move it away")
        case (ENOTDIR, _):
            self.init(
                hold, .transient, .targetMissing,
                "the path is not a folder: move it away, or set another `path`")
        case (ENOENT, _), (ELOOP, _), (ENODEV, _), (ENXIO, _):
            self.init(hold, .transient, .targetMissing, "mount it, or create the folder")
        case (ESTALE, _), (ENOTCONN, _), (EHOSTDOWN, _), (EHOSTUNREACH, _), (ENETDOWN, _), (ENETUNREACH, _),
            (ETIMEDOUT, _), (ECONNREFUSED, _), (ECONNRESET, _), (ECONNABORTED, _), (ESHUTDOWN, _), (ENOLINK, _):
            self.init(hold, .transient, .targetAway, "the mount does not answer; uploads continue when it does")
        case (EIO, _), (EREMOTEIO, _), (EUCLEAN, _):
            self.init(hold, .transient, .targetBroken, "check the disk there, and the connection to it")
        case (ENOLCK, _), (EOPNOTSUPP, _), (ENOSYS, _), (EXDEV, _):
            self.init(
                .misconfigured, .config, .targetUnable, "that file system lacks a needed feature; see the manual")
        case (EBUSY, _), (EAGAIN, _), (ETXTBSY, _), (EEXIST, _), (EINTR, _):
            self.init(.retry(after: nil), .transient, .targetBusy, "")
        default:
            // ENOMEM, EMFILE and any other error: the file has not caused it.
            self.init(hold, .transient, .targetFailed, "")
        }
    }

    private init(_ remedy: Remedy, _ kind: Failure.Class, _ code: Failure.Code, _ advice: String) {
        self.remedy = remedy
        self.kind = kind
        self.code = code
        self.advice = advice
    }
}
