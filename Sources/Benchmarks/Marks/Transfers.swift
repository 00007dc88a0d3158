internal import Core
internal import Glibc
internal import Linux
internal import TestKit
internal import Transport

/// One large file, sent and stored the whole way.
let transferMarks: [Mark] = [
    Mark(name: "transport/put", what: "one PUT of 2 GiB to a server that throws it away, against curl -T") { bench in
        let curl = try bench.program("curl", package: "curl")
        let size: Int64 = 2 << 30
        let file = try bench.memoryFolder(space: size + (1 << 30)).appending(FilePath("sluice-bench-\(getpid())"))
        try makeFile(file, size: size)
        defer { try? Files.removeIfPresent(file) }  // a leftover in memory goes with the next boot
        let sink = try Sink()
        let myself = FilePath(CommandLine.arguments[0])
        var ours: [Bench.Run] = [], theirs: [Bench.Run] = []
        for _ in 0..<bench.rounds {
            // In turns, so that other load on the machine affects both.
            theirs.append(
                try await bench.run(curl, ["-sS", "-f", "-H", "Expect:", "-T", file.display, "\(sink.url)/x"]))
            ours.append(try await bench.run(myself, ["put", file.display, "\(sink.url)/x"]))
        }
        guard sink.now.bytes == size * Int64(2 * bench.rounds) else { throw WrongResult("bytes went missing") }
        return [
            .ratio(
                "wall", ours.wall, to: theirs.wall, most: 1.03, "\(shown(ours.wall)) s, curl \(shown(theirs.wall)) s"),
            .ratio(
                "processor", ours.processor, to: theirs.processor, most: 1.0,
                "\(shown(ours.processor / 2)) s a GiB, curl \(shown(theirs.processor / 2))"),
        ]
    },
    Mark(
        name: "daemon/large",
        what:
            "2 GiB from drop to verified at `sluice receive` on a memory file system, against cp, sync FILE, curl -T to nginx there"
    ) { bench in
        let curl = try bench.program("curl", package: "curl")
        let size: Int64 = 2 << 30
        let memory = try bench.memoryFolder(space: 3 * size)
        let received = memory.appending(FilePath("sluice-bench-\(getpid())"))
        try Files.makeFolders(received)
        defer { TemporaryFolder.remove(received) }
        let source = TemporaryFolder()
        let file = source.path.appending("large.bin")
        try makeFile(file, size: size)
        let log = TemporaryFolder()
        let receiver = try Child(
            bench.sluice, ["receive", "--listen", "127.0.0.1:0", "--into", received.display],
            output: log.path.appending("out"), errors: log.path.appending("err"))
        let url = try await receiver.line(after: "listening on ")
        let served = memory.appending(FilePath("sluice-bench-nginx-\(getpid())"))
        try Files.makeFolders(served, mode: 0o777)
        defer { TemporaryFolder.remove(served) }
        let (nginx, address) = try await bench.nginx(into: served)
        defer { nginx.end(with: SIGTERM) }
        let clock = ContinuousClock()
        var ours: [Double] = [], theirs: [Double] = [], processor: [Double] = []
        for round in 0..<bench.rounds {
            let aside = source.path.appending("copy")
            let start = clock.now
            _ = try await bench.run("/bin/cp", [file.display, aside.display])
            _ = try await bench.run("/bin/sync", [aside.display])
            _ = try await bench.run(curl, ["-sS", "-f", "-H", "Expect:", "-T", aside.display, "\(address)/x"])
            theirs.append(start.duration(to: clock.now).inSeconds)
            try Files.remove(aside)
            guard try FileStatus(at: served.appending("x")).size == size else { throw WrongResult("nginx has not all") }
            try Files.remove(served.appending("x"))

            let scene = try await Scene(bench, destination: "{type: tus, url: \"\(url)\"}")
            try scene.place(FilePath("\(round).bin"), size: size, seed: UInt64(round + 2))
            let dropped = clock.now
            try await scene.completed(1)
            ours.append(dropped.duration(to: clock.now).inSeconds)
            processor.append(try scene.processor())
            try Files.removeIfPresent(received.appending("camera").appending(FilePath("\(round).bin")))
        }
        return [
            .ratio(
                "wall", median(ours), to: median(theirs), most: 1.5,
                "\(shown(median(ours))) s with 0.05 s quiet time, peers \(shown(median(theirs))) s"),
            .note("processor of the daemon", "\(shown(median(processor) / 2)) s a GiB"),
        ]
    },
    Mark(name: "daemon/resume", what: "bytes sent again after kill -9 in the middle of 512 MiB") { bench in
        let sink = try Sink()
        let size: Int64 = 512 << 20
        let home = TemporaryFolder()
        var scene: Scene? = try await Scene(bench, home: home, destination: "{type: tus, url: \"\(sink.url)/u\"}")
        try scene?.place("large.bin", size: size, seed: 3)
        try await eventually("half is sent", every: .milliseconds(1)) { sink.now.bytes > size / 3 }
        scene = nil
        let again = try await Scene(bench, home: home, destination: "{type: tus, url: \"\(sink.url)/u\"}")
        try await again.completed(1)
        let state = sink.now
        guard state.uploads.count == 1 else { throw WrongResult("\(state.uploads.count) uploads were begun") }
        return [.bound("below the server's offset", Double(state.bytes - size), "bytes", most: 0)]
    },
]

/// `Benchmarks put FILE URL`: the upload that `transport/put` measures.
func put(_ file: FilePath, to url: String) async throws {
    let size = try FileStatus(at: file).size
    let response = try await Transport().send(
        Request("PUT", url, body: .file(.path(file), offset: 0, count: size)))
    guard response.status == 201 else { throw WrongResult("status \(response.status)") }
}
