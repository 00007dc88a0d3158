import API
import Core
import Linux
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Temperature in the daemon", .timeLimit(.minutes(Patience.minutes(2))))
struct TemperatureTests {
    @Test("a machine that is too hot stops its uploads, and continues them three degrees below")
    func pause() async throws {
        let folder = TemporaryFolder()
        // Renamed into place, so that the daemon never reads an empty file.
        func heat(to degrees: Int) throws {
            try Files.publish(folder.path.appending("thermal_zone0/temp"), Array("\(degrees)000\n".utf8), mode: 0o644)
        }
        try Files.makeFolders(folder.path.appending("thermal_zone0"))
        try heat(to: 60)
        let scene = try await DaemonScene {
            $0.folders[0].policy.rules.pauses = [PauseRule(name: "hot", when: .fact(.hotterThan(70)))]
        }
        await scene.daemon.scheduler.use(TemperatureMonitor(ThermalZones(root: folder.path)))
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a.mp4")
        try await scene.isRunning(1)
        #expect(try await scene.daemon.scheduler.nextMachineChecks() == [.seconds(15)])
        try heat(to: 71)
        scene.daemon.signals.scheduling.signal()
        try await scene.isRunning(0)
        try await scene.reach(.queued, [id])
        let hold = try #require(try await scene.daemon.show(id).upload.holds.first)
        #expect(hold.kind.known == .rule)
        #expect(
            hold.text.contains("the rule `hot` of folder cam pauses uploads while the machine is hotter than 70 °C"))
        // Another folder has no such rule.
        let other = try await scene.add("b.mp4", in: "solo")
        scene.remote.letGo()
        try await scene.reach(.completed, [other])
        try heat(to: 68)
        scene.daemon.signals.scheduling.signal()
        let third = try await scene.add("c.mp4", in: "solo")
        try await scene.reach(.completed, [third])
        #expect(try await scene.state(id) == .queued)
        try heat(to: 67)
        scene.daemon.signals.scheduling.signal()
        try await scene.reach(.completed, [id])
        // No upload waits, so no sensor is read.
        #expect(try await scene.daemon.scheduler.nextMachineChecks().isEmpty)
        try await scene.stop()
    }

    @Test("a sensor that fails once does not let a hot machine go on before it has cooled down")
    func failsOnce() {
        let log = Log(level: .error, format: .plain) { _ in }
        var monitor = TemperatureMonitor()
        func steady(_ degrees: Int?) -> Temperature {
            monitor.record(.hottest(degrees), log)
            return monitor.temperature
        }
        #expect(steady(71) == .celsius(71, steady: 71))
        #expect(steady(nil) == .unreadable)
        #expect(steady(68) == .celsius(68, steady: 71))
        monitor.record(.notNeeded, log)
        #expect(steady(68) == .celsius(68, steady: 68))
    }

    @Test("without a sensor the rule applies, and says why")
    func unreadable() async throws {
        let folder = TemporaryFolder()
        let scene = try await DaemonScene {
            $0.folders[0].policy.rules.pauses = [PauseRule(name: "hot", when: .fact(.hotterThan(70)))]
        }
        await scene.daemon.scheduler.use(TemperatureMonitor(ThermalZones(root: folder.path)))
        let id = try await scene.add("a.mp4")
        try await eventually("the upload has its hold") {
            try await scene.daemon.show(id).upload.holds.first?.text.contains(
                "it is unknown how hot the machine is, and a rule applies then: it has no temperature sensor")
        }
        try await scene.stop()
    }
}
