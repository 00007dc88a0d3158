internal import Config
internal import Core
internal import Linux

/// A group of waiting files, and where it is.
struct GroupPlace: Sendable {
    let key: Grouping.Key
    let group: Grouping.Group
    let root: FilePath
    let folder: FolderSettings
    let rule: GroupRule

    var path: SourcePath { SourcePath(root: root, relative: key.name) }
}

/// The result of inspecting a group.
enum GroupFinding: Sendable {
    /// The files that exist and have not settled, if that is the reason.
    case waits(for: String, awaiting: [FilePath] = [], isExpected: Bool)
    /// It is complete, and belongs to the file at this path, which was recorded before.
    case goes(joining: FilePath?)
    /// Some of its files belong to the groups of manifests.
    case divides([Share])
    /// These of its files are not listed any more, and wait for another manifest.
    case gives(Set<FilePath>)
    /// Files that wait in other groups belong to it.
    case takes([Grouping.Key: Set<FilePath>])

    /// Files of a group that belong to a manifest.
    struct Share: Sendable {
        var manifest: FilePath
        var files: Set<FilePath>
        /// The manifest was recorded before.
        var isRecorded: Bool
    }
}

/// Finds out what a group waits for, on the disk and in the record.
actor GroupInspector {
    private let context: Context
    private let disk: GroupDisk
    private let maxWaitingFiles: Int
    private var awaited = AwaitedFiles()
    /// The manifests that were read, so that each version is read once.
    private var manifests: [SourcePath: ReadManifest] = [:]
    private static let mostManifests = 100
    /// The names in directories, for the groups that are inspected at one time.
    private var listings: [FilePath: [FilePath]] = [:]

    /// - Parameter maxWaitingFiles: A directory with more files does not wait for all of them.
    init(context: Context, disk: GroupDisk, maxWaitingFiles: Int) {
        (self.context, self.disk, self.maxWaitingFiles) = (context, disk, maxWaitingFiles)
    }

    /// Called before several groups are inspected.
    func forgetListings() {
        listings = [:]
        if manifests.count > Self.mostManifests { manifests = [:] }
    }

    /// The group has gone.
    func forget(_ place: GroupPlace) {
        awaited.forget(of: place.path)
        manifests[place.path] = nil
    }

    /// Waits for the disk.
    ///
    /// - Parameter grouping: All waiting files.
    func inspect(_ place: GroupPlace, among grouping: Grouping) async throws -> GroupFinding {
        switch place.rule.by {
        case .stem: try await inspectStem(place)
        case .directory: try await inspectDirectory(place)
        case .manifest where place.key.stem.isEmpty: try await inspectUnlisted(place, among: grouping)
        case .manifest: try await inspectManifest(place, among: grouping)
        }
    }

    private func inspectStem(_ place: GroupPlace) async throws -> GroupFinding {
        let (key, group, rule, folder) = (place.key, place.group, place.rule, place.folder)
        let names = try await names(in: key.directory, place.root)
        let isTaken = folder.watch.pathFilter
        let others = names.filter { name in
            if name.stem == key.stem { return true }
            return rule.isSidecar(name) && name.stem.stem == key.stem && names.contains(name.stem)
        }.map { key.directory.appending($0) }.filter { group.members[$0] == nil && isTaken($0) }
        let neighbours = try await disk.files(others, in: place.root, of: key.folder)
        if let one = try await missing(neighbours, place) { return notSettled([one], place) }
        // Also a recorded file: a sidecar may arrive late, and a video may have a new version.
        let before = neighbours.first {
            !rule.isSidecar($0.relative.name) && ($0.status.size > 0 || folder.empty == .upload)
        }
        let isNew = group.members.keys.contains { !rule.isSidecar($0.name) }
        var leader = before?.relative
        if leader == nil, !isNew {
            let stem = key.directory.appending(key.stem)
            let start = FilePath(bytes: stem.bytes + [UInt8(ascii: ".")])
            leader = try await disk.releasedFile(beginningWith: start, of: key.folder) {
                !rule.isSidecar($0.name) && $0.stem == stem
            }
        }
        if !isNew, leader == nil {
            return .waits(
                for:
                    "a sidecar file that waits for its \(key.stem.display).*: `group.sidecars: [\(rule.sidecars.joined(separator: ", "))]`",
                isExpected: false)
        }
        // Sources wait for each other also when only a recorded sidecar is still being uploaded.
        return .goes(joining: leader ?? neighbours.first?.relative)
    }

    private func inspectDirectory(_ place: GroupPlace) async throws -> GroupFinding {
        let key = place.key
        // All of a larger one would not fit into the memory that waiting files may have: the rest joins it.
        if place.group.members.count >= maxWaitingFiles {
            context.log.warning(
                "a directory has too many files to wait for all of them; the others join its group when they settle",
                ["folder": key.folder, "group": key.name.display, "files": "\(place.group.members.count)"])
            return .goes(joining: place.group.members.keys.first)
        }
        let (files, trouble) = try await disk.survey(key.directory, in: place.root, of: key.folder)
        if let trouble { return .waits(for: trouble, isExpected: true) }
        let others = try await disk.recorded(files.filter { place.group.members[$0.relative] == nil })
        if let one = try await missing(others, place) { return notSettled([one], place) }
        var leader = others.first { $0.isKnown }?.relative
        if leader == nil {
            let start = FilePath(bytes: key.directory.bytes + [UInt8(ascii: "/")])
            leader = try await disk.releasedFile(beginningWith: start, of: key.folder) { _ in true }
        }
        return .goes(joining: leader)
    }

    private func inspectManifest(_ place: GroupPlace, among grouping: Grouping) async throws -> GroupFinding {
        let (key, group, own) = (place.key, place.group, place.key.name)
        guard let member = group.members[own] else {
            // Its files wait for it again, or for another one.
            if try await disk.files([own], in: place.root, of: key.folder).isEmpty {
                return .gives(Set(group.members.keys))
            }
            return notSettled([own], place)
        }
        // It has changed since, and settles again: the next inspection finds that.
        guard let read = try await manifest(member.path), read.status == member.status else {
            return notSettled([own], place)
        }
        let listed: Manifest
        switch read.result {
        case .success(let manifest): listed = manifest
        case .failure(let problem): return .waits(for: "\(own.display) \(problem)", isExpected: false)
        }
        // A corrected manifest may not list them any more.
        let unlisted = Set(group.members.keys.filter { $0 != own && listed.lines[$0] == nil })
        if !unlisted.isEmpty { return .gives(unlisted) }
        let isTaken = place.folder.watch.pathFilter
        for (path, line) in listed.lines.sorted(by: { $0.value < $1.value }) where !isTaken(path) {
            return .waits(
                for: "\(own.display) line \(line) lists \(path.display), which the rules of the folder leave out",
                isExpected: false)
        }
        let claimed = claim(listed.files, for: place, among: grouping)
        if !claimed.isEmpty { return .takes(claimed) }
        let others = try await disk.files(
            listed.files.filter { group.members[$0] == nil }, in: place.root, of: key.folder)
        let found = Set(others.map(\.relative))
        let absent = listed.files.filter { group.members[$0] == nil && !found.contains($0) }.sorted()
        // A file that was released is not missing.
        let gone = try await disk.released(absent, of: key.folder)
        if let path = absent.first(where: { !gone.contains($0) }) {
            let reason = try await disk.objection(to: path, in: place.root, of: key.folder)
            return .waits(
                for: "waits for \(path.display), which \(own.display) lists and which \(reason): `group.by: manifest`",
                isExpected: false)
        }
        // Two manifests may list each other.
        let unsettled = others.filter { !$0.isKnown && !place.rule.isManifest($0.relative.name) }
        if let one = unsettled.min(by: { $0.relative < $1.relative })?.relative {
            if let reason = await disk.obstacle(to: one, in: place.root, of: key.folder) {
                return .waits(
                    for:
                        "waits for \(one.display), which \(own.display) lists and which \(reason): `group.by: manifest`",
                    awaiting: unsettled.map(\.relative), isExpected: true)
            }
            return notSettled(unsettled.map(\.relative).sorted(), place)
        }
        return .goes(joining: others.first { $0.isKnown }?.relative ?? gone.first)
    }

    /// Files that no manifest in memory lists.
    private func inspectUnlisted(_ place: GroupPlace, among grouping: Grouping) async throws -> GroupFinding {
        let (key, rule, isTaken) = (place.key, place.rule, place.folder.watch.pathFilter)
        var left = Set(place.group.members.keys)
        var shares: [GroupFinding.Share] = []
        var unsettled: FilePath?
        var directory = key.directory
        while true {
            let names = try await names(in: directory, place.root).filter {
                rule.isManifest($0) && isTaken(directory.appending($0))
            }
            for file in try await disk.files(
                names.sorted().map { directory.appending($0) }, in: place.root, of: key.folder)
            {
                guard let manifest = await usableManifest(SourcePath(root: place.root, relative: file.relative)) else {
                    continue
                }
                let own = left.intersection(manifest.files)
                if own.isEmpty { continue }
                let isWaiting = grouping.all[.manifest(file.relative, in: key.folder)] != nil
                guard isWaiting || file.isKnown else {
                    unsettled = file.relative
                    continue
                }
                left.subtract(own)
                shares.append(GroupFinding.Share(manifest: file.relative, files: own, isRecorded: !isWaiting))
            }
            if directory.isEmpty { break }
            directory = directory.parent
        }
        if !shares.isEmpty { return .divides(shares) }
        if let unsettled { return notSettled([unsettled], place) }
        return .waits(
            for: "waits for a manifest that lists it: `group.manifest: [\(rule.manifests.joined(separator: ", "))]`",
            isExpected: false)
    }

    /// The listed files that wait in other groups. Of two manifests that list a file, the first by name has it:
    /// otherwise each could have one that the other needs.
    private func claim(
        _ files: Set<FilePath>, for place: GroupPlace, among grouping: Grouping
    ) -> [Grouping.Key: Set<FilePath>] {
        var claimed: [Grouping.Key: Set<FilePath>] = [:]
        for (key, group) in grouping.all where key.folder == place.key.folder && key != place.key {
            guard key.stem.isEmpty || place.key.name < key.name else { continue }
            // A manifest stays in its own group.
            let found = files.filter { group.members[$0] != nil && $0 != key.name }
            if !found.isEmpty { claimed[key] = found }
        }
        return claimed
    }

    private func names(in directory: FilePath, _ root: FilePath) async throws -> [FilePath] {
        let path = root.appending(directory)
        if let known = listings[path] { return known }
        // If the disk is absent, the files that wait here are found again when it is back.
        let names = try await disk.names(in: directory, root)
        listings[path] = names
        return names
    }

    private func notSettled(_ files: [FilePath], _ place: GroupPlace) -> GroupFinding {
        let first = files.first.map { (place.rule.by == .stem ? $0.name : $0).display } ?? ""
        return .waits(
            for: "waits for \(first), which has not settled: `group.by: \(place.rule.by.rawValue)`", awaiting: files,
            isExpected: true)
    }

    /// The first of these files that the watcher is still handling; `nil` when there is none.
    private func missing(_ files: [GroupDisk.File], _ place: GroupPlace) async throws -> FilePath? {
        let now = context.clocks.monotonic()
        var coming: FilePath?
        for file in files where !file.isKnown {
            let path = SourcePath(root: place.root, relative: file.relative)
            // Of each, since the time of the first change counts; one that is coming is enough.
            let hasChanged = awaited.hasChangedLately(path, file.status, place.folder, at: now)
            if coming != nil { continue }
            if await disk.isExcluded(file.relative, by: place.folder) { continue }
            // A writer may pause.
            if hasChanged {
                coming = file.relative
            } else if await disk.isOpenForWriting(file.relative, in: place.root) {
                coming = file.relative
            }
        }
        return coming
    }

    /// - Returns: `nil` also for one that cannot be read or is wrong: another one may list the same files. Its own group
    ///   tells the reason.
    private func usableManifest(_ path: SourcePath) async -> Manifest? {
        guard let read = try? await manifest(path), case .success(let manifest) = read.result else { return nil }
        return manifest
    }

    /// - Returns: `nil` when it does not exist.
    private func manifest(_ path: SourcePath) async throws -> ReadManifest? {
        let sources = disk.sources
        let status = try await blocking { try sources.source(path).statusIfPresent() }
        if let known = manifests[path], known.status == status { return known }
        let read = try await blocking { try ReadManifest.read(path, in: sources) }
        manifests[path] = read
        return read
    }
}
