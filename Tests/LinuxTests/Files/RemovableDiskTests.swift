import Core
import Glibc
import Linux
import TestKit
import Testing

/// The kernel's data of a block device, as files and links of an artificial `/sys`.
@Suite("Removable disks")
struct RemovableDiskTests {
    let folder = TemporaryFolder()

    /// - Parameter way: The path below `devices`, down to the disk: `pci0/usb1/1-1/block/sdb`.
    private func disk(_ way: String, removable: String = "0", type: String? = nil, partitions: [String] = []) throws {
        let disk = folder.path.appending("devices").appending(FilePath(way))
        try write(disk.appending("removable"), removable + "\n")
        if let type { try write(disk.appending("device/type"), type + "\n") }
        try link(disk.name, to: "../devices/\(way)")
        for partition in partitions {
            try write(disk.appending(FilePath(partition)).appending("partition"), "1\n")
            try link(FilePath(partition), to: "../devices/\(way)/\(partition)")
        }
    }

    private func write(_ path: FilePath, _ text: String) throws {
        try Files.makeFolders(path.parent)
        try Files.replace(path, with: Array(text.utf8))
    }

    private func link(_ name: FilePath, to target: String) throws {
        let block = folder.path.appending("block")
        try Files.makeFolders(block)
        #expect(block.appending(name).withCString { symlink(target, $0) } == 0)
    }

    private func holds(_ source: String, root: String = "/dev/nvme0n1p1") -> Bool {
        let table = """
            20 1 259:1 / / rw - ext4 \(root) rw
            30 20 8:17 / /media/card rw - vfat \(source) rw

            """
        return RemovableDisk(blocks: folder.path.appending("block"), mounts: MountTable(Array(table.utf8)))
            .contains("/media/card/DCIM")
    }

    init() throws { try disk("pci0/nvme/nvme0n1", partitions: ["nvme0n1p1", "nvme0n1p2"]) }

    @Test("a card in a reader, with and without partitions, is removable")
    func reader() throws {
        try disk("pci0/ata1/host0/block/sdb", removable: "1", partitions: ["sdb1"])
        #expect(holds("/dev/sdb1"))
        #expect(holds("/dev/sdb"))
    }

    @Test("a USB disk that reports itself as fixed is removable")
    func usb() throws {
        try disk("pci0/0000:00:14.0/usb2/2-1/2-1:1.0/host4/block/sdc", partitions: ["sdc1"])
        #expect(holds("/dev/sdc1"))
    }

    @Test("a card in its own slot is removable, a soldered chip is not")
    func slot() throws {
        try disk("platform/mmc_host/mmc0/mmc0:aaaa/block/mmcblk0", type: "SD", partitions: ["mmcblk0p1", "mmcblk0p2"])
        try disk("platform/mmc_host/mmc1/mmc1:0001/block/mmcblk1", type: "MMC", partitions: ["mmcblk1p1"])
        #expect(holds("/dev/mmcblk0p1"))
        #expect(!holds("/dev/mmcblk1p1"))
        // The machine itself boots from it.
        #expect(!holds("/dev/mmcblk0p1", root: "/dev/mmcblk0p2"))
    }

    @Test("an encrypted card is removable by its underlying device")
    func mapped() throws {
        try disk("pci0/usb1/1-1/block/sdd", partitions: ["sdd1"])
        try Files.makeFolders(folder.path.appending("devices/virtual/block/dm-0/slaves/sdd1"))
        try link("dm-0", to: "../devices/virtual/block/dm-0")
        #expect(holds("/dev/dm-0"))
    }

    @Test("an internal disk, a network share, memory and unknown devices are not removable")
    func others() throws {
        try disk("pci0/ata1/host0/block/sda", partitions: ["sda1"])
        for source in ["/dev/sda1", "/dev/nvme0n1p2", "nas:/export", "//nas/share", "tmpfs", "/dev/unheard"] {
            #expect(!holds(source), "\(source)")
        }
    }
}
