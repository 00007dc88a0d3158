internal import Core
internal import Glibc
internal import Linux
internal import TestKit

/// Many small files into a folder, compared with rclone.
let smallFileMarks: [Mark] =
    [(10_000, Int64(16 << 10)), (2_000, Int64(256 << 10))].map { count, size in
        Mark(
            name: "daemon/files-\(size >> 10)KiB",
            what: "\(count) files of \(size >> 10) KiB into a folder, 8 at a time, against rclone copy --transfers 8"
        ) { bench in
            let rclone = try bench.rclone()
            let clock = ContinuousClock()
            var staged: [Double] = [], dropped: [Double] = [], theirs: [Double] = []
            var stagedProcessor: [Double] = [], droppedProcessor: [Double] = [], theirProcessor: [Double] = []
            for round in 0..<bench.rounds {
                let target = TemporaryFolder()
                let source = TemporaryFolder()
                for number in 0..<count {
                    try makeFile(source.path.appending(FilePath("\(number).bin")), size: size, seed: UInt64(number + 1))
                }
                let peer = try await bench.run(
                    rclone, ["copy", "--config", "", "--transfers", "8", source.path.display, target.path.display],
                    environment: ["HOME": target.path.display])
                theirs.append(peer.wall)
                theirProcessor.append(peer.processor)

                for isStaged in [true, false] {
                    let target = TemporaryFolder()
                    let scene = try await Scene(bench, destination: "{type: directory, path: \(target.path.display)}")
                    if isStaged { try await scene.pause() }
                    var start = clock.now
                    var before = try scene.processor()
                    for number in 0..<count {
                        try Files.rename(
                            source.path.appending(FilePath("\(number).bin")),
                            to: scene.drop.appending(FilePath("\(number).bin")))
                    }
                    if isStaged {
                        try await scene.staged(Int64(count) * size)
                        start = clock.now
                        before = try scene.processor()
                        try await scene.resume()
                    }
                    try await scene.completed(count)
                    let wall = start.duration(to: clock.now).inSeconds, used = try scene.processor() - before
                    if isStaged { staged.append(wall) } else { dropped.append(wall) }
                    if isStaged { stagedProcessor.append(used) } else { droppedProcessor.append(used) }
                    let arrived = try Files.names(in: target.path.appending("camera")).count
                    guard arrived == count else { throw WrongResult("round \(round): \(arrived) of \(count) arrived") }
                    for number in 0..<count {
                        try Files.rename(
                            scene.drop.appending(FilePath("\(number).bin")),
                            to: source.path.appending(FilePath("\(number).bin")))
                    }
                }
            }
            let files = Double(count)
            return [
                .speed(
                    "already staged", files / median(staged), to: files / median(theirs), least: 2,
                    "\(shown(files / median(staged))) files/s, rclone \(shown(files / median(theirs)))"),
                .speed(
                    "from drop on", files / median(dropped), to: files / median(theirs), least: 1,
                    "\(shown(files / median(dropped))) files/s"),
                .note(
                    "processor a file",
                    "\(shown(1000 * median(stagedProcessor) / files)) ms staged, "
                        + "\(shown(1000 * median(droppedProcessor) / files)) ms from drop on, "
                        + "rclone \(shown(1000 * median(theirProcessor) / files)) ms"),
            ]
        }
    } + [
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
    ]
