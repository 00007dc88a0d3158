internal import Config
internal import Core
internal import Linux
internal import Store

/// Tells a file that was removed from one whose disk is not there.
enum SourceHome {
    /// Why nothing of the asset's folder can be read any more; `nil` when it is this file alone. Waits for the disk.
    ///
    /// - Parameter error: What reading the file ended with. A disk that is pulled out stays mounted for a while, and says
    ///   this of everything on it.
    static func absence(of asset: AssetRecord, after error: SystemError) -> String? {
        guard error.isOfDisk else { return nil }
        if RemovableDisk().isGone(under: Files.real(asset.root) ?? asset.root) {
            return "the disk of \(asset.root.display) was pulled out"
        }
        do throws(SystemError) { _ = try Files.names(in: asset.root) } catch {
            return "\(asset.root.display) cannot be read any more: \(error.reason)"
        }
        return nil
    }

    /// What the asset's folder must have by its own settings and lacks, so that nothing of it counts; `nil` when it lacks
    /// nothing. Costs next to nothing where nothing is asked for.
    static func requirementMissing(of asset: AssetRecord, _ house: House) -> String? {
        house.folder(asset.folder)?.watch.requirement == FolderRequirement() ? nil : missing(asset, house)
    }

    /// The same, also by what fstab(5) says.
    private static func missing(_ asset: AssetRecord, _ house: House) -> String? {
        guard let rule = house.folder(asset.folder)?.watch, rule.path == asset.root else { return nil }
        return FolderGate(rule.path, [rule.requirement]).missing()
    }

    enum Whereabouts: Sendable {
        /// Its name stands there.
        case there
        /// What it stood on is not there: its folder is gone, another file system shows through where its own was
        /// mounted, or the folder lacks what it must have.
        case away
        /// Somebody removed it.
        case gone
    }

    /// Where the asset's source is. Waits for the disk.
    ///
    /// A disk may come or go between any two questions: "removed" is said only when its disk was there, and the same one, before
    /// and after the name was looked for.
    static func whereabouts(of asset: AssetRecord, _ house: House) throws(SystemError) -> Whereabouts {
        if asset.keeping == .received { return .gone }
        for _ in 0..<10 {
            // Whatever has its name there then: it is not what the folder is to hold.
            if requirementMissing(of: asset, house) != nil { return .away }
            if try FileLook.ifPresent(at: asset.path) != nil { return .there }
            if missing(asset, house) != nil { return .away }
            // A file system may be mounted anywhere below the folder: the nearest directory that is left tells.
            var nearest = asset.path.parent
            while nearest != asset.root, nearest.relative(to: asset.root) != nil,
                try FileLook.ifPresent(at: nearest) == nil
            {
                nearest = nearest.parent
            }
            let before = uniqueMount(holding: nearest)
            guard let look = try FileLook.ifPresent(at: nearest) else { return .away }
            // Asked afresh: an answer from before the disk went would be the wrong one.
            if let home = asset.identity.fileSystem,
                FileSystems().identity(at: nearest, device: look.device)?.name != home
            {
                return .away
            }
            if try FileLook.ifPresent(at: asset.path) != nil { return .there }
            if uniqueMount(holding: nearest) == before { return .gone }
        }
        // It comes and goes all the time.
        return .away
    }
}
