import Core
import Linux
import TestKit
import Testing

@testable import Daemon

@Suite("Power and clock monitors")
struct MonitorTests {
    private struct Unreadable: Error {}
    private let now = WallTime(milliseconds: 1_000_000)

    @Test("a battery is known from the first reading, since the time of the change")
    func battery() {
        var monitor = PowerMonitor()
        monitor.record(.success([.battery(isDraining: true, percent: 80)]), at: now, .silent)
        #expect(monitor.power?.isOnBattery == true)
        monitor.record(
            .success([.battery(isDraining: true, percent: 80)]), at: now.advanced(by: .seconds(60)), .silent)
        #expect(monitor.power?.since == now)
        monitor.record(
            .success([.battery(isDraining: false, percent: 80), .outer(isOnline: true)]),
            at: now.advanced(by: .seconds(120)), .silent)
        #expect(monitor.power?.isOnBattery == false)
        monitor.reset()
        #expect(monitor.power == nil)
    }

    @Test("a supply that cannot be read holds nothing")
    func unreadable() {
        var monitor = PowerMonitor()
        monitor.record(.success([.battery(isDraining: true, percent: 80)]), at: now, .silent)
        monitor.record(.failure(Unreadable()), at: now, .silent)
        #expect(monitor.power == nil)
    }

    @Test("a clock earlier than the program's build is not trusted while a rule depends on the time")
    func clock() {
        let clocks = ManualClocks(wall: WallTime(milliseconds: 0))
        var monitor = ClockMonitor()
        monitor.evaluate(clocks, .silent)
        #expect(monitor.trouble != nil)
        monitor.reset()
        #expect(monitor.trouble == nil)
    }

    @Test("the answer about a file of rules that are about to hold survives a cycle with the earlier rules")
    func upcomingRules() {
        var monitor = BusyMonitor()
        let (now, source) = (MonotonicTime(nanoseconds: 0), BusySource.file("/run/recording"))
        monitor.add([PolicyRules(busy: BusyRule(source))])
        _ = monitor.newFiles()
        _ = monitor.answered(.free, by: source, askedAt: now, at: WallTime(milliseconds: 0), .silent)
        monitor.apply([])
        #expect(monitor.states.answers(at: now)[source]?.isFree == true)
        monitor.addedRulesHold()
        monitor.apply([])
        #expect(monitor.states.answers(at: now).isEmpty)
    }
}
