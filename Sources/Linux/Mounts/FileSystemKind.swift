internal import CLinux
package import Core
internal import Glibc

/// Classifies file systems, as far as it matters for watching files on them.
package enum FileSystemKind {
    /// `f_type` of file systems where every change passes through this kernel, and so causes events (statfs(2),
    /// linux/magic.h).
    private static let reportingChanges: Set<Int64> = [
        0xEF53,  // ext2, ext3, ext4
        0x5846_5342,  // XFS
        0x9123_683E,  // Btrfs
        0x0102_1994, 0x8584_58F6,  // tmpfs, ramfs
        0x794C_7630,  // overlay
        0x4D44, 0x2011_BAB0,  // FAT, exFAT
        0xF2F5_2010,  // F2FS
        0x2FC1_2FC1,  // ZFS
        0xCA45_1A4E,  // bcachefs
        0x7366_746E,  // ntfs3
        0x3153_464A, 0x5265_4973, 0x3434,  // JFS, ReiserFS, NILFS
        0x2405_1905, 0x72B6,  // UBIFS, JFFS2
        0x482B, 0x4244,  // HFS+, HFS
        0x9660, 0x1501_3346,  // ISO 9660, UDF
        0x7371_7368, 0xE0F5_E1E2,  // squashfs, EROFS
    ]

    /// Names in mountinfo: those, and virtual file systems of the kernel. None of them waits for another machine or for
    /// a program.
    private static let own: Set<String> = [
        "ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "ramfs", "overlay", "vfat", "msdos", "exfat", "f2fs", "zfs",
        "bcachefs", "ntfs3", "jfs", "reiserfs", "nilfs2", "ubifs", "jffs2", "hfsplus", "hfs", "iso9660", "udf",
        "squashfs", "erofs", "rootfs", "devtmpfs", "devpts", "proc", "sysfs", "cgroup", "cgroup2", "securityfs",
        "debugfs", "tracefs", "mqueue", "hugetlbfs", "bpf", "pstore", "configfs", "efivarfs", "binfmt_misc", "nsfs",
        "fusectl", "selinuxfs", "rpc_pipefs",
    ]

    /// Whether files can change there without the kernel noticing. Unknown types count as such.
    package static func lacksChangeEvents(_ folder: FolderStream) -> Bool { lacksChangeEvents(folder.number) }

    package static func lacksChangeEvents(_ folder: borrowing OpenFolder) -> Bool {
        folder.withNumber { lacksChangeEvents($0) }
    }

    private static func lacksChangeEvents(_ folder: CInt) -> Bool {
        var type: Int64 = 0
        // A file system without a known type is not relied on either.
        guard sluice_file_system_type(folder, &type) == 0 else { return true }
        return !reportingChanges.contains(type)
    }

    /// Types where every file belongs to the user who mounted the disk: FAT, exFAT, NTFS, FUSE, CIFS.
    private static let withoutOwners: Set<Int64> = [
        0x4D44, 0x2011_BAB0, 0x7366_746E, 0x5346_544E, 0x6573_5546, 0xFE53_4D42, 0xFF53_4D42, 0x517B,
    ]

    /// Whether the owner of a directory there does not show who made it.
    static func hasNoOwners(_ folder: borrowing OpenFolder) -> Bool {
        var type: Int64 = 0
        return folder.withNumber { sluice_file_system_type($0, &type) } == 0 && withoutOwners.contains(type)
    }

    /// Types that keep no change time of their own, or take it from their server: a program that sets a file's
    /// modification time may set the change time with it (FAT, exFAT, NTFS, FUSE, HFS).
    private static let withoutChangeTime: Set<Int64> = [
        0x4D44, 0x2011_BAB0, 0x7366_746E, 0x5346_544E, 0x6573_5546, 0x4244,
    ]

    /// Whether the change time of a file changes with every write and cannot be set. `true` where the file cannot be
    /// opened: then its time cannot be checked in any other way.
    package static func keepsChangeTime(_ name: FilePath, in folder: borrowing OpenFolder) -> Bool {
        guard let file = try? folder.open(name, for: .reading) else { return true }
        var type: Int64 = 0
        return file.withNumber { sluice_file_system_type($0, &type) } != 0 || !withoutChangeTime.contains(type)
    }

    /// Whether a lease, and a search through all processes, may miss a writer of a file there. That is so on a file
    /// system to which others write as well, and on overlay, whose files have a second inode below, by which they can
    /// be mapped and opened too.
    static func hidesWriters(_ folder: borrowing OpenFolder) -> Bool {
        var type: Int64 = 0
        guard folder.withNumber({ sluice_file_system_type($0, &type) }) == 0 else { return true }
        return type == overlay || !reportingChanges.contains(type)
    }

    private static let overlay: Int64 = 0x794C_7630

    /// Whether a call may wait for a missing server or program.
    static func isSlow(_ type: String) -> Bool { !own.contains(type) }

    /// Types whose leases only cover this machine, and are also refused where there is no writer: the kernel returns
    /// `EAGAIN` when the server has granted it nothing (nfs4_setlease and cifs_setlease of the kernel).
    static let leasingElsewhere: Set<Int64> = [0x6969, 0xFE53_4D42, 0xFF53_4D42, 0x517B, 0x0102_1997, 0x00C3_6400]

    /// - Parameter file: An open file.
    static func leasesElsewhere(_ file: CInt) -> Bool {
        var type: Int64 = 0
        return sluice_file_system_type(file, &type) == 0 && leasingElsewhere.contains(type)
    }
}
