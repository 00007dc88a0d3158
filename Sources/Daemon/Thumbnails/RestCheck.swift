internal import Config
internal import Core
internal import Linux
internal import Synchronization

/// Whether the machine is to rest, for work that no upload stands for.
///
/// The scheduler asks a source of `busy` that it cannot watch, and the battery for its level, only while an upload
/// waits for the answer. So they are asked here, before the work begins and while it lasts.
final class RestCheck: Sendable {
    private let context: Context
    private let scheduler: Scheduler
    private let probe: BusyProbe
    /// The last answer of each source that was asked here, and when.
    private let asked = Mutex<[BusySource: (answer: BusyAnswer, at: MonotonicTime)]>([:])

    init(context: Context, scheduler: Scheduler, probe: BusyProbe) {
        (self.context, self.scheduler, self.probe) = (context, scheduler, probe)
    }

    /// The hold that forbids such work now; `nil` for none. It need not hold every upload: one is enough for the
    /// machine to rest. A source that gives no answer holds it.
    ///
    /// - Parameter readsPower: Whether the power supplies are read. A change to battery reports itself, a falling level
    ///   may not.
    func hold(readsPower: Bool) async -> Hold? {
        let settings = context.settings
        let dependsOnPower = settings.allRules.contains(where: \.dependsOnPower)
        guard dependsOnPower || !settings.busyRules.isEmpty else { return nil }
        if dependsOnPower, readsPower { await scheduler.refreshMachine() }
        let answers = await answers(of: settings.busyRules.map(\.rule))
        let snapshot = await scheduler.snapshot.answering(answers)
        for destination in settings.destinations {
            let state = snapshot.destination(destination.name)
            let folders = settings.presentFolders.filter { $0.uploadTo.contains(destination.name) }
            let places = folders.map { snapshot.folder($0.watch.name, .anyFile) } + [nil]
            for folder in places {
                let holds = snapshot.hardBlockers(on: state, from: folder, isUnderWay: false)
                if let hold = holds.first(where: \.asksForRest) { return hold }
            }
        }
        return nil
    }

    /// The answers of sources that the scheduler does not know. Each is asked again once its interval is over.
    private func answers(of rules: [BusyRule]) async -> [BusySource: BusyAnswer] {
        let known = await scheduler.snapshot.inputs.busy
        var answers: [BusySource: BusyAnswer] = [:]
        for rule in rules where known[rule.source] == nil && answers[rule.source] == nil {
            let (every, timeout) = rule.source.isFile ? BusyStates.fileCheck : (rule.every, rule.timeout)
            let began = context.clocks.monotonic()
            if let last = asked.withLock({ $0[rule.source] }), began.since(last.at) < every {
                answers[rule.source] = last.answer
                continue
            }
            guard let word = await probe.check(rule.source, timeout) else { continue }
            let answer = BusyAnswer(word, since: context.clocks.wall())
            asked.withLock { $0[rule.source] = (answer, began) }
            answers[rule.source] = answer
        }
        let sources = Set(rules.map(\.source))
        asked.withLock { asked in asked = asked.filter { sources.contains($0.key) } }
        return answers
    }
}

extension Hold {
    /// Whether it is there to spare the machine: it is busy, or its battery is.
    fileprivate var asksForRest: Bool {
        kind == .busy || kind == .rule && rule.map { !Set($0.facts).isDisjoint(with: Self.powerFacts) } ?? false
    }

    private static let powerFacts: Set<String> = ["on_battery", "battery_below"]
}
