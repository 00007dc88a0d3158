import Core
import Linux
import TestKit
import Testing

@Suite("Stored identity")
struct FileIdentityTests {
    static let base = FileIdentity(
        folder: "cam", relative: "a.mp4", size: 10, modified: 5, inode: 7, born: 3, fileSystem: "uuid-1")

    static func with(_ change: (inout FileIdentity) -> Void) -> FileIdentity {
        var copy = base
        change(&copy)
        return copy
    }

    static let others: [(FileIdentity, Bool)] = [
        (base, true), (with { $0.inode = nil }, true), (with { $0.born = nil }, true),
        // A file copied to a new disk with its times: no known value shows another version.
        (with { ($0.fileSystem, $0.inode) = ("uuid-2", 99) }, true),
        (with { $0.fileSystem = nil }, true),
        (with { $0.size = 11 }, false), (with { $0.modified = 6 }, false), (with { $0.inode = 8 }, false),
        (with { $0.relative = "b.mp4" }, false), (with { $0.folder = "door" }, false),
        (with { $0.born = 4 }, false),
    ]

    @Test(
        "the same version is recognised after a remount, and any known difference is another one",
        arguments: others)
    func same(_ other: FileIdentity, _ isSame: Bool) { #expect(Self.base.isSameVersion(as: other) == isSame) }

    @Test("of several holds the one that ends last is shown, and one without an end counts as last")
    func binding() {
        func hold(_ kind: Hold.Kind, _ until: Int64?) -> Hold {
            Hold(
                kind, since: WallTime(milliseconds: 0), until: until.map { WallTime(milliseconds: $0) }, text: "")
        }
        #expect([Hold]().lastEnding == nil)
        #expect([hold(.busy, 5), hold(.quota, 9), hold(.backoff, 7)].lastEnding?.kind == .quota)
        #expect([hold(.busy, 5), hold(.metered, nil), hold(.quota, 9)].lastEnding?.kind == .metered)
        #expect([hold(.metered, nil), hold(.global, nil)].lastEnding?.kind == .metered)
    }
}
