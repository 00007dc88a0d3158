internal import Core
internal import Glibc
internal import Linux
internal import TestKit

/// A large file as a chunked form, compared with curl that sends the same requests.
let partMarks: [Mark] = [
    Mark(
        name: "daemon/parts",
        what: "2 GiB staged, by forms of 8 MiB to a server that throws them away, one and four at a time, against curl"
    ) { bench in
        let curl = try bench.program("curl", package: "curl")
        let size: Int64 = 2 << 30
        let block: Int64 = 8 << 20
        let sink = try Sink()
        let pieces = try bench.memoryFolder(space: 64 << 20).appending(FilePath("sluice-bench-\(getpid())"))
        try Files.makeFolders(pieces)
        defer { TemporaryFolder.remove(pieces) }
        var sums: [Finding] = []
        for parallel in [1, 4] {
            let words = try requests(of: Int(size / block), bytes: block, in: pieces, to: sink.url)
            var ours: [Double] = [], theirs: [Double] = [], processor: [Double] = []
            for round in 0..<bench.rounds {
                let clock = ContinuousClock()
                let side = parallel > 1 ? ["--parallel", "--parallel-max", "\(parallel)"] : []
                let began = clock.now
                _ = try await bench.run(curl, ["-sS", "-f"] + side + ["--config", words.display])
                theirs.append(began.duration(to: clock.now).inSeconds)

                let scene = try await Scene(
                    bench,
                    destination: "{type: chunked-form, preset: dropzone, url: \"\(sink.url)/x\", "
                        + "block: {size: 8 MiB}, parallel_blocks: \(parallel)}")
                try await scene.pause()
                try scene.place(FilePath("\(round).bin"), size: size, seed: UInt64(round + 2))
                try await scene.staged(size)
                let before = try scene.processor()
                let start = clock.now
                try await scene.resume()
                try await scene.completed(1)
                ours.append(start.duration(to: clock.now).inSeconds)
                processor.append(try scene.processor() - before)
            }
            sums += [
                .note(
                    "wall, \(parallel) at a time",
                    "\(shown(median(ours))) s with the copy read once more for its digest, curl \(shown(median(theirs))) s"
                ),
                .note("processor, \(parallel) at a time", "\(shown(median(processor) / 2)) s a GiB"),
            ]
        }
        return sums
    }
]

/// Makes the blocks, and the arguments for curl that send them.
private func requests(of count: Int, bytes: Int64, in folder: FilePath, to url: String) throws -> FilePath {
    let piece = folder.appending("block")
    if try FileStatus.ifPresent(at: piece) == nil { try makeFile(piece, size: bytes) }
    let fields = ["dzuuid=1", "dztotalfilesize=\(Int64(count) * bytes)", "dztotalchunkcount=\(count)"]
    let lines = (0..<count).map { index in
        let own =
            fields + ["dzchunkindex=\(index)", "dzchunksize=\(bytes)", "dzchunkbyteoffset=\(Int64(index) * bytes)"]
        return own.map { "form-string = \"\($0)\"" }.joined(separator: "\n")
            + "\nform = \"file=@\(piece.display)\"\nheader = \"Expect:\"\nurl = \"\(url)/x\"\noutput = \"/dev/null\"\n"
    }
    let words = folder.appending("curl")
    try Files.replace(words, with: Array(lines.joined(separator: "next\nsilent\nfail\n").utf8))
    return words
}
