import Core
import Credentials
import Destinations
import Linux
import Notices
import Synchronization
import TestKit
import Testing
import Transport

@testable import Config
@testable import Daemon
@testable import Store

@Suite("Loops that send requests, without a daemon")
struct RequestLoopTests {
    /// Lets each request wait until the test or a stop ends it.
    private final class Gate: Sendable {
        private let state = Mutex((began: 0, isOpen: false))
        private let signal = AsyncSignal()
        var began: Int { state.withLock { $0.began } }

        func open() {
            state.withLock { $0.isOpen = true }
            signal.signal()
        }

        func pass() async {
            let isOpen = state.withLock { state in
                state.began += 1
                return state.isOpen
            }
            if !isOpen { await signal.wait() }
        }
    }

    // MARK: Removals

    /// A loop with one removal that waits.
    private func removals(_ scene: ComponentScene) async throws -> RemoteRemovals {
        let upload = try await scene.row(try await scene.record("a.mp4")).upload
        try await scene.store.write { try $0.remoteDeletions.queue(of: upload, Checkpoint(["object": "1"])) }
        return RemoteRemovals(
            context: scene.context, stateHealth: scene.parts.stateHealth, secrets: scene.parts.secrets,
            signal: scene.parts.signals.removal, scheduler: scene.scheduler)
    }

    private func left(_ scene: ComponentScene) async throws -> [RemoteDeletion] {
        try await scene.store.read { try $0.remoteDeletions.all() }
    }

    @Test("a removal that a pause stops is no failure, and is sent again when the pause is over")
    func stoppedRemoval() async throws {
        let (scene, gate) = (try await ComponentScene(), Gate())
        await scene.scheduler.setRoute(to: "nas", isOpen: true)
        scene.remote.whenAsked { _ in await gate.pass() }
        let removals = try await removals(scene)
        let loop = Task { try await removals.run() }
        try await eventually("the removal is sent") { gate.began == 1 }
        await scene.scheduler.pause(.destination, "nas")
        try await eventually("the removal has been stopped") {
            await scene.scheduler.facts.requests.closed == ["nas"] && scene.parts.signals.removal.isWaiting
        }
        #expect(try await left(scene).map(\.tries) == [0])
        gate.open()
        await scene.scheduler.pause(nil)
        try await eventually("the object is removed") { try await left(scene).isEmpty }
        #expect(gate.began == 2)
        loop.cancel()
        try await loop.value
    }

    @Test("a removal without a route waits, and is sent when there is one")
    func removalWithoutRoute() async throws {
        let scene = try await ComponentScene()
        await scene.scheduler.setRoute(to: "nas", isOpen: false)
        let removals = try await removals(scene)
        let loop = Task { try await removals.run() }
        try await eventually("the removal waits") {
            await scene.scheduler.facts.requests.closed == ["nas"] && scene.parts.signals.removal.isWaiting
        }
        #expect(try await left(scene).map(\.tries) == [0])
        await scene.scheduler.setRoute(to: "nas", isOpen: true)
        try await eventually("the object is removed") { try await left(scene).isEmpty }
        loop.cancel()
        try await loop.value
    }

    // MARK: Notices

    private struct GatedTransport: Transporting {
        let gate: Gate

        func send(_ request: Request) async throws(TransportError) -> Response {
            await gate.pass()
            if Task.isCancelled { throw TransportError(kind: .cancelled, detail: "stopped", url: request.url) }
            return Response(status: 200)
        }
    }

    @Test("a notice that a pause stops is no failure, and is delivered once when the pause is over")
    func stoppedNotice() async throws {
        let gate = Gate()
        let hook = Hook(name: "door", on: [.added], target: .web(WebHook(url: "http://hooks.example/x")))
        let scene = try await ComponentScene { $0.hooks = [hook] }
        await scene.scheduler.setRoute(to: Hook.account("door"), isOpen: true)
        let signals = scene.parts.signals
        let slots = AsyncSemaphore(slots: Hooks.slots) { signals.wake(for: .notices) }
        let hooks = Hooks(
            context: scene.context, stateHealth: scene.parts.stateHealth, counters: scene.parts.counters,
            slots: slots, signal: signals.hook,
            programs: HookPrograms(
                sender: HookSender(
                    transport: PermittedTransport(GatedTransport(gate: gate)), secrets: scene.parts.secrets,
                    clocks: scene.clocks),
                policed: scene.parts.policed(scene.scheduler)),
            events: EventCache(
                context: scene.context, commits: signals.events, views: scene.views, live: scene.parts.live,
                making: scene.parts.making))
        let newest = await scene.store.seq
        _ = try await scene.store.write { try $0.notices.keepHooks(["door"], from: newest) }
        let loop = Task { try await hooks.run() }
        _ = try await scene.record("a.mp4")
        try await eventually("the notice is sent") { gate.began == 1 }
        await scene.scheduler.pause(.all)
        try await eventually("the notice waits") { await hooks.lines["door"]?.hold?.kind == .global }
        try await eventually("the loop waits") { signals.hook.isWaiting }
        let line = try #require(await hooks.lines["door"])
        #expect(line.waiting.map(\.tries) == [0] && line.trouble == nil && line.running == nil)
        // A notice that policy holds takes no slot, and does not wake its own loop.
        #expect(slots.tryAcquire(leaving: Hooks.slots - 1))
        slots.releaseUnused()
        gate.open()
        await scene.scheduler.pause(nil)
        try await eventually("the notice is delivered") { await hooks.lines["door"]?.deliveredCount == 1 }
        #expect(gate.began == 2)
        loop.cancel()
        try await loop.value
    }
}
