import API
import Config
import Core
import Destinations
import Linux
import Store
import TestKit
import Testing

@testable import Daemon

@Suite("Free space at destinations", .timeLimit(.minutes(Patience.minutes(1))))
struct RoomTests {
    /// Long waits, so that uploads continue only because of a test's actions.
    private func scene(_ space: RemoteSpace?, retry: Duration = .seconds(600)) async throws -> DaemonScene {
        let scene = try await DaemonScene(retry: retry)
        scene.remote.tell(space)
        return scene
    }

    private func hold(_ scene: DaemonScene, _ id: String) async throws -> HoldView? {
        try await scene.daemon.show(id).upload.holds.first
    }

    @Test("files that do not fit wait with the reason, and files that fit are uploaded")
    func passed() async throws {
        let scene = try await scene(RemoteSpace(free: 1000))
        let large = try await scene.add("large.mp4", size: 5000)
        let small = try await scene.add("small.mp4", size: 400)
        try await scene.reach(.completed, [small])
        let hold = try #require(try await self.hold(scene, large))
        #expect(hold.kind.known == .quota)
        #expect(hold.text.contains("1.0 kB free at nas"), "\(hold.text)")
        #expect(hold.text.contains("large.mp4 needs 5.0 kB"), "\(hold.text)")
        #expect(hold.until != nil)
        #expect(scene.remote.began == ["small.mp4"])
        let why = try await scene.daemon.why(large)
        #expect(why.answers.first?.text == hold.text)
        let status = try #require(try await scene.daemon.status().destinations.first)
        #expect(status.hold == hold)
        #expect(status.space?.free == 1000)
        #expect(status.space?.askedAt != nil)
        #expect(scene.remote.looks == 1, "a completed upload frees no space, so no query follows")
        scene.remote.tell(RemoteSpace(free: 10_000))
        _ = try await scene.daemon.resume(Selection(destination: "nas"))
        try await scene.reach(.completed, [large])
        #expect(scene.remote.objects.count == 2)
        #expect(try await scene.daemon.status().destinations.first?.hold == nil)
        try await scene.stop()
    }

    @Test("a query for the space that a pause stops proves nothing, and is sent again after the pause")
    func stoppedQuery() async throws {
        let scene = try await scene(RemoteSpace(free: 10_000))
        let (scheduler, gate) = (scene.daemon.scheduler, AsyncSignal())
        scene.remote.whenAsked { _ in await gate.wait() }
        let id = try await scene.add("a.mp4")
        try await eventually("the space is queried") { scene.remote.looks == 1 }
        _ = try await scene.daemon.pause(Selection())
        try await eventually("the query has been stopped") {
            await !scheduler.facts.destinations.isQueryingCapacity("nas")
        }
        #expect(await scheduler.facts.destinations.capacity(of: "nas") == nil)
        #expect(await scheduler.facts.destinations.trouble(of: "nas") == nil)
        scene.remote.whenAsked(nil)
        _ = try await scene.daemon.resume(Selection())
        try await scene.reach(.completed, [id])
        #expect(scene.remote.looks == 2)
        try await scene.stop()
    }

    @Test("a destination that cannot be asked for its space is held, and no upload tries it too")
    func unreachable() async throws {
        let scene = try await DaemonScene(retry: .seconds(600))
        scene.remote.hideSpace()
        let id = try await scene.add("a.mp4", size: 100)
        let hold = try await eventually("the upload waits for its destination") { try await self.hold(scene, id) }
        #expect(hold.kind.known == .destination)
        #expect(hold.text.hasPrefix("no server responds there; the next attempt follows `retry: {"), "\(hold.text)")
        #expect(scene.remote.began.isEmpty)
        try await scene.stop()
    }

    @Test("free space is queried only for uploads that wait for nothing else")
    func looks() async throws {
        let scene = try await scene(RemoteSpace(free: 1000), retry: .milliseconds(1))
        scene.remote.standard = .failAfterWord(.pending(after: .milliseconds(2)))
        _ = try await scene.add("a.mp4", size: 100)
        try await eventually("the upload has begun") { scene.remote.began.count > 0 }
        // Before it began the answer was valid for a millisecond, and a busy machine may need several.
        let looks = scene.remote.looks
        try await eventually("the upload has been asked about 20 times") { scene.remote.began.count > 20 }
        #expect(scene.remote.looks == looks)
        try await scene.stop()
    }

    @Test("free space is queried again without a command, and waiting uploads start as soon as it suffices")
    func again() async throws {
        let scene = try await scene(RemoteSpace(free: 10), retry: .milliseconds(10))
        let id = try await scene.add("a.mp4", size: 100)
        try await eventually("the upload waits for space at the destination") {
            try await hold(scene, id)?.kind.known == .quota
        }
        try await eventually("free space has been queried several times") { scene.remote.looks > 3 }
        #expect(scene.remote.began.isEmpty)
        #expect(try await scene.daemon.context.store.read { try $0.failures.of(id) }.isEmpty, "no attempt has failed")
        scene.remote.tell(RemoteSpace(free: 100))
        try await scene.reach(.completed, [id])
        try await scene.stop()
    }

    @Test("a destination that reports no free space is not queried for every file, and all files are uploaded")
    func silent() async throws {
        let scene = try await scene(nil)
        var ids: [String] = []
        for number in 0..<10 { ids.append(try await scene.add("\(number).mp4")) }
        try await scene.reach(.completed, ids)
        #expect(scene.remote.looks == 1)
        #expect(try await scene.daemon.status().destinations.first?.space == nil)
        try await scene.stop()
    }

    @Test("running uploads reserve their space first")
    func promised() async throws {
        let scene = try await scene(RemoteSpace(free: 1000))
        scene.remote.standard = .waitUploading
        let first = try await scene.add("first.mp4", size: 700)
        try await scene.isRunning(1)
        let second = try await scene.add("second.mp4", size: 700)
        try await eventually("the second upload waits for space at the destination") {
            try await hold(scene, second)?.kind.known == .quota
        }
        #expect(try await hold(scene, second)?.text.contains("700 B of that for running uploads") == true)
        // Its space had been reserved from the beginning.
        scene.remote.letGo()
        try await scene.reach(.completed, [first, second])
        try await scene.stop()
    }

    @Test("a destination that refuses for lack of space is held, uses no attempt, and is probed by one upload")
    func refused() async throws {
        let scene = try await DaemonScene(retry: .milliseconds(10))
        scene.remote.standard = .fail(.outOfSpace(after: nil))
        var ids: [String] = []
        for number in 0..<4 { ids.append(try await scene.add("\(number).mp4")) }
        try await eventually("the uploads have been tried several times") { scene.remote.began.count > 6 }
        let hold = try #require(await scene.daemon.scheduler.shown().hold(of: "nas"))
        #expect(hold.kind == .quota)
        #expect(hold.until != nil)
        for id in ids {
            try await eventually("the upload waits for space at the destination") {
                try await self.hold(scene, id)?.kind.known == .quota
            }
            #expect(try await scene.daemon.show(id).upload.attempt == 0)
        }
        scene.remote.standard = .take
        try await scene.reach(.completed, ids)
        #expect(scene.remote.objects.count == 4)
        #expect(await scene.daemon.scheduler.shown().hold(of: "nas") == nil)
        try await scene.stop()
    }

    @Test("after a refusal, the reported free space takes precedence")
    func refusedThenAsked() async throws {
        let scene = try await scene(RemoteSpace(free: 1000), retry: .milliseconds(10))
        scene.remote.standard = .fail(.outOfSpace(after: nil))
        let id = try await scene.add("a.mp4", size: 100)
        try await eventually("the upload has been refused") { scene.remote.began.count > 0 }
        scene.remote.tell(RemoteSpace(free: 10))
        try await eventually("the hold names the free space") {
            await scene.daemon.scheduler.shown().hold(of: "nas")?.text.contains("10 B free at nas") == true
        }
        let tried = scene.remote.began.count
        let looks = scene.remote.looks
        try await eventually("free space has been queried again") { scene.remote.looks > looks + 2 }
        #expect(scene.remote.began.count == tried)
        scene.remote.standard = .take
        scene.remote.tell(RemoteSpace(free: 100))
        try await scene.reach(.completed, [id])
        try await scene.stop()
    }

    @Test("a time that the server names is kept and shown")
    func named() async throws {
        let scene = try await DaemonScene(retry: .milliseconds(10))
        scene.remote.standard = .fail(.outOfSpace(after: .seconds(7200)))
        let id = try await scene.add("a.mp4")
        try await eventually("the upload is held for lack of space") {
            try await self.hold(scene, id)?.kind.known == .quota
        }
        let hold = try #require(await scene.daemon.scheduler.shown().hold(of: "nas"))
        #expect(hold.until == hold.since.advanced(by: .seconds(7200)))
        #expect(scene.remote.began.count == 1)
        try await scene.stop()
    }

    @Test("an upload that is refused again while others succeed waits alone")
    func alone() async throws {
        let scene = try await DaemonScene(retry: .milliseconds(10))
        scene.remote.set(.fail(.outOfSpace(after: nil)), for: "large.mp4")
        let large = try await scene.add("large.mp4")
        try await eventually("the large upload has been refused") { scene.remote.began.contains("large.mp4") }
        let small = try await scene.add("small.mp4")
        try await scene.reach(.completed, [small])
        try await eventually("only the large upload has been refused") {
            let trouble = await scene.daemon.scheduler.facts.destinations.trouble(of: "nas")
            return scene.remote.began.count { $0 == "large.mp4" } > 1 && trouble == nil
        }
        scene.remote.letGo()
        try await scene.reach(.completed, [large])
        #expect(scene.remote.objects.count == 2)
        try await scene.stop()
    }
}
