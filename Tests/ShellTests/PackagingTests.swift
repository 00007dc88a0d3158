import Core
import Linux
import TestKit
import Testing

/// The packaged unit of systemd, by its text: testing its effects takes a booted system.
@Suite("The packaged unit")
struct PackagingTests {
    /// The settings of a section, by their names.
    private func settings() throws -> [Substring: [Substring]] {
        let top = Repository.root
        let bytes = try Files.read(top.appending("packaging/systemd/sluice.service"))
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").filter { !$0.hasPrefix("#") }
        let pairs = lines.compactMap { line in
            line.firstIndex(of: "=").map { (line[..<$0], line[line.index(after: $0)...]) }
        }
        return Dictionary(grouping: pairs, by: \.0).mapValues { $0.map(\.1) }
    }

    @Test(
        "the daemon restarts after every failure except those that need a person, and never in a fast loop"
    )
    func restarts() throws {
        let settings = try settings()
        #expect(settings["Restart"] == ["on-failure"])
        let kept = settings["RestartPreventExitStatus"]?.flatMap { $0.split(separator: " ") } ?? []
        // sysexits.h; and the statuses of systemd for a failed start (systemd.exec(5)): program, group, user,
        // capabilities, namespace, call filter, credentials.
        #expect(Set(kept) == ["64", "78", "203", "216", "217", "218", "226", "228", "243"])
        let pause = try #require(settings["RestartSec"]?.first.flatMap { Int($0.dropLast(1)) })
        let burst = try #require(settings["StartLimitBurst"]?.first.flatMap { Int($0) })
        #expect(settings["StartLimitIntervalSec"] == ["15min"])
        // A disk that is full for hours needs no person; restarts that are faster than the pause are stopped.
        #expect(15 * 60 / pause < burst && burst < 15 * 60)
    }

    @Test("the unit writes no core file, and has one capability beyond its user's")
    func rights() throws {
        let settings = try settings()
        #expect(settings["LimitCORE"] == ["0"])
        #expect(settings["CapabilityBoundingSet"] == ["CAP_LEASE"] && settings["AmbientCapabilities"] == ["CAP_LEASE"])
        #expect(settings["NoNewPrivileges"] == ["yes"] && settings["StateDirectoryMode"] == ["0750"])
    }
}
