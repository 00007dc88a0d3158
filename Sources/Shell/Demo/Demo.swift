internal import API
internal import Control
internal import Core
internal import Digests
internal import Linux
internal import Transport

extension Verb {
    static let demo: Verb = Verb(
        "demo", "show an upload that is cut in the middle and continues, on this machine",
        details: [
            "Starts a receiver and a daemon, lets a video arrive in the watched folder, kills the daemon in the middle "
                + "of the upload (SIGKILL, as a power cut would), starts it again, and compares the digest of the "
                + "received file. It takes less than 10 seconds.",
            "It needs no configuration, no network and no other rights than yours. All files are in a new folder in "
                + "$TMPDIR (default: /var/tmp), which it names and removes. The status is 0 only if the received file "
                + "is equal.",
        ],
        options: [
            Option(
                flag: "keep", "afterwards let the receiver and the daemon run until Ctrl-C, and leave the folder"),
            .ignoredConfig,
        ],
        examples: [
            ("sluice demo", "Shows it, and leaves nothing behind."),
            ("sluice demo --keep", "Lets you drop files of your own afterwards."),
        ]
    ) { call in
        let demo = try Demo(call)
        let work = Task { try await demo.run() }
        let stopping = Task {
            guard let signals = call.signals else { return }
            // Further signals change nothing: people often press Ctrl-C twice, and the end takes a moment.
            for await _ in signals.stream { work.cancel() }
        }
        defer { stopping.cancel() }
        return try await work.value
    }
}

/// One run of `sluice demo`. Only its own task uses it.
private final class Demo: Sendable {
    private static let name: FilePath = "clip.mov"
    private static let rate: Int64 = 8_000_000

    private let console: Console
    private let keeps: Bool
    private let program: FilePath
    private let folder: FilePath
    private let changed = AsyncSignal()
    private let transport = Transport()

    init(_ call: Invocation) throws {
        console = call.console
        keeps = call.arguments.has("keep")
        guard let program = Files.real("/proc/self/exe") else {
            throw CommandError(.failed, "the path of this program is unknown", remedy: "Is /proc mounted?")
        }
        self.program = program
        // Not /tmp: in Debian 13 it is in memory, where the daemon keeps no copies.
        let parent = console.environment("TMPDIR").map { FilePath($0) }.flatMap { Self.isPlain($0) ? $0 : nil }
        folder = (parent ?? "/var/tmp").appending(FilePath("sluice-demo-" + hexadecimal(Random.bytes(6))))
    }

    /// Whether a path can stand in a configuration as it is.
    private static func isPlain(_ path: FilePath) -> Bool {
        path.isAbsolute && path.bytes.allSatisfy { (0x21...0x7E).contains($0) && !"\"\\{}".utf8.contains($0) }
    }

    /// The processes that run now.
    private struct Running {
        var receiver: DemoProcess?
        var daemon: DemoProcess?
    }

    func run() async throws -> ExitCode {
        guard try FileStatus.ifPresent(at: folder.parent) != nil else {
            throw CommandError(
                .failed, "\(folder.parent.display) does not exist",
                remedy: "Set TMPDIR to a folder that you may write to.")
        }
        do {
            for name: FilePath in ["drop", "received", "sent"] { try Files.makeFolders(place(name), mode: 0o700) }
        } catch {
            throw CommandError(.failed, "\(error)", remedy: "Set TMPDIR to a folder that you may write to.")
        }
        var running = Running()
        let result: Result<Void, any Error>
        do {
            try await show(&running)
            if keeps { try await letPlay(running) }
            result = .success(())
        } catch { result = .failure(error) }
        let (receiver, daemon) = (running.receiver, running.daemon)
        await transport.stop()
        // The end is not cancelled with the rest.
        try await Task { try await end([receiver, daemon].compactMap { $0 }) }.value
        do { try result.get() } catch is CancellationError {
            throw CommandError(.failed, "the demo was ended before the file was compared")
        }
        if !keeps { try console.line("Done. Nothing runs any more, and the folder is removed.") }
        return .ok
    }

    private func end(_ processes: [DemoProcess]) async throws {
        for process in processes { process.kill() }
        for process in processes { while process.ending == nil { await changed.wait(atMost: .milliseconds(50)) } }
        if !keeps { return try Files.removeTree(folder) }
        try console.line("\nThe folder stays. Remove it with: rm -r \(folder.display)")
    }

    // MARK: The scenes

    private func show(_ running: inout Running) async throws {
        try console.line("All files of this demo are in \(folder.display)")
        let receiver = start(["receive", "--listen", "127.0.0.1:0", "--into", place("received")])
        running.receiver = receiver
        let line = try await wait("the receiver did not start", receiver) { receiver.firstLine }
        let url = String(line.dropFirst("listening on ".count))
        try console.line("receiver  \(url), into \(place("received").display)")
        try Files.replace(place("sluice.yaml"), with: Array(configuration(url).utf8))
        try await startDaemon(&running)
        try console.line("daemon    watches \(place("drop").display), and sends \(Units.rate(Self.rate)) at most\n")

        let video = DemoVideo.content()
        let total = Units.bytes(Int64(video.count))
        try Files.publish(place("drop").appending(Self.name), video, mode: 0o600)
        try console.line("A camera has written \(Self.name.display), \(total).")
        let before = try await progress(running) { $0.state == .uploading && $0.progress.fraction > 0.4 }
        running.daemon?.kill()
        try console.line("The daemon is killed now (SIGKILL), as by a power cut, at \(Units.percent(before)).")
        try await ended(running.daemon)
        try console.line("The daemon starts again.")
        try await startDaemon(&running)
        _ = try await progress(running) { $0.state == .completed && $0.sourceState.hasPrefix("done") }
        let sent = try await sentBytes()
        try verify(video)
        try console.line(
            "  sent      \(Units.bytes(sent)) after the cut; the rest, which had arrived, was not sent again")
        try console.line("  source    moved to \(place("sent").appending(Self.name).display)\n")
        guard sent < Int64(video.count) else {
            throw CommandError(.failed, "the upload did not continue: all of it was sent again")
        }
    }

    /// Compares the received file with the one that was written.
    private func verify(_ video: [UInt8]) throws {
        let received = place("received").appending("camera").appending(Self.name)
        let file = try Descriptor.open(received, for: .reading)
        let digest = try Hasher.digest(.sha256) { try file.read(into: $0, at: $1, named: received) }
        guard digest == Hasher.digest(.sha256, of: video) else {
            throw CommandError(.failed, "\(received.display) is not equal to the file that was written")
        }
        try console.line(
            """

            Verified: the received file has the same SHA-256 as the one that the camera wrote.
              received  \(received.display)
              sha-256   \(hexadecimal(digest))
            """)
    }

    private func letPlay(_ running: Running) async throws {
        let words = ["/usr/bin/sluice", "/usr/local/bin/sluice"].contains(program) ? "sluice" : program.display
        try console.line(
            """
            Now you. The receiver and the daemon run until you press Ctrl-C. In another terminal:
              cp VIDEO \(place("drop").display)/
              \(words) list --config \(place("sluice.yaml").display)
              \(words) events --config \(place("sluice.yaml").display)
            """)
        while !Task.isCancelled {
            for process in [running.receiver, running.daemon] {
                if let ending = process?.ending { throw CommandError(.failed, ending) }
            }
            await changed.wait()
        }
    }

    // MARK: Processes

    private func start(_ words: [FilePath]) -> DemoProcess {
        DemoProcess(words, of: program, in: folder, changed: changed)
    }

    private func startDaemon(_ running: inout Running) async throws {
        let daemon = start(["run", "--config", place("sluice.yaml")])
        running.daemon = daemon
        _ = try await wait("the daemon did not start", daemon) { try await ask { try await $0.status() } }
    }

    private func ended(_ process: DemoProcess?) async throws {
        while process?.ending == nil { await changed.wait(atMost: .milliseconds(50)) }
    }

    /// Waits until the daemon's only upload has a state, and shows how far it is.
    ///
    /// - Returns: The part that has arrived, from 0 to 1.
    private func progress(_ running: Running, until hasArrived: (UploadView) -> Bool) async throws -> Double {
        guard let daemon = running.daemon else { return 0 }
        defer { if console.isTerminal { console.progress("") } }
        return try await wait("the upload made no progress", daemon) {
            guard let upload = try await ask({ try await $0.list(ListQuery()) })?.uploads.first else { return nil }
            if console.isTerminal { console.progress("uploading \(Units.percent(upload.progress.fraction))") }
            return hasArrived(upload) ? upload.progress.fraction : nil
        }
    }

    /// The bytes that the running daemon has sent since its start, with headers.
    private func sentBytes() async throws -> Int64 {
        let text = String(decoding: try await ask { try await $0.metrics() } ?? [], as: UTF8.self)
        let lines = text.split(separator: "\n").filter { $0.hasPrefix("sluice_network_sent_bytes_total{") }
        return lines.reduce(0) { $0 + (Int64($1.split(separator: " ").last ?? "") ?? 0) }
    }

    /// One question to the daemon; `nil` while it does not answer.
    private func ask<R>(_ question: (ControlClient) async throws -> R) async throws -> R? {
        do { return try await question(ControlClient(socket: place("control.sock"), transport: transport)) } catch {
            guard error is ControlError || error is Refusal else { throw error }
            return nil
        }
    }

    /// Asks until there is an answer, for a minute at most, and only while `process` runs.
    private func wait<R>(
        _ problem: String, _ process: DemoProcess, _ body: () async throws -> R?
    ) async throws -> R {
        let deadline = ContinuousClock.now.advanced(by: .seconds(60))
        while true {
            if let answer = try await body() { return answer }
            try Task.checkCancellation()
            if let ending = process.ending { throw CommandError(.failed, "\(problem): \(ending)") }
            guard ContinuousClock.now < deadline else { throw CommandError(.failed, "\(problem) within a minute") }
            await changed.wait(atMost: .milliseconds(50))
        }
    }

    // MARK: Files

    private func place(_ name: FilePath) -> FilePath { folder.appending(name) }

    private func configuration(_ url: String) -> String {
        """
        version: 1
        state: "\(place("state").display)"
        staging: {path: "\(place("state/staging").display)", keep_free: 0 B, memory: allow}
        folders:
          - name: camera
            path: "\(place("drop").display)"
            upload_to: [nas]
            after_upload: {source: move, to: "\(place("sent").display)/{name}"}
        destinations:
          # In parts of 2 MiB and slowly, so that the upload can be cut in the middle.
          nas: {type: tus, url: "\(url)", chunk_size: 2 MiB, bandwidth: \(Self.rate / 1_000_000) MB/s}
        control: {socket: "\(place("control.sock").display)"}

        """
    }
}
