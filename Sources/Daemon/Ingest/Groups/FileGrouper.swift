internal import Config
internal import Core
internal import Linux
internal import Store
internal import Watch

/// Holds back settled files of folders with `group` until all files of their group have settled too.
///
/// It keeps them in memory only: after a restart the scan finds them again.
actor FileGrouper {
    private let context: Context
    private let sources: SourceFolders
    private let inspector: GroupInspector
    private let intake: Intake
    private let reconsider: @Sendable (_ folder: String, _ relative: FilePath) -> Void
    private var grouping = Grouping() { didSet { if grouping.takeWake() { signal.signal() } } }
    private let signal: AsyncSignal
    /// The rules by which the waiting files are grouped, by folder.
    private var rules: [String: GroupRule] = [:]
    /// Folders whose files were grouped by a rule that has changed.
    private var outdatedFolders: Set<String> = []

    private var hasLoggedFull = false
    /// Files were left to a later scan.
    private var hasSkippedFiles = false
    /// Those of them that a group waits for: they are kept whatever waits.
    private var wantedFiles: Set<SourcePath> = []
    /// Files that were released and are not recorded yet, by folder.
    private var unrecordedFiles: [String: Int] = [:]

    /// The number of waiting files is limited, since what some of them wait for never arrives; a scan finds the others
    /// again.
    private let maxWaitingFiles: Int
    private var isFull: Bool { grouping.count >= maxWaitingFiles }

    init(
        context: Context, sources: SourceFolders, intake: Intake, fileSystems: FileSystems, signal: AsyncSignal,
        maxWaitingFiles: Int = 20_000, reconsider: @escaping @Sendable (_ folder: String, _ relative: FilePath) -> Void
    ) {
        (self.context, self.sources) = (context, sources)
        (self.intake, self.maxWaitingFiles) = (intake, maxWaitingFiles)
        inspector = GroupInspector(
            context: context, disk: GroupDisk(context: context, sources: sources, fileSystems: fileSystems),
            maxWaitingFiles: maxWaitingFiles)
        self.reconsider = reconsider
        self.signal = signal
    }

    /// Keeps the files that have a group.
    ///
    /// - Returns: The files that travel alone.
    func partition(_ files: [SettledFile]) async -> [SettledFile] {
        let now = context.clocks.monotonic()
        var alone: [SettledFile] = []
        let isFull = isFull
        if !isFull { wantedFiles = [] }
        for file in files {
            guard let folder = context.configuration.folder(file.folder), let rule = folder.group,
                // A skipped file leads no group; if it gets content later, it arrives again.
                file.status.size > 0 || folder.empty == .upload,
                let key = await rule.key(of: file, in: sources)
            else {
                alone.append(file)
                continue
            }
            // The others do not stay here for long, and take these along.
            let isWanted = wantedFiles.remove(file.path) != nil
            if isFull, !isWanted, rule.isSidecar(file.relative.name) || rule.by == .manifest && key.stem.isEmpty {
                hasSkippedFiles = true
                continue
            }
            if let earlier = rules.updateValue(rule, forKey: file.folder), earlier != rule {
                outdatedFolders.insert(file.folder)
            }
            grouping.add(file, under: key, wait: rule.wait, at: now)
            guard rule.by == .stem else { continue }
            grouping.move(
                Grouping.Key(folder: key.folder, directory: key.directory, stem: file.relative.name), to: key)
        }
        if isFull, !hasLoggedFull {
            context.log.warning(
                "too many files wait for others of their group; a later scan picks up the others",
                ["files": "\(grouping.count)"])
        }
        hasLoggedFull = isFull
        return alone
    }

    func run() async throws {
        while !Task.isCancelled {
            try await regroupOutdated()
            let now = context.clocks.monotonic()
            await inspector.forgetListings()
            var needsRepeat = false
            for key in grouping.due(at: now) where !Task.isCancelled {
                do {
                    if try await evaluate(at: key) { needsRepeat = true }
                } catch let error as SystemError {
                    // Other programs control the content of a folder: a group that cannot be inspected waits alone.
                    wait(key, for: "\(error)", isExpected: true)
                }
            }
            if needsRepeat { continue }
            // A group that arrived during the inspection of another has its own time.
            await signal.wait(
                atMost: grouping.next.map { max(.milliseconds(10), $0.since(context.clocks.monotonic())) })
        }
    }

    /// Groups the waiting files of folders whose rule has changed.
    private func regroupOutdated() async throws {
        for (folder, rule) in rules where context.configuration.folder(folder)?.group != rule {
            outdatedFolders.insert(folder)
        }
        let folders = outdatedFolders
        outdatedFolders = []
        for folder in folders {
            rules[folder] = nil
            let files = grouping.removeAll(of: folder)
            // Meanwhile they count as held: a card with such files must not be called safe to remove.
            unrecordedFiles[folder, default: 0] += files.count
            defer { unrecordedFiles[folder, default: 0] -= files.count }
            let alone = await partition(files)
            if !alone.isEmpty { try await passToIntake(alone, of: folder) }
        }
    }

    /// - Returns: Whether the group has changed meanwhile, so that it has to be evaluated again.
    private func evaluate(at key: Grouping.Key) async throws -> Bool {
        guard let group = grouping.all[key], let first = group.members.values.first else { return false }
        guard let folder = context.configuration.folder(key.folder), let rule = folder.group else {
            // The configuration has changed: the files travel alone.
            try await passToIntake(grouping.remove(key), of: key.folder)
            return false
        }
        if try await dropChanged(key, group) { return true }
        let place = GroupPlace(key: key, group: group, root: first.root, folder: folder, rule: rule)
        let finding = try await inspector.inspect(place, among: grouping)
        // More files arrived during the disk access.
        guard let now = grouping.all[key], now.members.keys == group.members.keys else { return true }
        switch finding {
        case .waits(let reason, let awaited, let isExpected):
            wait(key, for: reason, awaiting: awaited.first, isExpected: isExpected)
            // Files that were left to a later scan are needed now.
            for file in awaited where hasSkippedFiles {
                if isFull { wantedFiles.insert(SourcePath(root: first.root, relative: file)) }
                reconsider(key.folder, file)
            }
        case .gives(let files):
            let now = context.clocks.monotonic()
            for file in files {
                grouping.move(
                    [file], from: key, to: .unlisted(in: file.parent, of: key.folder), wait: rule.wait, at: now)
            }
            return true
        case .takes(let others):
            let now = context.clocks.monotonic()
            for (other, files) in others { grouping.move(files, from: other, to: key, wait: .zero, at: now) }
        case .divides(let shares): try await divide(place, shares)
        case .goes(let leader):
            await inspector.forget(place)
            try await passToIntake(
                grouping.remove(key), of: key.folder,
                as: FileUnit(rule: rule, name: rule.by == .stem ? nil : key.name, leader: leader))
        }
        return false
    }

    private func wait(
        _ key: Grouping.Key, for reason: String, awaiting awaited: FilePath? = nil, isExpected: Bool
    ) {
        let now = context.clocks.monotonic()
        guard grouping.wait(key, for: reason, awaiting: awaited, isExpected: isExpected, at: now) else { return }
        context.log.info(
            "files wait for their group", ["folder": key.folder, "group": key.name.display, "reason": reason])
    }

    private func passToIntake(_ files: [SettledFile], of folder: String, as unit: FileUnit? = nil) async throws {
        unrecordedFiles[folder, default: 0] += files.count
        defer { unrecordedFiles[folder, default: 0] -= files.count }
        try await intake.record(files, as: unit)
    }

    /// Passes files on to the groups of their manifests.
    private func divide(_ place: GroupPlace, _ shares: [GroupFinding.Share]) async throws {
        let key = place.key
        let now = context.clocks.monotonic()
        for share in shares where !share.isRecorded {
            grouping.move(
                share.files, from: key, to: .manifest(share.manifest, in: key.folder), wait: place.rule.wait, at: now)
        }
        for share in shares where share.isRecorded {
            try await passToIntake(
                grouping.remove(share.files, of: key), of: key.folder,
                as: FileUnit(rule: place.rule, name: share.manifest, leader: share.manifest))
        }
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

    // MARK: Reported to other components

    /// The waiting files, by folder.
    ///
    /// - Parameter most: Files to name in each.
    func waiting(naming most: Int) -> [String: GroupWaits] {
        grouping.waiting(naming: most) { context.configuration.folder($0)?.group }
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
    func key(of file: SettledFile, in sources: SourceFolders) async -> Grouping.Key? {
        let source = sources.source(file.path)
        // A file that cannot be inspected counts as absent for now: it joins when it settles.
        return
            (try? await blocking {
                key(of: file) { (try? source.sibling($0).statusIfPresent()?.isRegular) == true }
            }) ?? key(of: file) { _ in false }
    }
}
