internal import API
internal import Control
internal import Core
internal import Daemon
internal import Glibc
internal import Linux
internal import Store
internal import TestKit
internal import Transport

/// The backlog of weeks without a network, on one daemon. `ROWS` is the number of uploads; the marks are those of a
/// million, and making so many files takes longer than measuring them.
let backlogMarks: [Mark] = [
    Mark(name: "daemon/million", what: "1,000,000 uploads, their files and copies, all paused (ROWS= for fewer)") {
        bench in
        let rows = getenv("ROWS").flatMap { Int(String(cString: $0)) } ?? 1_000_000
        let scene = try await BacklogScene(bench, rows: rows)
        let home = scene.home.path

        let asked = try await Backlog.ask(home.appending("state"))
        try await scene.start()
        _ = try await scene.client.pause(Selection(all: true))
        try await scene.stop()
        let claims = try await claimTimes(home.appending("state"))

        var starts: [Double] = [], used: [Double] = []
        for _ in 0..<bench.rounds {
            let (wall, processor) = try await scene.start()
            starts.append(wall)
            used.append(processor)
            try await scene.stop()
        }
        try await scene.start()
        let atFirst = try scene.usage().resident
        try await scene.sleeps()
        let startAndSweep = try scene.processor()

        var answers: [Double] = []
        for _ in 0..<200 {
            answers.append(try await ContinuousClock().measure { _ = try await scene.client.status() }.inSeconds)
        }
        var scrapes: [Double] = []
        for _ in 0..<50 {
            scrapes.append(try await ContinuousClock().measure { _ = try await scene.client.metrics() }.inSeconds)
        }
        var scans: [Double] = [], finds: [Double] = []
        var written: [Int64] = []
        for round in 0..<bench.rounds {
            let find = try await bench.run(
                "/usr/bin/find", [home.appending("drop").display, "-type", "f", "-printf", "%s %T@\n"])
            finds.append(find.processor)
            // Another rule makes the daemon scan every folder again, and every file in it is known.
            try scene.configure("*.round\(round)")
            try await scene.sleeps()
            let before = (try scene.processor(), try scene.usage().writtenBytes)
            _ = try await scene.client.reload()
            try await scene.sleeps()
            scans.append(try scene.processor() - before.0)
            written.append(try scene.usage().writtenBytes - before.1)
        }
        var query = ListQuery()
        query.limit = 1_000
        for _ in 0..<20 { query.after = try await scene.client.list(query).next }
        let most = try scene.usage().residentPeak
        let mebibyte = 1_048_576.0
        return [
            .note("uploads", "\(rows)"),
            .note("to ask them eight questions of conditions about files", "\(shown(asked.inSeconds)) s"),
            .bound("start: to the first answer", median(starts), "s", most: 2),
            .note("processor of it", "\(shown(median(used))) s"),
            .note(
                "processor of start, first scan, sweep, and the 2 % that were still to be copied",
                "\(shown(startAndSweep)) s"),
            .bound("status at the socket, median of 200", median(answers) * 1000, "ms", most: 20),
            .bound("scrape at the socket, median of 50", median(scrapes) * 1000, "ms", most: 20),
            .bound(
                "one claim above the smallest change of the state",
                max(0, (claims.claim - claims.smallest).inSeconds * 1000), "ms", most: 2),
            .bound("resident after the start", Double(atFirst) / mebibyte, "MiB", most: 50),
            .bound(
                "most resident, over start, scans, sweep and 20 lists of 1,000", Double(most) / mebibyte, "MiB",
                most: 50),
            .ratio(
                "scan of known files against find, processor", median(scans), to: median(finds), most: 2,
                "\(shown(median(scans))) s, find \(shown(median(finds))) s"),
            .bound("bytes written by a scan", Double(written.max() ?? 0), "bytes", most: 0),
            .note("of each scan", "\(written)"),
        ]
    }
]

/// A state folder with a ``Backlog`` in it, and a daemon that uses it.
private final class BacklogScene {
    let home = TemporaryFolder()
    let client: ControlClient
    private let transport = Transport()
    private let bench: Bench
    private var daemon: Child?

    init(_ bench: Bench, rows: Int) async throws {
        self.bench = bench
        let root = home.path
        client = ControlClient(socket: root.appending("control.sock"), transport: transport)
        for name in Backlog.folders { try Files.makeFolders(root.appending(FilePath("drop/\(name)"))) }
        try configure("*.none")
        let backlog = Backlog(
            uploads: rows, watched: root.appending("drop"), makesFiles: true, staging: root.appending("staging"))
        try await backlog.fill(root.appending("state"))
    }

    deinit { daemon?.end(with: SIGKILL) }

    /// - Parameter excluded: A glob that matches no file; another one changes the folders' rules.
    func configure(_ excluded: String) throws {
        let root = home.path.display
        let folders = Backlog.folders.enumerated().map { index, name in
            "  - {name: \(name), path: \(root)/drop/\(name), exclude: [\"\(excluded)\"], "
                + "upload_to: [\(Backlog.destinations[index % Backlog.destinations.count])]}"
        }
        // No server listens at port 1.
        let destinations = Backlog.destinations.map { "  \($0): {type: tus, url: \"http://127.0.0.1:1/\"}" }
        let questions =
            ["smaller_than: 3 kB", "kind: photo"] + [5, 10, 20, 30, 40, 50].map { "larger_than: \($0) kB" }
        // They ask of each file, and hold none: this machine has no battery.
        let rules = questions.enumerated().map { "    - {name: rule-\($0), when: {\($1), battery_below: 1%}}" }
        let text = """
            version: 1
            state: \(root)/state
            staging: {path: \(root)/staging, keep_free: 1 MB, memory: allow}
            folders:
            \(folders.joined(separator: "\n"))
            destinations:
            \(destinations.joined(separator: "\n"))
            policy:
              pause:
            \(rules.joined(separator: "\n"))
            control: {socket: \(root)/control.sock}

            """
        try Files.replace(home.path.appending("sluice.yaml"), with: Array(text.utf8))
    }

    /// Wall and processor seconds from its start to the first answer.
    @discardableResult
    func start() async throws -> (wall: Double, processor: Double) {
        let began = ContinuousClock.now
        let child = try Child(
            bench.sluice, ["run", "--config", home.path.appending("sluice.yaml").display],
            output: "/dev/null", errors: "/dev/null")  // its log would count as written
        daemon = child
        try await eventually("the daemon answers", within: .seconds(60), every: .milliseconds(5)) {
            try child.requireRunning()
            do { return try await !self.client.status().starting } catch is ControlError { return false }
        }
        return (began.duration(to: .now).inSeconds, try processor())
    }

    func stop() async throws {
        daemon?.send(SIGTERM)
        _ = try await daemon?.end(within: .seconds(20))
    }

    /// Waits until it used no processor time for three seconds, wrote nothing, and every folder was scanned. A single
    /// second could be the wait for a slow disk.
    func sleeps() async throws {
        var before = (processor: -1.0, written: Int64(-1))
        var still = 0
        try await eventually("the daemon sleeps", within: .seconds(900), every: .seconds(1)) {
            let now = (try self.processor(), try self.usage().writtenBytes)
            still = now == before ? still + 1 : 0
            before = now
            guard still >= 3 else { return false }
            return try await self.client.status().folders.allSatisfy { $0.state == .watching }
        }
    }

    func processor() throws -> Double { try processorSeconds(of: pid) }
    func usage() throws -> Usage { try Usage(of: pid) }

    private var pid: Int32 {
        get throws {
            guard let daemon else { throw WrongResult("the daemon was not started") }
            return daemon.pid
        }
    }
}
