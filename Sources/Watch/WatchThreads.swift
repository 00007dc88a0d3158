package import Core
internal import Linux
internal import Synchronization

/// The watching threads, and the assignment of folders to them.
///
/// All folders share one thread, except those on file systems that may not answer. Each of these file systems has one
/// thread for all folders on it, so that a server that is gone delays no other folder. Only the mount table decides
/// which these are, because a request to such a file system may never return.
final class WatchThreads: Sendable {
    struct Member: Sendable {
        /// Mount point of the file system; `nil` for the thread of all others.
        let key: FilePath?
        let mailbox: Mailbox
        /// Paths of folders.
        var folderPaths: Set<FilePath>
    }

    private struct Content {
        var rules: [WatchRule]
        var skipping: Set<String>
        /// Folders whose first scan is over.
        var scanned: Set<String> = []
        var members: [Member]
    }

    private let content: Mutex<Content>
    /// Held from deciding on the assignment until it is stored: of a change and a mount event at the same time, the
    /// second must see the result of the first.
    private let assignment = Mutex<Void>(())
    private let makeMailbox: @Sendable (FilePath) -> Mailbox

    /// - Parameter makeMailbox: Makes the mailbox of a new member, from its key.
    init(rules: [WatchRule], skipping: Set<String>, makeMailbox: @escaping @Sendable (FilePath) -> Mailbox) {
        let mailbox = Mailbox(states: rules.map { WatchState($0, .scanning) })
        content = Mutex(
            Content(
                rules: rules, skipping: skipping,
                members: [Member(key: nil, mailbox: mailbox, folderPaths: Set(rules.map(\.path)))]))
        self.makeMailbox = makeMailbox
    }

    var members: [Member] { content.withLock { $0.members } }
    var rules: [WatchRule] { content.withLock { $0.rules } }
    var skipping: Set<String> { content.withLock { $0.skipping.subtracting($0.scanned) } }

    func noteScanned(_ folders: [String]) { content.withLock { $0.scanned.formUnion(folders) } }

    /// Replaces the folders.
    ///
    /// - Returns: New members, which have no thread yet.
    func change(_ rules: [WatchRule], skipping: Set<String>) -> [Member] {
        assignment.withLock { _ in
            let groups = Self.groups(rules)
            return content.withLock { content in
                content.rules = rules
                content.skipping = skipping
                content.scanned = []
                return assign(groups, &content)
            }
        }
    }

    /// Assigns each folder to its thread, at the start and after mounts changed.
    ///
    /// - Returns: As ``change(_:skipping:)``.
    func reassign() -> [Member] {
        assignment.withLock { _ in
            let groups = Self.groups(rules)
            return content.withLock { content in
                let before = Dictionary(content.members.map { ($0.key, $0.folderPaths) }, uniquingKeysWith: { $1 })
                if groups == before { return [] }
                return assign(groups, &content)
            }
        }
    }

    /// Removes a member that could not start: the next change tries again.
    func remove(_ key: FilePath) { content.withLock { $0.members.removeAll { $0.key == key } } }

    private func assign(_ groups: [FilePath?: Set<FilePath>], _ content: inout Content) -> [Member] {
        let skipping = content.skipping.subtracting(content.scanned)
        for index in content.members.indices {
            content.members[index].folderPaths = groups[content.members[index].key] ?? []
            let member = content.members[index]
            let isOver = member.folderPaths.isEmpty && member.key != nil
            member.mailbox.post(
                isOver ? .stop : .change(content.rules, skipExisting: skipping, ours: member.folderPaths))
        }
        content.members.removeAll { $0.folderPaths.isEmpty && $0.key != nil }
        var new: [Member] = []
        for (key, ours) in groups {
            guard let key, !content.members.contains(where: { $0.key == key }) else { continue }
            new.append(Member(key: key, mailbox: makeMailbox(key), folderPaths: ours))
        }
        content.members += new
        return new
    }

    private static func groups(_ rules: [WatchRule]) -> [FilePath?: Set<FilePath>] {
        let table = MountTable()
        var groups: [FilePath?: Set<FilePath>] = [nil: []]
        for path in Set(rules.map(\.path)) {
            let place = table.place(of: path)
            // A folder that contains such a file system has a thread of its own.
            let key = place.slow ?? (table.hasSlow(below: place.path) ? path : nil)
            groups[key, default: []].insert(path)
        }
        return groups
    }
}

extension WatchState {
    /// A state with nothing known yet.
    package init(_ rule: WatchRule, _ condition: Condition) {
        self.init(folder: rule.name, path: rule.path, condition: condition, settling: 0, oldest: nil, unwatched: 0)
    }
}
