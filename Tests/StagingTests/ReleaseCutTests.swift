import Core
import Linux
import Staging
import TestKit
import Testing

/// The effects of a release are on the disk when it returns.
@Suite("Release of a source with a power cut", .enabled("\(LoopDisk.need)") { await LoopDisk.isPossible.value })
struct ReleaseCutTests {
    @Test("a restored name stays restored", arguments: LoopDisk.Kind.allCases)
    func givenBack(_ kind: LoopDisk.Kind) async throws {
        let disk = try await LoopDisk(kind)
        let (source, aside) = (disk.path.appending("a.mp4"), disk.path.appending(SourceRelease.token.name(of: 7)))
        try Files.replace(aside, with: noise(1000))
        // Another version was staged: the caught file is a different one.
        let staged = SourceRelease.AssetIdentity(
            id: 7, source: SourceFile(source), size: 1001, modified: 0, inode: nil, changed: 0, sha256: [])
        guard case .changed = try SourceRelease(staged, .delete).run() else {
            Issue.record("the source does not count as changed")
            return
        }
        try await disk.cutPower()
        #expect(Set(try Files.names(in: disk.path)).subtracting(["lost+found"]) == ["a.mp4"])
        #expect(try Files.read(source) == noise(1000))
    }
}
