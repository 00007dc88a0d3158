internal import CLinux
package import Core
internal import Glibc
internal import Synchronization

/// The identity of a file system, in values that stay the same after a reboot.
package struct FileSystemIdentity: Hashable, Sendable {
    /// Its UUID; otherwise type and source (`nfs4:nas:/export`), or type and mount point where the source has no
    /// meaning (`tmpfs:/tmp`). Never the device number.
    package var name: String
    /// As in mountinfo: `ext4`, `vfat`.
    package var type: String
    /// A file has the same inode number at every mount.
    package var keepsInodes: Bool
}

/// Distinguishes file systems. Answers are kept until ``forget()``, because a scan needs them for every folder.
package final class FileSystems: Sendable {
    private let known = Mutex<[UInt64: FileSystemIdentity]>([:])

    package init() {}

    /// Device numbers are reused for the next card that is plugged in, so call this when mounts may have changed.
    package func forget() { known.withLock { $0 = [:] } }

    /// The number of the mount that contains `path`, after following links; `nil` if the kernel does not report it
    /// (before 5.8).
    package static func mount(of path: FilePath) -> UInt64? {
        let number = path.withCString { sluice_mount_number(AT_FDCWD, $0) }
        return number == 0 ? nil : number
    }

    /// The file system that contains `path`, after following links.
    ///
    /// - Parameter device: The device in the status of `path`.
    /// - Returns: `nil` if `/proc` does not report it.
    package func identity(at path: FilePath, device: UInt64) -> FileSystemIdentity? {
        identity(device) {
            path.withCString { sluice_mount_number(AT_FDCWD, $0) }
        } uuid: {
            let flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC
            let opened = path.withCString { Glibc.open($0, flags) }
            return opened < 0 ? nil : Self.uuid(of: Descriptor(adopting: opened))
        }
    }

    /// The file system that contains an open folder, or a name below it.
    package func identity(
        of folder: borrowing OpenFolder, at relative: FilePath = "", device: UInt64
    ) -> FileSystemIdentity? {
        if let known = known.withLock({ $0[device] }) { return known }
        let number = folder.mountNumber(at: relative) ?? 0
        var uuid: [UInt8]?
        if relative.isEmpty {
            uuid = folder.withNumber { Self.uuid(of: $0) }
        } else if let file = try? folder.open(relative, for: .reading) {
            // For a file that cannot be opened, it is unknown.
            uuid = Self.uuid(of: file)
        }
        return identity(device) {
            number
        } uuid: {
            uuid
        }
    }

    /// The file system that contains a folder that is being listed.
    package func identity(of folder: FolderStream, device: UInt64) -> FileSystemIdentity? {
        identity(device) {
            sluice_mount_number(folder.number, "")
        } uuid: {
            Self.uuid(of: folder.number)
        }
    }

    private func identity(
        _ device: UInt64, mountNumber: () -> UInt64, uuid: () -> [UInt8]?
    ) -> FileSystemIdentity? {
        if let identity = known.withLock({ $0[device] }) { return identity }
        guard let mount = Mount.of(mountNumber(), device: device) else { return nil }
        let kept = Self.keepingUUID.contains(mount.type) ? uuid().map(Self.text) : nil
        let identity = FileSystemIdentity(
            name: kept ?? Self.linkedUUID(to: mount.source) ?? mount.fallbackName, type: mount.type,
            keepsInodes: Self.keepingInodes.contains(mount.type))
        known.withLock { $0[device] = identity }
        return identity
    }

    private static let keepingInodes: Set<String> = [
        "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "zfs", "jfs", "reiserfs", "nilfs2", "ubifs",
        "tmpfs", "overlay", "nfs", "nfs4",
    ]

    /// Types that keep the UUID on the disk; tmpfs and others make a new one at every mount.
    private static let keepingUUID: Set<String> = ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs"]

    private static func uuid(of file: borrowing Descriptor) -> [UInt8]? { file.withNumber { uuid(of: $0) } }

    private static func uuid(of file: CInt) -> [UInt8]? {
        var uuid = [UInt8](repeating: 0, count: 16)
        // Images of virtual machines come without one.
        return sluice_file_system_uuid(file, &uuid) == 0 && uuid.contains { $0 != 0 } ? uuid : nil
    }

    private static func text(_ uuid: [UInt8]) -> String {
        var text = ""
        for (index, digit) in hexadecimal(uuid).enumerated() {
            if [8, 12, 16, 20].contains(index) { text.append("-") }
            text.append(digit)
        }
        return text
    }

    /// The file systems that are mounted at some points. Those that may not answer are not accessed.
    ///
    /// - Parameter isMeant: Whether a mount point counts.
    package static func cards(at isMeant: (FilePath) -> Bool) -> [MountedCard] {
        // Without /proc nothing is known.
        guard let table = try? Files.read("/proc/self/mountinfo", limit: 16 << 20) else { return [] }
        // Of two mounts at one point the later one covers the earlier.
        let covering = Dictionary(Mount.parse(table).map { ($0.point, $0) }, uniquingKeysWith: { $1 })
        return covering.values.filter { isMeant($0.point) && $0.type != "autofs" }.map { mount in
            let name = FileSystems().identity(of: mount)
            return MountedCard(
                point: mount.point, fileSystem: name, label: linkedLabel(to: mount.source) ?? mount.point.name,
                device: mount.device, root: mount.root)
        }
    }

    private func identity(of mount: Mount) -> String {
        // Only these are asked themselves; the disk of another may be slow.
        if Self.keepingUUID.contains(mount.type), let name = identity(at: mount.point, device: mount.device)?.name {
            return name
        }
        return Self.linkedUUID(to: mount.source) ?? mount.fallbackName
    }

    /// The label in the link that udev made for the device: bytes other than letters, digits and some signs are written
    /// as `\xHH` (udev, `util_replace_chars`).
    private static func linkedLabel(to source: FilePath) -> FilePath? {
        linkedName(to: source, in: "/dev/disk/by-label").map { name in
            name.text.flatMap { FilePath(display: $0) } ?? name
        }
    }

    /// The link that udev made for the device. On kernels before 6.9, and for file systems such as FAT, this is the
    /// only source.
    private static func linkedUUID(to source: FilePath) -> String? {
        linkedName(to: source, in: "/dev/disk/by-uuid")?.text
    }

    private static func linkedName(to source: FilePath, in folder: FilePath) -> FilePath? {
        guard source.bytes.starts(with: Array("/dev/".utf8)) else { return nil }
        // Both are often missing (containers, early boot); then the fallback name is used.
        guard let device = try? FileStatus.following(source), let names = try? Files.names(in: folder) else {
            return nil
        }
        for name in names {
            guard let linked = try? FileStatus.following(folder.appending(name)) else { continue }
            if linked.inode == device.inode && linked.device == device.device { return name }
        }
        return nil
    }
}

/// One line of `/proc/self/mountinfo` (proc(5)).
struct Mount {
    let number: UInt64
    let device: UInt64
    /// The part of the file system that is visible at the mount point: `/`, or less for a bind mount or a subvolume.
    let root: FilePath
    let point: FilePath
    let type: String
    let source: FilePath
    /// Options of the file system, which all its mounts share: `rw`, `hidepid=invisible`.
    var options: [Substring] = []

    /// Found by the number of the mount; by device on kernels before 5.8 (which does not find a Btrfs subvolume).
    static func holding(_ path: FilePath, device: UInt64) -> Mount? {
        of(path.withCString { sluice_mount_number(AT_FDCWD, $0) }, device: device)
    }

    static func of(_ number: UInt64, device: UInt64) -> Mount? {
        // Without /proc nothing is known.
        guard let table = try? Files.read("/proc/self/mountinfo", limit: 16 << 20) else { return nil }
        let mounts = parse(table)
        return mounts.last { $0.number == number } ?? mounts.last { $0.device == device }
    }

    /// `36 35 98:0 /root /mnt rw,noatime master:1 - ext4 /dev/sda1 rw`
    static func parse(_ table: [UInt8]) -> [Mount] {
        table.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let fields = line.split(separator: UInt8(ascii: " "))
            guard let dash = fields.firstIndex(where: { $0.elementsEqual("-".utf8) }), dash >= 6,
                dash + 2 < fields.count, let number = UInt64(String(decoding: fields[0], as: UTF8.self))
            else { return nil }
            let pair = fields[2].split(separator: UInt8(ascii: ":")).compactMap {
                UInt32(String(decoding: $0, as: UTF8.self))
            }
            guard pair.count == 2 else { return nil }
            return Mount(
                number: number, device: sluice_device_number(pair[0], pair[1]), root: unescaped(fields[3]),
                point: unescaped(fields[4]), type: String(decoding: fields[dash + 1], as: UTF8.self),
                source: unescaped(fields[dash + 2]),
                options: fields.dropFirst(dash + 3).flatMap {
                    String(decoding: $0, as: UTF8.self).split(separator: ",")
                })
        }
    }

    var fallbackName: String {
        // `/dev/sda1`, `nas:/export`, `//nas/share` identify a source; `tmpfs`, `none`, `overlay` do not.
        let says = source.bytes.contains { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: ":") }
        return "\(type):\((says ? source : point).display)"
    }

    /// Space, tab, newline and backslash are written as three octal digits.
    static func unescaped(_ field: ArraySlice<UInt8>) -> FilePath {
        var out: [UInt8] = []
        var rest = field
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3)
            if byte == UInt8(ascii: "\\"), digits.count == 3,
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 8)
            {
                out.append(value)
                rest = rest.dropFirst(3)
            } else {
                out.append(byte)
            }
        }
        return FilePath(bytes: out)
    }
}

extension FileStatus {
    /// The status of a symbolic link's target.
    static func behind(_ path: FilePath) -> FileStatus? { try? following(path) }

    fileprivate static func following(_ path: FilePath) throws(SystemError) -> FileStatus {
        var status = sluice_look()
        try systemCall("statx", on: path.display) { path.withCString { sluice_statx_following($0, &status) } }
        return FileStatus(status)
    }
}

/// The number of the mount that contains `path`, which no later mount of this boot gets.
///
/// - Returns: `nil` if the kernel does not report it (before 6.8).
package func uniqueMount(holding path: FilePath) -> UInt64? {
    let number = path.withCString { sluice_unique_mount_number(AT_FDCWD, $0) }
    return number == 0 ? nil : number
}

extension FileIdentity {
    /// - Parameters:
    ///   - folder: The configured folder's name.
    ///   - relative: The path below it.
    ///   - fileSystem: The file system that contains it; `nil` where that is unknown.
    package init(_ status: FileStatus, folder: String, relative: FilePath, on fileSystem: FileSystemIdentity?) {
        self.init(
            folder: folder, relative: relative, size: status.size, modified: status.modified,
            inode: fileSystem?.keepsInodes == true ? status.inode : nil, born: status.born, fileSystem: fileSystem?.name
        )
    }
}
