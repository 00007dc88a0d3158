import Core
import TestKit
import Testing

@Suite("Identities")
struct PackedFileVersionsTests {
    private static func identity(_ dice: inout Dice) -> FileIdentity {
        // Names that sort before and after each other, or contain each other, and differ before or after the eighth
        // byte.
        let parts = ["a", "a.b", "a-", "recording-1", "recording-10", "recording-", "\u{7f}", "é", ""]
        let count = Int.random(in: 1...3, using: &dice)
        var bytes = (0..<count).compactMap { _ in parts.randomElement(using: &dice) }.joined(separator: "/").utf8.map {
            $0
        }
        if Bool.random(using: &dice) { bytes.append(.random(in: 128...255, using: &dice)) }
        return FileIdentity(
            folder: ["cam", "cam1", "Cam"].randomElement(using: &dice) ?? "cam", relative: FilePath(bytes: bytes),
            size: .random(in: 0...3, using: &dice), modified: .random(in: -2...2, using: &dice),
            inode: [nil, 7, .max].randomElement(using: &dice) ?? nil,
            born: [nil, 5].randomElement(using: &dice) ?? nil,
            fileSystem: [nil, "", "uuid"].randomElement(using: &dice) ?? nil)
    }

    @Test("stored identities are returned, also with reused memory", arguments: [1, 2, 3] as [UInt64])
    func elements(seed: UInt64) {
        var dice = Dice(seed: seed)
        let all = (0..<500).map { _ in Self.identity(&dice) }
        #expect(Array(PackedFileVersions(all)) == all, "seed \(seed)")
        var again = PackedFileVersions(all.prefix(100))
        again.removeAll()
        #expect(again.isEmpty)
        let home = again.add(PackedFileVersions.Location(folder: "cam", directory: "day/one", fileSystem: "uuid"))
        let version = FileVersion(size: 1, modified: 2, inode: 3, born: nil)
        Array("clip.mp4".utf8).withUnsafeBufferPointer { again.append($0, version, in: home) }
        #expect(
            Array(again) == [
                FileIdentity(
                    folder: "cam", relative: "day/one/clip.mp4", size: 1, modified: 2, inode: 3, born: nil,
                    fileSystem: "uuid")
            ])
    }

    @Test("identities are sorted by folder and by the bytes of their paths", arguments: [4, 5, 6] as [UInt64])
    func order(seed: UInt64) {
        var dice = Dice(seed: seed)
        let all = (0..<500).map { _ in Self.identity(&dice) }
        let identities = PackedFileVersions(all)
        let order = identities.sortedIndices()
        #expect(order.sorted() == Array(all.indices))
        var left: Set<String> = []
        for (a, b) in zip(order, order.dropFirst()) {
            #expect(identities.areInSameFolder(a, b) == (all[a].folder == all[b].folder))
            if all[a].folder == all[b].folder {
                #expect(!(all[b].relative < all[a].relative), "seed \(seed): \(all[a]), \(all[b])")
            } else {
                left.insert(all[a].folder)
                #expect(!left.contains(all[b].folder))
            }
            let place = all[b].relative.bytes.withUnsafeBytes { identities.order(a, $0) }
            #expect((place < 0) == (all[a].relative < all[b].relative))
            #expect((place == 0) == (all[a].relative == all[b].relative))
        }
    }
}
