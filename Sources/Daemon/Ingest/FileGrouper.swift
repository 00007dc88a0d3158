internal import Config
internal import Core
internal import Linux
internal import Store
internal import Watch

/// Holds back settled files of folders with `group` until all files that travel with them have settled too.
///
/// It keeps them in memory only: after a restart the scan finds them again.
actor FileGrouper {
    private let context: Context
    private let sources: SourceFolders
    private let intake: Intake
    private let fileSystems: FileSystems
    private let reconsider: @Sendable (_ folder: String, _ relative: FilePath) -> Void
    private var grouping = Grouping() { didSet { if grouping.takeWake() { signal.signal() } } }
    /// Files that groups wait for: their last status, and since when.
    private var expected: [SourcePath: (status: FileStatus, since: MonotonicTime)] = [:]
    private let signal: AsyncSignal

    private var hasLoggedFull = false
    /// Files that were released and are not recorded yet, by folder.
    private var unrecordedFiles: [String: Int] = [:]

    /// How long a file without events has to be quiet before it counts.
    private static let longestQuiet = QuietTimes().withoutEvents

    /// The number of waiting files is limited, since the videos of some sidecars never arrive; a scan finds the others
    /// again.
    private static let maxWaitingFiles = 20_000

    init(
        context: Context, sources: SourceFolders, intake: Intake, fileSystems: FileSystems, signal: AsyncSignal,
        reconsider: @escaping @Sendable (_ folder: String, _ relative: FilePath) -> Void
    ) {
        (self.context, self.sources) = (context, sources)
        self.intake = intake
        self.fileSystems = fileSystems
        self.reconsider = reconsider
        self.signal = signal
    }

    /// Keeps the files that have a group.
    ///
    /// - Returns: The files that travel alone.
    func partition(_ files: [SettledFile]) async -> [SettledFile] {
        let now = context.clocks.monotonic()
        var alone: [SettledFile] = []
        let isFull = grouping.count >= Self.maxWaitingFiles
        for file in files {
            guard let folder = context.configuration.folder(file.folder), let rule = folder.group,
                // A skipped file leads no group; if it gets content later, it arrives again.
                file.status.size > 0 || folder.empty == .upload
            else {
                alone.append(file)
                continue
            }
            // A video does not stay here for long, and takes its sidecars along.
            if isFull, rule.isSidecar(file.relative.name) { continue }
            let key = await rule.key(of: file, in: sources)
            grouping.add(file, under: key, wait: rule.wait, at: now)
            grouping.move(
                Grouping.Key(folder: key.folder, directory: key.directory, stem: file.relative.name), to: key)
        }
        if isFull, !hasLoggedFull {
            context.log.warning(
                "too many sidecar files wait for their videos; a later scan picks up the others",
                ["files": "\(grouping.count)"])
        }
        hasLoggedFull = isFull
        return alone
    }

    func run() async throws {
        while !Task.isCancelled {
            let now = context.clocks.monotonic()
            var listings: [FilePath: [FilePath]] = [:]
            var needsRepeat = false
            for key in grouping.due(at: now) where !Task.isCancelled {
                do {
                    if try await evaluate(at: key, now, &listings) { needsRepeat = true }
                } catch let error as SystemError {
                    // Other programs control the content of a folder: a group that cannot be inspected waits alone.
                    if grouping.wait(key, for: "\(error)", isExpected: true, at: now) { log(key, "\(error)") }
                }
            }
            if needsRepeat { continue }
            // A group that arrived during the inspection of another has its own time.
            await signal.wait(
                atMost: grouping.next.map { max(.milliseconds(10), $0.since(context.clocks.monotonic())) })
        }
    }

    /// - Returns: Whether the group has changed meanwhile, so that it has to be evaluated again.
    private func evaluate(at key: Grouping.Key, _ now: MonotonicTime, _ listings: inout [FilePath: [FilePath]])
        async throws -> Bool
    {
        guard let group = grouping.all[key], let first = group.members.values.first else { return false }
        guard let folder = context.configuration.folder(key.folder), let rule = folder.group else {
            // The configuration has changed: the files travel alone.
            try await passToIntake(grouping.remove(key), of: key.folder)
            return false
        }
        if try await dropChanged(key, group) { return true }
        let directory = first.root.appending(key.directory)
        let names: [FilePath]
        if let known = listings[directory] {
            names = known
        } else {
            let (sources, root, below) = (sources, first.root, key.directory)
            // If the disk is absent, the files that wait here are found again when it is back.
            names = try await blocking { try sources[root].open().stream(below).names() }
            listings[directory] = names
        }
        let taken = NameRules(include: folder.watch.include, exclude: folder.watch.exclude)
        let others = names.filter { name in
            if name.stem == key.stem { return true }
            return rule.isSidecar(name) && name.stem.stem == key.stem && names.contains(name.stem)
        }.map { key.directory.appending($0) }.filter { group.members[$0] == nil && taken.matches($0) }
        let neighbours = try await neighbours(others, first.root, key.folder)
        let missing = await stillSettling(try await unknown(neighbours), first.root, folder)
        // More files arrived during the disk access.
        guard let now = grouping.all[key], now.members.keys == group.members.keys else { return true }
        // Also a recorded file: a sidecar may arrive late, and a video may have a new version.
        let before = neighbours.first {
            !rule.isSidecar($0.relative.name) && ($0.status.size > 0 || folder.empty == .upload)
        }
        let isNew = group.members.keys.contains { !rule.isSidecar($0.name) }
        var leader = before?.relative
        if leader == nil, !isNew { leader = try await releasedVideo(key, rule) }
        if let one = missing.first {
            let reason = "waits for \(one.name.display), which has not settled: `group.by: stem`"
            let now = context.clocks.monotonic()
            if grouping.wait(key, for: reason, awaiting: one, isExpected: true, at: now) { log(key, reason) }
        } else if !isNew, leader == nil {
            let reason =
                "a sidecar file that waits for its \(key.stem.display).*: `group.sidecars: [\(rule.sidecars.joined(separator: ", "))]`"
            if grouping.wait(key, for: reason, isExpected: false, at: context.clocks.monotonic()) { log(key, reason) }
        } else {
            for one in others { expected[SourcePath(root: first.root, relative: one)] = nil }
            // Sources wait for each other also when only a recorded sidecar is still being uploaded.
            let joins = leader ?? neighbours.first?.relative
            try await passToIntake(grouping.remove(key), of: key.folder, asUnit: true, with: joins)
        }
        return false
    }

    /// The video that these files belong to, if it was taken up within the last day and is gone: it was released before
    /// its sidecar arrived.
    private func releasedVideo(_ key: Grouping.Key, _ rule: GroupRule) async throws -> FilePath? {
        let start = FilePath(bytes: key.directory.appending(key.stem).bytes + [UInt8(ascii: ".")])
        let since = context.clocks.wall().advanced(by: .zero - Self.lateness)
        return try await context.store.read {
            try $0.tombstones.recorded(in: key.folder, beginningWith: start, since: since)
        }.first {
            !rule.isSidecar($0.name) && $0.stem == key.directory.appending(key.stem)
        }
    }

    private static let lateness: Duration = .seconds(86_400)

    private func passToIntake(
        _ files: [SettledFile], of folder: String, asUnit: Bool = false, with leader: FilePath? = nil
    ) async throws {
        unrecordedFiles[folder, default: 0] += files.count
        defer { unrecordedFiles[folder, default: 0] -= files.count }
        try await intake.record(files, asUnit: asUnit, with: leader)
    }

    private struct Neighbour: Sendable {
        let relative: FilePath
        let status: FileStatus
        let identity: FileIdentity
    }

    /// The files among these that exist, with their status.
    private func neighbours(_ files: [FilePath], _ root: FilePath, _ folder: String) async throws -> [Neighbour] {
        if files.isEmpty { return [] }
        let (fileSystems, source) = (fileSystems, sources[root])
        return try await blocking {
            // Another medium may have got the device number since.
            fileSystems.forget()
            return try files.compactMap { relative in
                let top = try source.open()
                guard let status = try top.statusIfPresent(at: relative), status.isRegular else { return nil }
                let system = fileSystems.identity(of: top, at: relative, device: status.device)
                return Neighbour(
                    relative: relative, status: status,
                    identity: FileIdentity(status, folder: folder, relative: relative, on: system))
            }
        }
    }

    /// The files that were never taken up: the watcher is still handling them.
    private func unknown(_ files: [Neighbour]) async throws -> [(relative: FilePath, status: FileStatus)] {
        if files.isEmpty { return [] }
        let known = try await context.store.areKnown(files.map(\.identity))
        return zip(files, known).filter { !$0.1 }.map { ($0.0.relative, $0.0.status) }
    }

    /// The missing files that may still settle. A file that an ignore file excludes is not among them. A file that has
    /// been unchanged for much longer than settling takes is excluded by another rule of its folder (its size, its
    /// age), or its marker never arrived: a group does not wait for it.
    private func stillSettling(
        _ missing: [(relative: FilePath, status: FileStatus)], _ root: FilePath, _ folder: FolderSettings
    ) async -> [FilePath] {
        let now = context.clocks.monotonic()
        let longestWait = max(folder.watch.quietFor ?? .zero, Self.longestQuiet) * 2
        var coming: [FilePath] = []
        let (rule, sources) = (folder.watch, sources)
        for (relative, status) in missing {
            if (try? await blocking { PathEvaluation.isExcluded(relative, by: rule, in: sources) }) == true { continue }
            let path = SourcePath(root: root, relative: relative)
            guard let before = expected[path], before.status == status else {
                expected[path] = (status, now)
                coming.append(relative)
                continue
            }
            // A program that has it open may pause its writing.
            let isOpen = try? await blocking {
                try Lease.status(at: relative, in: sources[root].open()).writer == .present
            }
            if now.since(before.since) <= longestWait || isOpen == true { coming.append(relative) }
        }
        return coming
    }

    /// Removes files that changed or disappeared since they settled; changed files settle again.
    ///
    /// - Returns: Whether there was any.
    private func dropChanged(_ key: Grouping.Key, _ group: Grouping.Group) async throws -> Bool {
        let members = Array(group.members.values)
        let sources = sources
        let looks = try await blocking { try members.map { try sources.source($0.path).statusIfPresent() } }
        let changed = zip(members, looks).filter { $0.status != $1 }
        if changed.isEmpty { return false }
        grouping.drop(changed.map(\.0.relative), of: key)
        for (member, status) in changed where status != nil { reconsider(key.folder, member.relative) }
        return true
    }

    private func log(_ key: Grouping.Key, _ reason: String) {
        context.log.info(
            "files wait for their group",
            ["folder": key.folder, "group": key.directory.appending(key.stem).display, "reason": reason])
    }

    // MARK: Reported to other components

    struct Waiting: Sendable {
        var files = 0
        /// The first files by their paths.
        var first: [Member] = []
    }

    struct Member: Sendable {
        var file: SettledFile
        /// The event that it waits for, with the configuration key that requires it.
        var reason: String
        var since: MonotonicTime
        /// When it is inspected; `nil` where only another file ends its wait.
        var until: MonotonicTime?
        /// The file of the group that exists and has not settled, if that is the reason.
        var awaited: SourcePath?
    }

    /// The waiting files, by folder.
    ///
    /// - Parameter most: Files to name in each.
    func waiting(naming most: Int) -> [String: Waiting] {
        var all: [String: Waiting] = [:]
        for (key, group) in grouping.all {
            all[key.folder, default: Waiting()].files += group.members.count
            for member in group.members.values {
                // Twenty thousand may wait: only files that come before the last named one are sorted in.
                let before = all[key.folder]?.first.firstIndex {
                    member.path.shown < $0.file.path.shown
                }
                let place = before ?? all[key.folder]?.first.count ?? 0
                guard place < most else { continue }
                all[key.folder]?.first.insert(
                    Member(
                        file: member, reason: reason(of: group, in: key.folder), since: group.since,
                        until: group.isFresh ? group.next : nil,
                        awaited: group.awaited.map { SourcePath(root: member.root, relative: $0) }), at: place)
                if let count = all[key.folder]?.first.count, count > most { all[key.folder]?.first.removeLast() }
            }
        }
        return all
    }

    private func reason(of group: Grouping.Group, in folder: String) -> String {
        if let reason = group.reason, !group.isFresh { return reason }
        let wait = context.configuration.folder(folder)?.group?.wait ?? .zero
        return "waits for further files of its group: `group.wait: \(writtenTime(wait))`"
    }

    /// The number of files of each folder that are only here so far.
    var held: [String: Int] {
        grouping.all.reduce(into: unrecordedFiles.filter { $0.value > 0 }) {
            $0[$1.key.folder, default: 0] += $1.value.members.count
        }
    }

    /// Whether every group has been inspected, and waits only for another file.
    var isAtRest: Bool { grouping.all.values.allSatisfy { $0.reason != nil } }
}

extension GroupRule {
    /// Like ``key(of:isThere:)``, using the files beside it now. Waits for its disk.
    func key(of file: SettledFile, in sources: SourceFolders) async -> Grouping.Key {
        let source = sources.source(file.path)
        let plain = Grouping.Key(file)
        // A file that cannot be inspected counts as absent for now: it joins when it settles.
        return
            (try? await blocking {
                key(of: file) { (try? source.sibling($0).statusIfPresent()?.isRegular) == true }
            }) ?? plain
    }
}
