internal import Core
internal import Linux
internal import Staging
internal import Store

/// Texts for people about sources that cannot be released now.
enum ReleaseAdvice {
    /// The kernel's error, and advice for a person.
    static func text(after error: SystemError, for asset: AssetRecord) -> String {
        // The kernel names the place that refused: the source's folder, or the target's.
        var folder = asset.path.shown.parent.display
        if case .move(let template) = asset.action {
            let place = asset.moveTarget(template).shown.parent.display
            if error.subject.contains(place) { folder = place }
        }
        if error.isNotPermitted {
            return "\(error); \(folder) or the file forbids it to the daemon's user in spite of its permissions: "
                + "look for a sticky bit (ls -ld) and for the attributes i and a (lsattr)"
        }
        if error.isDenied { return "\(error); the daemon's user needs write permission on \(folder)" }
        if error.isReadOnly {
            return "\(folder) is on a read-only file system: mount it writable"
                + (Notify().isEnabled
                    ? "; if it is, the systemd unit makes it read-only: `sudo sluice systemd-paths --install` opens it"
                    : "")
        }
        return error.description
    }
}

extension AssetRecord {
    /// The place that its source is moved to after the upload.
    func moveTarget(_ template: Template) -> MoveTarget {
        RemoteNaming(
            folder: folder, relative: identity.relative, size: size, modified: identity.modified, sha256: sha256,
            id: "\(id)"
        ).target(template)
    }
}
