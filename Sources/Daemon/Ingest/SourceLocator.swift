internal import Config
internal import Core
internal import Linux
internal import Store

/// Finds the sources of assets, distinguishes a removed file from one whose disk is absent, and reports absent disks.
struct SourceLocator: Sendable {
    private let context: Context
    /// The configured folders, through which every source is reached.
    private let folders: SourceFolders
    /// Folders whose disk is absent, with files that wait for it.
    private let absentFolders = Alerts()

    init(context: Context, folders: SourceFolders) { (self.context, self.folders) = (context, folders) }

    /// The source, on a card wherever that is mounted now.
    func source(of asset: AssetRecord) -> SourceFile {
        guard let folder = context.configuration.folder(asset.folder), folder.card != nil else {
            return folders.source(asset.path)
        }
        return SourceFile(folder: folders[folder.watch.path], relative: asset.path.relative)
    }

    /// Reports that files wait for the disk of their folder: once, however many files wait. ``disksAreBack(_:)`` clears
    /// it.
    func diskIsAway(_ folder: String, _ reason: String) {
        let hold = Hold(.absent, since: context.clocks.wall(), text: reason)
        guard absentFolders.set(folder, hold, changeKey: "") else { return }
        context.log.notice("files wait for the disk of their folder", ["folder": folder, "reason": reason])
    }

    /// Folders with files that wait for their disk.
    var awaitedFolders: Set<String> { Set(absentFolders.byName.keys) }

    func disksAreBack(_ folders: Set<String>) { for folder in folders { _ = absentFolders.clear(folder) } }

    /// The reason why no file of the asset's folder can be read any more; `nil` when only this file is affected. Waits
    /// for the disk.
    ///
    /// - Parameter error: The error of reading the file. A disk that is pulled out stays mounted for a while, and
    ///   returns this error for everything on it.
    func absence(of asset: AssetRecord, after error: SystemError) -> String? {
        if error.isOfAnotherFolder { return "\(asset.root.display): \(error.reason)" }
        guard error.isOfDisk else { return nil }
        if RemovableDisk().isGone(under: Files.real(asset.root) ?? asset.root) {
            return "the disk of \(asset.root.display) was pulled out"
        }
        // A card may be mounted at another place than before.
        do throws(SystemError) { _ = try source(of: asset).folder.open().stream("").next { _, _ in } } catch {
            return "\(asset.root.display) can no longer be read: \(error.reason)"
        }
        return nil
    }

    /// The requirement in the settings of the asset's folder that is not met, so that none of its files count; `nil`
    /// when all are met. Costs almost nothing where nothing is required.
    func requirementMissing(of asset: AssetRecord) -> String? {
        context.configuration.folder(asset.folder)?.watch.requirement == FolderRequirement() ? nil : missing(asset)
    }

    /// The same, including the mounts in fstab(5).
    private func missing(_ asset: AssetRecord) -> String? {
        guard let folder = context.configuration.folder(asset.folder) else { return nil }
        let rule = folder.watch
        // Another card may be mounted there now.
        if folder.isCardAway { return "its card is not mounted" }
        guard folder.card != nil || rule.path == asset.root else { return nil }
        return MountCheck(folders[rule.path], [rule.requirement]).missing()
    }

    /// Whether the disk of an asset is not at the folder itself, so that none of its files are there. Otherwise its file
    /// may be away alone: where another file system is mounted over a part of the folder, or is not mounted below it.
    /// Waits for the disk.
    func isDiskAway(of asset: AssetRecord) -> Bool {
        if missing(asset) != nil { return true }
        do throws(SystemError) {
            let root = try source(of: asset).folder.open()
            guard let home = asset.identity.fileSystem else { return false }
            if FileSystems().identity(of: root, device: try root.status(at: "").device)?.name == home { return false }
            // The directory of a mount below the folder would exist without it.
            var below = asset.path.relative
            while !below.parent.isEmpty { below = below.parent }
            if below == asset.path.relative { return true }
            do throws(SystemError) { _ = try root.folder(below) } catch { return error.isMissing }
            return false
        } catch { return true }
    }

    /// Whether the file that has the asset's name now is certainly on another file system than the asset was: it is none
    /// of its versions, and the disk with the asset may come back. Waits for the disk.
    func isOnOtherDisk(_ asset: AssetRecord) throws(SystemError) -> Bool {
        guard let home = asset.identity.fileSystem, let folder = try nearestFolder(to: source(of: asset)) else {
            return false
        }
        let here = try FileSystems().identity(of: folder, device: folder.status(at: "").device)?.name
        return FileIdentity.areOtherDisks(here, home)
    }

    enum Whereabouts: Sendable {
        /// A file with its name exists.
        case there
        /// Its place is absent: its folder is gone, another file system shows through where its own was mounted, or the
        /// folder does not meet its requirement.
        case away
        /// The file was removed.
        case gone
    }

    /// Whether the place of the asset's source is absent, or another disk has a file of that name there. Waits for the
    /// disk.
    func isAway(_ asset: AssetRecord) throws(SystemError) -> Bool {
        if try whereabouts(of: asset) == .away { return true }
        return try isOnOtherDisk(asset)
    }

    /// The whereabouts of the asset's source. Waits for the disk.
    ///
    /// A disk may appear or disappear between any two questions. So `gone` is returned only if the same disk was
    /// present before and after the search for the name.
    func whereabouts(of asset: AssetRecord) throws(SystemError) -> Whereabouts {
        if asset.stagingMode == .received { return .gone }
        do throws(SystemError) { return try locate(asset) } catch {
            if error.isOfAnotherFolder { return .away }
            throw error
        }
    }

    private func locate(_ asset: AssetRecord) throws(SystemError) -> Whereabouts {
        let source = source(of: asset)
        for _ in 0..<10 {
            // A file of that name would not count then: the folder has the wrong content.
            if requirementMissing(of: asset) != nil { return .away }
            if try source.isPresent() { return .there }
            if missing(asset) != nil { return .away }
            // A file system may be mounted anywhere below the folder: the nearest directory that still exists decides.
            guard let nearest = try nearestFolder(to: source) else { return .away }
            let before = nearest.uniqueMount
            // Asked again: an answer from before the disk disappeared would be wrong.
            if let home = asset.identity.fileSystem,
                FileSystems().identity(of: nearest, device: try nearest.status(at: "").device)?.name != home
            {
                return .away
            }
            if try source.isPresent() { return .there }
            if try nearestFolder(to: source)?.uniqueMount == before { return .gone }
        }
        // The disk appears and disappears repeatedly.
        return .away
    }

    /// The nearest existing directory above a source; `nil` when not even its folder exists.
    private func nearestFolder(to source: SourceFile) throws(SystemError) -> OpenFolder? {
        var relative = source.relative.parent
        while true {
            do { return try source.folder.open().folder(relative) } catch {
                guard error.isMissing else { throw error }
                if relative.isEmpty { return nil }
            }
            relative = relative.parent
        }
    }
}
