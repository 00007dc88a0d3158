internal import Core
internal import Glibc
internal import Linux
internal import TestKit

/// One large file through nginx to a tus server that discards it: with one and four parts at the same time, with and
/// without TLS, with both versions of HTTP, also over a long path; compared with curl.
let parallelPartMarks: [Mark] = [
    (name: "daemon/tus-parts", path: Duration.zero), (name: "daemon/tus-parts-40ms", path: .milliseconds(40)),
].map { mark in
    Mark(
        name: mark.name,
        what:
            "2 GiB staged, to a tus server behind nginx that discards it\(mark.path > .zero ? ", over a path of 40 ms" : "")"
            + ", in one and in four parts, against curl with as many files"
    ) { bench in
        let size = Int64(count("MIB", 2048)) << 20
        let pieces = try bench.memoryFolder(space: size + (1 << 30)).appending(FilePath("sluice-bench-\(getpid())"))
        try Files.makeFolders(pieces)
        defer { TemporaryFolder.remove(pieces) }
        let work = try await ParallelPartWork(bench, size: size, path: mark.path, pieces: pieces)
        defer { work.stop() }
        var findings: [Finding] = []
        for way in ParallelPartWork.Way.allCases {
            var alone = 0.0
            for parallel in [1, 4] {
                let (ours, theirs) = try await work.measure(way, parallel)
                let what = "\(way.rawValue), \(parallel) at a time"
                findings += [
                    .note(
                        "wall, " + what,
                        "\(shown(ours.wall / theirs.wall)) x (\(shown(ours.wall)) s, curl \(shown(theirs.wall)) s)"),
                    .note("processor, " + what, "\(shown(ours.processor)) s, curl \(shown(theirs.processor)) s"),
                ]
                if parallel == 1 {
                    alone = ours.wall
                } else {
                    findings.append(.note("gain of four parts, \(way.rawValue)", "\(shown(alone / ours.wall)) x"))
                }
            }
        }
        return findings
    }
}

/// The servers between the clients and the sink, and the runs of both clients.
private struct ParallelPartWork: Sendable {
    enum Way: String, CaseIterable, Sendable {
        case plain = "HTTP/1.1"
        case tls = "HTTP/1.1 with TLS"
        case http2 = "HTTP/2 with TLS"
    }

    private let bench: Bench
    private let curl: FilePath
    private let size: Int64
    private let pieces: FilePath
    private let sink: Sink
    private let nginx: Child
    private let relays: [DelayingRelay]
    private let certificates: TestCertificates
    /// Of the plain server, and of the one with TLS.
    private let ports: [Int]
    private let folder = TemporaryFolder()

    /// - Parameter path: The time for a byte to the server and one back.
    init(_ bench: Bench, size: Int64, path: Duration, pieces: FilePath) async throws {
        (self.bench, self.size, self.pieces) = (bench, size, pieces)
        curl = try bench.program("curl", package: "curl")
        guard await Gateway.areHere(.nginx) else {
            throw Absent(what: "nginx", remedy: "apt-get must reach Debian's nginx")
        }
        let sink = try Sink()
        self.sink = sink
        let certificates = try await TestCertificates(in: folder.path.appending("certificates"))
        self.certificates = certificates
        let secure = try Loopback.freePort()
        // As nginx relays uploads at full speed: it stores nothing, and its window for HTTP/2 is as large as that of
        // TCP. By default that is 16 KiB, which no sender could outrun.
        let common = """
            location / {
              proxy_pass \(sink.url); proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
              proxy_request_buffering off; client_max_body_size 0; client_body_buffer_size 4m;
              keepalive_requests 100000;
            }
            """
        let (nginx, port) = try await Gateway.nginx.start(in: folder.path.appending("nginx")) { port in
            """
            server { listen 127.0.0.1:\(port); \(common) }
            server {
              listen 127.0.0.1:\(secure) ssl http2;
              ssl_certificate \(certificates.server.certificate.display);
              ssl_certificate_key \(certificates.server.key.display);
              \(common)
            }
            """
        }
        self.nginx = nginx
        guard path > .zero else {
            (relays, ports) = ([], [port, secure])
            return
        }
        relays = try [port, secure].map { try DelayingRelay(to: $0, delay: path / 2) }
        ports = relays.map(\.port)
    }

    func stop() {
        for relay in relays { relay.stop() }
        nginx.end(with: SIGTERM)
    }

    private func url(_ way: Way) -> String {
        way == .plain ? "http://127.0.0.1:\(ports[0])" : "https://127.0.0.1:\(ports[1])"
    }

    func measure(_ way: Way, _ parallel: Int) async throws -> (ours: [Bench.Run], theirs: [Bench.Run]) {
        for name in try Files.names(in: pieces) { try Files.remove(pieces.appending(name)) }
        for number in 0..<parallel {
            try makeFile(
                pieces.appending(FilePath("\(number)")), size: size / Int64(parallel), seed: UInt64(number + 1))
        }
        var ours: [Bench.Run] = [], theirs: [Bench.Run] = []
        for round in 0..<bench.rounds {
            let before = sink.now.bytes
            theirs.append(try await bench.run(curl, curlWords(way, parallel)))
            guard sink.now.bytes - before == size else { throw WrongResult("not all bytes arrived from curl") }
            ours.append(try await daemon(way, parallel, round))
            guard sink.now.bytes - before == 2 * size else { throw WrongResult("not all bytes arrived") }
        }
        return (ours, theirs)
    }

    private func curlWords(_ way: Way, _ parallel: Int) -> [String] {
        // A connection for each file, as the daemon has one for each part.
        ["-sS", "-f", "--parallel", "--parallel-immediate", "--parallel-max", "\(parallel)"]
            + (0..<parallel).flatMap { number in
                (number > 0 ? ["--next", "-sS", "-f"] : []) + [
                    "-H", "Expect:", way == .http2 ? "--http2" : "--http1.1", "--cacert",
                    certificates.authority.display, "-T", pieces.appending(FilePath("\(number)")).display, "-o",
                    "/dev/null", "\(url(way))/x",
                ]
            }
    }

    private func daemon(_ way: Way, _ parallel: Int, _ round: Int) async throws -> Bench.Run {
        let scene = try await Scene(
            bench,
            destination: "{type: tus, url: \"\(url(way))/u\", parallel: \(parallel), "
                + "extensions: [creation, concatenation], "
                + "http: {ca_file: \(certificates.authority.display), http2: \(way == .http2 ? "always" : "never")}}")
        try await scene.pause()
        try scene.place(FilePath("\(round).bin"), size: size, seed: UInt64(round + 2))
        try await scene.staged(size)
        try bench.warm(scene.home.path.appending("staging"))
        let before = try scene.processor()
        let start = ContinuousClock.now
        try await scene.resume()
        try await scene.completed(1)
        return Bench.Run(
            wall: start.duration(to: .now).inSeconds, processor: try scene.processor() - before)
    }
}
