internal import Config
internal import Core

/// The files of a folder that wait for others of their group.
struct GroupWaits: Sendable {
    var files = 0
    /// The first files by their paths.
    var first: [GroupWait] = []
}

extension GroupWaits {
    /// Names only the first files by their paths.
    fileprivate mutating func keep(_ most: Int) {
        first = Array(first.map { ($0.file.path.shown, $0) }.sorted { $0.0 < $1.0 }.prefix(most).map(\.1))
    }
}

struct GroupWait: Sendable {
    var file: SettledFile
    /// The event that it waits for, with the configuration key that requires it.
    var reason: String
    var since: MonotonicTime
    /// When it is inspected; `nil` where only another file ends its wait.
    var until: MonotonicTime?
    /// The file of the group that exists and has not settled, if that is the reason.
    var awaited: SourcePath?
}

extension Grouping {
    /// The waiting files, by folder.
    ///
    /// - Parameters:
    ///   - most: Files to name in each.
    ///   - rule: That of a folder.
    func waiting(naming most: Int, _ rule: (_ folder: String) -> GroupRule?) -> [String: GroupWaits] {
        var waiting: [String: GroupWaits] = [:]
        for (key, group) in all {
            let reason = group.reason(rule(key.folder))
            waiting[key.folder, default: GroupWaits()].files += group.members.count
            waiting[key.folder]?.first += group.members.values.map { member in
                GroupWait(
                    file: member, reason: reason, since: group.since, until: group.isFresh ? group.next : nil,
                    awaited: group.awaited.map { SourcePath(root: member.root, relative: $0) })
            }
            // Twenty thousand may wait: those that are named are found again and again among few.
            if let count = waiting[key.folder]?.first.count, count / 2 > most { waiting[key.folder]?.keep(most) }
        }
        for folder in waiting.keys { waiting[folder]?.keep(most) }
        return waiting
    }
}

extension Grouping.Group {
    fileprivate func reason(_ rule: GroupRule?) -> String {
        if let reason, !isFresh { return reason }
        return "waits for further files of its group: `group.wait: \(writtenTime(rule?.wait ?? .zero))`"
    }
}
