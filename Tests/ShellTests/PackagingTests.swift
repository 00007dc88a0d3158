import Core
import FoundationEssentials
import Linux
import TestKit
import Testing

private enum Analyzer {
    static let path = "/usr/bin/systemd-analyze"
    static let isPossible = FileManager.default.isExecutableFile(atPath: path)
}

/// The packaged units of systemd, by their text and as systemd-analyze reads them: scripts/test-booted tries them on a
/// booted system.
@Suite("The packaged units", .timeLimit(.minutes(Patience.minutes(1))))
struct PackagingTests {
    private static let units = ["sluice.service", "sluice@.service", "sluice-receive.service", "sluice.user.service"]
    /// Those of a system, which may use every protection.
    private static let ofSystem = Array(units.dropLast())

    private func lines(_ unit: String) throws -> [Substring] {
        let bytes = try Files.read(Repository.root.appending("packaging/systemd").appending(FilePath(unit)))
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").filter { !$0.hasPrefix("#") }
    }

    /// The settings of a unit, by their names.
    private func settings(_ unit: String) throws -> [Substring: [Substring]] {
        let pairs = try lines(unit).compactMap { line in
            line.firstIndex(of: "=").map { (line[..<$0], line[line.index(after: $0)...]) }
        }
        return Dictionary(grouping: pairs, by: \.0).mapValues { $0.map(\.1) }
    }

    @Test(
        "the daemon restarts after every failure except those that need a person, and never in a fast loop",
        arguments: units
    )
    func restarts(unit: String) throws {
        let settings = try settings(unit)
        #expect(settings["Restart"] == ["on-failure"])
        let kept = settings["RestartPreventExitStatus"]?.flatMap { $0.split(separator: " ") } ?? []
        // sysexits.h; a missing library (ld.so(8)); and the statuses of systemd for a failed start (systemd.exec(5)): program,
        // group, user, capabilities, namespace, call filter, folders for socket, state and configuration, credentials.
        #expect(
            Set(kept) == [
                "64", "78", "127", "203", "216", "217", "218", "226", "228", "233", "238", "241", "243",
            ])
        let pause = try #require(settings["RestartSec"]?.first.flatMap { Int($0.dropLast(1)) })
        let burst = try #require(settings["StartLimitBurst"]?.first.flatMap { Int($0) })
        #expect(settings["StartLimitIntervalSec"] == ["15min"])
        // A disk that is full for hours needs no person; restarts that are faster than the pause are stopped.
        #expect(15 * 60 / pause < burst && burst < 15 * 60)
    }

    @Test(
        "no unit writes a core file, all have a limit for memory, and the daemon has one capability", arguments: units)
    func rights(unit: String) throws {
        let settings = try settings(unit)
        #expect(settings["LimitCORE"] == ["0"] && settings["NoNewPrivileges"] == ["yes"])
        #expect(settings["MemoryMax"] == ["512M"] && settings["MemoryHigh"] == ["384M"])
        switch unit {
        case "sluice.user.service": #expect(settings["AmbientCapabilities"] == nil)
        case "sluice-receive.service": #expect(settings["CapabilityBoundingSet"] == [""])
        default:
            #expect(settings["CapabilityBoundingSet"] == ["CAP_LEASE"])
            #expect(settings["AmbientCapabilities"] == ["CAP_LEASE"] && settings["StateDirectoryMode"] == ["0750"])
        }
    }

    @Test("nothing starts without a configuration or a token", arguments: units)
    func conditions(unit: String) throws {
        let conditions = [
            "sluice.service": "/etc/sluice/sluice.yaml", "sluice@.service": "/etc/sluice/%i.yaml",
            "sluice-receive.service": "/etc/sluice/receive.token", "sluice.user.service": "%E/sluice/sluice.yaml",
        ]
        #expect(try settings(unit)["ConditionPathExists"] == conditions[unit].map { [Substring($0)] })
    }

    @Test("the watchdog watches each daemon", arguments: units.filter { $0 != "sluice-receive.service" })
    func watchdog(unit: String) throws {
        let settings = try settings(unit)
        #expect(settings["Type"] == ["notify"] && settings["WatchdogSec"] == ["5min"])
    }

    @Test("an instance has the service's settings, with names of its own, and refuses the names of other services")
    func instance() throws {
        let own = try lines("sluice@.service").filter { !$0.hasPrefix("AssertPathExists=") }
        let expected = try lines("sluice.service").map { line -> Substring in
            switch line {
            case "Description=Sluice, uploads finished files from watched folders":
                "Description=Sluice (%i), uploads finished files from watched folders"
            case "StateDirectory=sluice", "RuntimeDirectory=sluice": line + "-%i"
            default: Substring(line.replacing("/etc/sluice/sluice.yaml", with: "/etc/sluice/%i.yaml"))
            }
        }
        #expect(own == expected)
        // With `sluice` and `receive` for %i these files of the package exist.
        let refused = try settings("sluice@.service")["AssertPathExists"] ?? []
        let services = "!/usr/lib/systemd/system/"
        #expect(refused == ["\(services)%i-receive.service", "\(services)sluice-%i.service"])
    }

    @Test(
        "systemd reads each unit without a complaint",
        .enabled(if: Analyzer.isPossible, "systemd-analyze is wanted: sudo apt-get install systemd"),
        arguments: units + ["../card/camera-card@.service"])
    func reads(unit: String) async throws {
        // A template is verified as an instance, and the program need not be installed.
        let name = unit.replacing("../card/", with: "").replacing("@.", with: "@camera.").replacing(".user", with: "")
        let folder = try copy(of: unit, named: name)
        let manager = unit == "sluice.user.service" ? ["--user"] : []
        let errors = try await analyze(["verify", "--man=no"] + manager + ["./" + name], in: folder).errors
        #expect(errors.isEmpty)
    }

    @Test(
        "systemd rates the protection of each service as 1.4 or better",
        .enabled(if: Analyzer.isPossible, "systemd-analyze is wanted: sudo apt-get install systemd"),
        arguments: ofSystem)
    func protection(unit: String) async throws {
        let name = unit.replacing("@.", with: "@camera.")
        let folder = try copy(of: unit, named: name)
        // It ends with status 1 if the exposure is above the threshold, which counts tenths.
        let answer = try await analyze(["security", "--offline=true", "--threshold=14", "./" + name], in: folder)
        #expect(answer.ending == .status(0), "\(answer.output.suffix(200))\(answer.errors)")
    }

    /// A folder with a copy of a unit that runs /bin/true in place of the program.
    private func copy(of unit: String, named name: String) throws -> TemporaryFolder {
        let folder = TemporaryFolder()
        let bytes = try Files.read(Repository.root.appending("packaging/systemd").appending(FilePath(unit)))
        let text = String(decoding: bytes, as: UTF8.self).replacing("/usr/bin/sluice", with: "/bin/true")
        try folder.write(FilePath(name), Array(text.utf8))
        return folder
    }

    private func analyze(
        _ arguments: [String], in folder: TemporaryFolder
    ) async throws -> (ending: Child.Ending, output: String, errors: String) {
        let child = try Child(
            "/bin/sh", ["-c", "cd \"$0\" && exec \"$@\"", folder.path.display, Analyzer.path] + arguments,
            environment: [
                "PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": folder.path.display, "HOME": folder.path.display,
            ],
            output: folder.path.appending("out"), errors: folder.path.appending("err"))
        let ending = try await child.end(within: .seconds(40))
        return (ending, try child.standardOutput(), try child.standardError())
    }
}
