import Core
import Linux
import TestKit
import Testing

@testable import Config

@Suite("Staging in memory", .enabled(if: SmallDisk.isPossible, "only root may mount a file system"))
struct MemoryStagingTests {
    private func problems(_ staging: String) throws -> [String] {
        let folder = TemporaryFolder()
        let file = try folder.write("s.yaml", Array("version: 1\nfolders: []\nstaging: \(staging)\n".utf8))
        do throws(ConfigErrors) {
            _ = try Settings.load(file, types: types, environment: { _ in nil })
            return []
        } catch { return error.problems.map { "\($0.place.split(separator: "/").last ?? ""): \($0.text)" } }
    }

    @Test("a staging folder in memory is refused with its place, also one that would be made there")
    func refused() throws {
        let disk = try SmallDisk()
        for path in [disk.path, disk.path.appending("new/staging")] {
            let found = try problems("{path: \(path.display)}")
            #expect(found.count == 1)
            #expect(found.first?.hasPrefix("s.yaml:3:17: `\(path.display)` is on a file system in memory:") == true)
        }
        #expect(try problems("{path: \(disk.path.display), memory: refuse}").count == 1)
    }

    @Test("the setting accepts it, and a disk needs no setting")
    func allowed() throws {
        let disk = try SmallDisk()
        #expect(try problems("{path: \(disk.path.display), memory: allow}") == [])
        // The folder of the repository is on a disk, which the one for temporary files need not be.
        #expect(try problems("{path: /usr/sluice-staging}") == [])
    }
}
