import Core
import Glibc
import Synchronization
import TestKit
import Testing

@testable import Linux

@Suite("Accepting a replaced directory")
struct FolderIdentityTests {
    private func identity(_ inode: UInt64, _ owner: UInt32, born: Int64? = 5, on system: String? = "a")
        -> FolderIdentity
    {
        FolderIdentity(fileSystem: system, inode: inode, born: born, owner: owner)
    }

    @Test(
        "inode, birth time and file system distinguish directories, as far as both are known",
        arguments: [
            (FolderIdentity(fileSystem: "a", inode: 1, born: 5, owner: 9), true),
            (FolderIdentity(fileSystem: nil, inode: 1, born: nil, owner: 9), true),
            (FolderIdentity(fileSystem: "b", inode: 1, born: 5, owner: 7), false),
            (FolderIdentity(fileSystem: "a", inode: 1, born: 6, owner: 7), false),
            (FolderIdentity(fileSystem: "a", inode: 2, born: 5, owner: 7), false),
        ])
    func same(_ other: FolderIdentity, _ isSame: Bool) {
        #expect(identity(1, 7).isSameDirectory(as: other) == isSame)
    }

    @Test(
        "a replacement is accepted from root, the daemon's user and the previous owner", arguments: [0, 33, 7, 8, 34])
    func owners(_ owner: UInt32) {
        let verdict = identity(1, 7).verdict(on: identity(2, owner), daemon: 33)
        #expect(verdict == ([0, 33, 7].contains(owner) ? .replaced : .refused))
        #expect(FolderIdentity.mayLead(linkOf: owner, toDirectoryOf: 7, daemon: 33) == [0, 33, 7].contains(owner))
    }
}
