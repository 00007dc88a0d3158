package import Core

/// Whether a folder is on a medium that can be removed: a memory card, a disk on USB.
package struct RemovableDisk: Sendable {
    /// Where the kernel lists its block devices.
    private let blocks: FilePath
    private let mounts: MountTable

    package init(blocks: FilePath = "/sys/class/block", mounts: MountTable = MountTable()) {
        self.blocks = blocks
        self.mounts = mounts
    }

    /// A disk that also contains the root file system does not count, since it is never removed.
    ///
    /// - Parameter folder: Absolute, without symbolic links.
    package func contains(_ folder: FilePath) -> Bool {
        guard let device = device(of: folder) else { return false }
        if let root = self.device(of: "/"), !Set(disks(of: root)).isDisjoint(with: disks(of: device)) { return false }
        return disks(of: device).contains { isRemovable($0) }
    }

    /// Whether the device from which a folder's file system is mounted no longer exists: the medium was removed.
    package func isGone(under folder: FilePath) -> Bool {
        guard let device = device(of: folder) else { return false }
        return Files.linkTarget(blocks.appending(device)) == nil
    }

    /// The name of the block device from which a folder's file system is mounted.
    private func device(of folder: FilePath) -> FilePath? {
        guard let source = mounts.source(of: folder), source.relative(to: "/dev") != nil else { return nil }
        return mounts.place(of: source).path.name
    }

    /// The whole disks behind a device: for a partition its disk, for a mapped device (LUKS, LVM, RAID) all its disks.
    private func disks(of device: FilePath) -> [FilePath] {
        let folder = blocks.appending(device)
        // Without /sys nothing is known to be removable.
        let parts = (try? Files.names(in: folder.appending("slaves"))) ?? []
        if !parts.isEmpty { return parts.flatMap { disks(of: $0) } }
        guard let link = Files.linkTarget(folder) else { return [] }
        let isPartition = (try? FileStatus(at: folder.appending("partition"))) != nil
        return [isPartition ? link.parent.name : device]
    }

    private func isRemovable(_ disk: FilePath) -> Bool {
        let folder = blocks.appending(disk)
        // Documentation/ABI/stable/sysfs-block: 1 where the medium can be taken out, as with a card reader.
        if text(folder.appending("removable")) == "1" { return true }
        let components = Files.linkTarget(folder)?.components ?? []
        // An external disk has 0, but is attached to a USB port: `…/usb2/2-1/…`.
        if components.contains(where: { $0.bytes.starts(with: Array("usb".utf8)) }) { return true }
        // A card slot: `…/mmc_host/mmc0/mmc0:aaaa/block/mmcblk0`. Soldered ones have type MMC.
        return disk.bytes.starts(with: Array("mmcblk".utf8)) && text(folder.appending("device/type")) == "SD"
    }

    private func text(_ path: FilePath) -> String? {
        // Devices may disappear meanwhile.
        guard let bytes = try? Files.read(path) else { return nil }
        return String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }
}
