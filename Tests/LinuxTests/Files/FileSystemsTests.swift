import Core
import TestKit
import Testing

@testable import Linux

@Suite("FileSystems")
struct FileSystemsTests {
    static let table = """
        22 28 0:21 / /proc rw,nosuid - proc proc rw
        28 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
        31 28 0:26 / /tmp rw master:2 propagate_from:1 - tmpfs tmpfs rw
        36 28 8:17 / /media/EOS\\040DIGITAL rw - vfat /dev/sdb1 rw
        40 28 0:50 / /srv/nas rw - nfs4 nas:/export/a\\134b rw
        damaged line
        """

    @Test(
        "a file system is identified by properties that survive a reboot",
        arguments: [
            (28, "ext4:/dev/vda"), (31, "tmpfs:/tmp"), (36, "vfat:/dev/sdb1"), (40, "nfs4:nas:/export/a\\x5cb"),
        ])
    func fallback(_ number: UInt64, _ name: String) throws {
        let mount = try #require(Mount.parse(Array(Self.table.utf8)).first { $0.number == number })
        #expect(mount.fallbackName == name)
    }

    @Test("paths with spaces and device numbers are parsed")
    func places() throws {
        let mount = try #require(Mount.parse(Array(Self.table.utf8)).first { $0.type == "vfat" })
        #expect(mount.point == "/media/EOS DIGITAL")
        #expect(mount.device == 8 << 8 | 17)
    }

    @Test("bind mounts resolve to one place, whatever path was used")
    func origins() {
        let table = """
            28 1 254:0 / / rw - ext4 /dev/vda rw
            29 28 254:0 /srv/cam/out /mnt/out rw - ext4 /dev/vda rw
            30 28 8:1 /@ /data rw - btrfs /dev/sda1 rw
            31 28 8:1 /@home /home rw - btrfs /dev/sda1 rw
            32 28 8:1 /@/in /in rw - btrfs /dev/sda1 rw
            33 28 0:9 / /mnt/over rw - tmpfs tmpfs rw
            34 28 254:0 /srv/cam /mnt/over rw - ext4 /dev/vda rw
            """
        let mounts = MountTable(Array(table.utf8))
        let cases: [(FilePath, FilePath)] = [
            ("/mnt/out", "/srv/cam/out"), ("/mnt/out/a", "/srv/cam/out/a"), ("/mnt/outer", "/mnt/outer"),
            ("/srv/cam/out", "/srv/cam/out"), ("/in/a", "/data/in/a"), ("/data/in", "/data/in"), ("/home/a", "/home/a"),
            ("/mnt/over/x", "/srv/cam/x"), ("/", "/"),
        ]
        for (path, origin) in cases { #expect(mounts.origin(of: path) == origin, "\(path)") }
        #expect(MountTable(nil).origin(of: "/mnt/out") == "/mnt/out")
    }

    @Test("two files of one file system give the same answer, and never a device number")
    func same() throws {
        let folder = TemporaryFolder()
        let path = try folder.write("a/b", [1])
        let device = try FileStatus(at: path).device
        let all = FileSystems()
        let first = try #require(all.identity(at: path, device: device))
        all.forget()
        #expect(all.identity(at: folder.path, device: device) == first)
        #expect(!first.name.contains("\(device)"))
    }

    @Test("/proc is distinguished from file systems with files")
    func proc() throws {
        let status = try FileStatus(at: "/proc")
        let identity = try #require(FileSystems().identity(at: "/proc", device: status.device))
        #expect(identity.name == "proc:/proc")
        #expect(!identity.keepsInodes)
    }
}
