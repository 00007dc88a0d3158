import API
import Config
import Core
import Credentials
import Linux
import Names
import Notices
import Store
import TestKit
import Testing
import Transport
import Watch

@testable import Daemon

extension ComponentScene {
    /// All components of the operations, over loops that do not run.
    ///
    /// - Parameter reloading: The source of new settings; `nil` where they cannot be reloaded.
    func handlers(reloading: Reloading? = nil) -> OperationHandlers {
        let (parts, intake, fileSystems) = (parts, parts.intake(), FileSystems())
        let stager = parts.stager()
        let releaser = parts.releaser(WriterSearch(clocks: clocks))
        let watcher = Watcher(
            rules: parts.settings.folders.map(\.watch), in: parts.sources, clocks: clocks, isKnown: { _ in [] },
            log: { _ in })
        let grouping = FileGrouper(
            context: context, sources: parts.sources, intake: intake, fileSystems: fileSystems,
            signal: parts.signals.grouping
        ) { _, _ in }
        let media = RemovableMedia(
            context: context, stateHealth: parts.stateHealth, signal: parts.signals.media, states: { watcher.states() },
            held: { await grouping.held }, onReturn: { _ in })
        let retention = SourceRetention(
            context: context, stateHealth: parts.stateHealth, signal: parts.signals.retention)
        let cache = EventCache(
            context: context, commits: parts.signals.events, views: views, live: parts.live, making: parts.making)
        let sender = HookSender(
            transport: PermittedTransport(Transport(names: parts.addresses)), secrets: parts.secrets, clocks: clocks)
        let hooks = Hooks(
            context: context, stateHealth: parts.stateHealth, counters: parts.counters,
            slots: AsyncSemaphore(slots: Hooks.slots) {}, signal: parts.signals.hook,
            programs: HookPrograms(sender: sender, policed: parts.policed(scheduler)), events: cache)
        let reloader = ConfigurationReloader(
            context: context, lifecycle: lifecycle, reloading: reloading,
            factory: DestinationFactory(
                kinds: [], transport: Transport(names: parts.addresses), secrets: parts.secrets, clocks: clocks,
                log: .silent),
            firstWatch: NewFolders(store: store), cards: CardFolders(store: context.store, log: context.log),
            secrets: parts.secrets,
            loops: ConfigurationReloader.Loops(
                watcher: watcher, scheduler: scheduler, stager: stager, releaser: releaser, hooks: hooks),
            signals: parts.signals)
        return OperationHandlers(
            context: context, lifecycle: lifecycle, stateHealth: parts.stateHealth,
            sources: parts.sources, secrets: parts.secrets, mediaReading: parts.mediaReading, live: parts.live,
            making: parts.making, bandwidth: parts.limits.bandwidth, ledger: parts.limits.ledger,
            counters: parts.counters,
            alerts: StatusCollector.StatusAlerts(
                troubles: parts.troubles, reportTroubles: parts.reportTroubles,
                unsureReleases: parts.unsureReleases),
            stagingHolds: parts.stagingHolds, traces: RequestTraces(clocks: context.clocks), reloader: reloader,
            views: views, cache: cache,
            loops: OperationHandlers.Loops(
                watcher: watcher, watchChanges: parts.signals.folders, fileSystems: fileSystems, intake: intake,
                held: HeldFiles(
                    grouping: grouping,
                    reading: MediaQueue(
                        context: context, intake: intake, signal: parts.signals.reading, media: parts.signals.media
                    ) { _, _ in }),
                media: media, retention: retention, stager: stager, scheduler: scheduler, releaser: releaser,
                hooks: hooks))
    }
}

@Suite("Components of operations, without a daemon")
struct HandlerTests {
    private static func code(_ body: () async throws -> Void) async -> Refusal.Code? {
        do { try await body() } catch { return (error as? Refusal)?.code }
        return nil
    }

    @Test("remove takes cancelled uploads off their list, and flush clears whole lists")
    func ended() async throws {
        let scene = try await ComponentScene()
        let commands = scene.handlers().commands
        let ids = [try await scene.record("a"), try await scene.record("b"), try await scene.record("c")]
        #expect(await Self.code { _ = try await commands.remove(Selection(ids: [ids[0]])) } == .conflict)
        #expect(try await commands.cancel(Selection(ids: [ids[0]])).uploads.map(\.state) == [.cancelled])
        #expect(try await commands.cancel(Selection(all: true)).count == 2)
        #expect(try await commands.remove(Selection(ids: [ids[0]])).uploads.map(\.list.known) == [.history])
        #expect(try await commands.flush(FlushRequest(list: "cancelled")).count == 2)
        #expect(await Self.code { _ = try await commands.flush(FlushRequest(list: "ongoing")) } == .badRequest)
    }

    @Test("retry without a copy and a source is refused")
    func retry() async throws {
        let scene = try await ComponentScene()
        try Files.makeFolders(scene.folder.path.appending("cam"))
        let commands = scene.handlers().commands
        let id = try await scene.record("a")
        _ = try await commands.cancel(Selection(ids: [id]))
        #expect(await Self.code { _ = try await commands.retry(Selection(ids: [id])) } == .sourceMissing)
    }

    @Test("a path outside the configured folders and a relative path are not added")
    func add() async throws {
        let adder = try await ComponentScene().handlers().adder
        #expect(await Self.code { _ = try await adder.add(AddRequest(path: "/elsewhere/a")) } == .badRequest)
        #expect(await Self.code { _ = try await adder.add(AddRequest(path: "a.mp4")) } == .badRequest)
    }

    @Test("a received file has a name without a folder", arguments: ["", ".", "a/b", "a\u{7}"])
    func receive(_ name: String) async throws {
        let receiver = try await ComponentScene().handlers().receiver
        let code = await Self.code { _ = try await receiver.receive(ReceiveRequest(name: name), { nil }) }
        #expect(code == .badRequest)
    }

    @Test("the status counts uploads, and warns of destinations that are not configured")
    func status() async throws {
        let scene = try await ComponentScene()
        _ = try await scene.record("a", size: 7)
        let handlers = scene.handlers()
        let status = try await handlers.status.status()
        #expect(status.counts.ongoing == 1 && status.filesTotal == 1 && status.bytesTotal == 7)
        #expect(!status.starting)
        #expect(status.warnings.isEmpty)
        var runtime = scene.parts.runtime
        (runtime.settings.destinations, runtime.destinations) = ([], [:])
        scene.parts.context.configuration.replace(runtime)
        #expect(try await handlers.status.status().warnings.count == 1)
    }

    @Test("metrics have a value for every folder and destination from the start")
    func metrics() async throws {
        let numbers = try await ComponentScene().handlers().metrics.metrics().numbers
        #expect(numbers[.files].map { Set($0.keys) } == [["cam"], ["door"]])
        #expect(numbers[.uploads]?[["nas", "completed"]] == .whole(0))
        #expect(numbers[.reloadSuccess]?[[]] == .whole(1))
    }

    @Test("a plan covers the future, and at most one year")
    func plan() async throws {
        let scene = try await ComponentScene()
        let plan = scene.handlers().plan
        for seconds in [-1, 400 * 86_400] as [Int64] {
            let query = PlanQuery(until: scene.clocks.wall().advanced(by: .seconds(seconds)))
            #expect(await Self.code { _ = try await plan.plan(query) } == .badRequest)
        }
    }

    @Test("why reports a path in no folder, and refuses a name without an upload")
    func why() async throws {
        let why = try await ComponentScene().handlers().why
        #expect(try await why.why("/elsewhere/a").answers.map(\.state) == [.outside])
        #expect(await Self.code { _ = try await why.why("nothing-like-this") } == .notFound)
    }

    @Test("unknown folders, destinations and hooks are refused")
    func names() async throws {
        let handlers = try await ComponentScene().handlers()
        #expect(await Self.code { _ = try await handlers.folders.rescan(RescanRequest(folder: "x")) } == .notFound)
        #expect(await Self.code { _ = try await handlers.folders.accept(folder: "x") } == .notFound)
        #expect(await Self.code { _ = try await handlers.remotes.remote("x", RemoteRequest()) } == .notFound)
        #expect(await Self.code { _ = try await handlers.remotes.orphans("x", OrphansRequest()) } == .notFound)
        #expect(await Self.code { _ = try await handlers.usage.allowances(of: "x") } == .notFound)
        #expect(await Self.code { _ = try await handlers.checks.tryHook("x") } == .notFound)
    }

    @Test("a destination that cannot list is refused without a request")
    func listings() async throws {
        let handlers = try await ComponentScene().handlers()
        #expect(await Self.code { _ = try await handlers.remotes.remote("nas", RemoteRequest()) } == .conflict)
        #expect(await Self.code { _ = try await handlers.remotes.orphans("nas", OrphansRequest()) } == .conflict)
    }

    @Test("reload without a source of settings is refused and not counted")
    func reload() async throws {
        let reloader = try await ComponentScene().handlers().reloader
        #expect(await Self.code { _ = try await reloader.reload() } == .unavailable)
        #expect(reloader.isLastReloadApplied)
    }
}
