import API
import Core
import Linux
import Store
import TestKit
import Testing

@testable import Daemon

@Suite("Event cache, without a daemon")
struct EventCacheTests {
    private static func streams(_ scene: ComponentScene) -> EventStreams {
        EventStreams(
            context: scene.context,
            cache: EventCache(
                context: scene.context, commits: scene.parts.signals.events, views: scene.views, live: scene.parts.live,
                making: scene.parts.making),
            live: scene.parts.live, making: scene.parts.making)
    }

    @Test("a reader gets the stored events after its position, then new ones")
    func follows() async throws {
        let scene = try await ComponentScene()
        let start = await scene.store.seq
        let first = try await scene.record("a.mp4")
        var reader = try await Self.streams(scene).events(since: start).makeAsyncIterator()
        #expect(await reader.next()?.op?.id == first)
        let second = try await scene.record("b.mp4")
        var event = await reader.next()
        while let one = event, one.op?.id == first { event = await reader.next() }
        #expect(event?.op?.id == second)
    }

    @Test("a reader that waits is woken by a commit with an event, and by no other")
    func waits() async throws {
        let scene = try await ComponentScene()
        let start = await scene.store.seq
        let streams = Self.streams(scene)
        let signal = AsyncSignal()
        streams.cache.listen(signal)
        #expect(try await streams.cache.events(after: start).isEmpty)
        let wait = Task { await signal.wait() }
        try await eventually("the reader waits") { signal.isWaiting }
        try await scene.store.testWrite()
        #expect(signal.isWaiting)
        let first = try await scene.record("a.mp4")
        await wait.value
        #expect(try await streams.cache.events(after: start).first?.view.op?.id == first)
        streams.cache.forget(signal)
    }

    @Test("an event that comes while the cache reads is not missed")
    func meanwhile() async throws {
        let scene = try await ComponentScene()
        let streams = Self.streams(scene)
        let start = await scene.store.seq
        let reader = Task {
            let signal = AsyncSignal()
            streams.cache.listen(signal)
            defer { streams.cache.forget(signal) }
            var ids: Set<String> = []
            var after = start
            while ids.count < 50 {
                let events = try await streams.cache.events(after: after)
                ids.formUnion(events.compactMap { $0.view.op?.id })
                after = events.last?.view.seq ?? after
                if events.isEmpty { await signal.wait() }
            }
            return ids
        }
        var recorded: Set<String> = []
        for number in 0..<50 { recorded.insert(try await scene.record(FilePath("\(number).mp4"))) }
        #expect(try await reader.value == recorded)
    }

    @Test("a reader whose position is no longer stored must start again")
    func reset() async throws {
        let scene = try await ComponentScene()
        _ = try await scene.record("a.mp4")
        let newest = await scene.store.seq
        var reader = try await Self.streams(scene).events(since: newest + 100).makeAsyncIterator()
        let event = await reader.next()
        #expect(event?.type == .reset)
        #expect(event?.seq == newest)
    }

    @Test("a reader that is so slow that the events after its position are removed must start again")
    func overtaken() async throws {
        let scene = try await ComponentScene()
        let start = await scene.store.seq
        try await scene.store.write { try $0.events.append(.loaded(ongoing: 0)) }
        var reader = try await Self.streams(scene).events(since: start).makeAsyncIterator()
        #expect(await reader.next()?.seq == start + 1)
        // More than are kept.
        try await scene.store.write { tx in
            for _ in 0..<11_264 { try tx.events.append(.loaded(ongoing: 0)) }
        }
        let newest = await scene.store.seq
        let event = await reader.next()
        #expect(event?.type == .reset)
        #expect(event?.seq == newest)
        try await scene.store.write { try $0.events.append(.loaded(ongoing: 1)) }
        #expect(await reader.next()?.seq == newest + 1)
    }

    @Test("events become views once for all readers")
    func shared() async throws {
        let scene = try await ComponentScene()
        let streams = Self.streams(scene)
        let start = await scene.store.seq
        let signal = AsyncSignal()
        streams.cache.listen(signal)
        _ = try await scene.record("a.mp4")
        let views = try await streams.cache.events(after: start)
        let again = try await streams.cache.events(after: start)
        #expect(!views.isEmpty)
        #expect(views.map(ObjectIdentifier.init) == again.map(ObjectIdentifier.init))
        streams.cache.forget(signal)
    }

    @Test("without running uploads there is no progress")
    func idle() async throws {
        let scene = try await ComponentScene()
        #expect(try await Self.streams(scene).cache.progress().isEmpty)
    }
}
