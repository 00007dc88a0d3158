import API
import Core
import Glibc
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Metrics of the daemon", .timeLimit(.minutes(Patience.minutes(1))))
struct MetricsTests {
    private func number(_ view: MetricsView, _ metric: Metric, _ labels: String...) -> Int64? {
        guard case .whole(let number)? = view.numbers[metric]?[labels] else { return nil }
        return number
    }

    @Test("results are counted by destination, result and reason")
    func counts() async throws {
        let scene = try await DaemonScene(cap: 1_000_000)
        var view = try await scene.daemon.metrics()
        #expect(number(view, .uploads, "nas", "completed") == 0)
        #expect(number(view, .files, "cam") == 0)
        #expect(view.numbers[.lastSuccess] == nil)
        #expect(view.numbers[.durations] == nil)
        let good = try await scene.add("good", size: 5000)
        try await scene.reach(.completed, [good])
        scene.remote.set(.fail(.failUpload), for: "bad")
        let bad = try await scene.add("bad", size: 70)
        try await scene.reach(.failed, [bad])
        scene.remote.standard = .waitUploading
        let cancelled = try await scene.add("c", size: 30)
        try await scene.isRunning(1)
        _ = try await scene.daemon.cancel(Selection(ids: [cancelled]))
        try await scene.reach(.cancelled, [cancelled])
        let running = try await scene.add("d", in: "solo", size: 40)
        try await scene.reach(.uploading, [running])
        view = try await scene.daemon.metrics()
        #expect(number(view, .uploads, "nas", "completed") == 1)
        #expect(number(view, .uploads, "nas", "failed") == 1)
        #expect(number(view, .uploads, "nas", "cancelled") == 1)
        #expect(number(view, .uploads, "nas", "expired") == 0)
        #expect(number(view, .uploadBytes, "nas") == 5000)
        #expect(number(view, .failures, "nas", "transient") == 1)
        #expect(number(view, .verifyFailures, "nas") == 0)
        #expect(number(view, .files, "cam") == 3)
        #expect(number(view, .files, "solo") == 1)
        #expect(number(view, .queueItems, "nas", "uploading") == 1)
        #expect(number(view, .queueBytes, "nas", "uploading") == 40)
        #expect(number(view, .queueItems, "nas", "failed") == 1)
        #expect(number(view, .queueItems, "nas", "queued") == 0)
        #expect(number(view, .stagingLimit) == 1_000_000)
        #expect(number(view, .destinationOpen, "nas") == 1)
        #expect(number(view, .folderPresent, "cam") == 1)
        #expect(number(view, .folderRemovable, "cam") == 0)
        #expect(view.numbers[.lastSuccess]?.count == 1)
        #expect(view.numbers[.oldest]?.count == 1)
        guard case .spread(let spread)? = view.numbers[.durations]?[["nas"]] else { throw NoHistogram() }
        #expect(spread.counts.reduce(0, +) == 1)
        scene.remote.letGo()
        try await scene.stop()
    }

    private struct NoHistogram: Error {}

    @Test("waiting uploads are counted by hold, and a pause of everything is shown")
    func holds() async throws {
        let scene = try await DaemonScene()
        _ = try await scene.daemon.pause(Selection())
        let ids = [try await scene.add("a"), try await scene.add("b", in: "solo")]
        try await scene.reach(.queued, ids)
        let view = try await scene.daemon.metrics()
        #expect(number(view, .held, "nas", "global") == 2)
        #expect(number(view, .paused) == 1)
        #expect(number(view, .destinationOpen, "nas") == 0)
        #expect(view.numbers[.oldest]?[["nas"]] != nil)
        try await scene.stop()
    }

    @Test("quotas show usage and limit; a refused reload is shown until one is applied")
    func quotasAndReloads() async throws {
        let scene = try await DaemonScene { settings in
            settings.policy.rules = PolicyRules(quotas: [Quota(period: .day, bytes: 1000, files: 9)])
        }
        func view() async throws -> MetricsView { try await scene.daemon.metrics() }
        try await eventually("the ledger has been read") {
            number(try await view(), .quotaUsedBytes, "policy", "1 kB a day") == 0
        }
        #expect(number(try await view(), .quotaLimitBytes, "policy", "1 kB a day") == 1000)
        #expect(number(try await view(), .quotaLimitFiles, "policy", "9 files a day") == 9)
        #expect(number(try await view(), .reloadSuccess) == 1)
        scene.written.spoil(ConfigErrors(problems: []))
        _ = try await scene.daemon.reload()
        #expect(number(try await view(), .reloadSuccess) == 0)
        scene.written.spoil(nil)
        _ = try await scene.daemon.reload()
        #expect(number(try await view(), .reloadSuccess) == 1)
        try await scene.stop()
    }

    @Test("a daily quota shows today's usage after midnight, even without a scheduler cycle")
    func rollover() async throws {
        let clocks = ManualClocks()
        let scene = try await DaemonScene(clocks: clocks) { settings in
            settings.policy.rules = PolicyRules(quotas: [Quota(period: .day, bytes: 1000)])
        }
        let account = SpendingAccount(destination: "nas", folder: nil, network: .unmetered)
        try await scene.daemon.context.store.write { try $0.ledger.pay([Payment(account, Spending(bytes: 360))]) }
        let day: Duration = .seconds(86_400)
        #expect(number(try await scene.daemon.metrics(), .quotaUsedBytes, "policy", "1 kB a day") ?? -1 >= 0)
        clocks.advance(by: day * 2)
        #expect(number(try await scene.daemon.metrics(), .quotaUsedBytes, "policy", "1 kB a day") == 0)
        try await scene.daemon.context.store.write { try $0.ledger.pay([Payment(account, Spending(bytes: 40))]) }
        clocks.advance(by: day * 2)
        try await scene.daemon.context.store.write { try $0.ledger.pay([Payment(account, Spending(bytes: 50))]) }
        #expect(number(try await scene.daemon.metrics(), .quotaUsedBytes, "policy", "1 kB a day") == 50)
        try await scene.stop()
    }

    @Test("each value belongs to a metric of the table, and names follow Prometheus' conventions")
    func names() async throws {
        let scene = try await DaemonScene()
        let view = try await scene.daemon.metrics()
        #expect(Set(view.numbers.keys).isSubset(of: Metric.all))
        #expect(Set(Metric.all).count == Metric.all.count)
        for metric in Metric.all {
            #expect(metric.name.hasSuffix("_total") == (metric.kind == .counter), "\(metric.name)")
            #expect(!metric.help.contains("\n") && !metric.help.hasSuffix("."), "\(metric.name)")
        }
        try await scene.stop()
    }

    @Test("the manual lists exactly the existing metrics with their types and labels")
    func manual() throws {
        let top = Repository.root
        let text = String(decoding: try Files.read(top.appending("docs/operations.md")), as: UTF8.self)
        let listed = text.split(separator: "\n").filter { $0.hasPrefix("| `sluice_") }.map {
            $0.split(separator: "|").prefix(3).map { String($0).trimmed }
        }
        let known = Metric.all.map { metric in
            ["`\(metric.name)`", metric.kind.rawValue, metric.labels.map { "`\($0)`" }.joined(separator: ", ")]
        }
        #expect(Set(listed).subtracting(known) == [])
        #expect(Set(known).subtracting(listed) == [])
        #expect(listed.count == known.count)
    }

    @Test("only content that arrived different counts as a verification failure")
    func verification() {
        func failure(_ code: Failure.Code, _ http: Int? = nil) -> Failure {
            Failure(.transient, code: code, message: "", http: http, at: WallTime(milliseconds: 0), retryable: true)
        }
        #expect(failure(.http(460), 460).isOfVerification)
        #expect(failure(.readBackDiffers).isOfVerification)
        #expect(!failure(.http(500), 500).isOfVerification)
        #expect(!failure(.copyLost).isOfVerification)
    }

    // MARK: Files

    @Test("files are written only if configured, where and as often as the last reload says, and readable for all")
    func files() async throws {
        let scene = try await DaemonScene()
        let (text, status) = (scene.folder.path.appending("a.prom"), scene.folder.path.appending("s.json"))
        try await eventually("the writer of the metrics waits") { scene.daemon.signals.metrics.isWaiting }
        scene.written.edit {
            $0.metrics = MetricsSettings(textfile: text, statusFile: status, every: .seconds(3600))
        }
        #expect(try await scene.daemon.reload().changes.map(\.keys) == [["textfile", "status_file", "every"]])
        try await eventually("both files exist") { try FileStatus.ifPresent(at: status) != nil }
        #expect(try String(decoding: Files.read(text), as: UTF8.self).hasPrefix("# HELP sluice_"))
        #expect(try Files.read(status).last == UInt8(ascii: "\n"))
        #expect(try JSON.value(StatusView.self, from: Files.read(status)).pid == getpid())
        for path in [text, status] { #expect(try FileStatus(at: path).mode & 0o7777 == 0o644) }
        let before = try FileStatus(at: text).inode
        scene.written.edit { $0.metrics.every = .milliseconds(20) }
        _ = try await scene.daemon.reload()
        try await eventually("the text file is written repeatedly") { try FileStatus(at: text).inode != before }
        scene.written.edit { $0.metrics = MetricsSettings() }
        _ = try await scene.daemon.reload()
        try await eventually("the writer of the metrics waits") { scene.daemon.signals.metrics.isWaiting }
        for path in [text, status] { try Files.remove(path) }
        _ = try await scene.daemon.reload()
        try await eventually("the writer of the metrics waits") { scene.daemon.signals.metrics.isWaiting }
        #expect(try FileStatus.ifPresent(at: text) == nil)
        try await scene.stop()
    }

    @Test("a folder that cannot be written is a warning, and holds no upload")
    func unwritable() async throws {
        let scene = try await DaemonScene()
        let text = scene.folder.path.appending("none/a.prom")
        scene.written.edit { $0.metrics = MetricsSettings(textfile: text, every: .milliseconds(20)) }
        _ = try await scene.daemon.reload()
        try await eventually("a warning names the file that cannot be written") {
            try await scene.daemon.status().warnings.contains { $0.hasPrefix("metrics.textfile cannot be written: ") }
        }
        #expect(number(try await scene.daemon.metrics(), .troubles) == 1)
        let id = try await scene.add("a")
        try await scene.reach(.completed, [id])
        try Files.makeFolders(text.parent)
        try await eventually("the file exists and the warning is gone") {
            let isThere = try FileStatus.ifPresent(at: text) != nil
            let warnings = try await scene.daemon.status().warnings
            return isThere && warnings.isEmpty
        }
        #expect(try Files.names(in: text.parent).count <= 2)
        try await scene.stop()
    }
}

extension String {
    fileprivate var trimmed: String {
        var text = self[...]
        while text.first == " " { text.removeFirst() }
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}
