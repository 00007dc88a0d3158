import Core
import TestKit
import Testing

@testable import Store

@Suite("The lock of a state folder")
struct LockTests {
    @Test("a released lock is free, even if a reference to it remains")
    func releasedLock() throws {
        let folder = TemporaryFolder()
        let first = try InstanceLock(folder: folder.path)
        #expect(throws: StateLockedError.self) { try InstanceLock(folder: folder.path) }
        first.release()
        let second = try InstanceLock(folder: folder.path)
        withExtendedLifetime((first, second)) {}
    }

    @Test("a program that locks the database for a moment does not stop the store")
    func busyElsewhere() async throws {
        let folder = TemporaryFolder()
        let first = try await Store.open(folder.path, clocks: ManualClocks(), sorting: .newestFirst)
        await first.close()
        let other = try Connection(path: folder.path.appending("sluice.db"))
        try other.execute("BEGIN IMMEDIATE")
        let proved = Task {
            let store = try await Store.open(folder.path, clocks: ManualClocks(), sorting: .newestFirst)
            try await store.testWrite()
            await store.close()
        }
        // The time for which the other connection is busy: longer than opening takes.
        try await Task.sleep(for: .milliseconds(500))
        try other.execute("COMMIT")
        other.close()
        try await proved.value
    }
}
