import Core
import TestKit

@testable import Linux
@testable import Watch

/// A root, its rules, and a tree of directories without watches.
struct Trees {
    let folder = TemporaryFolder()
    let rules: [CompiledRule]
    let root: Root
    var tree = WatchTree(inotify: nil)

    /// - Parameter rules: All of them for the temporary folder.
    init(_ rules: [WatchRule] = [WatchRule(name: "cam", path: "/")]) {
        let path = folder.path
        self.rules = rules.map { rule in
            var rule = rule
            rule.path = path
            return CompiledRule(rule, skipsExisting: false)
        }
        root = Root(
            SourceFolders()[path], rules: Array(rules.indices), of: self.rules, nextCheck: .start)
        root.match(among: [root], rules: self.rules)
    }

    func directory(_ names: FilePath...) -> WatchedDirectory {
        names.reduce(root.top) { tree.child($1, of: $0, visit: 1) }
    }

    func place(_ name: FilePath) -> WatchedFile { WatchedFile(directory: root.top, name: name) }

    /// A settled file of the first rule.
    func settled(_ name: FilePath, folder: String = "cam") -> SettledFile {
        let status = FileStatus.regular(size: 1)
        return SettledFile(
            folder: folder, root: root.path, relative: name, status: status,
            identity: FileIdentity(status, folder: folder, relative: name, on: nil), settledBy: .quiet)
    }
}

extension FileStatus {
    static func regular(size: Int64, modified: Int64 = 1) -> FileStatus {
        FileStatus(device: 1, inode: 1, size: size, modified: modified, changed: modified, born: 1, mode: 0o100644)
    }
}

extension MonotonicTime {
    static let start = MonotonicTime(nanoseconds: 1_000_000_000_000)

    static func + (time: MonotonicTime, duration: Duration) -> MonotonicTime { time.advanced(by: duration) }
}
