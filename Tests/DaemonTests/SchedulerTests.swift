import API
import Core
import Glibc
import Linux
import Store
import Synchronization
import TestKit
import Testing

@testable import Daemon

/// Clocks whose time advances with every reading, so that deadlines pass between any two readings.
private final class TickingClocks: Clocks {
    private let looks = Atomic<Int64>(0)
    private let step: Duration

    init(step: Duration) { self.step = step }

    func wall() -> WallTime { SystemClocks().wall() }
    func monotonic() -> MonotonicTime {
        let looks = looks.wrappingAdd(1, ordering: .relaxed).newValue
        return SystemClocks().monotonic().advanced(by: step * Int(looks))
    }
}

@Suite("Scheduler")
struct SchedulerTests {
    @Test(
        "a file that the server always refuses does not stop other uploads, whatever the error",
        arguments: [Remedy.failUpload, .retry(after: nil), .refused(after: nil), .holdDestination(after: nil)])
    func poisoned(_ remedy: Remedy) async throws {
        let scene = try await DaemonScene()
        scene.remote.set(.fail(remedy), for: "poisoned")
        let bad = try await scene.add("poisoned")
        var good: [String] = []
        for number in 0..<5 { good.append(try await scene.add("good \(number)")) }
        try await scene.reach(.completed, good)
        #expect(scene.remote.objects.count == 5)
        // Only a refusal is final: failures that may pass are tried again.
        if remedy == .failUpload { try await scene.reach(.failed, [bad]) }
        #expect(try await scene.state(bad) != .completed)
        try await scene.stop()
    }

    @Test("a wait that ends during a scheduler cycle still wakes the scheduler")
    func waitEndsMeanwhile() async throws {
        let scene = try await DaemonScene(clocks: TickingClocks(step: .milliseconds(4)))
        scene.remote.standard = .fail(.retry(after: nil))
        // The upload is alone, because the end of another one would wake the scheduler too.
        let id = try await scene.add("a")
        try await eventually("the upload has been tried 40 times") { scene.remote.began.count >= 40 }
        scene.remote.standard = .fail(.holdDestination(after: nil))
        try await eventually("the destination has been probed six times") { scene.remote.began.count >= 46 }
        scene.remote.letGo()
        try await scene.reach(.completed, [id])
        try await scene.stop()
    }

    @Test("a destination that is down is probed by one upload at a time, without using an attempt")
    func probe() async throws {
        let scene = try await DaemonScene()
        scene.remote.standard = .fail(.holdDestination(after: nil))
        var ids: [String] = []
        for number in 0..<4 { ids.append(try await scene.add("\(number)")) }
        try await eventually("the destination is held and is probed repeatedly") {
            await scene.daemon.scheduler.shown().hold(of: "nas") != nil && scene.remote.began.count > 5
        }
        scene.remote.standard = .waitOpening
        try await eventually("a probe is waiting") { scene.remote.waiting.count == 1 }
        // One more file wakes the scheduler; it must not start a second probe.
        let begun = scene.remote.began.count
        ids.append(try await scene.add("late"))
        try await scene.reach(.queued, [ids[4]])
        try await scene.daemon.scheduler.reconsider()
        #expect(scene.remote.began.count == begun)
        #expect(scene.remote.running.count == 1)
        scene.remote.letGo()
        try await scene.reach(.completed, ids)
        #expect(await scene.daemon.scheduler.shown().hold(of: "nas") == nil)
        for id in ids { #expect(try await scene.daemon.context.store.read { try $0.uploads.find(id) }?.attempt == 0) }
        try await scene.stop()
    }

    @Test("a server that reports an offset but accepts no bytes counts as down and is probed less and less often")
    func wordsOnly() async throws {
        let scene = try await DaemonScene(retry: .milliseconds(1))
        scene.remote.standard = .failAfterWord(.holdDestination(after: .zero))
        let id = try await scene.add("a")
        try await eventually("the destination has failed three times in a row") {
            await scene.daemon.scheduler.facts.destinations.trouble(of: "nas")?.failures ?? 0 >= 3
        }
        scene.remote.standard = .take
        try await scene.daemon.scheduler.reconsider()
        try await scene.reach(.completed, [id])
        try await scene.stop()
    }

    @Test("resume starts an upload at once, however long its wait was", arguments: [false, true])
    func resume(byID: Bool) async throws {
        let scene = try await DaemonScene(retry: .seconds(3600))
        scene.remote.standard = .fail(.holdDestination(after: nil))
        let id = try await scene.add("a")
        try await eventually("the destination is held") { await scene.daemon.scheduler.shown().hold(of: "nas") != nil }
        try await scene.reach(.queued, [id])
        scene.remote.letGo()
        _ = try await scene.daemon.resume(byID ? Selection(ids: [id]) : Selection(all: true))
        try await scene.reach(.completed, [id])
        try await scene.stop()
    }

    @Test(
        "retry starts a waiting upload at once, in the same generation, whatever its wait and its cause",
        arguments: [
            Remedy.retry(after: .seconds(3600)), .refused(after: .seconds(3600)), .pending(after: .seconds(3600)),
            .holdDestination(after: nil),
            .authenticate,
        ])
    func retryOfWaiting(_ remedy: Remedy) async throws {
        let scene = try await DaemonScene(retry: .seconds(3600))
        scene.remote.standard = .fail(remedy)
        let id = try await scene.add("a")
        try await eventually("the upload waits for its next attempt") {
            try await scene.daemon.show(id).upload.holds.contains { $0.until != nil } ? true : nil
        }
        try await scene.reach(.queued, [id])
        scene.remote.letGo()
        let reply = try await scene.daemon.retry(Selection(ids: [id]))
        #expect(reply.uploads.map(\.id) == [id] && reply.uploads.map(\.generation) == [1])
        try await scene.reach(.completed, [id])
        #expect(try await scene.daemon.show(id).upload.generation == 1)
        try await scene.stop()
    }

    @Test("retry changes nothing for a running or staging upload, and names the command for a paused one")
    func retryOfOthers() async throws {
        let scene = try await DaemonScene(retry: .seconds(3600))
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a")
        try await scene.isRunning(1)
        #expect(try await scene.daemon.retry(Selection(ids: [id])).uploads.map(\.generation) == [1])
        try await scene.isRunning(1)
        #expect(scene.remote.began.count == 1)
        _ = try await scene.daemon.pause(Selection(ids: [id]))
        let said = await #expect(throws: Refusal.self) { try await scene.daemon.retry(Selection(ids: [id])) }
        #expect(said == Refusal(.conflict, "\(id) is paused: use `resume`", id: id))
        _ = try await scene.daemon.resume(Selection(ids: [id]))
        scene.remote.letGo()
        try await scene.reach(.completed, [id])
        try await scene.stop()
    }

    @Test("a folder's concurrency limit delays only its own files")
    func folderConcurrency() async throws {
        let scene = try await DaemonScene(solo: 1)
        scene.remote.standard = .waitUploading
        var ids: [String] = []
        for number in 0..<3 { ids.append(try await scene.add("solo \(number)", in: "solo")) }
        for number in 0..<3 { ids.append(try await scene.add("cam \(number)")) }
        try await scene.isRunning(4)
        try await scene.reach(.queued, Array(ids[1..<3]))
        #expect(scene.remote.running.filter { $0.display.hasPrefix("solo") }.count == 1)
        scene.remote.letGo()
        try await scene.reach(.completed, ids)
        try await scene.stop()
    }

    @Test("no upload runs after a pause, even if the pause came during a claim")
    func pauseDuringClaim() async throws {
        let scene = try await DaemonScene()
        scene.remote.standard = .waitUploading
        var ids: [String] = []
        for round in 0..<20 {
            ids.append(try await scene.add("\(round)"))
            // The time between the copy and the claim is short; each round hits another moment of it.
            for _ in 0..<round * 3 { await Task.yield() }
            _ = try await scene.daemon.pause(Selection(all: true))
            try await scene.reach(.queued, ids)
            try await scene.isRunning(0)
            let begun = scene.remote.began.count
            scene.daemon.signals.scheduling.signal()
            ids.append(try await scene.add("\(round) paused"))
            try await scene.reach(.queued, ids)
            #expect(scene.remote.began.count == begun)
            _ = try await scene.daemon.resume(Selection(all: true))
        }
        scene.remote.letGo()
        try await scene.reach(.completed, ids)
        #expect(scene.remote.objects.count == ids.count)
        try await scene.stop()
    }
}
