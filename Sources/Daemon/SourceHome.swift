internal import Config
internal import Core
internal import Linux
internal import Store

/// Tells a file that was removed from one whose disk is not there.
enum SourceHome {
    /// Whether the asset's name is missing because what it stood on is: its folder is gone, or another file system
    /// shows through where its own was mounted, or the folder lacks what it must have. `false` while the name is there.
    static func isAway(_ asset: AssetRecord, _ house: House) throws(SystemError) -> Bool {
        if try FileLook.ifPresent(at: asset.path) != nil { return false }
        if let rule = house.folder(asset.folder)?.watch, rule.path == asset.root,
            FolderGate(rule.path, [rule.requirement]).missing() != nil
        {
            return true
        }
        // A file system may be mounted anywhere below the folder: the nearest directory that is left tells.
        var nearest = asset.path.parent
        while nearest != asset.root, nearest.relative(to: asset.root) != nil,
            try FileLook.ifPresent(at: nearest) == nil
        {
            nearest = nearest.parent
        }
        guard let look = try FileLook.ifPresent(at: nearest) else { return true }
        guard let home = asset.identity.fileSystem else { return false }
        // Asked afresh: an answer from before the disk went would be the wrong one.
        return FileSystems().identity(at: nearest, device: look.device)?.name != home
    }
}
