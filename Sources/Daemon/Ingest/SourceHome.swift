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
    static func absence(of asset: AssetRecord, after error: SystemError, _ house: House) -> String? {
        if error.isOfAnotherFolder { return "\(asset.root.display): \(error.reason)" }
        guard error.isOfDisk else { return nil }
        if RemovableDisk().isGone(under: Files.real(asset.root) ?? asset.root) {
            return "the disk of \(asset.root.display) was pulled out"
        }
        do throws(SystemError) { _ = try house.sources[asset.root].open().stream("").next { _, _ in } } catch {
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
        return FolderGate(house.sources[rule.path], [rule.requirement]).missing()
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
        do throws(SystemError) { return try found(asset, house) } catch {
            if error.isOfAnotherFolder { return .away }
            throw error
        }
    }

    private static func found(_ asset: AssetRecord, _ house: House) throws(SystemError) -> Whereabouts {
        let source = house.source(of: asset)
        for _ in 0..<10 {
            // Whatever has its name there then: it is not what the folder is to hold.
            if requirementMissing(of: asset, house) != nil { return .away }
            if try source.isPresent() { return .there }
            if missing(asset, house) != nil { return .away }
            // A file system may be mounted anywhere below the folder: the nearest directory that is left tells.
            guard let nearest = try nearestFolder(to: source) else { return .away }
            let before = nearest.uniqueMount
            // Asked afresh: an answer from before the disk went would be the wrong one.
            if let home = asset.identity.fileSystem,
                FileSystems().identity(of: nearest, device: try nearest.look(at: "").device)?.name != home
            {
                return .away
            }
            if try source.isPresent() { return .there }
            if try nearestFolder(to: source)?.uniqueMount == before { return .gone }
        }
        // It comes and goes all the time.
        return .away
    }

    /// The nearest directory above a source that is there; `nil` when not even its folder is.
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
