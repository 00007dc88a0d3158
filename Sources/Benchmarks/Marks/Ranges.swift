internal import Core
internal import Glibc
internal import Linux
internal import TestKit

/// A large file by Content-Range, compared with curl that sends the same requests.
let rangeMarks: [Mark] = [
    Mark(
        name: "daemon/ranges",
        what: "2 GiB staged, by PUT with Content-Range of 64 MiB to a server that throws them away, against curl"
    ) { bench in
        let curl = try bench.program("curl", package: "curl")
        let size: Int64 = 2 << 30
        let piece: Int64 = 64 << 20
        let server = try VimeoServer()
        server.change { $0.behaviour.discards = true }
        let pieces = try bench.memoryFolder(space: 128 << 20).appending(FilePath("sluice-bench-\(getpid())"))
        try Files.makeFolders(pieces)
        defer { TemporaryFolder.remove(pieces) }
        let block = pieces.appending("block")
        try makeFile(block, size: piece)
        var ours: [Double] = [], theirs: [Double] = [], processor: [Double] = []
        let clock = ContinuousClock()
        for round in 0..<bench.rounds {
            let number = server.requestedUpload(of: size)
            let words = pieces.appending("curl")
            let requests = stride(from: Int64(0), to: size, by: Int(piece)).map { start in
                "upload-file = \"\(block.display)\"\nheader = \"Expect:\"\n"
                    + "header = \"Content-Range: bytes \(start)-\(start + piece - 1)/\(size)\"\n"
                    + "url = \"\(server.link(number))\"\noutput = \"/dev/null\"\n"
            }
            try Files.replace(words, with: Array(requests.joined(separator: "next\nsilent\nfail\n").utf8))
            let began = clock.now
            _ = try await bench.run(curl, ["-sS", "-f", "--config", words.display])
            theirs.append(began.duration(to: clock.now).inSeconds)

            let scene = try await Scene(
                bench,
                destination: "{type: vimeo, flow: two-step, url: \"\(server.url)\", token: {literal: vimeo-token-1}, "
                    + "allow_origins: [\(server.bytesURL)]}")
            try await scene.pause()
            try scene.place(FilePath("\(round).mp4"), size: size, seed: UInt64(round + 2))
            try await scene.staged(size)
            let before = try scene.processor()
            let start = clock.now
            try await scene.resume()
            try await scene.completed(1)
            ours.append(start.duration(to: clock.now).inSeconds)
            processor.append(try scene.processor() - before)
        }
        return [
            .note(
                "wall", "\(shown(median(ours))) s from a file of 2 GiB, curl \(shown(median(theirs))) s of one block"),
            .note("processor", "\(shown(median(processor) / 2)) s a GiB"),
        ]
    }
]
