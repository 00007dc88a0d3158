import API
import Core
import Linux
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Names in network rules")
struct MisnamedRuleTests {
    @Test("check warns of a rule whose name is close to an existing interface, with its place in the file")
    func misnamed() async throws {
        // A machine with only the loopback interface gives no result.
        let there = try Links.all().map(\.name).first { $0.hasPrefix("eth") }
        let written = there.map { "teh" + $0.dropFirst(3) } ?? "garage"
        let scene = try await DaemonScene {
            $0.destinations[0].policy.rules.networks = [
                NetworkRule(interface: "lo", isMetered: false), NetworkRule(interface: written, isMetered: true),
            ]
        }
        let found = try await scene.daemon.check(CheckRequest()).checks.filter { $0.detail.contains("did you mean") }
        #expect(
            found.map(\.detail)
                == (there.map { ["`networks[1]`: no interface `\(written)` is here: did you mean `\($0)`?"] } ?? []))
        #expect(found.allSatisfy { $0.about == "network" && $0.name == "destinations.nas" && $0.verdict == .warning })
        try await scene.stop()
    }
}
