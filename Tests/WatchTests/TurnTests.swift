import Core
import Glibc
import Linux
import Synchronization
import TestKit
import Testing
import Watch

@Suite("Turns of the watching thread")
struct TurnTests {
    @Test("the watching thread confirms a turn while it sleeps, and not while it hangs")
    func turns() async throws {
        let folder = TemporaryFolder()
        let watched = folder.path.appending("cam")
        try Files.makeFolders(watched)
        let gate = ConditionLock(true)
        let hangs = Atomic(false)
        try await Scene().watch(
            [WatchRule(name: "cam", path: watched)],
            onLog: { _ in
                hangs.store(true, ordering: .releasing)
                _ = gate.wait(atMost: .seconds(60)) { $0 ? () : nil }
                hangs.store(false, ordering: .releasing)
            }
        ) { watcher in
            await watcher.confirmTurn()
            await watcher.confirmTurn()
            gate.change { $0 = false }
            // The watching thread logs that the folder is gone, and waits for the log.
            #expect(watched.withCString { rmdir($0) } == 0)
            try await eventually("the thread hangs") { hangs.load(ordering: .acquiring) }
            let isConfirmed = Atomic(false)
            let question = Task {
                await watcher.confirmTurn()
                isConfirmed.store(true, ordering: .releasing)
            }
            // An order is not taken either.
            watcher.rescan()
            for _ in 0..<20 { await Task.yield() }
            let (stillHangs, isEarly) = (hangs.load(ordering: .acquiring), isConfirmed.load(ordering: .acquiring))
            #expect(stillHangs && !isEarly)
            gate.change { $0 = true }
            await question.value
        }
    }
}
