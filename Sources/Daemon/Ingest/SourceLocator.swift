internal import Config
internal import Core
internal import Linux
internal import Store

/// Distinguishes a removed file from one whose disk is absent.
enum SourceLocator {
    /// The reason why no file of the asset's folder can be read any more; `nil` when only this file is affected. Waits
    /// for the disk.
    ///
    /// - Parameter error: The error of reading the file. A disk that is pulled out stays mounted for a while, and
    ///   returns this error for everything on it.
    static func absence(of asset: AssetRecord, after error: SystemError, _ house: House) -> String? {
        if error.isOfAnotherFolder { return "\(asset.root.display): \(error.reason)" }
        guard error.isOfDisk else { return nil }
        if RemovableDisk().isGone(under: Files.real(asset.root) ?? asset.root) {
            return "the disk of \(asset.root.display) was pulled out"
        }
        do throws(SystemError) { _ = try house.sources[asset.root].open().stream("").next { _, _ in } } catch {
            return "\(asset.root.display) can no longer be read: \(error.reason)"
        }
        return nil
    }

    /// The requirement in the settings of the asset's folder that is not met, so that none of its files count; `nil`
    /// when all are met. Costs almost nothing where nothing is required.
    static func requirementMissing(of asset: AssetRecord, _ house: House) -> String? {
        house.folder(asset.folder)?.watch.requirement == FolderRequirement() ? nil : missing(asset, house)
    }

    /// The same, including the mounts in fstab(5).
    private static func missing(_ asset: AssetRecord, _ house: House) -> String? {
        guard let rule = house.folder(asset.folder)?.watch, rule.path == asset.root else { return nil }
        return FolderGate(house.sources[rule.path], [rule.requirement]).missing()
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

    /// The whereabouts of the asset's source. Waits for the disk.
    ///
    /// A disk may appear or disappear between any two questions. So `gone` is returned only if the same disk was
    /// present before and after the search for the name.
    static func whereabouts(of asset: AssetRecord, _ house: House) throws(SystemError) -> Whereabouts {
        if asset.stagingMode == .received { return .gone }
        do throws(SystemError) { return try found(asset, house) } catch {
            if error.isOfAnotherFolder { return .away }
            throw error
        }
    }

    private static func found(_ asset: AssetRecord, _ house: House) throws(SystemError) -> Whereabouts {
        let source = house.source(of: asset)
        for _ in 0..<10 {
            // A file of that name would not count then: the folder has the wrong content.
            if requirementMissing(of: asset, house) != nil { return .away }
            if try source.isPresent() { return .there }
            if missing(asset, house) != nil { return .away }
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
    private static func nearestFolder(to source: SourceFile) throws(SystemError) -> OpenFolder? {
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
