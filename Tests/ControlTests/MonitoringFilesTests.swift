import API
import Core
import FoundationEssentials
import Linux
import TestKit
import Testing

/// The files in packaging/ for Prometheus and Grafana name metrics as texts. These tests hold them against the table.
@Suite("Files for monitoring systems", .timeLimit(.minutes(Patience.minutes(1))))
struct MonitoringFilesTests {
    static let files = ["packaging/prometheus/sluice.rules.yaml", "packaging/grafana/sluice.json"]
    /// Labels that Prometheus adds, by itself or by the functions of its query language.
    static let added: Set<String> = ["instance", "job", "le"]

    private func text(_ file: String) throws -> String {
        String(decoding: try Files.read(Repository.root.appending(FilePath(file))), as: UTF8.self)
    }

    /// The name of the metric whose series has this name.
    private func base(of series: String) -> String {
        for ending in ["_bucket", "_sum", "_count"] where series.hasSuffix(ending) {
            let name = String(series.dropLast(ending.count))
            if Metric.all.contains(where: { $0.name == name && $0.kind == .histogram }) { return name }
        }
        return series
    }

    @Test("each metric that they name exists, with the labels that they select by", arguments: files)
    func names(_ file: String) throws {
        let known = Dictionary(grouping: Metric.all, by: \.name).compactMapValues(\.first)
        var seen = 0
        for match in try text(file).matches(of: /(sluice_[a-z0-9_]+)(?:\{([^}]*)\})?/) {
            seen += 1
            let metric = try #require(known[base(of: String(match.1))], "\(match.1)")
            for label in (match.2 ?? "").matches(of: /([a-z_]+)\s*(?:=~|!~|!=|=)/) {
                let name = String(label.1)
                #expect(metric.labels.contains(name) || Self.added.contains(name), "\(match.0)")
            }
        }
        #expect(seen > 12)
    }

    @Test("the manual lists the alerts of the rules, in their order")
    func manual() throws {
        let rules = try text("packaging/prometheus/sluice.rules.yaml").matches(of: /- alert: (\w+)/).map {
            String($0.1)
        }
        let listed = try text("docs/monitoring.md").matches(of: /\n\| `(Sluice\w+)` \|/).map { String($0.1) }
        #expect(rules == listed)
        #expect(!rules.isEmpty)
    }

    @Test("each panel of the dashboard has a number of its own and a query")
    func dashboard() throws {
        struct Board: Decodable {
            struct Panel: Decodable {
                struct Target: Decodable { var expr: String }
                var id: Int
                var targets: [Target]
            }
            var panels: [Panel]
        }
        let board = try JSONDecoder().decode(Board.self, from: Data(try text("packaging/grafana/sluice.json").utf8))
        #expect(Set(board.panels.map(\.id)).count == board.panels.count)
        for panel in board.panels { #expect(!panel.targets.isEmpty, "\(panel.id)") }
    }
}
