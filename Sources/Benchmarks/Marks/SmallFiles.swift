internal import Core
internal import Glibc
internal import Linux
internal import TestKit

/// Many small files into a folder and to a receiver, compared with rclone.
let smallFileMarks: [Mark] =
    [
        SmallFileWork(name: "daemon/files-16KiB", count: 10_000, size: 16 << 10, target: .folder),
        SmallFileWork(name: "daemon/files-256KiB", count: 2_000, size: 256 << 10, target: .folder),
        SmallFileWork(name: "daemon/received-16KiB", count: 10_000, size: 16 << 10, target: .receiver),
    ].map { work in
        Mark(
            name: work.name,
            what: "\(count("FILES", work.count)) files of \(work.size >> 10) KiB \(work.target.rawValue), 8 at a time"
        ) { bench in try await work.measure(bench) }
    } + [fsyncMark]

private struct SmallFileWork: Sendable {
    enum Target: String, Sendable {
        case folder = "into a folder, against rclone copy --transfers 8"
        case receiver = "to sluice receive, against rclone copy --transfers 8 to rclone serve webdav"
    }

    let name: String
    let count: Int
    let size: Int64
    let target: Target

    /// The cost of each run, by side.
    private struct Runs {
        var staged: [Bench.Run] = []
        var dropped: [Bench.Run] = []
        var theirs: [Bench.Run] = []
        /// Of rclone without the pause that its WebDAV client makes before each request.
        var unpaced: [Bench.Run] = []
    }

    func measure(_ bench: Bench) async throws -> [Finding] {
        let rclone = try bench.rclone()
        let count = Benchmarks.count("FILES", count)
        let names = (0..<count).map { FilePath("\($0).bin") }
        var runs = Runs()
        for round in 0..<bench.rounds {
            let source = TemporaryFolder()
            for (number, name) in names.enumerated() {
                try makeFile(source.path.appending(name), size: size, seed: UInt64(number + 1))
            }
            runs.theirs.append(try await copy(bench, rclone, source.path, count))
            if target == .receiver {
                runs.unpaced.append(
                    try await copy(bench, rclone, source.path, count, ["--webdav-pacer-min-sleep", "0s"]))
            }
            for isStaged in [true, false] {
                let target = TemporaryFolder()
                let receiver = try await receiver(bench, into: target.path)
                defer { receiver?.child.end(with: SIGTERM) }
                let scene = try await Scene(
                    bench,
                    destination: receiver.map { "{type: tus, url: \"\($0.url)\"}" }
                        ?? "{type: directory, path: \(target.path.display)}")
                if isStaged { try await scene.pause() }
                var start = ContinuousClock.now
                var before = try scene.processor()
                for name in names { try Files.rename(source.path.appending(name), to: scene.drop.appending(name)) }
                if isStaged {
                    try await scene.staged(Int64(count) * size)
                    start = .now
                    before = try scene.processor()
                    try await scene.resume()
                }
                try await scene.completed(count)
                let run = Bench.Run(
                    wall: start.duration(to: .now).inSeconds, processor: try scene.processor() - before)
                if isStaged { runs.staged.append(run) } else { runs.dropped.append(run) }
                try check(target.path.appending("camera"), count, "round \(round)")
                for name in names { try Files.rename(scene.drop.appending(name), to: source.path.appending(name)) }
            }
        }
        return findings(runs, Double(count))
    }

    private func findings(_ runs: Runs, _ files: Double) -> [Finding] {
        let theirs = files / runs.theirs.wall
        return [
            .speed(
                "already staged", files / runs.staged.wall, to: theirs, least: target == .folder ? 2 : 1,
                "\(shown(files / runs.staged.wall)) files/s, rclone \(shown(theirs))"),
            .speed(
                "from drop on", files / runs.dropped.wall, to: theirs, least: 1,
                "\(shown(files / runs.dropped.wall)) files/s"),
            .note(
                "processor a file",
                "\(shown(1000 * runs.staged.processor / files)) ms staged, "
                    + "\(shown(1000 * runs.dropped.processor / files)) ms from drop on, "
                    + "rclone \(shown(1000 * runs.theirs.processor / files)) ms"),
        ]
            + (runs.unpaced.isEmpty
                ? []
                : [.note("rclone without its pause between requests", "\(shown(files / runs.unpaced.wall)) files/s")])
    }

    private func check(_ folder: FilePath, _ count: Int, _ who: String) throws {
        let arrived = try Files.names(in: folder).count
        guard arrived == count else { throw WrongResult("\(who): \(arrived) of \(count) arrived") }
    }

    /// A receiver of the release program that stores below `folder`; `nil` where the daemon itself does.
    private func receiver(_ bench: Bench, into folder: FilePath) async throws -> (child: Child, url: String)? {
        guard target == .receiver else { return nil }
        let receiver = try Child(
            bench.sluice, ["receive", "--listen", "127.0.0.1:0", "--into", folder.display],
            output: folder.appending("receiver.out"), errors: folder.appending("receiver.err"))
        return (receiver, try await receiver.line(after: "listening on "))
    }

    /// One run of rclone.
    private func copy(
        _ bench: Bench, _ rclone: FilePath, _ source: FilePath, _ count: Int, _ options: [String] = []
    ) async throws -> Bench.Run {
        let folder = TemporaryFolder()
        let arrived = folder.path.appending("camera")
        try Files.makeFolders(arrived)
        let environment = ["HOME": folder.path.display]
        let words = ["copy", "--config", "", "--transfers", "8", source.display]
        guard target == .receiver else {
            return try await bench.run(rclone, words + [arrived.display], environment: environment)
        }
        let port = try Loopback.freePort()
        let server = try Child(
            rclone, ["serve", "webdav", "--config", "", "--addr", "127.0.0.1:\(port)", arrived.display],
            environment: environment, output: folder.path.appending("out"), errors: folder.path.appending("err"))
        defer { server.end(with: SIGTERM) }
        try await eventually("rclone listens") {
            try server.requireRunning()
            return Loopback.answers(port)
        }
        let run = try await bench.run(
            rclone, words + options + ["--webdav-url", "http://127.0.0.1:\(port)", ":webdav:"], environment: environment
        )
        try check(arrived, count, "rclone")
        return run
    }
}

/// How often each small file is synced to the disk.
private let fsyncMark =
    Mark(name: "daemon/fsyncs", what: "fsyncs of 500 files of 16 KiB from drop to released, into a folder") {
        bench in
        let strace = try bench.program("strace", package: "strace")
        let target = TemporaryFolder()
        let scene = try await Scene(bench, destination: "{type: directory, path: \(target.path.display)}")
        let out = TemporaryFolder()
        let counts = out.path.appending("counts")
        let tracer = try Child(
            strace,
            [
                "-f", "-c", "-e", "trace=fsync,fdatasync,sync_file_range,syncfs", "-o", counts.display, "-p",
                "\(scene.daemon.pid)",
            ],
            output: out.path.appending("out"), errors: out.path.appending("err"))
        try await eventually("strace watches") { try tracer.standardError().contains("attached") }
        for number in 0..<500 {
            try scene.place(FilePath("\(number).bin"), size: 16 << 10, seed: UInt64(number + 1))
        }
        try await scene.completed(500)
        tracer.send(SIGINT)
        _ = try await tracer.end(within: .seconds(20))
        let table = String(decoding: try Files.read(counts), as: UTF8.self)
        var all = 0
        for line in table.split(separator: "\n") {
            let words = line.split(separator: " ")
            if let name = words.last, name == "fsync" || name == "fdatasync", words.count > 4,
                let calls = Int(words[3])
            {
                all += calls
            }
        }
        return [.note("fsync and fdatasync", "\(shown(Double(all) / 500)) a file")]
    }
