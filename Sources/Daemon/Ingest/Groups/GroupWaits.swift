internal import Config
internal import Core

/// The files of a folder that wait for others of their group.
struct GroupWaits: Sendable {
    var files = 0
    /// The first files by their paths.
    var first: [GroupWait] = []
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
            waiting[key.folder, default: GroupWaits()].files += group.members.count
            for member in group.members.values {
                // Twenty thousand may wait: only files that come before the last named one are sorted in.
                let before = waiting[key.folder]?.first.firstIndex {
                    member.path.shown < $0.file.path.shown
                }
                let place = before ?? waiting[key.folder]?.first.count ?? 0
                guard place < most else { continue }
                waiting[key.folder]?.first.insert(
                    GroupWait(
                        file: member, reason: group.reason(rule(key.folder)), since: group.since,
                        until: group.isFresh ? group.next : nil,
                        awaited: group.awaited.map { SourcePath(root: member.root, relative: $0) }), at: place)
                if let count = waiting[key.folder]?.first.count, count > most {
                    waiting[key.folder]?.first.removeLast()
                }
            }
        }
        return waiting
    }
}

extension Grouping.Group {
    fileprivate func reason(_ rule: GroupRule?) -> String {
        if let reason, !isFresh { return reason }
        return "waits for further files of its group: `group.wait: \(writtenTime(rule?.wait ?? .zero))`"
    }
}
