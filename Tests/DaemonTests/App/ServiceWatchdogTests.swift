import Core
import Linux
import Store
import Synchronization
import TestKit
import Testing

@testable import Daemon

@Suite("Service watchdog")
struct ServiceWatchdogTests {
    /// Time that passes only when a test lets it pass: each sleep ends by a step.
    private final class Steps: Sendable {
        private let steps = Mutex<(sleepers: [AsyncSignal], asked: [Duration])>(([], []))
        var asked: [Duration] { steps.withLock { $0.asked } }
        var sleepers: Int { steps.withLock { $0.sleepers.count } }

        func sleep(_ time: Duration) async throws {
            let signal = AsyncSignal()
            steps.withLock {
                $0.sleepers.append(signal)
                $0.asked.append(time)
            }
            await signal.wait()
            steps.withLock { $0.sleepers.removeAll { $0 === signal } }
            try Task.checkCancellation()
        }

        func pass() { for signal in steps.withLock({ $0.sleepers }) { signal.signal() } }
    }

    /// A loop that answers when the test lets it.
    private final class ScriptedLoop: Sendable {
        let turns = TurnProbe()
        private let asked = Count()
        var questions: Int { asked.value }

        func named(_ name: String) -> ServiceWatchdog.Loop {
            ServiceWatchdog.Loop(name: name) {
                await self.turns.confirm { self.asked.add() }
            }
        }
    }

    private final class Count: Sendable {
        private let count = Mutex(0)
        var value: Int { count.withLock { $0 } }
        func add() { count.withLock { $0 += 1 } }
    }

    private final class Lines: Sendable {
        private let kept = Mutex<[String]>([])
        var all: [String] { kept.withLock { $0 } }
        func add(_ text: String) { kept.withLock { $0.append(text) } }
    }

    @Test("a report follows only when every loop has answered since the one before, and a late loop is named")
    func reports() async throws {
        let (steps, first, second, lines) = (Steps(), ScriptedLoop(), ScriptedLoop(), Lines())
        let reports = Count()
        let log = Log(format: .json, clocks: ManualClocks()) { lines.add(String(decoding: $0, as: UTF8.self)) }
        let watchdog = ServiceWatchdog(
            loops: [first.named("first"), second.named("second")], pause: .seconds(30), log: log,
            sleep: { try await steps.sleep($0) })
        await withTaskGroup { group in
            group.addTask { await watchdog.run { reports.add() } }
            do {
                try await eventually("both loops are asked") { first.questions == 1 && second.questions == 1 }
                first.turns.beginTurn()
                try await eventually("the other one is given a time") { steps.sleepers == 1 }
                #expect(reports.value == 0)
                second.turns.beginTurn()
                try await eventually("the first report is sent") { reports.value == 1 }
                // Nothing is asked before the time is over.
                try await eventually("it sleeps") { steps.asked.count == 2 && steps.sleepers == 1 }
                #expect(first.questions == 1 && second.questions == 1)
                // The answer of the second may be on its way when the time is over: then it is named too, and the next
                // round decides.
                var named = ""
                for round in 1...100 where !named.contains(#""first""#) {
                    steps.pass()
                    try await eventually("both loops are asked again") {
                        first.questions == round + 1 && second.questions == round + 1
                    }
                    second.turns.beginTurn()
                    try await eventually("the late loop is waited for") { steps.sleepers == 1 }
                    steps.pass()
                    try await eventually("the late loop is named") { lines.all.count == 2 * round - 1 }
                    named = try #require(lines.all.last)
                    #expect(named.contains("first") && reports.value == round)
                    first.turns.beginTurn()
                    try await eventually("the next report is sent") { reports.value == round + 1 }
                    try await eventually("the answer is logged") { lines.all.count == 2 * round }
                    try await eventually("it sleeps") { steps.asked.count == 2 * (round + 1) && steps.sleepers == 1 }
                }
                #expect(named.contains(#""first""#))
                #expect(steps.asked.allSatisfy { $0 == .seconds(30) })
            } catch {
                Issue.record(error)
            }
            group.cancelAll()
        }
    }

    @Test("the scheduler answers by its loop, and not because it takes messages")
    func scheduler() async throws {
        let scene = try await ComponentScene()
        let confirm: @Sendable () async -> Void = { [scheduler = scene.scheduler, signals = scene.parts.signals] in
            await scheduler.turns.confirm { signals.scheduling.signal() }
        }
        let answered = Atomic(false)
        let question = Task {
            await confirm()
            answered.store(true, ordering: .releasing)
        }
        // The actor takes messages meanwhile.
        for _ in 0..<20 { _ = await scene.scheduler.snapshot }
        let isEarly = answered.load(ordering: .acquiring)
        #expect(!isEarly)
        let loop = Task { [scheduler = scene.scheduler] in try await scheduler.run() }
        await question.value
        // A loop that sleeps is woken by the question.
        try await eventually("the loop sleeps") { scene.parts.signals.scheduling.isWaiting }
        await confirm()
        loop.cancel()
        try await loop.value
    }

    @Test("the reports of a daemon end while a statement of its database hangs, and go on after it")
    func database() async throws {
        let scene = try await DaemonScene()
        let reports = Count()
        let reporting = Task { [daemon = scene.daemon] in
            await daemon.reportProgress(every: .milliseconds(5)) { reports.add() }
        }
        try await eventually("a daemon without work reports") { reports.value >= 3 }
        let gate = ConditionLock(false)
        let hanging = Task { [store = scene.daemon.context.store] in
            try await store.read { _ in _ = gate.wait(atMost: .seconds(60)) { $0 ? () : nil } }
        }
        // A question that was answered before the statement began may be reported still.
        try await eventually("the reports end", every: .milliseconds(100)) {
            let before = reports.value
            try await Alarms.shared.sleep(for: .milliseconds(300))
            return reports.value == before
        }
        gate.change { $0 = true }
        _ = try await hanging.value
        let before = reports.value
        try await eventually("the reports go on") { reports.value > before }
        reporting.cancel()
        await reporting.value
        try await scene.stop()
    }
}
