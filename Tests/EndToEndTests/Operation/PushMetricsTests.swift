import Core
import FoundationEssentials
import Glibc
import Linux
import TestKit
import Testing
import Transport

/// The Pushgateway of Prometheus, from Debian's package.
private enum Pushgateway {
    static let need =
        "prometheus-pushgateway, unpacked under .build/tools: apt-get update, then scripts/test-tools pushgateway"

    static let path = Task { () -> FilePath? in
        let found = try? await blocking {
            try Tools.debian("pushgateway").appending("usr/bin/prometheus-pushgateway")
        }
        return found
    }
}

@Suite("Pushed metrics, with the built program", .timeLimit(.minutes(Patience.minutes(2))))
struct PushMetricsTests {
    @Test(
        "push-metrics sends the figures to a Pushgateway while uploads to its destination may run, and nothing otherwise",
        .enabled("\(Pushgateway.need)") { await Pushgateway.path.value != nil })
    func pushed() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        try await fixture.startReceiver()
        try fixture.startDaemon()
        _ = try await eventually("the daemon reports its metrics") { try await fixture.runVerb("metrics") }
        let own = try Loopback.freePort()
        let gateway = try Child(
            try #require(await Pushgateway.path.value), ["--web.listen-address=127.0.0.1:\(own)"],
            output: fixture.folder.path.appending("gateway.out"), errors: fixture.folder.path.appending("gateway.err"))
        defer { gateway.end(with: SIGKILL) }  // before the fixture's folder is removed
        let (transport, address) = (Transport(), "http://127.0.0.1:\(own)")
        func figures() async throws -> String? {
            try gateway.requireRunning()
            guard let answer = try? await transport.send(Request("GET", address + "/metrics")) else { return nil }
            let text = String(decoding: answer.body, as: UTF8.self)
            return text.split(separator: "\n").filter { $0.contains(#"instance="front""#) }.joined(separator: "\n")
        }
        try await eventually("the Pushgateway answers") { try await figures() }
        func push(with destination: String, as name: String = "front") async throws -> (
            ending: Child.Ending?, words: String
        ) {
            let script = try Child(
                Repository.root.appending("packaging/prometheus/push-metrics"), [],
                environment: [
                    "PUSH_URL": address, "PUSH_WITH": destination, "PUSH_NAME": name,
                    "SLUICE_CONFIG": fixture.config.display,
                    "PATH": "\(Setting.binary().parent.display):/usr/bin:/bin",
                ], output: fixture.folder.path.appending("push.out"), errors: fixture.folder.path.appending("push.err"))
            let ending = try await script.end(within: .seconds(30))
            return (ending, try script.standardError())
        }

        try await eventually("the daemon shows its destination as open") {
            try await fixture.runVerb("metrics")?.contains(#"sluice_destination_open{destination="nas"} 1"#) == true
        }
        _ = try await fixture.runVerb("pause")
        let held = try await push(with: "nas")
        #expect(held.ending == .status(75), "\(held.words)")
        #expect(try await figures() == "")

        _ = try await fixture.runVerb("resume")
        let sent = try await push(with: "nas")
        #expect(sent.ending == .status(0), "\(sent.words)")
        let text = try await figures() ?? ""
        #expect(text.contains("sluice_build_info{"))
        #expect(text.contains(#"sluice_folder_present{folder="camera",instance="front",job="sluice"} 1"#))

        for name in ["front door", "site/front#1?", "..", "50%", "cam[1-2]", "tür"] {
            let odd = try await push(with: "nas", as: name)
            #expect(odd.ending == .status(0), "\(odd.words)")
            let answer = try await transport.send(Request("GET", address + "/metrics"))
            #expect(
                String(decoding: answer.body, as: UTF8.self).contains("{instance=\"\(name)\",job=\"sluice\",version="))
        }

        let unknown = try await push(with: "na")
        #expect(unknown.ending == .status(78), "\(unknown.words)")
        await transport.stop()
    }

    @Test(
        "push-metrics uses the interface that the rules approve, and any where no rule depends on it",
        arguments: [true, false])
    func interface(_ depends: Bool) async throws {
        let folder = TemporaryFolder()
        let figures = """
            sluice_destination_open{destination="nas"} 1
            sluice_destination_open{destination="other"} 1
            sluice_network_metered{destination="other",interface="wwan0"} 1
            """ + (depends ? "\nsluice_network_metered{destination=\"nas\",interface=\"eth0\"} 0\n" : "\n")
        _ = try folder.write("figures", Array(figures.utf8))
        try folder.writeProgram("sluice", "cat '\(folder.path.display)/figures'")
        try folder.writeProgram("curl", "cat >/dev/null; echo \"$*\"")
        let script = try Child(
            Repository.root.appending("packaging/prometheus/push-metrics"), [],
            environment: [
                "PUSH_URL": "http://push.example", "PUSH_WITH": "nas", "PATH": "\(folder.path.display):/usr/bin:/bin",
            ], output: folder.path.appending("push.out"), errors: folder.path.appending("push.err"))
        #expect(try await script.end(within: .seconds(30)) == .status(0))
        let call = try script.standardOutput()
        #expect(call.contains("http://push.example/metrics/job/sluice/instance"))
        #expect(call.contains("--interface if!eth0 ") == depends, "\(call)")
        #expect(call.contains("--interface") == depends, "\(call)")
    }
}
