import Core
import FoundationEssentials
import Glibc
import Linux
import TestKit
import Testing
import Transport

/// Prometheus' own check of its format, from Debian's package.
private enum Promtool {
    static let need =
        "promtool of Debian's package prometheus, unpacked under .build/tools: apt-get update, then scripts/test-tools prometheus"

    static let path = Task { () -> FilePath? in
        let found = try? await blocking { try Tools.debian("prometheus").appending("usr/bin/promtool") }
        return found
    }
}

/// The values of a text, by name and labels as written.
private func numbers(_ text: String) -> [String: Double] {
    var numbers: [String: Double] = [:]
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
        guard let cut = line.lastIndex(of: " ") else { continue }
        numbers[String(line[..<cut])] = Double(line[line.index(after: cut)...])
    }
    return numbers
}

@Suite("Metrics, with the built program", .timeLimit(.minutes(Patience.minutes(2))))
struct MetricsEndToEndTests {
    private struct Usage: Decodable {
        struct Day: Decodable { var bytes: Int64 }
        var days: [Day]
    }

    private func scrape(_ fixture: DaemonFixture) async throws -> String {
        try await eventually("the daemon reports its metrics") { try await fixture.runVerb("metrics") }
    }

    @Test("counters match the events, and files match the API")
    func counters() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let out = fixture.folder.path.appending("out")
        try Files.makeFolders(out)
        let (textfile, statusFile) = (out.appending("sluice.prom"), out.appending("status.json"))
        fixture.topKeys = ["metrics: {textfile: \(textfile.display), status_file: \(statusFile.display), every: 5s}"]
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let camera = Camera(fixture, dice: Dice(seed: 1))
        var bytes = 0
        for number in 0..<12 {
            let size = 1 + number * 40_000
            bytes += size
            try camera.drop(Clip(number: number, size: size, relative: FilePath("\(number).mp4")))
        }
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait()
        try await outcome.check()
        let told = numbers(try await scrape(fixture))
        #expect(told[#"sluice_uploads_total{destination="nas",result="completed"}"#] == 12)
        #expect(told[#"sluice_uploads_total{destination="nas",result="failed"}"#] == 0)
        #expect(told[#"sluice_upload_bytes_total{destination="nas"}"#] == Double(bytes))
        #expect(told[#"sluice_files_detected_total{folder="camera"}"#] == 12)
        #expect(told[#"sluice_upload_duration_seconds_count{destination="nas"}"#] == 12)
        #expect(told[#"sluice_queue_items{destination="nas",state="queued"}"#] == 0)
        #expect(told["sluice_process_resident_memory_bytes"] ?? 0 > 1_000_000)
        #expect(told["sluice_process_open_fds"] ?? 0 > 5)
        // For a process that has sent all the bytes in the ledger. Running transfers are settled in a moment.
        try await eventually("the counter and the ledger agree") {
            let told = numbers(try await scrape(fixture))
            let sent = told.filter { $0.key.hasPrefix("sluice_network_sent_bytes_total{") }.values.reduce(0, +)
            guard let usage = try await fixture.runVerb("usage", ["--days", "2", "--json"]) else { return false }
            let days = try JSONDecoder().decode(Usage.self, from: Data(usage.utf8)).days
            return sent > Double(bytes) && sent == Double(days.reduce(0) { $0 + $1.bytes })
        }
        #expect(told.keys.allSatisfy { $0.hasPrefix("sluice_") })
        try await eventually("the text file has the last value", within: .seconds(30)) {
            let written = numbers(String(decoding: try Files.read(textfile), as: UTF8.self))
            return written[#"sluice_uploads_total{destination="nas",result="completed"}"#] == 12
        }
        struct Written: Decodable { var pid: Int32, counts: Status.Counts }
        try await eventually("the status file has the last value", within: .seconds(30)) {
            let written = try JSONDecoder().decode(Written.self, from: Data(try Files.read(statusFile)))
            return written.pid == fixture.daemon?.pid && written.counts.completed == 12
        }
    }

    @Test(
        "promtool accepts the text", .enabled("\(Promtool.need)") { await Promtool.path.value != nil })
    func promtool() async throws {
        let promtool = try #require(await Promtool.path.value)
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.policyKeys = ["quotas: [{per: day, bytes: 1 GB, files: 500}]", "metered: pause"]
        fixture.stagingKeys = ", max_size: 1 GB"
        fixture.uploadTo = ["nas", "archive"]
        fixture.folderKeys = ["removable: always"]
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try camera.drop(Clip(number: 0, size: 5_000, relative: "a.mp4"))
        let text = try await eventually("the metrics contain the completed upload") {
            let text = try await scrape(fixture)
            return numbers(text)[#"sluice_uploads_total{destination="archive",result="completed"}"#] == 1 ? text : nil
        }
        #expect(numbers(text)[#"sluice_folder_removable{folder="camera"}"#] == 1)
        let file = try fixture.folder.write("scraped.prom", Array(text.utf8))
        let judge = try Child(
            "/bin/sh", ["-c", "exec \"$1\" check metrics <\"$2\"", "sh", promtool.display, file.display],
            output: fixture.folder.path.appending("promtool.out"),
            errors: fixture.folder.path.appending("promtool.err"))
        let ending = try await judge.end(within: .seconds(60))
        let words = try judge.standardOutput() + judge.standardError()
        #expect(ending == .status(0), "\(words)")
        #expect(words.isEmpty)
    }

    @Test(
        "Prometheus scrapes over TCP with the token and returns the values",
        .enabled("\(Promtool.need)") { await Promtool.path.value != nil })
    func scraped() async throws {
        let program = try #require(await Promtool.path.value).parent.appending("prometheus")
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let token = fixture.folder.path.appending("token")
        try Files.replace(token, with: Array("a-word-of-ours".utf8))
        fixture.controlKeys = ", listen: \"127.0.0.1:0\", tokens: [{name: me, secret: {file: \(token.display)}}]"
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let port = try await eventually("the log names the port of the API", every: .milliseconds(50)) {
            try fixture.daemon?.standardError().firstMatch(of: /listening address="127.0.0.1:0 \(port ([0-9]+)\)"/)?.1
        }
        let camera = Camera(fixture, dice: Dice(seed: 1))
        for number in 0..<3 { try camera.drop(Clip(number: number, size: 5_000, relative: FilePath("\(number).mp4"))) }
        let config = try fixture.folder.write(
            "prometheus.yml",
            Array(
                """
                scrape_configs:
                  - job_name: sluice
                    scrape_interval: 200ms
                    scrape_timeout: 200ms
                    authorization: {credentials_file: \(token.display)}
                    static_configs: [{targets: ["127.0.0.1:\(port)"]}]
                """.utf8))
        let own = try Loopback.freePort()
        let prometheus = try Child(
            program,
            [
                "--config.file=\(config.display)",
                "--storage.tsdb.path=\(fixture.folder.path.appending("tsdb").display)",
                "--web.listen-address=127.0.0.1:\(own)",
            ], output: fixture.folder.path.appending("prometheus.out"),
            errors: fixture.folder.path.appending("prometheus.err"))
        defer { prometheus.end(with: SIGKILL) }  // before the fixture's folder is removed
        let transport = Transport()
        let query = "http://127.0.0.1:\(own)/api/v1/query?query=sluice_uploads_total%7Bresult%3D%22completed%22%7D"
        do {
            try await eventually(
                "Prometheus has the number of completed uploads", within: .seconds(40), every: .milliseconds(200)
            ) {
                try prometheus.requireRunning()
                guard let answer = try? await transport.send(Request("GET", query)) else { return false }
                let text = String(decoding: answer.body, as: UTF8.self)
                return text.contains(#""destination":"nas""#) && text.contains(#","3"]"#)
            }
        } catch let overdue as Overdue {
            Issue.record(overdue, "\(try prometheus.standardError().suffix(2_000))")
        }
        await transport.stop()
    }

    @Test(
        "the alert rules fire as their cases say, and Prometheus evaluates each rule and each query of the dashboard",
        .enabled("\(Promtool.need)") { await Promtool.path.value != nil })
    func alerts() async throws {
        let promtool = try #require(await Promtool.path.value)
        let folder = TemporaryFolder()
        let rules = Repository.root.appending("packaging/prometheus/sluice.rules.yaml")
        _ = try folder.write("sluice.rules.yaml", Array(try Files.read(rules)))
        let cases = try folder.write(
            "alerts.yaml", Array(try Files.read(Repository.root.appending("Tests/Fixtures/prometheus/alerts.yaml"))))
        let judge = try Child(
            promtool, ["test", "rules", cases.display], output: folder.path.appending("promtool.out"),
            errors: folder.path.appending("promtool.err"))
        let ending = try await judge.end(within: .seconds(60))
        let words = try judge.standardOutput() + judge.standardError()
        #expect(ending == .status(0), "\(words)")

        let board = String(
            decoding: try Files.read(Repository.root.appending("packaging/grafana/sluice.json")), as: UTF8.self)
        let queries = board.matches(of: /"expr": "((?:[^"\\]|\\.)*)"/).map {
            $0.1.replacing("$instance", with: ".*")
        }
        #expect(queries.count > 15)
        // JSON and YAML escape these texts in the same way.
        let records = queries.enumerated().map { "      - {record: \"query:\($0)\", expr: \"\($1)\"}" }
        _ = try folder.write(
            "queries.yaml",
            Array("groups:\n  - name: dashboard\n    rules:\n\(records.joined(separator: "\n"))\n".utf8))
        let config = try folder.write(
            "prometheus.yml",
            Array("global: {evaluation_interval: 200ms}\nrule_files: [sluice.rules.yaml, queries.yaml]\n".utf8))
        let own = try Loopback.freePort()
        let prometheus = try Child(
            promtool.parent.appending("prometheus"),
            [
                "--config.file=\(config.display)", "--storage.tsdb.path=\(folder.path.appending("tsdb").display)",
                "--web.listen-address=127.0.0.1:\(own)",
            ], output: folder.path.appending("prometheus.out"), errors: folder.path.appending("prometheus.err"))
        defer { prometheus.end(with: SIGKILL) }  // before the folder is removed
        struct Answer: Decodable {
            struct Content: Decodable { var groups: [Group] }
            struct Group: Decodable { var rules: [Rule] }
            struct Rule: Decodable {
                var name: String
                var health: String
                var lastError: String?
            }
            var data: Content
        }
        let transport = Transport()
        let evaluated = try await eventually(
            "Prometheus has evaluated each rule", within: .seconds(40), every: .milliseconds(200)
        ) { () -> [Answer.Rule]? in
            try prometheus.requireRunning()
            guard let answer = try? await transport.send(Request("GET", "http://127.0.0.1:\(own)/api/v1/rules")),
                let content = try? JSONDecoder().decode(Answer.self, from: Data(answer.body)).data
            else { return nil }
            let rules = content.groups.flatMap(\.rules)
            return rules.isEmpty || rules.contains { $0.health == "unknown" } ? nil : rules
        }
        #expect(evaluated.count > 15 + queries.count - 1)
        for rule in evaluated { #expect(rule.health == "ok", "\(rule.name): \(rule.lastError ?? "")") }
        await transport.stop()
    }

    @Test(
        "Prometheus accepts the blocks of the page on monitoring",
        .enabled("\(Promtool.need)") { await Promtool.path.value != nil })
    func pageBlocks() async throws {
        let promtool = try #require(await Promtool.path.value)
        let folder = TemporaryFolder()
        let rules = Repository.root.appending("packaging/prometheus/sluice.rules.yaml")
        _ = try folder.write("sluice.rules.yaml", Array(try Files.read(rules)))
        let blocks = try Page("docs/monitoring.md").blocks("").filter { $0.contains("scrape_configs:") }
        #expect(blocks.count == 2)
        // Without it, Prometheus puts the Pushgateway's own name into `instance`, for which the alerts would be.
        #expect(blocks.last?.contains("honor_labels: true") == true)
        for block in blocks {
            let file = try folder.write("prometheus.yml", Array(block.utf8))
            let judge = try Child(
                promtool, ["check", "config", "--syntax-only", file.display],
                output: folder.path.appending("promtool.out"), errors: folder.path.appending("promtool.err"))
            let ending = try await judge.end(within: .seconds(60))
            let words = try judge.standardOutput() + judge.standardError()
            #expect(ending == .status(0), "\(words)")
        }
    }

    @Test("a reader of the files always finds a complete one")
    func whole() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let textfile = fixture.folder.path.appending("sluice.prom")
        fixture.topKeys = ["metrics: {textfile: \(textfile.display), every: 5s}"]
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await eventually("the text file exists") { try FileStatus.ifPresent(at: textfile) != nil }
        let reader = Task { () -> (reads: Int, torn: Int, versions: Int) in
            var (reads, torn) = (0, 0)
            var seen: Set<UInt64> = []
            while !Task.isCancelled {
                let (inode, text) = try await blocking {
                    // The file never disappears, not even for a moment.
                    (try FileStatus(at: textfile).inode, String(decoding: try Files.read(textfile), as: UTF8.self))
                }
                seen.insert(inode)
                reads += 1
                let isWhole =
                    text.hasPrefix("# HELP sluice_") && text.hasSuffix("\n")
                    && text.contains("\nsluice_watch_overflows_total ")
                if !isWhole { torn += 1 }
            }
            return (reads, torn, seen.count)
        }
        let camera = Camera(fixture, dice: Dice(seed: 2))
        // Each reload writes it again as well.
        for number in 0..<20 {
            try camera.drop(Clip(number: number, size: 3_000, relative: FilePath("\(number).mp4")))
            _ = try await eventually("the daemon has reloaded") { try await fixture.runVerb("reload") }
        }
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait()
        reader.cancel()
        let found = try await reader.value
        #expect(found.torn == 0, "\(found)")
        #expect(found.reads > 20 && found.versions > 5, "\(found)")
    }
}
