package import Core
internal import Glibc

extension Files {
    /// Why this process may not create and remove files in a folder, by its effective rights; `nil` when it may
    /// (faccessat(2), `AT_EACCESS`).
    package static func refusal(toWriteIn folder: FilePath) -> SystemError? {
        do {
            try systemCall("access", on: folder.display) {
                folder.withCString { faccessat(AT_FDCWD, $0, W_OK | X_OK, CInt(AT_EACCESS)) }
            }
            return nil
        } catch { return error }
    }
}
