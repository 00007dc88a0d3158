import Core
import TestKit
import TestTraits
import Testing

@testable import Linux

@Suite("Fuzz: tables of the kernel", .ownThreads, .timeLimit(.minutes(Fuzz.minutes)))
struct TableFuzzTests {
    @Test("a damaged mountinfo gives mounts with or without a name")
    func mounts() throws {
        let table = """
            22 27 0:21 / /sys rw,nosuid shared:7 - sysfs sysfs rw
            36 35 98:0 /root /mnt/my\\040disk rw,noatime master:1 - ext4 /dev/sda1 rw
            41 27 0:38 / /srv/nas rw shared:9 master:2 - nfs4 nas:/export rw,vers=4.2

            """
        let mutator = Mutator(
            [Array(table.utf8)],
            words: [" - ", "-", "\\040", "\\777", "\\4", "\\", "98:0", ":", "4294967296:0", " ", "\n", "\0", "é"])
        try Fuzz("mountinfo", rounds: 3000).each(mutator) { round in
            let lines = round.input.split(separator: UInt8(ascii: "\n")).count
            let mounts = Mount.parse(round.input)
            try round.expect(mounts.count <= lines, "\(mounts.count) mounts in \(lines) lines")
            for mount in mounts {
                try round.expect(!mount.type.isEmpty && mount.fallbackName.count > 1, "a mount without a name")
            }
        }
    }
}
