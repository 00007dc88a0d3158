package import Core
internal import Glibc
internal import Linux

/// Thrown when another process has locked the state folder.
package struct StateLockedError: Error, Hashable, Sendable, CustomStringConvertible {
    package let folder: FilePath
    /// The process that holds the lock, if its number is known.
    package let holder: Int32?

    package var description: String {
        let who = holder.map { "process \($0)" } ?? "another process"
        return "the state folder \(folder.display) is in use by \(who): stop that daemon first, or set another `state:`"
    }
}

extension StateFiles {
    /// The last process that wrote its number into the state folder, if a program of this name still has that number.
    /// Changes nothing, and takes no lock, which would keep a daemon from starting.
    package static func holder(of state: FilePath) -> Int32? {
        guard let text = try? Files.read(state.appending("lock"), limit: 64),
            let number = Int32(String(decoding: text, as: UTF8.self).split(separator: "\n").first ?? ""),
            let name = try? Files.read(FilePath("/proc/\(number)/comm"), limit: 64),
            name.starts(with: Array("sluice".utf8))
        else { return nil }
        return number
    }
}

/// Allows one daemon for each state folder, by a lock that the kernel releases when the process ends, however it ends
/// (flock(2)).
final class InstanceLock: Sendable {
    private let descriptor: Descriptor
    private let path: FilePath
    /// Whether a database was made here before. If it is missing then, it was removed.
    let wasUsed: Bool
    private static let used = "database made"

    init(folder: FilePath) throws {
        let path = folder.appending("lock")
        let descriptor = try Descriptor.open(path, for: .updating)
        guard try descriptor.tryLock(named: path) else {
            let text = String(decoding: try Files.read(path, limit: 64), as: UTF8.self)
            throw StateLockedError(folder: folder, holder: Int32(text.split(separator: "\n").first ?? ""))
        }
        let before = String(decoding: try Files.read(path, limit: 64), as: UTF8.self)
        wasUsed = before.contains(Self.used)
        // The number is for the message of the next process that tries, and for the start after a loss.
        try descriptor.withNumber { number throws(SystemError) in
            _ = try systemCall("ftruncate", on: path.display) { ftruncate(number, 0) }
        }
        try descriptor.write(Array("\(getpid())\n\(wasUsed ? Self.used + "\n" : "")".utf8), named: path)
        self.descriptor = descriptor
        self.path = path
    }

    /// Unlocks explicitly and does not rely on the last reference: the thread that made this may still hold one for a
    /// moment.
    func release() { descriptor.unlock() }

    deinit { release() }

    /// Notes that from now on a missing database is a loss and no first start.
    func noteUse() throws(SystemError) {
        if wasUsed { return }
        try descriptor.write(Array("\(Self.used)\n".utf8), named: path)
        try descriptor.sync(named: path)
        try Files.syncFolder(path.parent)
    }
}
