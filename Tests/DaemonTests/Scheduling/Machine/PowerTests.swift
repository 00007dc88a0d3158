import API
import Core
import Glibc
import Linux
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Power in the daemon", .timeLimit(.minutes(Patience.minutes(2))))
struct PowerTests {
    private let onBattery = PauseRule(name: "on-battery", when: .fact(.onBattery(true)))

    @Test(
        "on battery, running uploads stop and no new upload starts, without using an attempt"
    )
    func pause() async throws {
        let folder = TemporaryFolder()
        func battery(_ isFed: Bool) throws {
            for (name, value) in [
                ("BAT0/type", "Battery"), ("BAT0/status", isFed ? "Charging" : "Discharging"), ("BAT0/capacity", "80"),
                ("AC/type", "Mains"), ("AC/online", isFed ? "1" : "0"),
            ] { try folder.write(FilePath(name), Array("\(value)\n".utf8)) }
        }
        try battery(true)
        let onBattery = onBattery
        let scene = try await DaemonScene { $0.folders[0].policy.rules = PolicyRules(pauses: [onBattery]) }
        await scene.daemon.scheduler.use(PowerMonitor(PowerSupplies(root: folder.path)))
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a.mp4")
        try await scene.isRunning(1)
        #expect(try await scene.daemon.scheduler.nextMachineChecks() == [.seconds(60)])
        try battery(false)
        scene.daemon.signals.scheduling.signal()
        try await scene.isRunning(0)
        try await scene.reach(.queued, [id])
        let view = try await scene.daemon.show(id).upload
        #expect(view.state == .waiting && view.holds.map(\.kind.known) == [.rule] && view.attempt == 0)
        let why = try await scene.daemon.why(id).answers.first?.text
        #expect(
            why?.contains("the rule `on-battery` of folder cam pauses uploads while the machine runs on its battery")
                == true)
        let other = try await scene.add("b.mp4", in: "solo")
        scene.remote.letGo()
        try await scene.reach(.completed, [other])
        #expect(try await scene.state(id) == .queued)
        try battery(true)
        scene.daemon.signals.scheduling.signal()
        try await scene.reach(.completed, [id])
        // No upload waits, so the supply is not read.
        #expect(try await scene.daemon.scheduler.nextMachineChecks().isEmpty)
        try await scene.stop()
    }

    @Test(
        "a change of the power supply is evaluated at once",
        .enabled(if: geteuid() == 0, "only root can have the kernel tell of a device: run the tests as root"))
    func news() async throws {
        let folder = TemporaryFolder()
        func charger(_ isOnline: Bool) throws {
            for (name, value) in [
                ("BAT0/type", "Battery"), ("BAT0/status", isOnline ? "Charging" : "Discharging"),
                ("AC/type", "Mains"), ("AC/online", isOnline ? "1" : "0"),
            ] { try folder.write(FilePath(name), Array("\(value)\n".utf8)) }
        }
        try charger(true)
        let onBattery = onBattery
        let scene = try await DaemonScene { $0.folders[0].policy.rules = PolicyRules(pauses: [onBattery]) }
        // Memory devices replace batteries, which not every machine has.
        await scene.daemon.scheduler.use(PowerMonitor(PowerSupplies(root: folder.path), eventsOf: "mem"))
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a.mp4")
        try await scene.isRunning(1)
        for isOnline in [false, true] {
            try charger(isOnline)
            try DeviceEvent.make()
            try await scene.isRunning(isOnline ? 1 : 0)
        }
        scene.remote.letGo()
        try await scene.reach(.completed, [id])
        try await scene.stop()
    }
}
