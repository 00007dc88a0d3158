internal import API
internal import Config
internal import Core
internal import Linux
internal import Notices
internal import Store

/// Delivers events to hooks: each stored event at least once, however the daemon ends. Nothing that hooks do affects an
/// upload.
///
/// An event that a hook wants becomes a row of the store. The same transaction records how far the hook has read. The
/// row stays until the notice is delivered or given up. Everything else here is in memory.
actor Hooks {
    private let context: Context
    private let stateHealth: StateHealth
    private let counters: Counters
    private let slots: AsyncSemaphore
    private let signal: AsyncSignal
    private let scheduler: Scheduler
    private let programs: HookPrograms
    private let events: EventCache
    /// The queue of each hook.
    private(set) var lines: [String: HookQueue] = [:]
    /// The last event that was read, and the last one recorded in the store.
    private var (seen, noted): (Int64, Int64) = (0, 0)
    private var tasks: [String: Task<Void, Never>] = [:]
    /// The hook that was served last is tried last.
    private var lastServed = ""
    private var isLoaded = false
    /// The time since which a due notice waits for a slot.
    private var crowdedSince: WallTime?
    /// Whether the settings in force have been applied here.
    private var areSettingsApplied = true

    /// Programs and requests that run at the same time, for notices and for uploads that ask. Uploads come first.
    static let slots = 4
    static let forgotten = "dropped the notices of hooks that are no longer configured"
    /// The most events without a notice that are read again after a crash.
    private static let stride: Int64 = 256

    init(
        context: Context, stateHealth: StateHealth, counters: Counters, slots: AsyncSemaphore,
        signal: AsyncSignal, programs: HookPrograms, events: EventCache
    ) {
        (self.context, self.stateHealth, self.counters) = (context, stateHealth, counters)
        (self.slots, self.signal) = (slots, signal)
        (self.scheduler, self.programs, self.events) = (programs.scheduler, programs, events)
    }

    /// Whether no notice is being sent, and none could be.
    var isAtRest: Bool {
        let now = context.clocks.monotonic()
        return isLoaded && tasks.isEmpty && !lines.values.contains { $0.hold == nil && $0.next(at: now) != nil }
    }

    /// Delivers notices until the task is cancelled. Without hooks it sleeps until a reload.
    func run() async throws {
        while !Task.isCancelled {
            do {
                if !areSettingsApplied { try await collectNow() }
                if !isLoaded { try await load() }
                if !lines.isEmpty {
                    try await read()
                    try await removeDelivered()
                    try await abandonHopeless()
                    await start()
                }
                await signal.wait(atMost: nextDeadline)
            } catch let error as StoreError {
                stateHealth.failed(error)
                try? await Alarms.shared.sleep(for: .seconds(5))
            }
        }
        for task in tasks.values { task.cancel() }
        for task in tasks.values { await task.value }
    }

    /// Takes over the notices that an earlier run has left.
    private func load() async throws {
        let marks = try await context.store.read { try $0.notices.hookMarks() }
        let notices = try await context.store.read { try $0.notices.all() }
        let newest = await context.store.seq
        let now = context.clocks.monotonic()
        var lines: [String: HookQueue] = [:]
        for hook in context.settings.hooks { lines[hook.name] = HookQueue(hook) }
        for notice in notices {
            lines[notice.key.hook]?.add([
                HookQueue.Waiting(
                    seq: notice.key.seq, at: notice.at, upload: notice.upload, tries: notice.tries,
                    queuedAt: now.advanced(by: .zero - notice.waited), due: now)
            ])
        }
        seen = lines.keys.map { marks[$0] ?? newest }.min() ?? newest
        noted = seen
        self.lines = lines
        isLoaded = true
    }

    /// Applies new settings. The caller wakes the loop.
    func collect() async {
        areSettingsApplied = false
        do { try await collectNow() } catch { stateHealth.noteFailure(error) }
    }

    private func collectNow() async throws {
        let hooks = context.settings.hooks
        // Events until now belong to the earlier hooks.
        let newest = await context.store.seq
        let forgotten = try await context.store.write { try $0.notices.keepHooks(hooks.map(\.name), from: newest) }
        if forgotten > 0 { context.log.notice(Self.forgotten, ["count": "\(forgotten)"]) }
        let names = Set(hooks.map(\.name))
        for (name, task) in tasks where !names.contains(name) { task.cancel() }
        if lines.isEmpty { isLoaded = false }
        lines = lines.filter { names.contains($0.key) }
        let now = context.clocks.monotonic()
        for hook in hooks {
            if lines[hook.name] == nil {
                lines[hook.name] = HookQueue(hook)
            } else {
                lines[hook.name]?.apply(hook, at: now)
            }
        }
        areSettingsApplied = true
    }

    // MARK: Events

    /// Queues notices for all new events that hooks want.
    private func read() async throws {
        let newest = await context.store.seq
        guard seen < newest else { return }
        while seen < newest {
            // Notices are not dropped for a hook that keeps accepting them, however fast events arrive.
            if lines.values.contains(where: \.isBehind) { return }
            let events = try await context.store.read { [seen] tx in
                try tx.events.list(after: seen, limit: HookQueue.batch)
            }
            guard let last = events.last?.seq else {
                seen = newest
                break
            }
            // Read after the events: a hook that a reload adds now is not among the marks, and gets none of these
            // events.
            try await queue(events, upTo: last, try await context.store.read { try $0.notices.hookMarks() })
            seen = last
        }
    }

    private func queue(_ events: [EventRecord], upTo last: Int64, _ marks: [String: Int64])
        async throws
    {
        var new: [String: [HookQueue.Waiting]] = [:]
        var rows: [(NoticeRecord, String)] = []
        var builder = await self.events.builder()
        for event in events {
            let hooks = lines.values.map(\.hook).filter {
                $0.on.contains(event.type) && (marks[$0.name] ?? .max) < event.seq
            }
            if hooks.isEmpty { continue }
            let view = await self.events.view(of: event, &builder)
            let folder = view.op?.folder ?? event.detail[.folder]
            let wanting = hooks.filter {
                $0.matches(folder: folder, destination: view.op?.destination ?? event.detail[.destination])
            }
            if wanting.isEmpty { continue }
            let body: String
            do { body = String(decoding: try JSON.line(view), as: UTF8.self) } catch {
                context.log.error("cannot encode an event for hooks", ["seq": "\(event.seq)", "reason": "\(error)"])
                continue
            }
            let now = context.clocks.monotonic()
            for hook in wanting {
                let key = NoticeRecord.Key(hook: hook.name, seq: event.seq)
                rows.append((NoticeRecord(key: key, at: event.at, upload: event.upload), body))
                new[hook.name, default: []].append(
                    HookQueue.Waiting(
                        seq: event.seq, at: event.at, upload: event.upload, tries: 0, queuedAt: now, due: now))
            }
        }
        if rows.isEmpty, last - noted < Self.stride { return }
        let surplus = lines.mapValues { $0.overflow(adding: new[$0.hook.name]?.count ?? 0) }
        let gone = surplus.flatMap { name, all in all.map { NoticeRecord.Key(hook: name, seq: $0) } }
        try await context.store.write { [lines, rows] tx in
            try tx.notices.queue(
                rows, dropping: gone, marks: Dictionary(lines.keys.map { ($0, last) }, uniquingKeysWith: { $1 }))
        }
        CrashPoint.reached("hook-queued")
        noted = last
        for (name, all) in new { lines[name]?.add(all) }
        for (name, all) in surplus where !all.isEmpty {
            guard let (count, isNew) = lines[name]?.drop(all) else { continue }
            counters.add(.hookNotices, [name, "dropped"], Int64(count))
            if !isNew { continue }
            context.log.error(
                "too many notices wait for a hook; dropping the oldest",
                ["hook": name, "most": "\(HookQueue.capacity)", "reason": lines[name]?.trouble?.text])
        }
    }

    // MARK: Delivery

    private func removeDelivered() async throws {
        let keys = lines.flatMap { name, line in line.delivered.map { NoticeRecord.Key(hook: name, seq: $0) } }
        if keys.isEmpty { return }
        try await context.store.write { try $0.notices.remove(keys) }
        for key in keys { lines[key.hook]?.forget([key.seq]) }
    }

    private func abandonHopeless() async throws {
        for (name, line) in lines {
            let all = line.noticesToGiveUp(at: context.clocks.monotonic())
            if all.isEmpty { continue }
            let keys = all.map { NoticeRecord.Key(hook: name, seq: $0) }
            try await context.store.write { try $0.notices.remove(keys) }
            lines[name]?.abandon(all)
            reportAbandoned(all.count, by: name, line.trouble?.text ?? "")
        }
    }

    private func reportAbandoned(_ count: Int, by name: String, _ reason: String) {
        counters.add(.hookNotices, [name, "given_up"], Int64(count))
        context.log.error("notices given up", ["hook": name, "count": "\(count)", "reason": reason])
    }

    private func start() async {
        var names = lines.keys.sorted()
        if let served = names.firstIndex(of: lastServed) {
            names = Array(names[(served + 1)...] + names[...served])
        }
        for name in names where tasks[name] == nil {
            guard let line = lines[name], let next = line.next(at: context.clocks.monotonic()) else { continue }
            guard slots.tryAcquire(leaving: context.settings.hasBeforeUploadRules ? 1 : 0) else {
                if crowdedSince == nil { crowdedSince = context.clocks.wall() }
                return
            }
            crowdedSince = nil
            lines[name]?.begin(next.seq)
            if let hold = await start(next, line.hook) {
                lines[name]?.stopped()
                lines[name]?.held(by: hold)
                slots.releaseUnused()
                continue
            }
            lines[name]?.held(by: nil)
            lastServed = name
            // A reload has removed the hook while policy was evaluated.
            if lines[name] == nil { tasks[name]?.cancel() }
        }
    }

    /// Starts to deliver a notice.
    ///
    /// - Returns: The hold, if policy does not allow it now.
    private func start(_ notice: HookQueue.Waiting, _ hook: Hook) async -> Hold? {
        let sending: @Sendable () async -> Void
        switch hook.target {
        case .command(let command):
            if command.network == .policy,
                let hold = await scheduler.hold(on: ProgramPayer.hook(hook.name))
            {
                return hold
            }
            sending = {
                await self.deliver(notice, hook) { await self.programs.run(command, of: hook, with: $0) }
            }
        case .web(let web):
            let sender = programs.sender
            let decision = await scheduler.start(.notice(web.network), at: Hook.account(hook.name)) { permit in
                await self.deliver(notice, hook) { notice in
                    HookPrograms.Outcome(
                        result: await sender.deliver(notice, by: .web(web, permit), within: hook.timeout))
                }
            }
            switch decision {
            case .success(let request):
                sending = { [requests = scheduler.requests] in _ = await requests.finish(request) }
            case .failure(let held): return held.hold
            }
        }
        tasks[hook.name] = Task {
            await sending()
            self.tasks[hook.name] = nil
            // It also wakes the loop, which may send the next notice.
            self.slots.release()
        }
        return nil
    }

    private func deliver(
        _ notice: HookQueue.Waiting, _ hook: Hook, by delivery: @Sendable (Notice) async -> HookPrograms.Outcome
    ) async {
        let body: String?
        let key = NoticeRecord.Key(hook: hook.name, seq: notice.seq)
        do { body = try await context.store.read { try $0.notices.body(of: key) } } catch {
            stateHealth.noteFailure(error)
            lines[hook.name]?.stopped()
            return
        }
        // The notice was dropped meanwhile, to free space.
        guard let body else {
            lines[hook.name]?.stopped()
            lines[hook.name]?.forget([notice.seq])
            return
        }
        let id = "sluice-\(notice.at.milliseconds)-\(notice.seq)"
        let outcome = await delivery(Notice(id: id, body: Array(body.utf8)))
        CrashPoint.reached("hook-delivered")
        if outcome.hold != nil, case .retry = outcome.result,
            let hold = await scheduler.hold(on: ProgramPayer.hook(hook.name))
        {
            // Policy has stopped the program, which is no failure of it: the notice waits.
            lines[hook.name]?.stopped()
            lines[hook.name]?.held(by: hold)
            return
        }
        await applyResult(outcome.result, notice, hook)
    }

    private func applyResult(_ telling: DeliveryResult, _ notice: HookQueue.Waiting, _ hook: Hook) async {
        let (name, wall, now) = (hook.name, context.clocks.wall(), context.clocks.monotonic())
        switch telling {
        case .stopped: lines[name]?.stopped()
        case .delivered:
            if lines[name]?.trouble != nil { context.log.notice("hook works again", ["hook": name]) }
            lines[name]?.succeeded(notice.seq, at: wall, now)
            counters.add(.hookNotices, [name, "delivered"])
            do { try await removeDelivered() } catch { stateHealth.noteFailure(error) }
        case .refused(let reason):
            lines[name]?.refused(notice.seq, reason, at: wall)
            reportAbandoned(1, by: name, reason)
            do { try await removeDelivered() } catch { stateHealth.noteFailure(error) }
        case .retry(let reason, let failure, let after):
            counters.add(.hookFailures, [name])
            guard
                let (tried, isNew) = lines[name]?.failed(
                    notice.seq, reason, because: failure, after: after, at: wall, now, jitter: Random.jitter())
            else { return }
            if isNew {
                context.log.warning("hook failed; will retry", ["hook": name, "reason": reason])
            } else {
                context.log.debug("hook failed; will retry", ["hook": name, "reason": reason])
            }
            guard let tried else { return }
            do {
                let record = NoticeRecord(
                    key: .init(hook: name, seq: tried.seq), at: tried.at, upload: tried.upload, tries: tried.tries,
                    waited: now.since(tried.queuedAt))
                try await context.store.write { try $0.notices.recordFailure(record) }
            } catch { stateHealth.noteFailure(error) }
        }
    }

    private var nextDeadline: Duration? {
        let now = context.clocks.monotonic()
        // Notices that policy holds are woken by the signal.
        return lines.values.filter { $0.hold == nil }.compactMap(\.nextTry).filter { $0 > now }.map { $0.since(now) }
            .min()
    }

    // MARK: Test notices

    /// Sends a made-up event to a hook.
    ///
    /// - Throws: `Refusal` when there is no free slot.
    func `try`(_ hook: Hook) async throws -> HookTestResult {
        guard slots.tryAcquire(leaving: 0) else {
            throw Refusal(
                .unavailable,
                "the limit of hooks and programs that run at the same time is reached; try again in a moment")
        }
        defer { slots.release() }
        return try await HookTestResult.run(
            hook, programs.sender, scheduler.requests, programs, at: context.clocks.wall())
    }

    // MARK: For views

    /// The queue of each configured hook, and the hold on it.
    func queues(_ now: PolicySnapshot) -> [(queue: HookQueue, hold: Hold?)] {
        context.settings.hooks.compactMap { hook in lines[hook.name].map { ($0, hold(on: $0, now)) } }
    }

    /// The reason why notices of a hook wait: the present policy, else the last failure, else that there is no free
    /// slot.
    private func hold(on line: HookQueue, _ now: PolicySnapshot) -> Hold? {
        let name = line.hook.name
        if line.hook.site != nil, !line.waiting.isEmpty, tasks[name] == nil,
            let hold = now.hold(of: line.hook)
        {
            return hold
        }
        if let trouble = line.trouble { return trouble }
        guard let crowdedSince, tasks[name] == nil, !line.waiting.isEmpty else { return nil }
        return Hold(
            .busy, since: crowdedSince,
            text: "waits for its turn: the limit of hooks and programs that run at the same time is reached")
    }
}
