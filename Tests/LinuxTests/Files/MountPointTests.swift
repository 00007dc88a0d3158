import Core
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

@Suite("MountPoint")
struct MountPointTests {
    @Test(
        "fstab names the nearest mount point above a path, with escaped spaces and comments",
        arguments: [
            ("/mnt/nas/archive", "/mnt/nas"), ("/mnt/nas", "/mnt/nas"), ("/mnt/nas/deep/er", "/mnt/nas/deep"),
            ("/mnt/nasty", nil), ("/srv/my disk/x", "/srv/my disk"), ("/old/x", nil), ("/home/me", nil),
        ] as [(FilePath, FilePath?)])
    func expected(_ path: FilePath, _ point: FilePath?) throws {
        let folder = TemporaryFolder()
        let table = try folder.write(
            "fstab",
            Array(
                """
                # <file system> <mount point> <type> <options>
                UUID=1 / ext4 defaults 0 1
                UUID=2\tnone\tswap\tsw\t0\t0
                #nas:/old /old nfs4
                nas:/export   /mnt/nas/  nfs4 noauto,x-systemd.automount 0 0
                nas:/deep /mnt/nas/deep nfs4
                /dev/sdb1 /srv/my\\040disk exfat nofail

                """.utf8))
        #expect(MountPoint.expected(for: path, table: table) == point)
        #expect(MountPoint.expected(for: path, table: folder.path.appending("none")) == nil)
    }

    @Test("a folder is on its own mount, and not on a file system that is not mounted")
    func holds() throws {
        let folder = TemporaryFolder()
        let opened = try Descriptor.open(folder.path, for: .folder)
        #expect(try MountPoint("/").contains(opened, named: folder.path))
        let bare = MountPoint(folder.path)
        #expect(try !bare.contains(opened, named: folder.path))
        #expect(try !bare.contains(opened, named: folder.path), "a second check gives the same answer")
    }

    @Test("mounting and unmounting are detected", .enabled(if: SmallDisk.isPossible, "mounting needs root"))
    func comesAndGoes() throws {
        let folder = TemporaryFolder()
        let point = MountPoint(folder.path)
        func isOn() throws -> Bool {
            try point.contains(try Descriptor.open(folder.path, for: .folder), named: folder.path)
        }
        #expect(try !isOn())
        var disk: SmallDisk? = try SmallDisk(at: folder.path)
        #expect(try isOn())
        _ = disk
        disk = nil
        #expect(try !isOn())
    }
}
