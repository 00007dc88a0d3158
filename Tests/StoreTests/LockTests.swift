import TestKit
import Testing

@testable import Store

@Suite("The lock of a state folder")
struct LockTests {
    @Test("a lock that is given back is free, whoever still refers to it")
    func releasedLock() throws {
        let folder = TemporaryFolder()
        let first = try InstanceLock(folder: folder.path)
        #expect(throws: StateLocked.self) { try InstanceLock(folder: folder.path) }
        first.release()
        let second = try InstanceLock(folder: folder.path)
        withExtendedLifetime((first, second)) {}
    }
}
