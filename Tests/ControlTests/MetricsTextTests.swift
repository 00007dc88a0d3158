import API
import Core
import TestKit
import Testing
import Transport

@testable import Control
@testable import Daemon

@Suite("Metrics as text", .timeLimit(.minutes(Patience.minutes(1))))
struct MetricsTextTests {
    private func text(_ view: MetricsView) -> String { String(decoding: MetricsText.bytes(view), as: UTF8.self) }

    @Test("each metric has its help and type once, and its values by their labels")
    func format() {
        var view = MetricsView()
        view.set(.uploads, ["nas", "failed"], 0)
        view.set(.uploads, ["archive", "completed"], Int64.max)
        view.set(.stagingUsed, [], 12)
        view.set(.metered, ["nas", "wwan0"], -1)
        view.set(.cpu, [], .real(0.25))
        #expect(
            text(view) == """
                # HELP sluice_network_metered \(Metric.metered.help)
                # TYPE sluice_network_metered gauge
                sluice_network_metered{destination="nas",interface="wwan0"} -1
                # HELP sluice_process_cpu_seconds_total \(Metric.cpu.help)
                # TYPE sluice_process_cpu_seconds_total counter
                sluice_process_cpu_seconds_total 0.25
                # HELP sluice_staging_bytes \(Metric.stagingUsed.help)
                # TYPE sluice_staging_bytes gauge
                sluice_staging_bytes 12
                # HELP sluice_uploads_total \(Metric.uploads.help)
                # TYPE sluice_uploads_total counter
                sluice_uploads_total{destination="archive",result="completed"} 9223372036854775807
                sluice_uploads_total{destination="nas",result="failed"} 0

                """)
    }

    @Test("characters that would end a label or a line are escaped")
    func escapes() {
        var view = MetricsView()
        view.set(.metered, [#"a"b\c"# + "\nd", "ü"], 1)
        #expect(text(view).hasSuffix(#"{destination="a\"b\\c\nd",interface="ü"} 1"# + "\n"))
    }

    @Test("each bucket of a histogram includes the smaller ones, and the last one all")
    func histogram() {
        var spread = Histogram()
        for seconds in [0.05, 0.1, 4, 100_000] { spread.add(seconds) }
        var view = MetricsView()
        view.set(.durations, ["nas"], .spread(spread))
        let lines = text(view).split(separator: "\n").dropFirst(2)
        let start = "sluice_upload_duration_seconds"
        #expect(lines.first == "\(start)_bucket{destination=\"nas\",le=\"0.1\"} 2")
        #expect(lines.contains("\(start)_bucket{destination=\"nas\",le=\"5.0\"} 3"))
        #expect(
            lines.suffix(4) == [
                "\(start)_bucket{destination=\"nas\",le=\"86400.0\"} 3",
                "\(start)_bucket{destination=\"nas\",le=\"+Inf\"} 4", "\(start)_sum{destination=\"nas\"} 100004.15",
                "\(start)_count{destination=\"nas\"} 4",
            ])
    }

    @Test(
        "metrics are served at the usual path in the usual format, read-only")
    func route() async throws {
        try await withLine { line in
            let answer = try await line.ask("GET", "/metrics")
            #expect(answer.status == 200)
            #expect(answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
            #expect(answer.text.hasSuffix("\nsluice_uploads_total{destination=\"nas\",result=\"completed\"} 3\n"))
            #expect(answer.text == text(.sample))
            #expect(try await line.client.metrics() == Array(answer.text.utf8))
            let head = try await line.ask("HEAD", "/metrics")
            #expect(head.status == 200)
            #expect(head.text.isEmpty)
            let post = try await line.ask("POST", "/metrics")
            #expect(post.status == 405)
            #expect(post.headers["allow"] == "GET, HEAD")
            #expect(try await line.ask("GET", "/v1/metrics").status == 404)
            #expect(line.daemon.asked == ["metrics", "metrics", "metrics"])
        }
    }
}
