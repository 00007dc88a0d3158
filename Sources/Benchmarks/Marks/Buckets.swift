internal import Core
internal import Glibc
internal import Linux
internal import TestKit

/// Uploads to a bucket, compared with two other clients that send to the same.
let bucketMarks: [Mark] =
    [
        BucketWork(name: "daemon/bucket-large", what: "one file of 2 GiB in parts of 16 MiB", count: 1, size: 2 << 30),
        BucketWork(name: "daemon/bucket-small", what: "500 files of 1 MiB", count: 500, size: 1 << 20),
    ].map { work in
        Mark(
            name: work.name,
            what: work.what
                + " to a bucket that throws them away, one and eight at a time, against rclone copy and aws s3 cp"
        ) { bench in
            let clients = try [BucketClient.rclone(bench), .aws()]
            let sink = SinkBucket()
            let address = try Sink(sink)
            let source = TemporaryFolder()
            for number in 0..<work.count {
                try makeFile(source.path.appending(work.file(number)), size: work.size, seed: UInt64(number + 1))
            }
            return try await [1, 8].asyncFlatMap { parallel in
                try await work.measure(bench, clients, source.path, sink, address.url, parallel)
            }
        }
    }

private struct BucketWork: Sendable {
    let name: String
    let what: String
    let count: Int
    let size: Int64

    func file(_ number: Int) -> FilePath { FilePath("\(number).bin") }

    func measure(
        _ bench: Bench, _ clients: [BucketClient], _ source: FilePath, _ sink: SinkBucket, _ url: String,
        _ parallel: Int
    ) async throws -> [Finding] {
        var ours: [Bench.Run] = [], dropped: [Bench.Run] = [], theirs = clients.map { _ in [Bench.Run]() }
        for _ in 0..<bench.rounds {
            for (index, client) in clients.enumerated() {
                sink.forget()
                try bench.warm(source)
                theirs[index].append(try await client.copy(bench, source, url, parallel))
                try check(sink, client.name)
            }
            for isStaged in [true, false] {
                sink.forget()
                let run = try await daemon(bench, source, url, parallel, isStaged: isStaged)
                if isStaged { ours.append(run) } else { dropped.append(run) }
                try check(sink, "the daemon")
            }
        }
        return zip(clients, theirs).flatMap { client, theirs in
            let what = "\(parallel) at a time, to \(client.name)"
            return [
                Finding.ratio(
                    "wall, " + what, ours.wall, to: theirs.wall, most: 1,
                    "\(shown(ours.wall)) s, \(shown(theirs.wall)) s"),
                .ratio(
                    "processor, " + what, ours.processor, to: theirs.processor, most: 1,
                    "\(shown(ours.processor)) s, \(shown(theirs.processor)) s"),
                .ratio(
                    "memory, " + what, ours.memory, to: theirs.memory, most: 1,
                    "\(shown(ours.memory)) MiB, \(shown(theirs.memory)) MiB"),
            ]
        } + [
            .note(
                "from drop on, copies and digests included, \(parallel) at a time",
                "\(shown(dropped.wall)) s, \(shown(dropped.processor)) s of processor, \(shown(dropped.memory)) MiB")
        ]
    }

    private func check(_ sink: SinkBucket, _ who: String) throws {
        let objects = sink.objects
        guard objects.count == count, objects.values.allSatisfy({ $0 == size }) else {
            throw WrongResult("\(objects.count) objects of \(count) arrived whole from \(who)")
        }
    }

    /// - Parameter isStaged: Whether the measurement begins with finished copies; otherwise it begins with the files,
    ///   and includes settling and copying.
    private func daemon(_ bench: Bench, _ source: FilePath, _ url: String, _ parallel: Int, isStaged: Bool)
        async throws -> Bench.Run
    {
        let scene = try await Scene(
            bench,
            destination:
                "{type: s3, preset: minio, endpoint: \"\(url)\", bucket: bench, access_key: {literal: AKBENCH}, secret_key: {literal: SKBENCH}, "
                + "parallel: \(parallel)}", concurrency: parallel)
        if isStaged { try await scene.pause() }
        let clock = ContinuousClock()
        try bench.warm(source)
        var start = clock.now
        var before = try scene.processor()
        for number in 0..<count {
            try Files.rename(source.appending(file(number)), to: scene.drop.appending(file(number)))
        }
        if isStaged {
            try await scene.staged(Int64(count) * size)
            try bench.warm(scene.home.path.appending("staging"))
            try scene.forgetPeak()
            (start, before) = (clock.now, try scene.processor())
            try await scene.resume()
        }
        try await scene.completed(count)
        let run = Bench.Run(
            wall: start.duration(to: clock.now).inSeconds, processor: try scene.processor() - before,
            memory: Double(try scene.usage().residentPeak) / 1_048_576)
        for number in 0..<count {
            try Files.rename(scene.drop.appending(file(number)), to: source.appending(file(number)))
        }
        return run
    }
}

/// Another client of S3.
private struct BucketClient: Sendable {
    let name: String
    private let program: FilePath
    private let words: @Sendable (_ source: FilePath, _ url: String, _ parallel: Int) -> [String]

    static func rclone(_ bench: Bench) throws -> BucketClient {
        BucketClient(name: "rclone copy", program: try bench.rclone()) { source, url, parallel in
            [
                "copy", "--config", "", "--s3-provider", "Minio", "--s3-endpoint", url, "--s3-access-key-id", "AKBENCH",
                "--s3-secret-access-key", "SKBENCH", "--s3-chunk-size", "16Mi", "--s3-upload-cutoff", "16Mi",
                "--s3-upload-concurrency", "\(parallel)", "--s3-no-check-bucket", "--transfers", "\(parallel)",
                source.display, ":s3:bench/camera",
            ]
        }
    }

    static func aws() throws -> BucketClient {
        let program: FilePath
        do { program = try Tools.python("awscli").appending("aws") } catch {
            throw Absent(what: "the AWS CLI", remedy: "python3 -m pip must reach awscli (\(error))")
        }
        return BucketClient(name: "aws s3 cp", program: program) { source, url, _ in
            [
                "s3", "cp", "--recursive", "--only-show-errors", "--endpoint-url", url, source.display,
                "s3://bench/camera",
            ]
        }
    }

    func copy(_ bench: Bench, _ source: FilePath, _ url: String, _ parallel: Int) async throws -> Bench.Run {
        let home = TemporaryFolder()
        let settings = home.path.appending("config")
        let text = """
            [default]
            region = us-east-1
            request_checksum_calculation = when_required
            s3 =
              addressing_style = path
              max_concurrent_requests = \(parallel)
              multipart_threshold = 16MB
              multipart_chunksize = 16MB

            """
        try Files.replace(settings, with: Array(text.utf8))
        return try await bench.run(
            program, words(source, url, parallel),
            environment: [
                "HOME": home.path.display, "AWS_CONFIG_FILE": settings.display, "AWS_ACCESS_KEY_ID": "AKBENCH",
                "AWS_SECRET_ACCESS_KEY": "SKBENCH",
            ])
    }
}

extension Array {
    fileprivate func asyncFlatMap<R>(_ body: (Element) async throws -> [R]) async rethrows -> [R] {
        var all: [R] = []
        for element in self { all += try await body(element) }
        return all
    }
}
