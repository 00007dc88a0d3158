package import Core
internal import Glibc

/// Distinguishes a folder that exists from the empty mount point of a disk that is not mounted.
///
/// Used by one thread.
package final class MountCheck {
    private let folder: SourceFolder
    private let requirements: [FolderRequirement]
    private let table: FilePath
    private var points: [FilePath: MountPoint] = [:]

    /// - Parameters:
    ///   - requirements: All of them have to be met.
    ///   - table: fstab(5), which says which mounts are required where no requirement does.
    package init(_ folder: SourceFolder, _ requirements: [FolderRequirement], table: FilePath = "/etc/fstab") {
        self.folder = folder
        self.requirements = requirements
        self.table = table
    }

    /// Describes the unmet requirement; `nil` when all are met.
    ///
    /// - Parameter folder: The folder, open.
    package func missing(in folder: borrowing OpenFolder) throws(SystemError) -> String? {
        for requirement in requirements {
            if let missing = try mount(requirement, folder) { return missing }
            if let file = requirement.file, try !folder.has(file) {
                return
                    "\(file.display) is missing (require.file): its file system is not mounted, or was never marked"
            }
        }
        return nil
    }

    /// The same for a folder that is not open. A folder that cannot be opened counts as missing.
    package func missing() -> String? {
        do throws(SystemError) { return try missing(in: folder.open()) } catch {
            return absence(after: error)
        }
    }

    /// Describes the problem when the folder itself cannot be opened.
    package func absence(after error: SystemError) -> String {
        guard error.isMissing else { return error.reason }
        for requirement in requirements {
            guard let place = requirement.mount, place != "/" else { continue }
            let point = points[place] ?? MountPoint(place)
            points[place] = point
            // A mount point that cannot be checked counts as not mounted.
            let isOn = (try? Self.isOn(place, point)) ?? false
            if !isOn { return "nothing is mounted at \(place.display) (require.mount)" }
        }
        return "it does not exist"
    }

    private static func isOn(_ place: FilePath, _ point: MountPoint) throws(SystemError) -> Bool {
        try point.contains(OpenFolder(following: place))
    }

    private func mount(
        _ requirement: FolderRequirement, _ folder: borrowing OpenFolder
    ) throws(SystemError) -> String? {
        let expected = requirement.mount == nil ? self.expected(folder) : nil
        guard let point = requirement.mount ?? expected, point != "/" else { return nil }
        let mount = points[point] ?? MountPoint(point)
        points[point] = mount
        if try mount.contains(folder) { return nil }
        return "nothing is mounted at \(point.display) "
            + (expected == nil
                ? "(require.mount)"
                : "(\(table.display) names it; if that is intended, set `require: {mount: /}`)")
    }

    private func expected(_ folder: borrowing OpenFolder) -> FilePath? {
        let path = folder.path.normalised
        return MountPoint.expected(among: [path, folder.realPath ?? path], table: table)
    }
}

extension FolderStream {
    /// Whether the name exists in the folder, for any kind of file.
    package func has(_ name: FilePath) throws(SystemError) -> Bool {
        do {
            try systemCall("faccessat", on: name.display) {
                name.withCString { faccessat(number, $0, F_OK, CInt(AT_SYMLINK_NOFOLLOW)) }
            }
            return true
        } catch {
            if error.isMissing { return false }
            throw error
        }
    }

    /// The content of a small file in the folder; `nil` when it does not exist. No link is followed.
    ///
    /// - Throws: `EFBIG` for a larger one, `EINVAL` if it is not a regular file.
    package func read(_ name: FilePath, limit: Int) throws(SystemError) -> [UInt8]? {
        let file: Descriptor
        do {
            let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
            file = Descriptor(
                adopting: try systemCall("open", on: name.display) {
                    name.withCString { openat(number, $0, flags) }
                })
        } catch {
            if error.code == ENOENT { return nil }
            throw error
        }
        guard try FileStatus(of: file, named: name).isRegular else {
            throw SystemError(call: "read", subject: name.display, code: EINVAL)
        }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let got = try file.read(into: &buffer, named: name)
            if got == 0 { return content }
            content += buffer[..<got]
            if content.count > limit { throw SystemError(call: "read", subject: name.display, code: EFBIG) }
        }
    }
}
